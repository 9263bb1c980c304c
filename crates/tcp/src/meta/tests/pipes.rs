//! pTCP's requirements on its pipes: which data each pipe carries, and what happens to that data
//! when a window shrinks, a timer fires or nothing is left to send.

use super::contract::{MSS, ack, leave, ms};
use super::*;
use crate::segment::Flags;
use crate::sender::Sender;

/// Pipes that are open from the start, with windows of `initial` segments and pTCP's rebinding.
/// `receive_buffer` counts segments.
fn pipes(count: usize, initial: u64, receive_buffer: u64) -> MetaSender {
    let base = config("blind");
    let config = MetaConfig {
        recovery: policy("resend:timeout=copy,cut=unbind"),
        subflow: Config { handshake: false, ..base.subflow.clone() },
        receive_buffer: receive_buffer * MSS,
        ..base
    };
    let control = policy(&format!("eln:initial={initial}"));
    MetaSender::new(&config, &vec![control; count]).expect("policies")
}

/// An acknowledgement that SACKs the second to the fourth segment: the first is lost.
fn lost_first(subflow_una: u64, data_una: u64) -> Segment {
    let mut segment = ack(subflow_una, data_una, 1000);
    let from = subflow_una + 1;
    segment.sack.push(subflow_una * MSS, from * MSS, (from + 3) * MSS);
    segment
}

/// Lets the retransmission timer of a pipe fire and returns the time.
fn expire(sender: &mut MetaSender, index: usize) -> Time {
    let at = sender.subflow(index).and_then(Sender::next_timeout).expect("a timer");
    sender.handle_timeout(at);
    sender.check();
    at
}

#[test]
fn data_is_bound_only_when_a_window_has_room_for_it() {
    let mut sender = pipes(2, 4, 1000);
    sender.write(100 * MSS);
    assert_eq!(leave(&mut sender, ms(0)).len(), 8);
    assert_eq!(sender.statistics().bound_bytes, 8 * MSS, "92 segments belong to nobody");
    // The pipe that is acknowledged first takes the next data, whatever the other might have taken.
    sender.handle_segment(ms(40), 1, &ack(2, 0, 1000));
    let next: Vec<_> = leave(&mut sender, ms(40));
    assert_eq!(next, [(1, 8), (1, 9), (1, 10), (1, 11)], "slow start: two for each");
    sender.check();
}

#[test]
fn a_window_cut_by_half_gives_back_what_lies_beyond_it() {
    let mut sender = pipes(2, 8, 1000);
    sender.write(100 * MSS);
    assert_eq!(leave(&mut sender, ms(0)).len(), 16);
    // Pipe 0 has 0 to 7. It keeps four, of which 1, 2 and 3 have arrived; 4 to 7 are given back.
    sender.handle_segment(ms(40), 0, &lost_first(0, 0));
    assert_eq!(sender.statistics().unbound_bytes, 4 * MSS);
    sender.check();
    assert_eq!(leave(&mut sender, ms(40)), [(0, 0)], "its own loss it repairs itself");
    // Pipe 1 takes the segments given back, in their order, and only then new data.
    sender.handle_segment(ms(50), 1, &ack(3, 0, 1000));
    let taken = leave(&mut sender, ms(50));
    assert_eq!(taken, [(1, 4), (1, 5), (1, 6), (1, 7), (1, 16), (1, 17)]);
    sender.check();
}

#[test]
fn an_unbound_place_in_a_stream_carries_other_data_when_it_goes_again() {
    let mut sender = pipes(2, 8, 1000);
    sender.write(100 * MSS);
    leave(&mut sender, ms(0));
    sender.handle_segment(ms(40), 0, &lost_first(0, 0));
    leave(&mut sender, ms(40));
    sender.handle_segment(ms(50), 1, &ack(4, 0, 1000));
    assert_eq!(leave(&mut sender, ms(50)).len(), 8, "4 to 7 and four new ones");
    // The segment at offset 4 of pipe 0 is lost as well: new data takes its place.
    let mut lost = ack(0, 0, 1000);
    lost.sack.push(0, MSS, 4 * MSS);
    lost.sack.push(0, 5 * MSS, 8 * MSS);
    sender.handle_segment(ms(60), 0, &lost);
    let again: Vec<_> = core::iter::from_fn(|| sender.poll_transmit(ms(60))).collect();
    let (index, segment) = again[0];
    assert_eq!((index, segment.seq, segment.data), (0, 4 * MSS, 20 * MSS));
    assert!(segment.flags.has(Flags::RETRANSMISSION), "to the pipe it is the same segment");
    sender.check();
}

