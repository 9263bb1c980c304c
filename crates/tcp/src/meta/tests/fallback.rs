//! Middleboxes that remove options, backup subflows, and buffers that grow.

use anabranch_policy::congestion;

use super::*;
use crate::segment::Flags;

fn stripping(path: Path) -> Path {
    Path { strips: true, ..path }
}

#[test]
fn without_the_option_a_connection_is_plain_tcp() {
    for join in [Join::AfterFirst, Join::AllAtOnce] {
        let recovery = policy("resend:timeout=copy,cut=unbind");
        let config = MetaConfig { join, recovery, receive_buffer: 60_000, ..config("min-rtt") };
        let paths = [stripping(path(5, 20, 0.02)), stripping(path(5, 30, 0.0))];
        let mut run = Run::new(&config, &paths, 1);
        let seconds = run.transfer(1_000_000, u64::MAX);
        assert!(run.sender.is_plain());
        assert_eq!((run.receiver.delivered(), run.sent_on(1)), (1_000_000, 0), "{join:?}");
        assert!(run.sent_on(0) >= 1_000_000 && seconds > 1.6, "{seconds}");
        assert!(!run.sender.has_joined(1));
        // No subflow joins, and the only one stays.
        let controller = || congestion::build(&policy("reno"), 1000).expect("a controller");
        assert_eq!(run.sender.join(controller()), None);
        run.sender.leave(run.now, 0);
        assert!(run.sender.has_joined(0) && !run.sender.rejoin(1, controller()));
    }
}

#[test]
fn a_plain_connection_keeps_to_the_window_and_ends_a_stall() {
    let config = MetaConfig { receive_buffer: 10_000, read_at_once: false, ..config("min-rtt") };
    let mut run = Run::new(&config, &[stripping(path(5, 20, 0.0))], 1);
    run.sender.write(30_000);
    run.run_until(Time::from_secs(3));
    assert_eq!((run.receiver.readable(), run.sender.acknowledged()), (10_000, 10_000));
    assert!(run.sender.statistics().window_probes > 0);
    let mut read = 0;
    while read < 30_000 {
        read += run.receiver.read(u64::MAX);
        assert!(run.step(), "nothing will ever happen");
    }
    assert_eq!(run.receiver.statistics().refused, 0);
}

#[test]
fn a_subflow_that_cannot_join_is_given_up_alone() {
    let paths = [path(5, 20, 0.0), stripping(path(5, 20, 0.0)), path(5, 20, 0.0)];
    let mut run = Run::new(&config("min-rtt"), &paths, 1);
    run.transfer(2_000_000, u64::MAX);
    assert!(!run.sender.is_plain() && !run.sender.has_joined(1));
    assert_eq!(run.sent_on(1), 0);
    assert!(run.sent_on(0) > 500_000 && run.sent_on(2) > 500_000);
    assert_eq!(run.receiver.delivered(), 2_000_000);
}

#[test]
fn a_connection_whose_first_subflow_left_before_it_was_open_falls_back_from_the_start() {
    let paths = [stripping(path(5, 20, 0.0)); 2];
    let mut run = Run::new(&config("min-rtt"), &paths, 1);
    run.sender.write(100_000);
    run.drain();
    run.sender.leave(run.now, 0);
    let controller = congestion::build(&policy("reno"), 1000).expect("a controller");
    assert!(run.sender.rejoin(0, controller));
    run.run_until(Time::from_secs(2));
    assert!(run.sender.is_plain());
    assert_eq!(run.receiver.delivered(), 100_000);
}

/// Runs a transfer of 2 MB over these paths until `at`. From then on options are removed on path
/// `index`.
fn loses_options(config: &MetaConfig, paths: &[Path], index: usize, at: Time) -> Run {
    let mut run = Run::new(config, paths, 1);
    run.sender.write(2_000_000);
    run.sender.finish();
    run.run_until(at);
    run.paths[index].strips = true;
    run
}

#[test]
fn a_subflow_that_loses_its_options_is_reset_and_the_others_carry_on() {
    let at = Time::from_millis(600);
    for scheduler in ["min-rtt", "round-robin", "redundant", "late"] {
        for index in 0..2 {
            let paths = [path(5, 20, 0.02), path(5, 30, 0.02)];
            let mut run = loses_options(&config(scheduler), &paths, index, at);
            assert!(run.receiver.delivered() > 100_000, "{scheduler}: both carry data by then");
            run.transfer(0, u64::MAX);
            assert!(!run.sender.is_plain() && !run.sender.has_joined(index), "{scheduler}");
            assert!(run.sender.has_joined(1 - index));
            assert_eq!(run.receiver.delivered(), 2_000_000);
        }
    }
}

#[test]
fn data_that_loses_its_options_before_any_was_acknowledged_makes_a_connection_plain() {
    // The first SYN arrives after 20 ms. Data and the second SYN leave when its answer has come.
    for scheduler in ["min-rtt", "late", "redundant"] {
        let paths = [path(5, 20, 0.02), path(5, 100, 0.0)];
        let mut run = loses_options(&config(scheduler), &paths, 0, Time::from_millis(20));
        run.transfer(0, u64::MAX);
        assert!(run.sender.is_plain() && !run.sender.has_joined(1), "{scheduler}");
        assert_eq!((run.receiver.delivered(), run.sent_on(1)), (2_000_000, 0), "{scheduler}");
    }
}

