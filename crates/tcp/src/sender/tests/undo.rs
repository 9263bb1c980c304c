//! Segments that were late but not lost.

use super::*;

fn linux() -> Config {
    Config { mss: MSS as u32, handshake: false, delayed_ack: DelayedAck::OFF, ..Config::linux() }
}

/// An acknowledgement that answers a segment sent at `echo`.
fn answer(echo: Time, segment: Segment) -> Segment {
    Segment { timestamps: Some(Timestamps { value: echo, echo }), ..segment }
}

/// Segment 0 of ten is late: the window has been cut, and segment 0 sent again at 100 ms.
fn after_a_late_segment(config: &Config, control: &str) -> Sender {
    let mut sender = after_a_loss(config, control);
    assert_eq!(drain(&mut sender, ms(100)).first(), Some(&0));
    sender
}

fn duplicate_of(index: u64, upto: u64) -> Segment {
    let mut segment = ack(upto);
    segment.sack.push_duplicate(upto * MSS, index * MSS, (index + 1) * MSS);
    segment
}

#[test]
fn the_timestamp_of_a_late_segment_takes_the_cut_back() {
    for control in ["reno:initial=10", "cubic:initial=10"] {
        let mut sender = after_a_late_segment(&linux(), control);
        assert!(sender.controller.cwnd() < 10 * MSS);
        sender.handle_segment(ms(110), &answer(ms(0), ack(4)));
        assert!(!sender.in_recovery());
        assert_eq!(sender.statistics().undone_cuts, 1);
        assert!(sender.controller.cwnd() >= 10 * MSS, "{control}");
        assert_eq!(sender.controller.ssthresh(), u64::MAX, "slow start goes on");
    }
}

#[test]
fn the_timestamp_of_its_retransmission_does_not() {
    let mut sender = after_a_late_segment(&linux(), "reno:initial=10");
    sender.handle_segment(ms(200), &answer(ms(100), ack(4)));
    assert_eq!(sender.statistics().undone_cuts, 0);
    assert!(sender.controller.cwnd() < 10 * MSS);
}

#[test]
fn duplicates_take_the_cut_back_once_all_that_was_sent_again_is_one() {
    let config = Config { timestamps: false, ..linux() };
    let mut sender = after_a_late_segment(&config, "reno:initial=10");
    sender.handle_segment(ms(110), &ack(10));
    assert_eq!(sender.statistics().undone_cuts, 0, "nothing says which copy arrived");
    sender.handle_segment(ms(200), &duplicate_of(0, 10));
    assert_eq!(sender.statistics().undone_cuts, 1);
    sender.handle_segment(ms(201), &duplicate_of(0, 10));
    assert_eq!(sender.statistics().undone_cuts, 1, "a cut is taken back once");
}

#[test]
fn what_waited_to_be_sent_again_is_in_flight_once_more() {
    let mut sender = ten_in_flight(&linux());
    // Segments 0 to 5 are missing while 6 to 9 have arrived.
    sender.handle_segment(ms(100), &answer(Time::ZERO, sack(0, &[(6, 10)])));
    assert_eq!(sender.poll_transmit(ms(100)).map(|segment| segment.seq), Some(0));
    assert!(sender.board.any_waiting());
    sender.handle_segment(ms(101), &answer(Time::ZERO, sack(1, &[(6, 10)])));
    assert_eq!(sender.statistics().undone_cuts, 1);
    assert!(!sender.board.any_waiting());
    assert_eq!(sender.in_flight(), 5 * MSS);
}

#[test]
fn a_timeout_that_came_too_soon_is_taken_back() {
    let mut sender = sender(&linux(), "cubic:initial=10");
    sender.write(1000 * MSS);
    drain(&mut sender, Time::ZERO);
    let at = sender.next_timeout().expect("the timer runs");
    sender.handle_timeout(at);
    assert_eq!(sender.statistics().timeouts, 1);
    assert_eq!(drain(&mut sender, at), [0]);
    sender.handle_segment(at + Duration::from_millis(1), &answer(Time::ZERO, ack(1)));
    assert_eq!(sender.statistics().undone_cuts, 1);
    assert!(sender.controller.cwnd() >= 10 * MSS);
    assert_eq!(drain(&mut sender, at + Duration::from_millis(1)), [10], "nothing is sent again");
}

/// Once a path is known to reorder, three duplicates do not prove a loss.
#[test]
fn duplicates_begin_no_recovery_on_a_path_that_reorders() {
    let mut sender = after_a_late_segment(&linux(), "reno:initial=10");
    sender.handle_segment(ms(110), &answer(ms(0), ack(10)));
    drain(&mut sender, ms(110));
    let first = sender.una / MSS;
    for upto in first + 2..first + 8 {
        let segment = answer(ms(110), sack(first, &[(first + 1, upto)]));
        sender.handle_segment(ms(210), &segment);
        assert!(!sender.in_recovery(), "{upto}");
    }
    let at = sender.rack.timer().expect("the first segment is awaited");
    sender.handle_timeout(at);
    assert!(sender.in_recovery(), "it did not come in time");
}

/// After each round trip with a reported duplicate, RACK waits a quarter of a round trip longer for
/// late segments.
#[test]
fn duplicates_make_rack_wait_longer() {
    let lost_after = |duplicates: u64| {
        let mut sender = after_a_late_segment(&linux(), "reno:initial=10");
        // Segment 0 came late, which shows that the path reorders.
        sender.handle_segment(ms(110), &answer(ms(0), ack(10)));
        let mut now = ms(200);
        let mut round = |sender: &mut Sender, reply: &dyn Fn(u64) -> Segment| {
            drain(sender, now);
            let (sent, next) = (now, sender.next / MSS);
            now += Duration::from_millis(100);
            sender.handle_segment(now, &answer(sent, reply(next)));
            now
        };
        round(&mut sender, &ack);
        for n in 0..duplicates {
            round(&mut sender, &|next| duplicate_of(n, next));
        }
        let first = sender.una / MSS;
        let now = round(&mut sender, &|_| sack(first, &[(first + 1, first + 2)]));
        let at = sender.rack.timer().expect("a segment is awaited");
        at.since(now)
    };
    let waits: Vec<Duration> = (0..4).map(lost_after).collect();
    assert!(waits.is_sorted_by(|a, b| a < b), "{waits:?}");
}