#[test]
fn a_timeout_leaves_one_segment_and_a_copy_of_that_goes_elsewhere() {
    let mut sender = pipes(2, 4, 1000);
    sender.write(8 * MSS);
    leave(&mut sender, ms(0));
    sender.handle_segment(ms(40), 1, &ack(4, 0, 1000));
    expire(&mut sender, 0);
    assert_eq!(sender.statistics().unbound_bytes, 3 * MSS, "1 to 3");
    let now = sender.now;
    let sent = leave(&mut sender, now);
    assert_eq!(
        sent,
        [(0, 0), (1, 0), (1, 1), (1, 2), (1, 3)],
        "both have 0, the binding is pipe 1's"
    );
    sender.check();
}

#[test]
fn a_copy_moves_on_when_whoever_has_it_times_out_too() {
    let mut sender = pipes(3, 1, 1000);
    sender.write(3 * MSS);
    assert_eq!(leave(&mut sender, ms(0)), [(0, 0), (1, 1), (2, 2)]);
    for index in 1..3 {
        sender.handle_segment(ms(40), index, &ack(1, 0, 1000));
    }
    // Pipe 0 times out: the next pipe that asks takes the copy.
    let first = expire(&mut sender, 0);
    assert_eq!(leave(&mut sender, first), [(0, 0), (1, 0)]);
    // Pipe 1 times out with the segment. Pipes 0 and 1 have it already, so pipe 2 takes it.
    let second = expire(&mut sender, 1);
    assert_eq!(leave(&mut sender, second), [(1, 0), (2, 0)]);
    // Pipes 0 and 2 time out at the same time, and each retransmits its copy.
    let third = expire(&mut sender, 2);
    assert_eq!(leave(&mut sender, third), [(0, 0), (2, 0)]);
    assert_eq!(sender.statistics().rebound_bytes, 2 * MSS);
    sender.write(MSS);
    sender.handle_segment(third + Duration::from_millis(5), 1, &ack(2, 3, 1000));
    assert_eq!(leave(&mut sender, third + Duration::from_millis(5)), [(1, 3)]);
    sender.check();
}

/// The state that a frozen pipe must keep, as text: progress, windows, timers and counters of its
/// connection.
fn state(sender: &MetaSender, index: usize) -> String {
    let own = sender.subflow(index).expect("a pipe");
    let figures = (own.sent(), own.written(), own.cwnd(), own.in_flight(), own.rto());
    format!("{figures:?} {:?} {:?}", own.statistics(), own.next_timeout())
}

#[test]
fn a_pipe_without_data_waits_and_nothing_has_happened_to_it() {
    for (written, window) in [(3, 1000), (100, 3)] {
        // Either the data or the receiver's window ends after three segments.
        let mut sender = pipes(2, 2, window);
        sender.write(written * MSS);
        assert_eq!(leave(&mut sender, ms(0)), [(0, 0), (0, 1), (1, 2)]);
        assert!(!sender.is_frozen(0), "its window is full");
        assert!(sender.is_frozen(1), "it has room for one more");
        let before = state(&sender, 1);
        for at in 1..20 {
            sender.handle_timeout(ms(at));
            assert_eq!(leave(&mut sender, ms(at)), []);
        }
        assert_eq!(state(&sender, 1), before);
        // With new data or a larger window, the pipe goes on where it was.
        if written == 3 {
            sender.write(MSS);
        } else {
            sender.handle_segment(ms(20), 0, &ack(0, 0, 4));
        }
        assert_eq!(leave(&mut sender, ms(20)), [(1, 3)]);
        assert!(!sender.is_frozen(1));
    }
}

#[test]
fn a_retransmission_whose_data_is_gone_waits_and_its_timer_with_it() {
    let mut sender = pipes(2, 4, 1000);
    sender.write(8 * MSS);
    leave(&mut sender, ms(0));
    sender.handle_segment(ms(40), 1, &ack(4, 0, 1000));
    let fired = expire(&mut sender, 0);
    leave(&mut sender, fired);
    // Pipe 0 delivers its first segment and pipe 1 everything else. Offsets 1 to 3 of pipe 0 carry
    // nothing, and no data waits.
    let later = |n| fired + Duration::from_millis(n);
    sender.handle_segment(later(30), 0, &ack(1, 1, 1000));
    assert_eq!(leave(&mut sender, later(30)), []);
    assert!(sender.is_frozen(0));
    sender.handle_segment(later(40), 1, &ack(8, 8, 1000));
    assert_eq!(leave(&mut sender, later(40)), []);
    assert!(sender.is_frozen(0) && sender.is_drained());
    let before = state(&sender, 0);
    assert_eq!(sender.subflow(0).and_then(Sender::next_timeout), None, "nothing is in flight");
    sender.handle_timeout(later(60_000));
    assert_eq!(leave(&mut sender, later(60_000)), []);
    assert_eq!(state(&sender, 0), before, "no timeout, no back-off");
    // New data goes to the old offsets first.
    sender.write(3 * MSS);
    let now = later(60_000);
    let sent: Vec<_> = core::iter::from_fn(|| sender.poll_transmit(now)).collect();
    let on_zero: Vec<_> =
        sent.iter().filter(|(index, _)| *index == 0).map(|(_, s)| s.seq).collect();
    assert_eq!(on_zero, [MSS, 2 * MSS]);
    assert!(sender.subflow(0).and_then(Sender::next_timeout).is_some());
    sender.check();
}

