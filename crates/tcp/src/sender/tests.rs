//! A sender against hand-written acknowledgements.

use anabranch_policy::congestion;

use super::*;
use crate::config::DelayedAck;
use crate::segment::{Flags, Timestamps};

mod undo;

const MSS: u64 = 1000;

fn ms(n: u64) -> Time {
    Time::from_millis(n)
}

fn sender(config: &Config, control: &str) -> Sender {
    let spec = control.parse().expect("a policy");
    Sender::new(config, congestion::build(&spec, u64::from(config.mss)).expect("a controller"))
}

/// No handshake, no timestamps, 1000 B segments.
fn plain() -> Config {
    Config { mss: MSS as u32, timestamps: false, handshake: false, ..Config::default() }
}

/// Sends all segments that may leave and returns their offsets in segments.
fn drain(sender: &mut Sender, now: Time) -> Vec<u64> {
    core::iter::from_fn(|| sender.poll_transmit(now)).map(|segment| segment.seq / MSS).collect()
}

fn ack(upto: u64) -> Segment {
    Segment { flags: Flags::ACK, ack: upto * MSS, window: 1 << 30, ..Segment::EMPTY }
}

fn sack(upto: u64, blocks: &[(u64, u64)]) -> Segment {
    let mut segment = ack(upto);
    for (start, end) in blocks {
        segment.sack.push(upto * MSS, start * MSS, end * MSS);
    }
    segment
}

/// A sender with ten segments in flight under Reno.
fn ten_in_flight(config: &Config) -> Sender {
    ten_in_flight_under("reno:initial=10", config)
}

fn ten_in_flight_under(control: &str, config: &Config) -> Sender {
    let mut sender = sender(config, control);
    sender.write(1000 * MSS);
    assert_eq!(drain(&mut sender, Time::ZERO), (0..10).collect::<Vec<_>>());
    sender
}

#[test]
fn the_view_has_a_rate_as_soon_as_a_round_trip_is_known() {
    let mut sender = sender(&plain(), "reno:initial=2");
    sender.write(1000 * MSS);
    drain(&mut sender, Time::ZERO);
    let rate = |sender: &Sender| sender.view(PathId(0), 0, ms(100)).rate;
    assert_eq!(rate(&sender), Bitrate::ZERO);
    sender.handle_segment(ms(100), &ack(2));
    assert_eq!(rate(&sender), Bitrate::from_transfer(4 * MSS, Duration::from_millis(100)));
}

#[test]
fn slow_start_doubles() {
    let mut sender = sender(&plain(), "reno:initial=2");
    sender.write(1000 * MSS);
    assert_eq!(drain(&mut sender, Time::ZERO), [0, 1]);
    sender.handle_segment(ms(100), &ack(1));
    assert_eq!(drain(&mut sender, ms(100)), [2, 3]);
    sender.handle_segment(ms(101), &ack(2));
    assert_eq!(drain(&mut sender, ms(101)), [4, 5]);
}

#[test]
fn sack_recovery_keeps_the_pipe_at_the_threshold() {
    let mut sender = ten_in_flight(&plain());
    // Segments 0 and 4 are lost. Limited transmit releases one new segment for each of the first
    // two duplicates.
    sender.handle_segment(ms(100), &sack(0, &[(1, 2)]));
    assert_eq!(drain(&mut sender, ms(100)), [10]);
    sender.handle_segment(ms(101), &sack(0, &[(1, 3)]));
    assert_eq!(drain(&mut sender, ms(101)), [11]);
    sender.handle_segment(ms(102), &sack(0, &[(1, 4)]));
    assert!(sender.in_recovery());
    // Pipe: twelve sent, three SACKed, one lost, so 8 > 5. The first retransmission leaves anyway.
    assert_eq!(drain(&mut sender, ms(102)), [0]);
    assert_eq!((sender.in_flight(), sender.cwnd()), (9 * MSS, 5 * MSS));
    for (i, end) in [6, 7, 8].into_iter().enumerate() {
        sender.handle_segment(ms(103 + i as u64), &sack(0, &[(5, end), (1, 4)]));
    }
    // Now 4 is lost too: 12 − 6 SACKed − 2 lost + 1 resent = 5.
    assert_eq!(sender.in_flight(), 5 * MSS);
    assert_eq!(drain(&mut sender, ms(106)), []);
    sender.handle_segment(ms(107), &sack(0, &[(5, 9), (1, 4)]));
    assert_eq!(drain(&mut sender, ms(107)), [4]);
    sender.handle_segment(ms(200), &sack(4, &[(5, 9)]));
    assert!(sender.in_recovery());
    assert_eq!(drain(&mut sender, ms(200)), [12]);
    sender.handle_segment(ms(210), &ack(12));
    assert!(!sender.in_recovery());
    assert_eq!(sender.cwnd(), 5 * MSS);
    assert_eq!(sender.statistics().retransmissions, 2);
    assert_eq!(sender.statistics().cwnd_reductions, 1);
}

