//! HyStart, compared with values computed by hand.

use super::*;

/// Runs four rounds of slow start from 10 packets, acknowledged one by one, `gap` microseconds
/// apart, with these round-trip times in milliseconds. Returns the window, in packets, at which
/// slow start ended.
fn ended_at(spec: &str, gap: u64, times: [u64; 4]) -> Option<u64> {
    let mut cubic = controller(&format!("cubic:initial=10{spec}"));
    let (mut start, mut delivered) = (0, 0);
    for millis in times {
        start += millis * 1000;
        for packet in 0..cubic.cwnd() / PACKET {
            let before = cubic.cwnd();
            delivered += PACKET;
            let event = AckEvent {
                now: Time::from_micros(start + packet * gap),
                total_delivered: delivered,
                bytes_in_flight: before - PACKET,
                rtt: rtt(millis),
                ..ack(0, 0, 1)
            };
            cubic.on_ack(&event, &[]);
            if cubic.phase() != "slow-start" {
                return Some(before / PACKET);
            }
        }
    }
    None
}

#[test]
fn a_train_of_acknowledgements_ends_slow_start_after_half_a_round_trip() {
    // The twelfth acknowledgement of the second round comes 5.5 ms after its first. In the first
    // round, the window is below 16 packets.
    assert_eq!(ended_at(",like=linux", 500, [10; 4]), Some(31));
    assert_eq!(ended_at(",slow-start=hystart", 500, [10; 4]), Some(31));
    assert_eq!(ended_at(",like=linux", 2_001, [10; 4]), None, "no train");
}

#[test]
fn a_longer_delay_ends_slow_start_after_eight_samples() {
    // The delay must rise by more than an eighth of 40 ms.
    assert_eq!(ended_at(",like=linux", 2_001, [40, 40, 46, 46]), Some(48));
    assert_eq!(ended_at(",like=linux", 2_001, [40, 40, 45, 45]), None);
    // The rise must be more than at least 4 ms and at most 16 ms.
    assert_eq!(ended_at(",like=linux", 2_001, [10, 10, 14, 15]), Some(88));
    assert_eq!(ended_at(",like=linux", 2_001, [400, 400, 416, 417]), Some(88));
}

#[test]
fn only_a_loss_ends_slow_start_by_the_rfc() {
    for spec in ["", ",like=linux,slow-start=loss"] {
        assert_eq!(ended_at(spec, 500, [10, 10, 40, 40]), None, "{spec}");
    }
}
