use anabranch_types::{PathId, Time};

use super::*;
use crate::view::BlockId;

const PATH: PathId = PathId(2);
const BLOCK: BlockId = BlockId(7);

fn timeout(alternatives: bool) -> RecoveryEvent {
    RecoveryEvent::Timeout { path: PATH, consecutive: 1, alternatives }
}

fn lost(open: bool) -> RecoveryEvent {
    RecoveryEvent::Lost { block: BLOCK, open, path: PATH }
}

/// The policy's actions for a loss, a timeout with and without other paths, and a cut of the
/// congestion window.
fn answers(spec: &str) -> [RecoveryAction; 4] {
    let mut policy = build(&spec.parse().unwrap()).unwrap();
    [
        lost(false),
        timeout(true),
        timeout(false),
        RecoveryEvent::CwndReduced { path: PATH, cwnd: 6000, silent: false },
    ]
    .map(|event| policy.on_event(Time::ZERO, event, &[]))
}

#[test]
fn fresh_repairs_never_resends() {
    use RecoveryAction::{Nothing, Reinject, Repair};
    assert_eq!(answers("fresh-repairs"), [Repair, Reinject(PATH), Nothing, Nothing]);
    assert_eq!(answers("fresh-repairs:timeout=nothing"), [Repair, Nothing, Nothing, Nothing]);
    assert!(!build(&"fresh-repairs".parse().unwrap()).unwrap().resends());
}

#[test]
fn fresh_repairs_may_resend_what_a_filling_block_loses() {
    let answer = |spec: &str, open| {
        let mut policy = build(&spec.parse().unwrap()).unwrap();
        policy.on_event(Time::ZERO, lost(open), &[])
    };
    assert_eq!(answer("fresh-repairs", true), RecoveryAction::Repair);
    assert_eq!(answer("fresh-repairs:open=resend", true), RecoveryAction::Resend);
    assert_eq!(answer("fresh-repairs:open=resend", false), RecoveryAction::Repair);
}

#[test]
fn a_path_that_stays_silent_is_stale() {
    use RecoveryAction::{Copy, Reinject};
    let mut policy = build(&"resend:timeout=copy,stale=4".parse().unwrap()).unwrap();
    for (consecutive, expected) in
        [(1, Copy(PATH)), (3, Copy(PATH)), (4, Reinject(PATH)), (5, Reinject(PATH))]
    {
        let event = RecoveryEvent::Timeout { path: PATH, consecutive, alternatives: true };
        assert_eq!(policy.on_event(Time::ZERO, event, &[]), expected, "{consecutive}");
    }
}

#[test]
fn resend_repeats_the_symbol_and_follows_ptcp_on_request() {
    use RecoveryAction::{Copy, Nothing, Reinject, Resend, TakeBack};
    assert_eq!(answers("resend"), [Resend, Reinject(PATH), Nothing, Nothing]);
    assert_eq!(answers("resend:timeout=nothing")[1], Nothing);
    assert_eq!(
        answers("resend:timeout=copy,cut=unbind"),
        [Resend, Copy(PATH), Nothing, TakeBack(PATH, 6000)]
    );
    assert_eq!(answers("resend:cut=unsent")[3], RecoveryAction::TakeBackQueued(PATH, 6000));
    let mut unsent = build(&"resend:cut=unsent".parse().unwrap()).unwrap();
    let cut = RecoveryEvent::CwndReduced { path: PATH, cwnd: 1000, silent: true };
    assert_eq!(unsent.on_event(Time::ZERO, cut, &[]), TakeBack(PATH, 1000));
    assert!(build(&"resend".parse().unwrap()).unwrap().resends());
}

#[test]
fn dead_paths_give_back_their_load() {
    for (entry, _) in TABLE {
        let mut policy = build(&PolicySpec::new(entry.name)).unwrap();
        let mut answer = |event| policy.on_event(Time::ZERO, event, &[]);
        let down = answer(RecoveryEvent::PathDown(PATH));
        assert_eq!(down, RecoveryAction::Reinject(PATH), "{}", entry.name);
        assert_eq!(answer(RecoveryEvent::PathUp(PATH)), RecoveryAction::Nothing);
    }
}