#[test]
fn newreno_resends_one_hole_for_each_partial_acknowledgement() {
    let config = Config { recovery: LossRecovery::NewReno, ..plain() };
    let mut sender = ten_in_flight(&config);
    // Segments 0 and 3 are lost: there are eight duplicates.
    sender.handle_segment(ms(100), &ack(0));
    assert_eq!(drain(&mut sender, ms(100)), [10]);
    sender.handle_segment(ms(101), &ack(0));
    assert_eq!(drain(&mut sender, ms(101)), [11]);
    sender.handle_segment(ms(102), &ack(0));
    assert_eq!(drain(&mut sender, ms(102)), [0]);
    assert_eq!(sender.cwnd(), 5 * MSS);
    // The window of 5 is inflated by one for each duplicate. New data flows once the 12 outstanding
    // segments fit.
    let mut sent = Vec::new();
    for i in 0..5 {
        sender.handle_segment(ms(103 + i), &ack(0));
        sent.push(drain(&mut sender, ms(103 + i)).len());
    }
    assert_eq!(sent, [0, 0, 0, 0, 1]);
    // A partial acknowledgement: 3 is the next hole. The window of 13 deflates by three and grows
    // by one. With ten outstanding, a new segment may follow (RFC 6582 §3.2, step 3).
    sender.handle_segment(ms(200), &ack(3));
    assert_eq!(drain(&mut sender, ms(200)), [3, 13]);
    assert!(sender.in_recovery());
    sender.handle_segment(ms(300), &ack(13));
    assert!(!sender.in_recovery());
    assert_eq!(sender.statistics().retransmissions, 2);
    assert_eq!(sender.statistics().recoveries, 1);
}

#[test]
fn a_timeout_goes_back_and_keeps_what_was_sacked() {
    let mut sender = ten_in_flight(&plain());
    sender.handle_segment(ms(100), &sack(0, &[(1, 2)]));
    drain(&mut sender, ms(100));
    let at = sender.next_timeout().expect("the timer runs");
    assert_eq!(at, Time::from_secs(1), "initial RTO");
    sender.handle_timeout(at);
    assert_eq!(sender.cwnd(), MSS);
    assert_eq!(drain(&mut sender, at), [0]);
    sender.handle_segment(at + Duration::from_millis(100), &ack(2));
    assert_eq!(drain(&mut sender, at + Duration::from_millis(100)), [2, 3]);
    assert_eq!(sender.statistics().timeouts, 1);
    // The losses that remain in the same window cause no second cut.
    assert_eq!(sender.ssthresh(), 5 * MSS);
}

#[test]
fn karn_holds_the_back_off_until_a_segment_sent_once_is_acknowledged() {
    let mut sender = sender(&plain(), "reno:initial=1");
    sender.write(100 * MSS);
    drain(&mut sender, Time::ZERO);
    sender.handle_timeout(Time::from_secs(1));
    assert_eq!(drain(&mut sender, Time::from_secs(1)), [0]);
    assert_eq!(sender.rto(), Duration::from_secs(2));
    // The retransmission is acknowledged: no sample, the back-off stays.
    sender.handle_segment(ms(1100), &ack(1));
    assert_eq!(sender.rto(), Duration::from_secs(2));
    assert_eq!(drain(&mut sender, ms(1100)), [1, 2]);
    sender.handle_segment(ms(1200), &ack(2));
    assert_eq!(sender.rto(), Duration::from_millis(300));
}

