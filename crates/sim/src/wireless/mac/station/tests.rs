use super::*;
use crate::wireless::{MacConfig, Priority};

fn station(config: &MacConfig) -> (Mac, Timing) {
    let timing = Timing::new(config);
    (Mac::new(0, 3, &timing, Rng::new(1)), timing)
}

fn message(to: u32) -> Message {
    let to = Destination::Station(to);
    Message { token: 1, to, bytes: 1000, priority: Priority::Data }
}

/// A frame from station 1 to station 0.
fn frame(kind: FrameKind, sequence: u32) -> Frame {
    let to = Destination::Station(0);
    Frame { kind, from: 1, to, airtime: 304_000, reserves: 1_000_000, sequence, token: 7 }
}

/// Runs the timer until a frame is sent. Returns the time and the frame.
fn next_frame(mac: &mut Mac, timing: &Timing, notices: &mut Vec<Notice>) -> Option<(u64, Frame)> {
    while let Some(due) = mac.next_timer(timing) {
        if let Some(frame) = mac.handle_timer(due, timing, notices) {
            return Some((due, frame));
        }
    }
    None
}

#[test]
fn the_window_doubles_to_its_limit_and_starts_again_with_the_next_message() {
    let config = MacConfig { short_retry_limit: 8, ..MacConfig::default() };
    let (mut mac, timing) = station(&config);
    mac.submit(0, &timing, message(1));
    let mut windows = Vec::new();
    let mut notices = Vec::new();
    while next_frame(&mut mac, &timing, &mut notices).is_some() {
        windows.push(mac.window);
    }
    assert_eq!(windows, [31, 63, 127, 255, 511, 1023, 1023, 1023]);
    assert_eq!(notices, [Notice::GaveUp { token: 1, to: 1 }]);
    assert_eq!((mac.window, mac.backlog()), (31, 0));
}

#[test]
fn back_off_is_uniform_up_to_the_window() {
    for (window_inclusive, most) in [(true, 31), (false, 30)] {
        let config = MacConfig { window_inclusive, ..MacConfig::default() };
        let (mut mac, timing) = station(&config);
        let mut counts = [0_u32; 32];
        for _ in 0..32_000 {
            let BackOff::Slots(slots) = mac.draw(&timing) else { panic!("slots") };
            counts[slots as usize] += 1;
        }
        assert_eq!(counts.iter().rposition(|count| *count > 0), Some(most));
        // Each value occurs about 1000 times, with a standard deviation of 31.
        assert!(counts[..=most].iter().all(|count| (850..1160).contains(count)), "{counts:?}");
    }
}

#[test]
fn data_behind_a_cts_has_the_long_retry_limit_and_a_cts_renews_the_short_one() {
    let config = MacConfig { rts_threshold: 0, ..MacConfig::default() };
    let (mut mac, timing) = station(&config);
    mac.submit(0, &timing, message(1));
    let mut notices = Vec::new();
    let (mut rts, mut data) = (0, 0);
    while let Some((now, sent)) = next_frame(&mut mac, &timing, &mut notices) {
        assert_eq!(sent.kind, FrameKind::Rts);
        rts += 1;
        // Every third RTS is answered with a CTS, but no data frame is answered.
        if rts % 3 == 0 {
            let end = now + sent.airtime;
            mac.handle_timer(end, &timing, &mut notices);
            let heard = end + timing.sifs + timing.cts;
            mac.handle_frame(heard, &timing, (&frame(FrameKind::Cts, 0), true), &mut notices);
            let (start, sent) = next_frame(&mut mac, &timing, &mut notices).unwrap();
            assert_eq!((start, sent.kind), (heard + timing.sifs, FrameKind::Data));
            data += 1;
        }
    }
    assert_eq!((rts, data), (12, 4));
    assert_eq!(notices, [Notice::GaveUp { token: 1, to: 1 }]);
}

#[test]
fn a_repeated_frame_is_acknowledged_but_not_handed_up_again() {
    let (mut mac, timing) = station(&MacConfig::default());
    let mut notices = Vec::new();
    for (at, sequence) in [5, 5, 6].into_iter().enumerate() {
        let now = 2_000_000 * (at as u64 + 1);
        let data = frame(FrameKind::Data, sequence);
        mac.handle_frame(now, &timing, (&data, true), &mut notices);
        let (start, answer) = next_frame(&mut mac, &timing, &mut notices).unwrap();
        assert_eq!((start, answer.kind), (now + timing.sifs, FrameKind::Ack));
        assert_eq!(answer.to, Destination::Station(1));
        mac.handle_timer(start + answer.airtime, &timing, &mut notices);
    }
    let received = Notice::Received { from: 1, token: 7 };
    assert_eq!(notices, [received, received]);
    assert_eq!(mac.counters.duplicates, 1);
}

#[test]
fn an_rts_is_not_answered_while_the_channel_is_reserved_for_others() {
    let (mut mac, timing) = station(&MacConfig::default());
    let mut notices = Vec::new();
    let foreign = Frame { to: Destination::Station(2), ..frame(FrameKind::Cts, 0) };
    mac.handle_frame(100_000, &timing, (&foreign, true), &mut notices);
    mac.handle_frame(1_099_999, &timing, (&frame(FrameKind::Rts, 0), true), &mut notices);
    assert_eq!(mac.next_timer(&timing), None);
    mac.handle_frame(1_100_000, &timing, (&frame(FrameKind::Rts, 0), true), &mut notices);
    let (start, answer) = next_frame(&mut mac, &timing, &mut notices).unwrap();
    assert_eq!((start, answer.kind), (1_110_000, FrameKind::Cts));
    assert_eq!(answer.reserves, 1_000_000 - 10_000 - 304_000);
}

#[test]
fn another_frame_in_place_of_the_answer_is_a_failure() {
    let (mut mac, timing) = station(&MacConfig::default());
    let mut notices = Vec::new();
    mac.submit(0, &timing, message(1));
    let (start, sent) = next_frame(&mut mac, &timing, &mut notices).unwrap();
    mac.handle_timer(start + sent.airtime, &timing, &mut notices);
    assert_eq!(mac.step, Step::AwaitingAck);
    let now = start + sent.airtime + 100_000;
    let foreign = Frame { to: Destination::Station(2), ..frame(FrameKind::Data, 1) };
    mac.handle_frame(now, &timing, (&foreign, true), &mut notices);
    assert_eq!((mac.step, mac.window, mac.counters.failures), (Step::Contending, 63, 1));
    assert_eq!(mac.counting, Some(now + foreign.reserves + timing.difs));
}
