//! The states of a connection, from the first SYN to the last FIN.

use anabranch_policy::congestion;

use super::contract::{MSS, ms};
use super::*;
use crate::segment::Flags;
use crate::sender::CLOSING_TIMEOUTS;

fn closing(scheduler: &str) -> MetaConfig {
    let recovery = policy("resend:timeout=copy,cut=unbind");
    MetaConfig { close: true, recovery, ..config(scheduler) }
}

fn controller() -> Box<dyn anabranch_policy::CongestionController> {
    congestion::build(&policy("reno:initial=2"), 1000).expect("a controller")
}

/// The SYNs in flight during `steps` steps, and the answers to them. Each entry has the subflow,
/// the number of subflows named, and whether that number is a limit.
fn syns(run: &mut Run, steps: usize) -> [Vec<(usize, u8, bool)>; 2] {
    let mut seen = [Vec::new(), Vec::new()];
    for _ in 0..steps {
        run.drain();
        for (there, at, segment) in run.underway.events.values() {
            if segment.flags.has(Flags::SYN) {
                let said = (*at, segment.subflows, segment.flags.has(Flags::LIMITED));
                seen[usize::from(!there)].push(said);
            }
        }
        run.step();
    }
    seen
}

/// The states through which a run passes until there is no further event, each with the time at
/// which it began.
fn states(run: &mut Run, mut each: impl FnMut(&mut Run)) -> Vec<(State, Time)> {
    run.check_every = 1;
    let mut seen = vec![(run.sender.state(), run.now)];
    for _ in 0..100_000 {
        each(run);
        if !run.step() {
            return seen;
        }
        let state = run.sender.state();
        if seen.last().is_some_and(|(last, _)| *last != state) {
            seen.push((state, run.now));
        }
    }
    panic!("it goes on for ever: {seen:?}");
}

#[test]
fn a_connection_goes_through_the_states_of_figure_4() {
    let mut run = Run::new(&closing("blind"), &[], 1);
    assert_eq!(run.sender.state(), State::Closed, "no pipe has been opened");
    for delay in [20, 40, 60] {
        run.paths.push(path(5, delay, 0.0));
        run.sender.join(controller());
    }
    assert_eq!(run.sender.state(), State::Opening);
    run.sender.write(300_000);
    run.sender.finish();
    // A connection is closing as soon as the application has closed it, even if pipes have yet to
    // open.
    assert_eq!(run.sender.state(), State::Closing);

    let mut run =
        Run::new(&closing("blind"), &[path(5, 20, 0.0), path(5, 40, 0.0), path(5, 60, 0.0)], 1);
    run.sender.write(300_000);
    let seen = states(&mut run, |run| {
        if run.sender.is_drained() {
            run.sender.finish();
        }
    });
    let names: Vec<_> = seen.iter().map(|(state, _)| *state).collect();
    let [one, two, three] = [1, 2, 3].map(State::Established);
    assert_eq!(names, [State::Opening, one, two, three, State::Closing, State::Closed]);
    // The second and the third SYN leave when the first is answered, after 40 ms. Each is answered
    // a round trip later.
    let at: Vec<_> = seen.iter().map(|(_, at)| at.as_secs_f64()).collect();
    assert!((at[1] - 0.04).abs() < 0.001 && (at[2] - 0.12).abs() < 0.001, "{at:?}");
    assert!((at[3] - 0.16).abs() < 0.001, "{at:?}");
    assert_eq!(run.sender.statistics().closed_subflows, 3);
    assert!(run.receiver.is_finished() && run.sender.is_end_acknowledged());
    assert!(!run.sender.rejoin(0, controller()) && run.sender.join(controller()).is_none());
}

#[test]
fn fins_are_sent_again_until_they_are_acknowledged() {
    for seed in 0..20 {
        let mut run = Run::new(&closing("blind"), &[path(5, 20, 0.3), path(5, 40, 0.3)], seed);
        run.transfer(20_000, u64::MAX);
        assert_eq!(run.sender.state(), State::Closed);
        assert!(run.receiver.is_finished());
        assert_eq!(run.sender.next_timeout(), None);
    }
}