#[test]
fn a_timestamp_ends_the_back_off_at_once() {
    let mut sender = sender(&Config { timestamps: true, ..plain() }, "reno:initial=1");
    sender.write(100 * MSS);
    drain(&mut sender, Time::ZERO);
    sender.handle_timeout(Time::from_secs(1));
    drain(&mut sender, Time::from_secs(1));
    let timestamps = Some(Timestamps { value: ms(1050), echo: ms(1000) });
    sender.handle_segment(ms(1100), &Segment { timestamps, ..ack(1) });
    assert_eq!(sender.rto(), Duration::from_millis(300));
}

#[test]
fn marks_cut_once_per_window_and_say_so_once() {
    let mut sender = ten_in_flight(&Config { ecn: true, ..plain() });
    let marked = |upto| Segment { flags: Flags::ACK.with(Flags::ECE), ..ack(upto) };
    sender.handle_segment(ms(100), &marked(1));
    assert_eq!(sender.cwnd(), 5 * MSS);
    sender.handle_segment(ms(101), &marked(2));
    assert_eq!(sender.cwnd(), 5 * MSS);
    assert_eq!(drain(&mut sender, ms(101)), []);
    sender.handle_segment(ms(102), &ack(6));
    let segment = sender.poll_transmit(ms(102)).expect("room for one");
    assert!(segment.flags.has(Flags::CWR.with(Flags::ECT)));
    let segment = sender.poll_transmit(ms(103));
    assert!(segment.is_none_or(|segment| !segment.flags.has(Flags::CWR)));
    // A mark on the last acknowledgement of data sent before the cut does not count; the next one
    // does.
    sender.handle_segment(ms(200), &marked(10));
    assert_eq!(sender.statistics().ecn_responses, 1);
    sender.handle_segment(ms(201), &marked(11));
    assert_eq!(sender.statistics().ecn_responses, 2);
}

#[test]
fn a_loss_in_a_window_that_a_mark_has_cut_is_repaired_without_another_cut() {
    let mut sender = ten_in_flight(&Config { ecn: true, ..plain() });
    sender.handle_segment(ms(100), &Segment { flags: Flags::ACK.with(Flags::ECE), ..ack(1) });
    sender.handle_segment(ms(101), &sack(1, &[(2, 5)]));
    assert!(sender.in_recovery());
    assert_eq!(drain(&mut sender, ms(101)), [1]);
    assert_eq!(sender.cwnd(), 5 * MSS);
    assert_eq!(sender.statistics().cwnd_reductions, 1);
}

#[test]
fn a_shut_window_is_probed_with_doubling_intervals() {
    let mut sender = sender(&plain(), "reno:initial=10");
    sender.write(10 * MSS);
    let upto = drain(&mut sender, Time::ZERO).len() as u64;
    sender.write(10 * MSS);
    sender.handle_segment(ms(100), &Segment { window: 0, ..ack(upto) });
    // The first, large window stays valid until it is used up, so the test shuts it here.
    sender.limit = sender.next;
    assert_eq!(drain(&mut sender, ms(100)), []);
    let mut at = Vec::new();
    for _ in 0..3 {
        let due = sender.next_timeout().expect("the persist timer runs");
        sender.handle_timeout(due);
        let probe = sender.poll_transmit(due).expect("a probe");
        assert!(probe.flags.has(Flags::PROBE) && probe.len == 0);
        at.push(due.as_nanos() / 1_000_000);
    }
    assert_eq!(at, [400, 1000, 2200]);
    sender.handle_segment(ms(2300), &Segment { window: 3 * MSS, ..ack(10) });
    assert_eq!(drain(&mut sender, ms(2300)), [10, 11, 12]);
    assert_eq!(sender.statistics().window_probes, 3);
}

