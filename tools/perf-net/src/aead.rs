//! The speed of the packet cipher alone: `ring` with the same key length and packet sizes.

use std::time::Instant;

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use serde::Serialize;

use crate::Failure;

/// Packets sealed in one measurement.
const PACKETS: u64 = 100_000;
/// Packets used in turn, so that memory is touched as in a batch of packets.
const SET: usize = 46;
const HEADER: usize = 11;
/// Payload lengths measured, bytes.
const LENGTHS: [usize; 2] = [1200, 1400];

/// The rate for one packet length.
#[derive(Clone, Debug, Serialize)]
pub struct Rate {
    /// Payload of a packet, bytes.
    pub length: usize,
    /// Median payload rate of sealing, gigabits per second.
    pub seal_gbps: f64,
    /// Nanoseconds per packet sealed.
    pub seal_ns: f64,
}

/// Seals packets of each length, `rounds` times over.
pub fn measure(rounds: usize) -> Result<Vec<Rate>, Failure> {
    LENGTHS.iter().map(|length| rate(*length, rounds.max(3))).collect()
}

fn rate(length: usize, rounds: usize) -> Result<Rate, Failure> {
    let key = UnboundKey::new(&AES_256_GCM, &[7; 32]).map_err(|_| "ring refused the key")?;
    let key = LessSafeKey::new(key);
    let mut packets = vec![vec![7_u8; length]; SET];
    let mut times = Vec::new();
    for _ in 0..rounds {
        let start = Instant::now();
        for number in 0..PACKETS {
            let mut nonce = [0; 12];
            nonce[4..].copy_from_slice(&number.to_be_bytes());
            let Some(packet) = packets.get_mut(number as usize % SET) else { continue };
            let nonce = Nonce::assume_unique_for_key(nonce);
            let tag = key.seal_in_place_separate_tag(nonce, Aad::from([1; HEADER]), packet);
            let _ = core::hint::black_box(tag.map_err(|_| "sealing failed")?);
        }
        times.push(start.elapsed().as_secs_f64() / PACKETS as f64);
    }
    times.sort_by(f64::total_cmp);
    let median = times.get(times.len() / 2).copied().unwrap_or(f64::NAN);
    Ok(Rate { length, seal_gbps: length as f64 * 8e-9 / median, seal_ns: median * 1e9 })
}