#[test]
fn a_pipe_that_comes_back_carries_what_a_closing_connection_has_left() {
    let mut run = Run::new(&closing("blind"), &[path(5, 20, 0.0), path(5, 40, 0.0)], 1);
    run.sender.write(100_000);
    run.sender.finish();
    run.run_until(Time::from_millis(150));
    assert_eq!(run.sender.state(), State::Closing);
    (0..2).for_each(|index| run.sender.leave(run.now, index));
    run.run_until(Time::from_secs(5));
    assert_eq!(run.sender.state(), State::Opening, "there is no way, and there is data");
    assert!(!run.sender.is_complete() && run.sender.rejoin(1, controller()));
    run.transfer(0, u64::MAX);
    assert_eq!((run.receiver.delivered(), run.sender.state()), (100_000, State::Closed));
    assert!(run.receiver.is_finished() && !run.sender.rejoin(0, controller()));
}

#[test]
fn a_pipe_that_cannot_be_reached_is_given_up_and_the_others_close() {
    for limit in [None, Some(3)] {
        let mut config = closing("blind");
        config.subflow.timers.give_up_after = limit;
        let mut paths = [path(5, 20, 0.0), path(5, 20, 0.0)];
        paths[1].dies = Time::from_millis(400);
        let mut run = Run::new(&config, &paths, 1);
        let timeouts = |run: &Run| run.sender.subflow(1).expect("a pipe").statistics().timeouts;
        run.sender.write(1_000_000);
        run.sender.finish();
        while !run.sender.is_drained() {
            assert!(run.step());
        }
        let before = timeouts(&run);
        while run.sender.state() != State::Closed {
            assert!(run.step());
        }
        assert_eq!(run.sender.statistics().closed_subflows, 1);
        let expected = limit.map_or(before + u64::from(CLOSING_TIMEOUTS), u64::from) + 1;
        assert_eq!(timeouts(&run), expected);
        assert!(run.receiver.is_finished());
    }
}

#[test]
fn a_pipe_that_never_opened_is_dropped() {
    let mut paths = [path(5, 20, 0.0), path(5, 20, 0.0)];
    paths[1].dies = Time::ZERO;
    let mut run = Run::new(&closing("blind"), &paths, 1);
    let seconds = run.transfer(100_000, u64::MAX);
    assert!(seconds < 0.6, "{seconds}: nobody waits for its SYN");
    assert_eq!(run.sender.state(), State::Closed);
}

#[test]
fn whichever_pipe_is_heard_tells_where_the_data_ends() {
    // The application closes after everything has been acknowledged, so only FINs can signal the
    // end.
    for deaf in 0..2 {
        let mut run = Run::new(&closing("round-robin"), &[path(5, 20, 0.0); 2], 1);
        run.sender.write(10 * MSS);
        run.run_until(ms(1000));
        assert!(run.sender.is_drained() && !run.receiver.is_finished());
        run.paths[deaf].dies = run.now;
        run.sender.finish();
        run.run_until(ms(1100));
        assert!(run.receiver.is_finished() && run.sender.is_end_acknowledged(), "{deaf}");
        assert_eq!(run.sender.state(), State::Closing, "the other has not answered");
    }
    // If the application closes before that, the segment with the last bytes signals the end.
    let mut run = Run::new(&closing("blind"), &[path(5, 20, 0.0)], 1);
    run.sender.write(2 * MSS);
    run.sender.finish();
    let mut fins = 0;
    while !run.receiver.is_finished() {
        assert!(run.step());
        fins += run.underway.events.values().filter(|(_, _, s)| s.flags.has(Flags::FIN)).count();
    }
    assert_eq!(fins, 0);
}