#[test]
fn the_persist_timer_may_have_intervals_of_its_own() {
    let persist =
        crate::PersistTimer { initial: Duration::from_secs(5), most: Duration::from_secs(60) };
    let timers = crate::TimerConfig { persist: Some(persist), ..crate::TimerConfig::default() };
    let config = Config { timers, receive_buffer: 2 * MSS, ..plain() };
    let mut sender = sender(&config, "reno:initial=10");
    sender.write(10 * MSS);
    assert_eq!(drain(&mut sender, Time::ZERO), [0, 1]);
    sender.handle_segment(ms(100), &Segment { window: 0, ..ack(2) });
    assert_eq!(drain(&mut sender, ms(100)), []);
    let mut at = Vec::new();
    for _ in 0..6 {
        let due = sender.next_timeout().expect("the persist timer runs");
        sender.handle_timeout(due);
        assert!(sender.poll_transmit(due).is_some_and(|probe| probe.flags.has(Flags::PROBE)));
        sender.handle_segment(due, &Segment { window: 0, ..ack(2) });
        at.push(due.as_nanos() / 1_000_000);
    }
    // From 0.1 s on the intervals are 5, 10, 20, 40, 60 and 60 s.
    assert_eq!(at, [5_100, 15_100, 35_100, 75_100, 135_100, 195_100]);
    assert_eq!(sender.persist_time(ms(200_100)), Duration::from_secs(200));
    sender.handle_segment(ms(201_100), &Segment { window: 2 * MSS, ..ack(2) });
    assert_eq!(drain(&mut sender, ms(201_100)), [2, 3]);
    assert_eq!(sender.persist_time(ms(300_000)), Duration::from_secs(201));
    // The next wait begins anew.
    sender.handle_segment(ms(300_000), &Segment { window: 0, ..ack(4) });
    assert_eq!(drain(&mut sender, ms(300_000)), []);
    assert_eq!(sender.next_timeout(), Some(ms(305_000)));
}

#[test]
fn a_window_of_less_than_a_segment_is_probed_too() {
    let mut sender = sender(&Config { receive_buffer: 3040, ..plain() }, "reno:initial=10");
    sender.write(10 * MSS);
    assert_eq!(drain(&mut sender, Time::ZERO), [0, 1, 2]);
    sender.handle_segment(ms(100), &Segment { window: 40, ..ack(3) });
    assert_eq!(drain(&mut sender, ms(100)), []);
    let due = sender.next_timeout().expect("the persist timer runs");
    sender.handle_timeout(due);
    let probe = sender.poll_transmit(due).expect("a probe");
    assert!(probe.flags.has(Flags::PROBE));
}

#[test]
fn a_notice_repairs_without_a_cut_where_the_controller_heeds_it() {
    let reductions = |control, resent: &[u64]| {
        let mut sender = ten_in_flight_under(control, &plain());
        sender.handle_loss_notice(ms(90), 0);
        assert_eq!(drain(&mut sender, ms(90)), resent, "{control}");
        for end in 2..6 {
            sender.handle_segment(ms(100 + end), &sack(0, &[(1, end)]));
            drain(&mut sender, ms(100 + end));
        }
        assert_eq!(sender.in_recovery(), resent.is_empty(), "{control}");
        let statistics = sender.statistics();
        (statistics.loss_notices, statistics.cwnd_reductions, sender.cwnd())
    };
    assert_eq!(reductions("eln:initial=10", &[0]), (1, 0, 10 * MSS));
    assert_eq!(reductions("reno:initial=10", &[]), (0, 1, 5 * MSS));
}

#[test]
fn a_notice_of_the_oldest_segment_starts_its_timer_anew() {
    let timeout_after_notice_of = |offset| {
        let mut sender = ten_in_flight_under("eln:initial=10", &plain());
        let before = sender.next_timeout().expect("segments are outstanding");
        sender.handle_loss_notice(before - Duration::from_millis(5), offset);
        (before, sender.next_timeout().expect("segments are outstanding"))
    };
    let (before, after) = timeout_after_notice_of(0);
    assert!(after > before + Duration::from_millis(100), "{before:?}, {after:?}");
    let (before, after) = timeout_after_notice_of(3 * MSS);
    assert_eq!(before, after, "the timer is that of the oldest");
}

