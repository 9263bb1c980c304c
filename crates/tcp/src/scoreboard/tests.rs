//! The scoreboard, checked against a slow implementation of its rules.

use super::*;
use proptest::prelude::*;

const MSS: u32 = 10;

impl Slot {
    fn lost(&self) -> bool {
        self.is(LOST)
    }

    fn sacked(&self) -> bool {
        self.is(SACKED)
    }
}

fn board(segments: u64) -> Scoreboard {
    let mut board = Scoreboard::new(MSS);
    for i in 0..segments {
        board.push(i * u64::from(MSS), MSS, false, Time::from_millis(i));
    }
    board
}

fn pipe_by_definition(board: &Scoreboard) -> u64 {
    board.slots.iter().map(Slot::in_pipe).sum()
}

#[test]
fn three_segments_above_make_a_loss() {
    let mut board = board(6);
    let mut delivered = Delivered::default();
    board.sack(20, 30, &mut delivered);
    board.sack(40, 50, &mut delivered);
    assert_eq!(board.judge(3), 0);
    assert_eq!(board.pipe(), 40);
    board.sack(50, 60, &mut delivered);
    assert_eq!((delivered.segments, delivered.bytes), (3, 30));
    // 20, 40 and 50 are SACKed above 0 and 10, but only two of them above 30.
    assert_eq!(board.judge(3), 2);
    assert_eq!(board.pipe(), 10);
    assert_eq!(board.next_waiting(), Some(0));
    board.resent(0, Time::from_millis(9));
    assert_eq!(board.pipe(), 20);
    assert_eq!(board.next_waiting(), Some(1));
}

#[test]
fn a_timeout_returns_everything_not_sacked() {
    let mut board = board(4);
    let mut delivered = Delivered::default();
    board.sack(10, 20, &mut delivered);
    board.declare_all(false);
    assert_eq!((board.pipe(), board.waiting), (0, 3));
    board.declare_all(true);
    assert_eq!((board.pipe(), board.waiting), (0, 4));
    board.acknowledge(40, &mut delivered);
    assert!(board.is_empty() && !board.any_waiting());
}

#[test]
fn a_lost_copy_goes_again() {
    let mut board = board(3);
    assert!(board.declare_first());
    board.resent(0, Time::from_millis(5));
    assert_eq!(board.next_waiting(), None);
    assert!(board.notice(0));
    assert_eq!(board.next_waiting(), Some(0));
    assert_eq!(board.pipe(), 20);
}

#[test]
fn a_probe_of_what_was_not_lost_counts_twice_until_it_is() {
    let mut board = board(1);
    board.track_copies();
    board.resent(0, Time::from_millis(5));
    assert_eq!(board.pipe(), 20);
    // Both transmissions are older than one that has arrived.
    let newest = (Time::from_millis(9), 100);
    let (lost, _) = board.declare_sent_before(newest, Duration::ZERO, Time::from_millis(20));
    assert_eq!((lost, board.pipe()), (1, 0));
    board.acknowledge(10, &mut Delivered::default());
    assert_eq!(board.pipe(), 0);
}

#[derive(Clone, Debug)]
enum Operation {
    Push,
    Ack(u64),
    Sack(u64, u64),
    Judge,
    Resend,
    Timeout(bool),
    Notice(u64),
    Probe,
    Expire(u64, u64),
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        4 => Just(Operation::Push),
        1 => (0_u64..40).prop_map(Operation::Ack),
        4 => (0_u64..40, 1_u64..5).prop_map(|(from, n)| Operation::Sack(from, n)),
        3 => Just(Operation::Judge),
        3 => Just(Operation::Resend),
        1 => any::<bool>().prop_map(Operation::Timeout),
        1 => (0_u64..40).prop_map(Operation::Notice),
        1 => Just(Operation::Probe),
        2 => (0_u64..60, 0_u64..40).prop_map(|(sent, age)| Operation::Expire(sent, age)),
    ]
}

proptest! {
    #[test]
    fn counters_agree_with_the_slots(operations in proptest::collection::vec(operation(), 1..200)) {
        let mut board = Scoreboard::new(MSS);
        board.track_copies();
        let (mut next, mut una, mut now) = (0_u64, 0_u64, 0);
        let size = u64::from(MSS);
        for operation in operations {
            now += 1;
            let time = Time::from_millis(now);
            let mut delivered = Delivered::default();
            match operation {
                Operation::Push => {
                    board.push(next * size, MSS, false, time);
                    next += 1;
                }
                Operation::Ack(n) => {
                    una = una.max((una + n).min(next));
                    board.acknowledge(una * size, &mut delivered);
                }
                Operation::Sack(from, n) => {
                    let from = una + from;
                    board.sack(from * size, (from + n) * size, &mut delivered);
                }
                Operation::Judge => {
                    board.judge(3);
                    // RFC 6675: a segment below three SACKed ones is lost.
                    let slots: Vec<Slot> = board.slots.iter().copied().collect();
                    for (index, slot) in slots.iter().enumerate() {
                        let above = slots.iter().skip(index).filter(|s| s.sacked()).count();
                        if above >= 3 && !slot.sacked() {
                            prop_assert!(slot.lost());
                        }
                    }
                }
                Operation::Resend => {
                    let first = board.slots.iter().position(Slot::waits_for_resending);
                    prop_assert_eq!(board.next_waiting(), first);
                    if let Some(index) = first {
                        board.resent(index, time);
                    }
                }
                Operation::Timeout(forget) => board.declare_all(forget),
                Operation::Notice(n) => {
                    board.notice((una + n) * size);
                }
                Operation::Probe => {
                    if let Some(last) = board.len().checked_sub(1) {
                        board.resent(last, time);
                    }
                }
                Operation::Expire(ago, age) => {
                    let newest = (Time::from_millis(now.saturating_sub(ago)), next * size);
                    board.declare_sent_before(newest, Duration::from_millis(age), time);
                }
            }
            prop_assert_eq!(board.pipe(), pipe_by_definition(&board));
            let waiting = board.slots.iter().filter(|s| s.waits_for_resending()).count();
            prop_assert_eq!(board.waiting, waiting as u64);
            prop_assert!(delivered.bytes <= 40 * size);
        }
    }
}
