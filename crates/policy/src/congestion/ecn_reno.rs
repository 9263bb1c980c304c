//! MPLOT's controller: Reno that reacts only to congestion marks and grows as if nothing were lost.

use anabranch_types::{Bitrate, Probability};
use core::time::Duration;

use crate::congestion::cwnd::AdditiveCwnd;
use crate::congestion::{AckEvent, CongestionController, TimeoutEvent};
use crate::registry::{Entry, Options, PolicyError, option};
use crate::view::PathView;

/// The policy's entry in the registry.
pub const ENTRY: Entry = Entry {
    name: "ecn-reno",
    summary: "Reno that halves on congestion marks only, its growth divided by 1 - loss",
    source: "MPLOT §II-C; RFC 3168 §6.1.2; RFC 5681 §3.1",
    options: &[
        option("initial", "initial window, packets", "2"),
        option("restart", "window after a timeout, packets", "1"),
        option(
            "growth",
            "by acknowledged bytes, or by packets: each counts as a full one",
            "bytes",
        ),
    ],
};

/// Largest loss for which growth is compensated: growth is divided by at least 0.05.
const MAX_LOSS: f64 = 0.95;

/// Reno with ECN as its only congestion signal. Losses never cut the window. Each acknowledged byte
/// counts 1/(1 − p) times, which includes the bytes of the same flight that were lost.
///
/// MPLOT's packets shrink while its blocks are short. In the paper, the window then grows faster,
/// because more acknowledgements come back (§IV-D). The option `growth=packets` does so.
#[derive(Clone, Debug)]
pub struct EcnReno {
    cwnd: AdditiveCwnd,
    restart: u64,
    growth: Growth,
    /// The interval at which single packets are sent after a mark has arrived while the window was
    /// one packet, until an unmarked acknowledgement arrives (RFC 3168 §6.1.2, last paragraph).
    trickle: Option<Duration>,
}

/// How many bytes an acknowledged packet counts for when the window grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Growth {
    /// The bytes of the packet.
    Bytes,
    /// A full packet, whatever its size.
    Packets,
}

/// Builds the policy from its options.
pub fn build(options: &Options<'_>) -> Result<Box<dyn CongestionController>, PolicyError> {
    let initial = options.integer("initial", 1..=1000)?;
    let restart = options.integer("restart", 1..=100)?;
    let growths = [("bytes", Growth::Bytes), ("packets", Growth::Packets)];
    let growth = options.choice("growth", &growths)?;
    let cwnd = AdditiveCwnd::new(initial, options.packet_size());
    Ok(Box::new(EcnReno { cwnd, restart, growth, trickle: None }))
}

impl CongestionController for EcnReno {
    fn on_ack(&mut self, event: &AckEvent, _siblings: &[PathView]) {
        let cwnd = &mut self.cwnd;
        let answered = cwnd.answered(event.largest_acked_sent);
        if event.ce_packets > 0 {
            if !answered {
                if cwnd.bytes() <= cwnd.packet() {
                    self.trickle = Some(timeout(event));
                }
                cwnd.cut(event.now, cwnd.bytes() / 2, 1);
            }
            return;
        }
        if event.acked_packets == 0 {
            return;
        }
        self.trickle = None;
        if !event.app_limited && !answered {
            let loss = Probability::clamped(event.loss.mean).get().min(MAX_LOSS);
            let acked = match self.growth {
                Growth::Bytes => event.acked_bytes,
                Growth::Packets => cwnd.packet().saturating_mul(u64::from(event.acked_packets)),
            };
            cwnd.grow((acked as f64 / (1.0 - loss)) as u64);
        }
    }

    fn on_timeout(&mut self, event: &TimeoutEvent) {
        let first = event.consecutive <= 1;
        self.cwnd.collapse(event.now, event.bytes_in_flight, self.restart, first);
    }

    fn penalise(&mut self) {
        self.cwnd.penalise();
    }

    fn set_packet_size(&mut self, bytes: u64) {
        self.cwnd.set_packet(bytes);
    }

    fn cwnd(&self) -> u64 {
        self.cwnd.bytes()
    }

    fn ssthresh(&self) -> u64 {
        self.cwnd.ssthresh()
    }

    fn pacing_rate(&self) -> Option<Bitrate> {
        self.trickle.map(|interval| Bitrate::from_transfer(self.cwnd.packet(), interval))
    }

    fn phase(&self) -> &'static str {
        if self.trickle.is_some() { "trickle" } else { self.cwnd.phase() }
    }
}

/// The retransmission timeout (RFC 6298 §2) at this acknowledgement, at least 200 ms.
fn timeout(event: &AckEvent) -> Duration {
    let rto = event.rtt.smoothed.saturating_add(event.rtt.variation.saturating_mul(4));
    rto.clamp(Duration::from_millis(200), Duration::from_secs(60))
}