#[test]
fn the_connection_gives_up_when_told_to() {
    let timers = crate::TimerConfig { give_up_after: Some(3), ..crate::TimerConfig::default() };
    let mut sender = sender(&Config { timers, handshake: true, ..plain() }, "reno");
    sender.write(MSS);
    let mut attempts = 0;
    while let Some(at) = sender.next_timeout().or((attempts == 0).then_some(Time::ZERO)) {
        sender.handle_timeout(at);
        attempts += drain(&mut sender, at).len();
    }
    assert_eq!(attempts, 4);
    assert!(sender.has_failed());
    let last = core::iter::from_fn(|| sender.poll_event()).last();
    assert_eq!(last, Some(SenderEvent::GaveUp));
}

#[test]
fn a_tail_probe_replaces_the_timeout() {
    let mut sender = sender(
        &Config { timestamps: false, mss: 1000, handshake: false, ..Config::linux() },
        "reno:initial=3",
    );
    sender.write(3 * MSS);
    sender.finish();
    drain(&mut sender, Time::ZERO);
    sender.handle_segment(ms(100), &ack(1));
    let at = sender.next_timeout().expect("a probe is due");
    // Two smoothed round trips after the acknowledgement.
    assert_eq!(at, ms(300));
    sender.handle_timeout(at);
    assert_eq!(drain(&mut sender, at), [2]);
    assert_eq!(sender.statistics().tail_probes, 1);
    assert_eq!(sender.statistics().timeouts, 0);
    // The probe is SACKed: segment 1 was sent before it, so it is lost.
    let mut reply = ack(1);
    reply.sack.push(MSS, 2 * MSS, 3 * MSS + 1);
    sender.handle_segment(ms(400), &reply);
    assert_eq!(drain(&mut sender, ms(400)), [1]);
    assert_eq!(sender.statistics().timeouts, 0);
}

/// A sender in recovery: segment 0 of ten is lost.
fn after_a_loss(config: &Config, control: &str) -> Sender {
    let mut sender = sender(config, control);
    sender.write(1000 * MSS);
    drain(&mut sender, Time::ZERO);
    for upto in 2..=4 {
        sender.handle_segment(ms(100), &sack(0, &[(1, upto)]));
    }
    assert!(sender.in_recovery());
    sender
}

#[test]
fn rate_reduction_leaves_the_window_to_a_controller_that_governs_recovery() {
    let config = Config { prr: true, rate_samples: true, ..plain() };
    let reno = after_a_loss(&config, "reno:initial=10");
    assert_ne!(reno.cwnd(), reno.controller.cwnd(), "the rate is reduced in proportion");
    let bbr = after_a_loss(&config, "bbr:initial=10");
    assert_eq!(bbr.cwnd(), bbr.controller.cwnd());
}

/// A controller that records the total delivered as it is told.
#[derive(Debug)]
struct Deliveries(std::sync::Arc<std::sync::atomic::AtomicU64>);

impl congestion::CongestionController for Deliveries {
    fn on_ack(&mut self, event: &congestion::AckEvent, _siblings: &[PathView]) {
        self.0.store(event.total_delivered, std::sync::atomic::Ordering::Relaxed);
    }

    fn on_timeout(&mut self, _event: &congestion::TimeoutEvent) {}

    fn set_packet_size(&mut self, _bytes: u64) {}

    fn cwnd(&self) -> u64 {
        10 * MSS
    }

    fn phase(&self) -> &'static str {
        "fixed"
    }
}

/// Controllers count rounds by the total delivered now and when a segment left. If the total left
/// out data above a gap, every acknowledgement during a gap would begin a round.
#[test]
fn what_was_delivered_above_a_gap_counts_for_rounds() {
    let told = std::sync::Arc::default();
    let config = Config { rate_samples: true, ..plain() };
    let mut sender = Sender::new(&config, Box::new(Deliveries(std::sync::Arc::clone(&told))));
    sender.write(1000 * MSS);
    drain(&mut sender, Time::ZERO);
    sender.handle_segment(ms(100), &sack(0, &[(1, 4)]));
    assert_eq!(told.load(std::sync::atomic::Ordering::Relaxed), 3 * MSS);
}