#[test]
fn options_that_go_between_the_first_data_and_its_acknowledgement_end_the_connection() {
    // The sender falls back to plain TCP. The receiver has received data with options already and
    // cannot place data without them.
    let paths = [path(5, 20, 0.0), path(5, 100, 0.0)];
    let mut run = loses_options(&config("min-rtt"), &paths, 0, Time::from_millis(40));
    while run.step() {}
    assert!(run.sender.is_plain() && !run.sender.has_joined(0) && !run.sender.has_joined(1));
    assert_eq!(run.receiver.delivered(), 2000, "the initial window");
}

#[test]
fn the_only_subflow_that_loses_its_options_is_lost_until_another_joins() {
    let paths = [path(5, 20, 0.0)];
    let mut run = loses_options(&config("min-rtt"), &paths, 0, Time::from_millis(600));
    run.run_until(Time::from_secs(3));
    let delivered = run.receiver.delivered();
    assert!(!run.sender.has_joined(0) && !run.sender.is_plain());
    assert!((100_000..500_000).contains(&delivered), "{delivered}");
    // A new subflow cannot join as long as options are removed.
    let controller = || congestion::build(&policy("reno:initial=2"), 1000).expect("a controller");
    assert!(run.sender.rejoin(0, controller()));
    run.run_until(Time::from_secs(4));
    assert!(!run.sender.has_joined(0) && run.receiver.delivered() == delivered);
    run.paths[0].strips = false;
    assert!(run.sender.rejoin(0, controller()));
    run.transfer(0, u64::MAX);
    assert_eq!(run.receiver.delivered(), 2_000_000);
}

#[test]
fn resets_of_an_earlier_subflow_and_bare_acknowledgements_of_nothing_are_ignored() {
    let paths = [path(5, 20, 0.0), path(5, 20, 0.0)];
    let mut run = loses_options(&config("min-rtt"), &paths, 1, Time::from_millis(600));
    run.run_until(Time::from_secs(1));
    assert!(!run.sender.has_joined(1));
    run.paths[1].strips = false;
    let controller = congestion::build(&policy("reno:initial=2"), 1000).expect("a controller");
    let acknowledged = run.sender.subflow(1).expect("it exists").acknowledged();
    assert!(run.sender.rejoin(1, controller));
    run.run_until(Time::from_millis(1200));
    let flags = Flags::ACK.with(Flags::RESET);
    run.sender.handle_segment(run.now, 1, &Segment { flags, ack: acknowledged, ..Segment::EMPTY });
    let bare = Segment { flags: Flags::ACK, ack: acknowledged, ..Segment::EMPTY };
    run.sender.handle_segment(run.now, 1, &bare);
    assert!(run.sender.has_joined(1));
    run.transfer(0, u64::MAX);
    assert!(run.sender.has_joined(1) && run.sent_on(1) > 300_000);
    assert_eq!(run.receiver.delivered(), 2_000_000);
}

#[test]
fn a_backup_is_used_only_when_no_other_works() {
    for scheduler in ["min-rtt", "linux", "round-robin"] {
        let config = MetaConfig { backups: 0b10, ..config(scheduler) };
        let mut paths = [path(5, 20, 0.0), path(5, 20, 0.0)];
        let mut run = Run::new(&config, &paths, 1);
        run.transfer(1_000_000, u64::MAX);
        assert!(run.sender.has_joined(1), "it is open");
        assert_eq!(run.sent_on(1), 0, "{scheduler}");
        // The first path dies after a second; the other takes over.
        paths[0].dies = Time::from_secs(1);
        let mut run = Run::new(&MetaConfig { recovery: policy("resend"), ..config }, &paths, 1);
        run.transfer(1_000_000, u64::MAX);
        assert_eq!(run.receiver.delivered(), 1_000_000);
        assert!(run.sent_on(1) > 300_000, "{scheduler}");
    }
}

/// A transfer of 10 MB whose receive buffer is `most` bytes or grows to `most`. Returns the seconds
/// it took and the final sizes of the receive and the send buffer.
fn tuned(autotune: Option<u64>, most: u64) -> (f64, u64, u64) {
    let config =
        MetaConfig { autotune, receive_buffer: most, send_buffer: 1 << 22, ..config("linux") };
    let mut run = Run::new(&config, &[path(40, 40, 0.0), path(40, 50, 0.0)], 1);
    let seconds = run.transfer(10_000_000, u64::MAX);
    (seconds, run.receiver.buffer(), run.sender.send_buffer())
}

#[test]
fn buffers_grow_with_the_transfer() {
    // The two paths hold 850 kB in a round trip, and their queues 500 kB more.
    let (fixed, buffer, _) = tuned(None, 16_000);
    assert_eq!(buffer, 16_000);
    let (grown, receive, send) = tuned(Some(16_000), 1 << 22);
    assert!(grown < fixed / 4.0, "{grown} s against {fixed} s");
    assert!((800_000..(1 << 22) + 1).contains(&receive), "{receive}");
    assert!((800_000..(1 << 22) + 1).contains(&send), "{send}");
    let (_, receive, _) = tuned(Some(16_000), 300_000);
    assert_eq!(receive, 300_000, "not beyond the limit");
}