#[test]
fn a_plain_connection_closes_as_tcp_does() {
    let mut strips = path(5, 20, 0.1);
    strips.strips = true;
    let mut run = Run::new(&closing("blind"), &[strips, strips], 3);
    run.transfer(100_000, u64::MAX);
    assert!(run.sender.is_plain() && run.receiver.is_finished());
    assert_eq!((run.sender.state(), run.sender.statistics().closed_subflows), (State::Closed, 1));
}

#[test]
fn without_the_switch_nothing_closes() {
    let mut run = Run::new(&config("blind"), &[path(5, 20, 0.0)], 1);
    run.transfer(10 * MSS, u64::MAX);
    run.run_until(ms(5000));
    assert_eq!(run.sender.state(), State::Established(1));
    assert!(!run.receiver.is_finished());
}

#[test]
fn the_answering_side_limits_how_many_pipes_there_are() {
    for join in [Join::AfterFirst, Join::BeforeData] {
        let config = MetaConfig { most_subflows: Some(2), join, ..closing("blind") };
        let mut run = Run::new(&config, &[path(5, 20, 0.0); 4], 1);
        run.sender.write(400 * MSS);
        let [asked, answers] = syns(&mut run, 400);
        assert_eq!(run.sender.state(), State::Established(2));
        let joined: Vec<_> = (0..4).filter(|index| run.sender.has_joined(*index)).collect();
        assert_eq!(joined, [0, 1], "{join:?}");
        let opens = |index: usize| index < 2 || join != Join::AfterFirst;
        assert!(asked.iter().all(|(at, wanted, limit)| *wanted == 4 && opens(*at) && !limit));
        assert!(answers.iter().all(|(at, agreed, limit)| *agreed == 2 && opens(*at) && *limit));
        assert!(!answers.is_empty());
        // A pipe that leaves makes room for another.
        run.sender.leave(run.now, 0);
        run.run_until(run.now + Duration::from_secs(2));
        assert_eq!(run.sender.state(), State::Established(2), "{join:?}");
    }
}

#[test]
fn an_answering_side_without_a_limit_names_as_many_pipes_as_it_was_asked_for() {
    let mut run = Run::new(&closing("blind"), &[path(5, 20, 0.0); 3], 1);
    run.sender.write(100 * MSS);
    let [_, answers] = syns(&mut run, 200);
    assert!(answers.iter().all(|(_, agreed, limited)| *agreed == 3 && !limited), "{answers:?}");
    assert!(!answers.is_empty());
    // The number is not a limit: a further pipe joins.
    run.paths.push(path(5, 20, 0.0));
    assert_eq!(run.sender.join(controller()), Some(3));
    run.run_until(run.now + Duration::from_secs(1));
    assert_eq!(run.sender.state(), State::Established(4));
}

#[test]
fn both_buffers_grow_with_every_pipe_and_never_shrink() {
    let own = 100 * MSS;
    let buffers = MetaConfig { send_buffer: own, receive_buffer: own, ..closing("blind") };
    let config = MetaConfig { buffers_per_subflow: true, ..buffers };
    let mut run = Run::new(&config, &[path(5, 20, 0.0), path(5, 20, 0.0)], 1);
    let sizes = |run: &Run| (run.sender.send_buffer(), run.receiver.buffer());
    assert_eq!(sizes(&run), (own, own), "the first pipe alone");
    assert_eq!(run.sender.write(u64::MAX), own);
    run.run_until(run.now + Duration::from_secs(1));
    assert_eq!(sizes(&run), (2 * own, 2 * own));
    assert_eq!(run.sender.write(u64::MAX), 2 * own, "as much room as for two");
    run.paths.push(path(5, 20, 0.0));
    run.sender.join(controller());
    run.run_until(run.now + Duration::from_secs(1));
    assert_eq!(sizes(&run), (3 * own, 3 * own));
    run.sender.leave(run.now, 1);
    run.run_until(run.now + Duration::from_secs(1));
    assert_eq!(sizes(&run), (3 * own, 3 * own));
}
