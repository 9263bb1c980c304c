//! Events as policies written in Python see them.

use anabranch_policy::congestion;
use anabranch_policy::scheduler::SchedulerEvent as Told;
use anabranch_types::PathId;
use pyo3::prelude::*;

use super::values::seconds;
use super::view::{LossView, RttView, snapshot};

snapshot! {
    /// A measurement of the rate at which a path moves packets.
    RateSample of congestion::RateSample {
        /// Bytes acknowledged during the sample.
        delivered: u64 = |sample| sample.delivered;
        /// Bytes declared lost during the sample.
        lost: u64 = |sample| sample.lost;
        /// The time in which they were sent, seconds.
        departure: f64 = |sample| seconds(sample.departure);
        /// The time in which they were acknowledged, seconds.
        arrival: f64 = |sample| seconds(sample.arrival);
        /// The sender had nothing to send during part of it, so the sample is a lower bound.
        app_limited: bool = |sample| sample.app_limited;
        /// Bytes delivered on the path in all when the sampled packet was sent.
        prior_delivered: u64 = |sample| sample.prior_delivered;
        /// Bits delivered per second.
        delivery_rate: u64 = |sample| sample.delivery_rate().as_bps();
        /// Bits that crossed the bottleneck per second, delivered or lost after it.
        resolved_rate: u64 = |sample| sample.resolved_rate().as_bps();
    }
}

snapshot! {
    /// A packet left.
    SentEvent of congestion::SentEvent {
        /// Now, seconds.
        now: f64 = |event| event.now.as_secs_f64();
        /// Bytes of the packet.
        bytes: u64 = |event| event.bytes;
        /// Bytes in flight, this packet included.
        bytes_in_flight: u64 = |event| event.bytes_in_flight;
    }
}

snapshot! {
    /// One acknowledgement, digested for one path: what it newly acknowledged and what is now lost. Times are
    /// seconds.
    AckEvent of congestion::AckEvent {
        /// The current time.
        now: f64 = |event| event.now.as_secs_f64();
        /// Bytes newly acknowledged.
        acked_bytes: u64 = |event| event.acked_bytes;
        /// Packets newly acknowledged.
        acked_packets: u32 = |event| event.acked_packets;
        /// Bytes newly declared lost.
        lost_bytes: u64 = |event| event.lost_bytes;
        /// Packets newly declared lost.
        lost_packets: u32 = |event| event.lost_packets;
        /// Packets newly reported with a Congestion Experienced mark.
        ce_packets: u32 = |event| event.ce_packets;
        /// Bytes in flight after this acknowledgement.
        bytes_in_flight: u64 = |event| event.bytes_in_flight;
        /// Bytes in flight before it.
        prior_in_flight: u64 = |event| event.prior_in_flight;
        /// When the newest acknowledged packet was sent.
        largest_acked_sent: f64 = |event| event.largest_acked_sent.as_secs_f64();
        /// When the newest lost packet was sent; None if none was lost.
        largest_lost_sent: Option<f64> =
            |event| (event.lost_packets > 0).then_some(event.largest_lost_sent.as_secs_f64());
        /// Bytes acknowledged on the path so far.
        total_delivered: u64 = |event| event.total_delivered;
        /// A rate sample, if this acknowledgement allows one.
        rate: Option<RateSample> = |event| event.rate.map(RateSample);
        /// Round-trip times after this acknowledgement.
        rtt: RttView = |event| RttView(event.rtt);
        /// Loss estimate of the path.
        loss: LossView = |event| LossView(event.loss);
        /// The window was not filled when this flight was sent, so it must not grow.
        app_limited: bool = |event| event.app_limited;
        /// Identifier of the path among its siblings; None for a connection of one path.
        path: Option<u32> = |event| event.path.map(|path| path.0);
    }
}

snapshot! {
    /// No feedback about the path arrived for a retransmission timeout.
    TimeoutEvent of congestion::TimeoutEvent {
        /// Now, seconds.
        now: f64 = |event| event.now.as_secs_f64();
        /// Bytes in flight when the timer fired.
        bytes_in_flight: u64 = |event| event.bytes_in_flight;
        /// How many times in a row it has fired, this time included.
        consecutive: u32 = |event| event.consecutive;
    }
}

fn kind(event: &Told) -> &'static str {
    match event {
        Told::Acked(_) => "acked",
        Told::Lost(_) => "lost",
        Told::CwndReduced(..) => "cwnd-reduced",
        Told::Timeout(_) => "timeout",
        Told::PathUp(_) => "path-up",
        Told::PathDown(_) => "path-down",
        Told::Recovered(_) => "recovered",
        Told::ReceiverLimited => "receiver-limited",
        Told::SenderLimited { .. } => "sender-limited",
        Told::Wakeup => "wakeup",
    }
}

fn path(event: &Told) -> Option<PathId> {
    match event {
        Told::Acked(path)
        | Told::Lost(path)
        | Told::CwndReduced(path, _)
        | Told::Timeout(path)
        | Told::PathUp(path)
        | Told::PathDown(path) => Some(*path),
        _ => None,
    }
}

snapshot! {
    /// An event that a scheduler is told.
    SchedulerEvent of Told {
        /// "acked", "lost", "cwnd-reduced", "timeout", "path-up", "path-down" (of a path), "recovered" (of a
        /// block), "receiver-limited", "sender-limited" or "wakeup".
        kind: &'static str = |event| kind(event);
        /// The path that the event is about, if any.
        path: Option<u32> = |event| path(event).map(|path| path.0);
        /// The block that was recovered.
        block: Option<u64> = |event| match event {
            Told::Recovered(block) => Some(block.0),
            _ => None,
        };
        /// Congestion window after the reduction, bytes.
        cwnd: Option<u64> = |event| match event {
            Told::CwndReduced(_, bytes) => Some(*bytes),
            _ => None,
        };
        /// Of "sender-limited": whether no byte of the send buffer is free.
        full: bool = |event| matches!(event, Told::SenderLimited { full: true });
    }
}
