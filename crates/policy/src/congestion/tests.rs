//! Scripted trajectories of the controllers as integers, and closed loops over a model pipe.

mod c4;
mod coupled;
mod delay_based;
mod hystart;
mod pipe;
mod properties;
mod trajectories;

use anabranch_types::Time;
use core::time::Duration;

use super::{AckEvent, CongestionController, TimeoutEvent};
use crate::registry::PolicySpec;
use crate::view::{LossView, RttView};

const PACKET: u64 = 1200;

fn controller(spec: &str) -> Box<dyn CongestionController> {
    let spec: PolicySpec = spec.parse().unwrap();
    super::build(&spec, PACKET).unwrap()
}

fn ms(millis: u64) -> Time {
    Time::from_millis(millis)
}

fn rtt(millis: u64) -> RttView {
    let rtt = Duration::from_millis(millis);
    RttView {
        latest: rtt,
        smoothed: rtt,
        variation: rtt / 8,
        min: rtt,
        queue: Duration::ZERO,
        forward: 0,
        samples: 1,
    }
}

/// Acknowledges at `now` packets sent at `sent`, with an RTT of 100 ms; nothing is lost or marked.
fn ack(now: u64, sent: u64, packets: u32) -> AckEvent {
    AckEvent {
        now: ms(now),
        acked_bytes: u64::from(packets) * PACKET,
        acked_packets: packets,
        prior_in_flight: u64::from(packets) * PACKET,
        largest_acked_sent: ms(sent),
        rtt: rtt(100),
        ..AckEvent::default()
    }
}

/// Acknowledgement like [`ack`], with one packet sent at the same time lost.
fn loss(now: u64, sent: u64, packets: u32) -> AckEvent {
    AckEvent {
        lost_bytes: PACKET,
        lost_packets: 1,
        largest_lost_sent: ms(sent),
        ..ack(now, sent, packets)
    }
}

/// Acknowledgement like [`ack`], with one packet marked.
fn mark(now: u64, sent: u64, packets: u32) -> AckEvent {
    AckEvent { ce_packets: 1, ..ack(now, sent, packets) }
}

fn timeout(now: u64, flight: u64, consecutive: u32) -> TimeoutEvent {
    TimeoutEvent { now: ms(now), bytes_in_flight: flight * PACKET, consecutive }
}
