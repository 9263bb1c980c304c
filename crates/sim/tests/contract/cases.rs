//! The table of cases, each with a scheduler's actions and the required outcome.

use anabranch_policy::scheduler::{Pick, Pull, SchedulerAction, SchedulerEvent, Work};
use anabranch_policy::view::{BlockId, SchedulerView};
use anabranch_types::{PathId, Time};
use core::time::Duration;

use crate::rig::{Rig, Setting};
use crate::script::{Notes, Shared, greedy, idle, pick};

/// One clause of the contract.
pub struct Case {
    pub name: &'static str,
    pub setting: Setting,
    pub recovery: &'static str,
    pub answer: fn(&mut Notes, PathId, &SchedulerView<'_>, &mut Vec<Pick>) -> Pull,
    /// Plays the case and checks its outcome.
    pub play: fn(&mut dyn Rig, &Shared),
    /// Number of symbols that the case writes.
    pub writes: u64,
}

const TWO: &[u64] = &[10, 10];

const fn case(name: &'static str, cwnd: u64, writes: u64) -> Case {
    let setting = Setting::new(TWO, cwnd);
    Case { name, setting, recovery: "resend", answer: idle, play: |_, _| {}, writes }
}

pub const CASES: &[Case] = &[
    Case { play: paths_up, ..case("each path is announced once", 4, 0) },
    Case {
        answer: six_for_path_1_once,
        play: queue_of_another_path,
        ..case("work for another path waits in its queue", 4, 12)
    },
    Case {
        answer: first_one_late,
        play: waiting_blocks_nothing,
        ..case("what must wait holds up nothing", 8, 3)
    },
    Case { answer: hold_50_ms, play: held, ..case("a held path is not asked", 4, 2) },
    Case {
        answer: |_, _, _, _| Pull::Hold(Time::ZERO, "never"),
        play: asked_in_vain,
        ..case("a hold until the past is idle", 4, 2)
    },
    Case {
        answer: what_is_not_there,
        play: asked_in_vain,
        ..case("picks of what does not exist are idle", 4, 2)
    },
    Case { play: woken_once, ..case("a wake-up is told once and does not stop the clock", 4, 0) },
    Case { play: bound_ahead, ..case("work is assigned ahead of the window", 2, 10) },
    Case {
        answer: greedy_on_path_0,
        play: taken_back,
        ..case("what is taken back is due, and not lost", 2, 5)
    },
    Case {
        answer: two_ahead,
        play: cut_ahead,
        ..case("what is cut ahead is due, and bound to no path", 4, 7)
    },
    Case { answer: copy_the_second, play: copied, ..case("a named block is copied once", 8, 3) },
    Case { play: penalised, ..case("a penalty is not an event", 6, 0) },
    Case { answer: greedy, play: recovered, ..case("each block is recovered once", 8, 5) },
    Case {
        answer: fill_path_1_then_0,
        play: silent_path,
        ..case("a silent path's load moves, and events tell why", 4, 8)
    },
    Case {
        answer: fill_path_1_then_0,
        play: first_is_copied,
        recovery: "resend:timeout=copy",
        ..case("redundant striping copies the oldest", 4, 3)
    },
    Case {
        answer: fill_path_1_then_0,
        play: cut_unbinds,
        recovery: "resend:timeout=nothing,cut=unbind",
        ..case("a cut unbinds what lies beyond the window", 8, 8)
    },
    Case {
        answer: greedy,
        play: receiver_limited,
        setting: Setting { receive: Some(8), reads: false, ..Setting::new(TWO, 40) },
        ..case("the receiver's limit is told once an episode", 40, 20)
    },
];

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Lets the scheduler carry out `actions` at the next wake-up, a millisecond from now.
fn act(rig: &mut dyn Rig, shared: &Shared, actions: Vec<SchedulerAction>) {
    {
        let mut notes = shared.notes();
        notes.actions = actions;
        notes.wakeup = Some(rig.now() + ms(1));
    }
    rig.step();
    assert!(shared.notes().actions.is_empty(), "the wake-up did not come");
}

fn bind(count: u16, path: u32) -> SchedulerAction {
    SchedulerAction::Assign(pick(Work::Fresh, count, path))
}

fn paths_up(_: &mut dyn Rig, shared: &Shared) {
    for path in 0..2 {
        assert_eq!(shared.count(SchedulerEvent::PathUp(PathId(path))), 1);
        assert_eq!(shared.count(SchedulerEvent::PathDown(PathId(path))), 0);
    }
}

fn six_for_path_1_once(
    notes: &mut Notes,
    path: PathId,
    view: &SchedulerView<'_>,
    picks: &mut Vec<Pick>,
) -> Pull {
    if path != PathId(0) || notes.stage > 0 || view.fresh.symbols < 6 {
        return Pull::Idle("done");
    }
    notes.stage = 1;
    picks.push(pick(Work::Fresh, 6, 1));
    Pull::Send("for the other")
}

fn queue_of_another_path(rig: &mut dyn Rig, _: &Shared) {
    rig.write(12);
    assert_eq!(rig.on(1), [0, 1, 2, 3], "as its window admits");
    rig.run(25);
    assert_eq!(rig.on(1), [0, 1, 2, 3, 4, 5], "without being asked");
    assert!(rig.on(0).is_empty());
}

fn first_one_late(
    notes: &mut Notes,
    path: PathId,
    view: &SchedulerView<'_>,
    picks: &mut Vec<Pick>,
) -> Pull {
    if path != PathId(0) || view.fresh.symbols == 0 {
        return Pull::Idle("nothing");
    }
    let not_before = if notes.stage == 0 { view.now + ms(30) } else { Time::ZERO };
    notes.stage += 1;
    picks.push(Pick { not_before, ..pick(Work::Fresh, 1, 0) });
    Pull::Send("the first later")
}

fn waiting_blocks_nothing(rig: &mut dyn Rig, shared: &Shared) {
    let start = rig.now();
    rig.write(3);
    assert_eq!(rig.on(0), [1, 2]);
    let queued: u64 = shared.notes().paths.iter().map(|path| path.bytes_queued).sum();
    assert!(queued > 0, "what waits is shown");
    rig.run(29);
    assert_eq!(rig.on(0), [1, 2]);
    rig.step();
    assert_eq!(
        rig.departures().last().map(|sent| (sent.symbol, sent.at)),
        Some((0, start + ms(30)))
    );
}

fn hold_50_ms(
    notes: &mut Notes,
    path: PathId,
    view: &SchedulerView<'_>,
    picks: &mut Vec<Pick>,
) -> Pull {
    if path != PathId(0) || view.fresh.symbols == 0 {
        return Pull::Idle("nothing");
    }
    if notes.stage == 0 {
        notes.stage = view.now.as_micros() + 50_000;
    }
    let until = Time::from_micros(notes.stage);
    if view.now < until {
        return Pull::Hold(until, "wait");
    }
    greedy(notes, path, view, picks)
}

fn held(rig: &mut dyn Rig, shared: &Shared) {
    let start = rig.now();
    rig.write(1);
    rig.run(10);
    rig.write(1);
    rig.run(39);
    let asked =
        |notes: &Notes| notes.pulls.iter().filter(|(at, path)| *path == 0 && *at > start).count();
    assert_eq!(asked(&shared.notes()), 0);
    rig.step();
    assert_eq!(rig.on(0), [0, 1]);
    assert_eq!(rig.departures()[0].at, start + ms(50));
}

fn what_is_not_there(
    _: &mut Notes,
    path: PathId,
    _: &SchedulerView<'_>,
    picks: &mut Vec<Pick>,
) -> Pull {
    picks.push(pick(Work::Block(BlockId(77)), 2, path.0));
    picks.push(pick(Work::Copy(BlockId(78)), 1, path.0));
    Pull::Send("nonsense")
}

fn asked_in_vain(rig: &mut dyn Rig, shared: &Shared) {
    let before = shared.notes().pulls.len();
    rig.write(2);
    rig.run(100);
    let pulls = shared.notes().pulls.len() - before;
    assert!((2..=20).contains(&pulls), "asked {pulls} times");
    assert!(rig.departures().is_empty());
}

fn woken_once(rig: &mut dyn Rig, shared: &Shared) {
    shared.notes().wakeup = Some(rig.now() + ms(20));
    rig.run(19);
    assert_eq!(shared.count(SchedulerEvent::Wakeup), 0);
    // The scheduler still asks for the same time.
    rig.run(50);
    assert_eq!(shared.count(SchedulerEvent::Wakeup), 1);
    shared.notes().wakeup = Some(rig.now() + ms(5));
    rig.run(10);
    assert_eq!(shared.count(SchedulerEvent::Wakeup), 2);
}

fn bound_ahead(rig: &mut dyn Rig, shared: &Shared) {
    rig.write(10);
    act(rig, shared, vec![bind(5, 1), bind(1, 0)]);
    assert_eq!((rig.on(1), rig.on(0)), (vec![0, 1], vec![5]), "in the order of assignment");
    rig.run(30);
    assert_eq!(rig.on(1), [0, 1, 2, 3], "a round trip later");
    let queued = shared.notes().paths.iter().map(|path| path.bytes_queued / path.packet_size).max();
    assert!(queued > Some(0), "what is queued is shown");
    rig.run(30);
    assert_eq!(rig.on(1), [0, 1, 2, 3, 4]);
}

fn greedy_on_path_0(
    notes: &mut Notes,
    path: PathId,
    view: &SchedulerView<'_>,
    picks: &mut Vec<Pick>,
) -> Pull {
    if path != PathId(0) || notes.stage == 0 {
        return Pull::Idle("not this one");
    }
    if let Some(block) = view.blocks.iter().find(|block| block.has_work()) {
        assert_eq!((block.lost_on, block.carried_on), (0, 0), "never sent, so never lost");
    }
    greedy(notes, path, view, picks)
}

fn taken_back(rig: &mut dyn Rig, shared: &Shared) {
    rig.write(5);
    act(rig, shared, vec![bind(5, 1)]);
    assert_eq!(rig.on(1), [0, 1]);
    shared.notes().stage = 1;
    act(rig, shared, vec![SchedulerAction::TakeBack { path: PathId(1), keep: 1 }]);
    assert_eq!(rig.on(0), [3, 4]);
    rig.run(30);
    assert_eq!(rig.on(1), [0, 1, 2]);
}

/// Path 1 cuts two symbols ahead and sends the one after them. Path 0 sends due symbols, once
/// `stage` is above 0.
fn two_ahead(
    notes: &mut Notes,
    path: PathId,
    view: &SchedulerView<'_>,
    picks: &mut Vec<Pick>,
) -> Pull {
    let due = view.blocks.iter().find(|block| block.has_work());
    match (path, due) {
        (PathId(1), None) if view.fresh.symbols >= 3 => {
            picks.push(pick(Work::Ahead, 2, 1));
            picks.push(pick(Work::Fresh, 1, 1));
            Pull::Send("after two")
        }
        // `Work::Ahead` alone sends nothing, and the path asks again.
        (PathId(1), None) if view.fresh.symbols == 1 => {
            picks.push(pick(Work::Ahead, 1, 1));
            Pull::Send("left to the other")
        }
        (PathId(0), Some(block)) if notes.stage > 0 => {
            picks.push(pick(Work::Block(block.id), 1, 0));
            Pull::Send("due")
        }
        _ => Pull::Idle("not yet"),
    }
}

fn cut_ahead(rig: &mut dyn Rig, shared: &Shared) {
    rig.write(6);
    assert_eq!(rig.on(1), [2]);
    assert!(rig.on(0).is_empty());
    {
        let notes = shared.notes();
        let due: u16 = notes.blocks.iter().map(|block| block.due).sum();
        assert_eq!((due, notes.blocks.iter().map(|block| block.queued).sum::<u16>()), (2, 0));
        assert!(notes.blocks.iter().all(|block| block.lost_on == 0), "it was never sent");
    }
    shared.notes().stage = 1;
    act(rig, shared, Vec::new());
    assert_eq!(rig.on(0), [0, 1, 3, 4], "once the due ones are gone, path 1 goes on");
    assert_eq!(rig.on(1), [2, 5]);
    rig.run(30);
    rig.write(1);
    rig.run(1);
    assert_eq!(rig.on(0), [0, 1, 3, 4, 6]);
    assert_eq!(rig.on(1), [2, 5]);
}

fn copy_the_second(
    notes: &mut Notes,
    path: PathId,
    view: &SchedulerView<'_>,
    picks: &mut Vec<Pick>,
) -> Pull {
    if path == PathId(0) {
        return greedy(notes, path, view, picks);
    }
    if notes.stage == 0 || view.blocks.is_empty() {
        return Pull::Idle("not yet");
    }
    picks.push(pick(Work::Copy(BlockId(view.blocks[0].id.0 + 1)), 1, 1));
    Pull::Send("a copy")
}

fn copied(rig: &mut dyn Rig, shared: &Shared) {
    rig.write(3);
    assert_eq!(rig.on(0), [0, 1, 2]);
    shared.notes().stage = 1;
    act(rig, shared, Vec::new());
    assert_eq!(rig.on(1), [1], "that one, and once");
    let notes = shared.notes();
    let second = notes.blocks.iter().find(|block| block.carried_on == 0b11);
    let second = second.or(notes.blocks.iter().find(|block| block.in_flight_on[1] == 1));
    if let Some(block) = second {
        assert_eq!((block.in_flight, block.in_flight_on[0], block.in_flight_on[1]), (1, 1, 1));
    }
}

fn penalised(rig: &mut dyn Rig, shared: &Shared) {
    assert_eq!(rig.cwnd(1), 6);
    act(rig, shared, vec![SchedulerAction::Penalise(PathId(1))]);
    assert_eq!((rig.cwnd(0), rig.cwnd(1)), (6, 3));
    let cut =
        |(_, event): &&(Time, SchedulerEvent)| matches!(event, SchedulerEvent::CwndReduced(..));
    assert_eq!(shared.notes().heard.iter().filter(cut).count(), 0);
}

fn recovered(rig: &mut dyn Rig, shared: &Shared) {
    rig.write(5);
    rig.run(100);
    let notes = shared.notes();
    let recovered: Vec<_> = notes
        .heard
        .iter()
        .filter(|(_, event)| matches!(event, SchedulerEvent::Recovered(_)))
        .map(|(_, event)| *event)
        .collect();
    assert_eq!(recovered.len(), 5);
    assert!((1..5).all(|i| !recovered[..i].contains(&recovered[i])));
}

/// Path 1 sends up to eight new symbols, as its window admits. Path 0 sends only due symbols.
fn fill_path_1_then_0(
    notes: &mut Notes,
    path: PathId,
    view: &SchedulerView<'_>,
    picks: &mut Vec<Pick>,
) -> Pull {
    if path == PathId(1) {
        if notes.stage < 8 && view.fresh.symbols > 0 {
            notes.stage += 1;
            picks.push(pick(Work::Fresh, 1, 1));
            return Pull::Send("fill");
        }
        return Pull::Idle("full");
    }
    match view.blocks.iter().find(|block| block.has_work()) {
        Some(block) => {
            picks.push(pick(Work::Block(block.id), 1, 0));
            Pull::Send("due")
        }
        None => Pull::Idle("nothing due"),
    }
}

fn silent_path(rig: &mut dyn Rig, shared: &Shared) {
    rig.darken(1, true);
    rig.write(8);
    assert_eq!(rig.on(1), [0, 1, 2, 3]);
    rig.run(3000);
    assert_eq!(rig.on(0)[..4], [0, 1, 2, 3]);
    let path = PathId(1);
    let first = |wanted: fn(&SchedulerEvent) -> bool| {
        let notes = shared.notes();
        notes.heard.iter().find(|(_, event)| wanted(event)).map(|(at, _)| *at)
    };
    let timeout = first(|event| *event == SchedulerEvent::Timeout(PathId(1)));
    let cut = first(|event| matches!(event, SchedulerEvent::CwndReduced(PathId(1), _)));
    assert!(timeout.is_some() && cut >= timeout, "{timeout:?} {cut:?}");
    let down = shared.count(SchedulerEvent::PathDown(path));
    let up = shared.count(SchedulerEvent::PathUp(path));
    assert!(down <= 1 && up == 1, "down {down}, up {up}");
}

fn first_is_copied(rig: &mut dyn Rig, shared: &Shared) {
    rig.darken(1, true);
    rig.write(3);
    for _ in 0..3000 {
        rig.step();
        if shared.count(SchedulerEvent::Timeout(PathId(1))) > 0 {
            break;
        }
    }
    assert_eq!(rig.on(0), [0], "the oldest alone");
}

fn cut_unbinds(rig: &mut dyn Rig, shared: &Shared) {
    rig.darken(1, true);
    rig.write(1);
    rig.darken(1, false);
    for _ in 1..8 {
        rig.step();
        rig.write(1);
    }
    assert_eq!(rig.on(1), [0, 1, 2, 3, 4, 5, 6, 7]);
    // Three later packets are acknowledged, so the first is lost. The window is two packets, and
    // four are in flight.
    rig.run(17);
    let cut = |(_, event): &&(Time, SchedulerEvent)| {
        matches!(event, SchedulerEvent::CwndReduced(PathId(1), _))
    };
    assert_eq!(shared.notes().heard.iter().filter(cut).count(), 1);
    let moved = rig.on(0);
    assert!(moved.ends_with(&[6, 7]), "{moved:?}");
    assert!(!moved.iter().any(|symbol| (1..4).contains(symbol)), "{moved:?} had arrived");
}

fn receiver_limited(rig: &mut dyn Rig, shared: &Shared) {
    rig.write(20);
    rig.run(200);
    assert_eq!(shared.count(SchedulerEvent::ReceiverLimited), 1);
    let sent = rig.departures().len();
    assert!((7..=9).contains(&sent), "{sent} left for 8 that the receiver holds");
}
