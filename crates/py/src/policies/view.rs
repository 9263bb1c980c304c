//! Paths as policies written in Python see them: copies that never change.

use anabranch_policy::view;
use anabranch_types::{Bitrate, Time};
use pyo3::prelude::*;

use super::values::{rate, seconds};

/// A Python class whose attributes are read from a Rust value; methods may follow.
macro_rules! snapshot {
    (
        $(#[$about:meta])* $name:ident of $inner:ty {
            $($(#[$doc:meta])* $field:ident: $kind:ty = |$value:ident| $read:expr;)*
        }
        $($methods:tt)*
    ) => {
        $(#[$about])*
        #[pyclass(frozen, module = "anabranch")]
        #[derive(Clone, Debug)]
        pub(crate) struct $name(pub(super) $inner);

        #[pymethods]
        impl $name {
            $($(#[$doc])* #[getter] fn $field(&self) -> $kind {
                let $value = &self.0;
                $read
            })*

            fn __repr__(&self) -> String {
                let mut text = String::new();
                $({
                    let $value = &self.0;
                    let value: $kind = $read;
                    let comma = if text.is_empty() { "" } else { ", " };
                    text.push_str(&format!("{comma}{}={value:?}", stringify!($field)));
                })*
                format!("{}({text})", stringify!($name))
            }

            $($methods)*
        }
    };
}
pub(super) use snapshot;

/// The words for the states of a path.
fn state(state: view::PathState) -> &'static str {
    match state {
        view::PathState::Validating => "validating",
        view::PathState::Active => "active",
        view::PathState::Suspect => "suspect",
        view::PathState::Probation => "probation",
        view::PathState::Closed => "closed",
    }
}

snapshot! {
    /// Round-trip times of a path (RFC 9002 §5), seconds.
    RttView of view::RttView {
        /// The newest sample.
        latest: f64 = |rtt| seconds(rtt.latest);
        /// Smoothed, gain 1/8.
        smoothed: f64 = |rtt| seconds(rtt.smoothed);
        /// Mean deviation, gain 1/4.
        variation: f64 = |rtt| seconds(rtt.variation);
        /// The least sample in the current observation window.
        min: f64 = |rtt| seconds(rtt.min);
        /// The forward delay above the least seen: the queue on the way to the peer.
        queue: f64 = |rtt| seconds(rtt.queue);
        /// The least forward transit, on clocks that are not synchronised: only differences between
        /// the paths of a connection mean something.
        forward: f64 = |rtt| rtt.forward as f64 / 1e6;
        /// How many samples there are; 0 means that `smoothed` is an initial guess.
        samples: u64 = |rtt| rtt.samples;
    }

    /// By how much a packet on this path arrives before one sent on `other` at the same time, queues aside,
    /// seconds; 0 if it arrives later.
    fn forward_lead(&self, other: &RttView) -> f64 {
        seconds(self.0.forward_lead(&other.0))
    }
}

snapshot! {
    /// A loss probability, and how far single observations stray from it.
    LossView of view::LossView {
        /// The mean, 0 to 1.
        mean: f64 = |loss| loss.mean;
        /// The standard deviation of the observed loss fraction, 0 to 1.
        deviation: f64 = |loss| loss.deviation;
    }
}

snapshot! {
    /// One path. Bytes are what congestion control counts: UDP payload and 28 bytes of headers in the
    /// transport, payload in the models of TCP. Times are seconds, rates bits per second.
    PathView of view::PathView {
        /// Identifier of the path; numbered from 0 as paths are opened.
        id: u32 = |path| path.id.0;
        /// The path's place in tables by path. Unlike the identifier, it is used again after a path has closed.
        slot: u8 = |path| path.slot;
        /// State of the path: "validating", "active", "suspect", "probation" or "closed".
        state: &'static str = |path| state(path.state);
        /// Whether ordinary data may be given to the path.
        usable: bool = |path| path.usable();
        /// Used only when no other path is usable.
        backup: bool = |path| path.backup;
        /// Congestion window, bytes.
        cwnd: u64 = |path| path.cwnd;
        /// Slow-start threshold, bytes; None where the controller has none.
        ssthresh: Option<u64> = |path| (path.ssthresh < u64::MAX).then_some(path.ssthresh);
        /// Bytes sent, neither acknowledged nor declared lost.
        bytes_in_flight: u64 = |path| path.bytes_in_flight;
        /// Bytes on the wire of what is assigned to this path and has not been sent.
        bytes_queued: u64 = |path| path.bytes_queued;
        /// Size of a full packet, bytes.
        packet_size: u64 = |path| path.packet_size;
        /// Whether window and pacer admit one full packet now.
        ready: bool = |path| path.ready;
        /// When the pacer admits the next packet (may be in the past).
        next_send: f64 = |path| path.next_send.as_secs_f64();
        /// Pacing rate in force; None if the path is not paced.
        pacing_rate: Option<u64> = |path| rate(path.pacing_rate);
        /// The newest estimate of the rate at which packets leave the bottleneck, lost ones included.
        rate: Option<u64> = |path| rate(path.rate);
        /// Round-trip times and the standing queue.
        rtt: RttView = |path| RttView(path.rtt);
        /// Retransmission or probe timeout in force, back-off included.
        rto: f64 = |path| seconds(path.rto);
        /// When the oldest unacknowledged packet was sent.
        oldest_unacked: Option<f64> = |path| path.oldest_unacked.map(Time::as_secs_f64);
        /// Loss estimate of the path.
        loss: LossView = |path| LossView(path.loss);
        /// Bit set of the slots of paths that were found to share a bottleneck with this one.
        shares: u16 = |path| path.shares;
        /// Congestion window in full packets, at least 1.
        cwnd_packets: u64 = |path| path.cwnd_packets();
        /// Full packets that the window still admits.
        free_packets: u64 = |path| path.free_packets();
        /// One congestion window per round trip, less its losses, packets per second (MPLOT, eq. 1).
        loss_free_bandwidth: f64 = |path| path.loss_free_bandwidth();
    }
}

/// A rate that Python gave, if it gave one.
pub(super) fn bitrate(bps: Option<u64>) -> Option<Bitrate> {
    bps.map(Bitrate::from_bps)
}
