//! Subflows that join and leave.

use anabranch_policy::congestion;
use anabranch_policy::scheduler::SchedulerEvent;
use anabranch_types::PathId;

use super::script::{Script, greedy, sender};
use super::*;
use crate::PersistTimer;
use crate::segment::Flags;

fn controller() -> Box<dyn anabranch_policy::CongestionController> {
    congestion::build(&policy("reno:initial=2"), 1000).expect("a controller")
}

fn syns(run: &mut Run) -> Vec<usize> {
    core::iter::from_fn(|| run.sender.poll_transmit(run.now))
        .filter(|(_, segment)| segment.flags.has(Flags::SYN))
        .map(|(index, _)| index)
        .collect()
}

#[test]
fn the_first_subflow_opens_alone() {
    let paths = [path(5, 20, 0.0), path(5, 20, 0.0), path(5, 20, 0.0)];
    assert_eq!(syns(&mut Run::new(&config("min-rtt"), &paths, 1)), [0]);
    let at_once = MetaConfig { join: Join::AllAtOnce, ..config("min-rtt") };
    assert_eq!(syns(&mut Run::new(&at_once, &paths, 1)), [0, 1, 2]);

    let mut run = Run::new(&config("min-rtt"), &paths, 1);
    run.sender.write(4_000_000);
    run.run_until(Time::from_millis(60));
    assert!(run.sent_on(0) > 0 && run.sent_on(1) == 0);
    run.run_until(Time::from_millis(500));
    assert!(run.sent_on(1) > 20_000 && run.sent_on(2) > 20_000);
}

#[test]
fn data_waits_for_all_subflows_if_it_is_to() {
    let before_data = MetaConfig { join: Join::BeforeData, ..config("min-rtt") };
    let paths = [path(5, 20, 0.0), path(5, 200, 0.0)];
    let mut run = Run::new(&before_data, &paths, 1);
    run.sender.write(4_000_000);
    run.run_until(Time::from_millis(199));
    assert_eq!((run.sent_on(0), run.sent_on(1)), (0, 0));
    run.run_until(Time::from_millis(250));
    assert!(run.sent_on(0) > 0 && run.sent_on(1) > 0);

    // A subflow that cannot open holds up the others only until it gives up.
    let mut gives_up = before_data.clone();
    gives_up.subflow.timers.give_up_after = Some(2);
    let mut paths = [path(5, 20, 0.0), path(5, 20, 0.0)];
    paths[1].dies = Time::ZERO;
    assert!(Run::new(&gives_up, &paths, 1).transfer(100_000, u64::MAX) < 9.0);
}

#[test]
fn another_subflow_opens_if_the_first_cannot() {
    let mut config = config("min-rtt");
    config.subflow.timers.give_up_after = Some(2);
    let mut paths = [path(5, 20, 0.0), path(5, 20, 0.0)];
    paths[0].dies = Time::ZERO;
    let mut run = Run::new(&config, &paths, 1);
    assert!(run.transfer(100_000, u64::MAX) < 9.0);
    assert!(!run.sender.has_joined(0) && run.sent_on(0) == 0);
}

#[test]
fn a_late_join_takes_part_although_the_window_is_shut() {
    let config = MetaConfig { receive_buffer: 20_000, read_at_once: false, ..config("min-rtt") };
    let mut run = Run::new(&config, &[path(5, 20, 0.0)], 1);
    run.sender.write(400_000);
    run.run_until(Time::from_millis(400));
    assert_eq!(run.receiver.readable(), 20_000, "the shared window is shut");
    run.paths.push(path(5, 20, 0.0));
    assert_eq!(run.sender.join(controller()), Some(1));
    run.run_until(Time::from_millis(600));
    while run.receiver.delivered() < 400_000 {
        run.receiver.read(u64::MAX);
        run.step();
    }
    let [first, second] = [0, 1].map(|index| run.sent_on(index));
    assert!(second > 50_000, "{first} and {second}");
}

#[test]
fn the_persist_timer_of_the_shared_window_may_have_intervals_of_its_own() {
    let mut config =
        MetaConfig { receive_buffer: 20_000, read_at_once: false, ..config("min-rtt") };
    let mut probes = |persist| {
        config.subflow.timers.persist = persist;
        let mut run = Run::new(&config, &[path(5, 20, 0.0)], 1);
        run.sender.write(400_000);
        run.run_until(Time::from_millis(36_000));
        run.sender.statistics().window_probes
    };
    let [initial, most] = [5, 10].map(Duration::from_secs);
    // The window shuts after 0.2 s, so the timer fires at 5.2, 15.2, 25.2, 35.2 and 45.2 s. The run
    // ends with the first event after 36 s, which is the firing at 45.2 s.
    assert_eq!(probes(Some(PersistTimer { initial, most })), 5);
    // Here the first interval is the retransmission timeout, about 0.2 s.
    assert!(probes(None) >= 7);
}