#[test]
fn what_must_go_again_does_not_wait_behind_what_is_frozen() {
    let mut sender = pipes(2, 16, 1000);
    sender.write(32 * MSS);
    assert_eq!(leave(&mut sender, ms(0)).len(), 32);
    // After a cut pipe 0 keeps 0 to 7; pipe 1 takes over 8 to 15.
    sender.handle_segment(ms(40), 0, &lost_first(0, 0));
    leave(&mut sender, ms(40));
    sender.handle_segment(ms(41), 1, &ack(16, 0, 1000));
    assert_eq!(leave(&mut sender, ms(41)).len(), 8);
    // Enough has arrived that pipe 0 has room for one more segment, at offset 16.
    let arrived = |until| {
        let mut segment = ack(0, 0, 1000);
        segment.sack.push(0, 9 * MSS, until * MSS);
        segment.sack.push(0, MSS, 8 * MSS);
        segment
    };
    sender.handle_segment(ms(42), 0, &arrived(11));
    sender.write(MSS);
    assert_eq!(leave(&mut sender, ms(42)), [(0, 32)]);
    // Offset 8 is lost, and nothing can take its place.
    sender.handle_segment(ms(43), 0, &arrived(12));
    assert_eq!(leave(&mut sender, ms(43)), []);
    assert!(sender.is_frozen(0));
    // Now the segment at offset 16 is lost too.
    sender.handle_loss_notice(ms(44), 0, 16 * MSS);
    let sent: Vec<_> = core::iter::from_fn(|| sender.poll_transmit(ms(44))).collect();
    let seqs: Vec<_> = sent.iter().map(|(_, segment)| segment.seq / MSS).collect();
    assert_eq!(seqs, [8, 16]);
    assert_eq!(sent[0].1.data_sequence(), None, "bytes that mean nothing");
    assert_eq!(sent[1].1.data, 32 * MSS);
}

#[test]
fn pipes_that_contend_for_a_small_window_never_overrun_it() {
    for count in [2, 3, 8] {
        for buffer in [1_000, 2_500, 9_000, 30_000] {
            let config = MetaConfig {
                recovery: policy("resend:timeout=copy,cut=unbind"),
                receive_buffer: buffer,
                send_buffer: 3 * buffer,
                read_at_once: false,
                ..config("blind")
            };
            // The congestion window of each single pipe grows beyond the buffer.
            let paths: Vec<_> = (0..count).map(|i| path(8, 10 + 7 * i, 0.002)).collect();
            let mut run = Run::new(&config, &paths, count);
            run.check_every = 1;
            run.transfer(200_000, 700);
            assert_eq!(run.receiver.delivered(), 200_000);
            let received = run.receiver.statistics();
            assert_eq!(received.refused, 0, "{count} pipes, {buffer} bytes");
            assert!(received.peak_waiting < buffer.max(2));
        }
    }
}

#[test]
fn what_came_twice_is_counted_at_the_receiver() {
    let mut sender = pipes(2, 8, 1000);
    sender.write(16 * MSS);
    let mut receiver = MetaReceiver::new(&sender.config.clone(), 2);
    let mut carry = |sender: &mut MetaSender, now| {
        while let Some((index, segment)) = sender.poll_transmit(now) {
            // The first transmission of pipe 0's first segment is lost.
            if (index, segment.seq) != (0, 0) || segment.flags.has(Flags::RETRANSMISSION) {
                receiver.handle_segment(now, index, &segment, false);
            }
        }
        *receiver.statistics()
    };
    assert_eq!(carry(&mut sender, ms(0)).duplicate_bytes, 0);
    sender.handle_segment(ms(40), 0, &lost_first(0, 0));
    carry(&mut sender, ms(40));
    sender.handle_segment(ms(41), 1, &ack(8, 0, 1000));
    // Four segments were taken back although they had arrived: all of them arrive again.
    let statistics = carry(&mut sender, ms(41));
    assert_eq!(sender.statistics().unbound_bytes, 4 * MSS);
    assert_eq!((statistics.duplicate_bytes, statistics.duplicates), (4 * MSS, 4));
}
