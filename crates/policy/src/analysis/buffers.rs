//! The sizes of receive and send buffers that keep a multipath connection from stalling.

use anabranch_types::{Bitrate, DataSize};
use core::time::Duration;

/// A path as the buffer rules see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferedPath {
    /// Bandwidth of the path.
    pub bandwidth: Bitrate,
    /// Round-trip time of the path.
    pub rtt: Duration,
    /// Retransmission timeout of the path.
    pub rto: Duration,
}

/// 2 · Σ BWᵢ · max RTTᵢ: a buffer that suffices while a loss on the slowest path is retransmitted
/// fast (FMTCP eq. 1, after RFC 6182 §5.3).
pub fn fast_retransmit_buffer(paths: &[BufferedPath]) -> DataSize {
    held_for(paths, longest(paths, |path| path.rtt).saturating_mul(2))
}

/// Σ BWᵢ · (max RTTᵢ + max RTOᵢ): a buffer that suffices while the slowest path waits for a timeout
/// (FMTCP eq. 2).
pub fn timeout_buffer(paths: &[BufferedPath]) -> DataSize {
    let rtt = longest(paths, |path| path.rtt);
    held_for(paths, rtt.saturating_add(longest(paths, |path| path.rto)))
}

fn longest(paths: &[BufferedPath], time: impl Fn(&BufferedPath) -> Duration) -> Duration {
    paths.iter().map(time).max().unwrap_or_default()
}

/// Data that all paths together deliver in `time`.
fn held_for(paths: &[BufferedPath], time: Duration) -> DataSize {
    let bits: u128 = paths.iter().map(|path| u128::from(path.bandwidth.as_bps())).sum();
    let bytes = bits.saturating_mul(time.as_nanos()) / 8_000_000_000;
    DataSize::from_bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
}