#[test]
fn probes_of_the_shared_window_find_the_path_that_works() {
    let recovery = policy("resend");
    let base = MetaConfig { recovery, ..config("min-rtt") };
    let config = MetaConfig { receive_buffer: 20_000, read_at_once: false, ..base };
    let mut run = Run::new(&config, &[path(5, 20, 0.0), path(5, 40, 0.0)], 1);
    run.sender.write(400_000);
    run.run_until(Time::from_millis(1000));
    assert_eq!(run.receiver.readable(), 20_000, "the shared window is shut");
    run.paths[0].dies = Time::from_millis(1000);
    // Too little is read for a window update, so the sender learns of the room from the answer to a
    // probe.
    let mss = u64::from(config.subflow.mss);
    run.receiver.read(mss + mss / 2);
    run.run_until(Time::from_millis(5000));
    assert!(run.receiver.delivered() > 20_000, "{}", run.receiver.delivered());
}

#[test]
fn what_a_subflow_had_goes_elsewhere_when_it_leaves() {
    let paths = [path(5, 20, 0.0), path(5, 200, 0.0)];
    let mut run = Run::new(&config("round-robin"), &paths, 1);
    run.sender.write(1_000_000);
    run.sender.finish();
    run.run_until(Time::from_millis(900));
    assert!(run.sender.subflow(1).expect("it exists").in_flight() >= 3000);
    run.sender.leave(run.now, 1);
    // Segments that the subflow had in flight are lost.
    run.underway.events.retain(|_, (_, index, _)| *index == 0);
    run.run_until(Time::from_millis(3000));
    assert_eq!(run.receiver.delivered(), 1_000_000);
    assert!(run.sender.is_drained());
}

#[test]
fn a_subflow_that_comes_back_is_not_confused_by_stragglers() {
    let paths = [path(5, 20, 0.0), path(5, 30, 0.02)];
    let mut run = Run::new(&config("round-robin"), &paths, 3);
    let mut left = 3_000_000;
    for round in 1..=20 {
        left -= run.sender.write(left);
        run.run_until(Time::from_millis(150 * round));
        // Segments and acknowledgements of the old connection are on their way when the new one opens.
        run.sender.leave(run.now, 1);
        assert!(run.sender.rejoin(1, controller()));
        assert!(!run.sender.rejoin(1, controller()), "it has not gone");
    }
    run.transfer(left, u64::MAX);
    assert_eq!(run.receiver.delivered(), 3_000_000);
    assert!(run.sender.subflow_statistics().data_bytes >= 3_000_000);
}

#[test]
fn a_dead_subflow_strands_nothing_that_waits_for_it() {
    use anabranch_policy::scheduler::{Pick, SchedulerAction, Work};
    // Forty chunks are assigned ahead to a path that then dies.
    let script = Script::new(greedy).acting(|event, _| match event {
        SchedulerEvent::PathUp(PathId(1)) => {
            let path = PathId(1);
            let not_before = Time::ZERO;
            vec![SchedulerAction::Assign(Pick { work: Work::Fresh, count: 40, path, not_before })]
        }
        _ => vec![],
    });
    let heard = script.heard.clone();
    let mut config = config("min-rtt");
    config.subflow.timers.give_up_after = Some(3);
    let mut paths = [path(5, 20, 0.0), path(5, 20, 0.0)];
    paths[1].dies = Time::from_millis(125);
    let mut run = Run::of(sender(&config, 2, script), &config, &paths, 1);
    assert!(run.transfer(400_000, u64::MAX) < 8.0);
    let down = (SchedulerEvent::PathDown(PathId(1)), SchedulerEvent::PathUp(PathId(1)));
    let heard = heard.lock().expect("unpoisoned");
    assert_eq!(heard.iter().filter(|(_, event)| *event == down.0).count(), 1);
    assert_eq!(heard.iter().filter(|(_, event)| *event == down.1).count(), 1);
}

#[test]
fn there_are_at_most_sixteen() {
    let mut run = Run::new(&config("min-rtt"), &[path(5, 20, 0.0); 16], 1);
    assert_eq!(run.sender.join(controller()), None);
    run.sender.write(2_000_000);
    run.run_until(Time::from_secs(1));
    assert!((0..16).all(|index| run.sent_on(index) > 0));
}
