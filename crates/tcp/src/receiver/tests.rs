//! A receiver against hand-written segments.

use super::*;
use crate::config::DelayedAck;

const MSS: u64 = 1000;

fn ms(n: u64) -> Time {
    Time::from_millis(n)
}

fn plain() -> Config {
    Config { mss: MSS as u32, timestamps: false, handshake: false, ..Config::default() }
}

fn data(index: u64) -> Segment {
    Segment { seq: index * MSS, len: MSS as u32, ..Segment::EMPTY }
}

fn blocks(ack: &Segment) -> Vec<(u64, u64)> {
    ack.sack.iter(ack.ack).map(|(start, end)| (start / MSS, end / MSS)).collect()
}

#[test]
fn ranges_are_reported_newest_first() {
    let mut receiver = Receiver::new(plain());
    let mut last = Vec::new();
    for index in [0, 2, 4, 6, 5, 8, 10, 12] {
        receiver.handle_segment(ms(index), &data(index), false);
        let ack = receiver.poll_transmit(ms(index)).expect("each is acknowledged at once");
        assert_eq!(ack.ack, MSS);
        last = blocks(&ack);
    }
    assert_eq!(last, [(12, 13), (10, 11), (8, 9), (4, 7)]);
    assert_eq!(receiver.statistics().out_of_order, 7);
    receiver.handle_segment(ms(20), &data(1), false);
    let ack = receiver.poll_transmit(ms(20)).expect("a gap was filled");
    assert_eq!((ack.ack, receiver.delivered()), (3 * MSS, 3 * MSS));
}

#[test]
fn duplicates_are_reported_before_the_ranges() {
    let mut receiver = Receiver::new(Config { undo: true, ..plain() });
    for index in [0, 1, 3, 5, 7] {
        receiver.handle_segment(ms(index), &data(index), false);
        while receiver.poll_transmit(ms(index)).is_some() {}
    }
    let mut report = |index: u64| {
        receiver.handle_segment(ms(20), &data(index), false);
        let ack = receiver.poll_transmit(ms(20)).expect("a duplicate is acknowledged at once");
        let duplicate = ack.sack.duplicate(ack.ack).map(|(start, end)| (start / MSS, end / MSS));
        (duplicate, blocks(&ack), ack.sack.len())
    };
    let ranges = vec![(7, 8), (5, 6), (3, 4)];
    assert_eq!(report(0), (Some((0, 1)), ranges.clone(), 4), "below the acknowledgement");
    assert_eq!(report(5), (Some((5, 6)), ranges, 4), "above it");
    assert_eq!(report(2).0, None);
}

#[test]
fn delayed_acknowledgements_wait_for_the_second_or_the_timer() {
    let config = Config { delayed_ack: DelayedAck::SECOND, ..plain() };
    let mut receiver = Receiver::new(&config);
    receiver.handle_segment(ms(0), &data(0), false);
    assert_eq!(receiver.poll_transmit(ms(0)), None);
    receiver.handle_segment(ms(1), &data(1), false);
    assert!(receiver.poll_transmit(ms(1)).is_some());
    receiver.handle_segment(ms(2), &data(2), false);
    assert_eq!(receiver.next_timeout(), Some(ms(102)));
    receiver.handle_timeout(ms(102));
    assert!(receiver.poll_transmit(ms(102)).is_some());
    // A segment out of order, and the one that fills the gap, are acknowledged at once.
    receiver.handle_segment(ms(103), &data(4), false);
    assert!(receiver.poll_transmit(ms(103)).is_some());
    receiver.handle_segment(ms(104), &data(3), false);
    assert_eq!(receiver.poll_transmit(ms(104)).map(|ack| ack.ack), Some(5 * MSS));
}

#[test]
fn a_mark_is_echoed_until_the_sender_has_reduced() {
    let mut receiver = Receiver::new(&Config { ecn: true, ..plain() });
    let mut echoed = Vec::new();
    for index in 0..4 {
        let mut segment = data(index);
        if index == 3 {
            segment.flags = Flags::CWR;
        }
        receiver.handle_segment(ms(index), &segment, index == 1);
        let ack = receiver.poll_transmit(ms(index));
        echoed.push(ack.is_some_and(|ack| ack.flags.has(Flags::ECE)));
    }
    assert_eq!(echoed, [false, true, true, false]);
}

#[test]
fn a_full_buffer_refuses_and_announces_room_when_read() {
    let config = Config { receive_buffer: 4 * MSS, read_at_once: false, ..plain() };
    let mut receiver = Receiver::new(&config);
    let mut windows = Vec::new();
    for index in 0..5 {
        receiver.handle_segment(ms(index), &data(index), false);
        windows.push(receiver.poll_transmit(ms(index)).map(|ack| ack.window / MSS));
    }
    assert_eq!(windows, [Some(3), Some(2), Some(1), Some(0), Some(0)]);
    assert_eq!((receiver.statistics().refused, receiver.readable()), (1, 4 * MSS));
    assert_eq!(receiver.read(MSS), MSS);
    assert_eq!(receiver.poll_transmit(ms(10)), None, "one segment is not worth an update");
    assert_eq!(receiver.read(MSS), MSS);
    assert_eq!(receiver.poll_transmit(ms(11)).map(|ack| ack.window), Some(2 * MSS));
}

#[test]
fn timestamps_echo_the_segment_that_moved_the_acknowledgement() {
    let mut receiver = Receiver::new(&Config { timestamps: true, ..plain() });
    let stamped = |index, at| Segment {
        timestamps: Some(Timestamps { value: ms(at), echo: Time::MAX }),
        ..data(index)
    };
    let mut echoes = Vec::new();
    for (index, at) in [(0, 10), (2, 12), (3, 13), (1, 50)] {
        receiver.handle_segment(ms(at + 5), &stamped(index, at), false);
        let ack = receiver.poll_transmit(ms(at + 5)).expect("acknowledged at once");
        echoes.extend(ack.timestamps.map(|timestamps| timestamps.echo));
    }
    // RFC 7323 §4.3: a segment beyond the last acknowledgement does not change the echo.
    assert_eq!(echoes, [ms(10), ms(10), ms(10), ms(50)]);
}

#[test]
fn the_end_of_the_stream_counts_no_byte() {
    let mut receiver = Receiver::new(plain());
    let fin = Segment { len: 10, flags: Flags::FIN, ..data(0) };
    receiver.handle_segment(ms(0), &fin, false);
    assert!(receiver.is_finished());
    assert_eq!(receiver.delivered(), 10);
    assert_eq!(receiver.poll_transmit(ms(0)).map(|ack| ack.ack), Some(11));
}
