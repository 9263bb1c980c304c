//! The contract between scheduler and engine, one test for each clause.

use anabranch_policy::scheduler::{Pick, Pull, SchedulerAction, SchedulerEvent, Work};
use anabranch_policy::view::{BlockId, Blocked, PathState};
use anabranch_types::PathId;

use super::script::{Heard, Script, greedy, pick, sender};
use super::*;
use crate::segment::Flags;
use crate::sender::Sender;

pub(super) const MSS: u64 = 1000;

pub(super) fn ms(n: u64) -> Time {
    Time::from_millis(n)
}

/// Subflows that are open from the start.
fn open(receive_buffer: u64) -> MetaConfig {
    let config = config("min-rtt");
    let subflow = Config { handshake: false, ..config.subflow };
    MetaConfig { subflow, receive_buffer, ..config }
}

/// Sends all data that may leave now and returns it as (subflow, chunk).
pub(super) fn leave(sender: &mut MetaSender, now: Time) -> Vec<(usize, u64)> {
    core::iter::from_fn(|| sender.poll_transmit(now))
        .filter(|(_, segment)| segment.len > 0)
        .map(|(index, segment)| (index, segment.data / MSS))
        .collect()
}

/// An acknowledgement of a subflow's first `upto` segments and of the first `data` chunks.
pub(super) fn ack(upto: u64, data: u64, window: u64) -> Segment {
    let flags = Flags::ACK.with(Flags::MAPPED);
    Segment { flags, ack: upto * MSS, data: data * MSS, window: window * MSS, ..Segment::EMPTY }
}

fn count(heard: &Heard, event: SchedulerEvent) -> usize {
    heard.lock().expect("unpoisoned").iter().filter(|(_, heard)| *heard == event).count()
}

#[test]
fn work_for_another_path_waits_in_its_queue() {
    let script = Script::new(|path, view, picks| {
        if view.fresh.symbols == 0 {
            return Pull::Idle("nothing");
        }
        picks.push(Pick { count: 6, ..pick(Work::Fresh, 1 - path.0) });
        Pull::Send("elsewhere")
    });
    let mut sender = sender(&open(1 << 20), 2, script);
    sender.write(12 * MSS);
    // Each pull assigns six segments to the other path. Path 1's window admits only four of its
    // six.
    let sent = leave(&mut sender, ms(0));
    assert_eq!(sent.iter().filter(|(path, _)| *path == 1).count(), 4);
    let on_one: Vec<u64> = sent.iter().filter(|(path, _)| *path == 1).map(|(_, n)| *n).collect();
    assert_eq!(on_one, [0, 1, 2, 3]);
    sender.handle_segment(ms(40), 1, &ack(1, 1, 1000));
    assert_eq!(leave(&mut sender, ms(40)).first(), Some(&(1, 4)), "without asking anybody");
}

#[test]
fn what_must_wait_holds_up_nothing() {
    let mut first = true;
    let script = Script::new(move |path, view, picks| {
        let not_before = if core::mem::take(&mut first) { ms(30) } else { Time::ZERO };
        if view.fresh.symbols == 0 {
            return Pull::Idle("nothing");
        }
        picks.push(Pick { not_before, ..pick(Work::Fresh, path.0) });
        Pull::Send("later")
    });
    let mut sender = sender(&open(1 << 20), 1, script);
    sender.write(3 * MSS);
    assert_eq!(leave(&mut sender, ms(0)), [(0, 1), (0, 2)]);
    assert_eq!(sender.next_timeout(), Some(ms(30)));
    sender.handle_timeout(ms(29));
    assert_eq!(leave(&mut sender, ms(29)), []);
    sender.handle_timeout(ms(30));
    assert_eq!(leave(&mut sender, ms(30)), [(0, 0)]);
}

#[test]
fn a_held_path_is_not_asked_before_its_time() {
    let pulls = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = pulls.clone();
    let script = Script::new(move |path, view, picks| {
        seen.lock().expect("unpoisoned").push(view.now);
        if view.now < ms(50) {
            return Pull::Hold(ms(50), "wait");
        }
        greedy(path, view, picks)
    });
    let mut sender = sender(&open(1 << 20), 1, script);
    sender.write(MSS);
    assert_eq!(leave(&mut sender, ms(0)), []);
    sender.write(MSS);
    assert_eq!(leave(&mut sender, ms(10)), []);
    assert_eq!(*pulls.lock().expect("unpoisoned"), [ms(0)]);
    assert_eq!(sender.next_timeout(), Some(ms(50)));
    sender.handle_timeout(ms(50));
    assert_eq!(leave(&mut sender, ms(50)), [(0, 0), (0, 1)]);
}

#[test]
fn a_hold_until_the_past_stops_nothing() {
    let script = Script::new(|_, _, _| Pull::Hold(Time::ZERO, "never"));
    let mut sender = sender(&open(1 << 20), 1, script);
    sender.write(MSS);
    assert_eq!(leave(&mut sender, ms(5)), []);
    assert_eq!(sender.next_timeout(), None);
}

#[test]
fn an_idle_path_asks_again_once_something_has_changed() {
    let pulls = std::sync::Arc::new(std::sync::Mutex::new(0));
    let seen = pulls.clone();
    let script = Script::new(move |path, _, picks| {
        *seen.lock().expect("unpoisoned") += 1;
        // A pick of a block that does not exist assigns nothing.
        picks.push(pick(Work::Block(BlockId(9)), path.0));
        Pull::Send("nonsense")
    });
    let mut sender = sender(&open(1 << 20), 1, script);
    sender.write(MSS);
    for at in 0..50 {
        sender.handle_timeout(ms(at));
        assert_eq!(leave(&mut sender, ms(at)), []);
    }
    assert_eq!(*pulls.lock().expect("unpoisoned"), 1);
    sender.write(MSS);
    assert_eq!(leave(&mut sender, ms(50)), []);
    assert_eq!(*pulls.lock().expect("unpoisoned"), 2);
}

#[test]
fn a_wakeup_is_told_once_and_never_stops_time() {
    let script = Script::new(|_, _, _| Pull::Idle("asleep"));
    let (heard, wakeup) = (script.heard.clone(), script.wakeup.clone());
    let mut sender = sender(&open(1 << 20), 1, script);
    *wakeup.lock().expect("unpoisoned") = Some(ms(20));
    assert_eq!(sender.next_timeout(), Some(ms(20)));
    sender.handle_timeout(ms(20));
    assert_eq!(sender.next_timeout(), None, "the same time again counts as none");
    sender.handle_timeout(ms(21));
    *wakeup.lock().expect("unpoisoned") = Some(ms(19));
    assert_eq!(sender.next_timeout(), None);
    *wakeup.lock().expect("unpoisoned") = Some(ms(25));
    sender.handle_timeout(ms(30));
    assert_eq!(
        *heard.lock().expect("unpoisoned"),
        [ms(20), ms(30)].map(|at| (at, SchedulerEvent::Wakeup))
    );
}

#[test]
fn assignments_ahead_of_the_window_can_be_taken_back() {
    let script = Script::new(greedy).acting(|event, view| match event {
        // Ten chunks are assigned ahead to path 1 at the first acknowledgement; all but two are
        // taken back at the second.
        SchedulerEvent::Acked(PathId(0)) if view.paths[1].bytes_queued == 0 => {
            vec![SchedulerAction::Assign(Pick { count: 10, ..pick(Work::Fresh, 1) })]
        }
        SchedulerEvent::Acked(PathId(0)) => {
            assert_eq!(view.paths[1].bytes_queued, 10 * MSS);
            assert_eq!(view.blocks.iter().filter(|w| w.queued_on[1] == 1).count(), 10);
            vec![SchedulerAction::TakeBack { path: PathId(1), keep: 2 }]
        }
        _ => vec![],
    });
    let mut sender = sender(&open(1 << 20), 2, script);
    sender.write(40 * MSS);
    assert_eq!(leave(&mut sender, ms(0)).len(), 8, "both windows are full");
    sender.handle_segment(ms(40), 0, &ack(1, 1, 1000));
    assert_eq!(leave(&mut sender, ms(40)), [(0, 18), (0, 19)], "after what path 1 was assigned");
    sender.handle_segment(ms(41), 0, &ack(2, 2, 1000));
    assert_eq!(leave(&mut sender, ms(41)), [(0, 10), (0, 11)], "what was taken back is due");
    sender.handle_segment(ms(60), 1, &ack(2, 2, 1000));
    assert_eq!(leave(&mut sender, ms(60))[..2], [(1, 8), (1, 9)], "the queue's first two");
}

#[test]
fn a_copy_is_of_the_chunk_that_is_named() {
    let script = Script::new(|path, view, picks| match path {
        PathId(0) => greedy(path, view, picks),
        _ => {
            let Some(own) = view.path(path) else { return Pull::Idle("no path") };
            let last = view.blocks.iter().rev().find(|block| block.uncopied(own) > 0);
            let Some(last) = last else { return Pull::Idle("all copied") };
            picks.push(Pick { count: 3, ..pick(Work::Copy(last.id), 1) });
            picks.push(pick(Work::Copy(BlockId(99)), 1));
            Pull::Send("copy")
        }
    });
    let mut sender = sender(&open(1 << 20), 2, script);
    sender.write(3 * MSS);
    let sent = leave(&mut sender, ms(0));
    assert_eq!(sent, [(0, 0), (0, 1), (0, 2), (1, 2), (1, 1), (1, 0)]);
    assert_eq!(sender.statistics().rebound_bytes, 3 * MSS);
}

#[test]
fn a_full_receiver_is_told_once_before_the_path_that_finds_out_asks() {
    let script = Script::new(|path, view, picks| {
        if view.fresh.blocked == Some(Blocked::FlowControl)
            && let Some(own) = view.path(path)
            && let Some(oldest) = view.blocks.first()
            && !oldest.carried_by(own)
        {
            picks.push(pick(Work::Copy(oldest.id), path.0));
            return Pull::Send("opportunistic retransmission");
        }
        greedy(path, view, picks)
    })
    .acting(|event, view| match event {
        SchedulerEvent::ReceiverLimited => {
            let slow = view.paths.iter().find(|path| view.blocks[0].carried_by(path));
            slow.map(|path| SchedulerAction::Penalise(path.id)).into_iter().collect()
        }
        _ => vec![],
    });
    let heard = script.heard.clone();
    let mut sender = sender(&open(6 * MSS), 2, script);
    sender.write(100 * MSS);
    let sent = leave(&mut sender, ms(0));
    assert_eq!(sent, [(0, 0), (0, 1), (0, 2), (0, 3), (1, 4), (1, 5), (1, 0)]);
    assert_eq!(count(&heard, SchedulerEvent::ReceiverLimited), 1);
    assert_eq!(sender.subflow(0).map(Sender::cwnd), Some(2 * MSS), "penalised");
    assert_eq!(count(&heard, SchedulerEvent::CwndReduced(PathId(0), 2 * MSS)), 0);
    // Path 1 finds the window still shut, so the scheduler is not told again.
    sender.handle_segment(ms(40), 1, &ack(2, 0, 6));
    assert_eq!(leave(&mut sender, ms(40)), []);
    assert_eq!(count(&heard, SchedulerEvent::ReceiverLimited), 1);
    // The window opens and shuts again, so the scheduler is told again.
    sender.handle_segment(ms(50), 1, &ack(3, 1, 6));
    assert_eq!(leave(&mut sender, ms(50))[0], (1, 6));
    assert_eq!(count(&heard, SchedulerEvent::ReceiverLimited), 2);
}

#[test]
fn a_full_send_buffer_is_told_once_and_whether_there_is_room_again() {
    let script = Script::new(greedy).acting(|event, view| match event {
        SchedulerEvent::SenderLimited { .. } => {
            vec![SchedulerAction::Assign(pick(Work::Copy(view.blocks[0].id), 1))]
        }
        _ => vec![],
    });
    let heard = script.heard.clone();
    let told = |full: bool| count(&heard, SchedulerEvent::SenderLimited { full });
    let mut sender = sender(&MetaConfig { send_buffer: 6 * MSS, ..open(100 * MSS) }, 2, script);
    assert_eq!(sender.write(5 * MSS), 5 * MSS);
    leave(&mut sender, ms(0));
    assert_eq!((told(true), told(false)), (0, 0), "the application waits for nothing");
    assert_eq!(sender.write(100 * MSS), MSS);
    assert_eq!(leave(&mut sender, ms(1)), [(1, 5), (1, 0)], "a copy of the oldest on path 1");
    assert_eq!(told(true), 1);
    // Path 1 finds the buffer still full, so the scheduler is not told again.
    sender.handle_segment(ms(40), 1, &ack(2, 0, 100));
    assert_eq!(leave(&mut sender, ms(40)), []);
    assert_eq!((told(true), told(false)), (1, 0));
    // The buffer gets room, the application fills it, and the scheduler is told again.
    sender.handle_segment(ms(50), 0, &ack(1, 1, 100));
    assert_eq!(sender.write(100 * MSS), MSS);
    assert_eq!(leave(&mut sender, ms(50)), [(0, 6), (1, 1)]);
    assert_eq!((told(true), told(false)), (2, 0));
}

#[test]
fn room_that_the_application_has_yet_to_use_is_told() {
    // How many of the four segments in the send buffer are acknowledged, and how often the
    // scheduler is told that there is room.
    for (acknowledged, expected) in [(1, 1), (2, 0)] {
        let script = Script::new(greedy);
        let heard = script.heard.clone();
        let mut sender = sender(&MetaConfig { send_buffer: 4 * MSS, ..open(100 * MSS) }, 1, script);
        assert_eq!(sender.write(100 * MSS), 4 * MSS);
        assert_eq!(leave(&mut sender, ms(0)).len(), 4);
        sender.handle_segment(ms(40), 0, &ack(acknowledged, acknowledged, 100));
        assert_eq!(leave(&mut sender, ms(40)), []);
        let told = |full: bool| count(&heard, SchedulerEvent::SenderLimited { full });
        assert_eq!((told(true), told(false)), (0, expected), "{acknowledged}");
    }
}

#[test]
fn events_come_in_their_order() {
    let script = Script::new(|path, view, picks| match path {
        PathId(0) => greedy(path, view, picks),
        _ => Pull::Idle("unused"),
    });
    let heard = script.heard.clone();
    let mut sender = sender(&open(1 << 20), 2, script);
    sender.write(8 * MSS);
    leave(&mut sender, ms(0));
    // Three segments above the first have arrived.
    let mut lost = ack(0, 0, 1000);
    lost.sack.push(0, MSS, 4 * MSS);
    sender.handle_segment(ms(40), 0, &lost);
    let events: Vec<_> = heard.lock().expect("unpoisoned").drain(..).map(|(_, e)| e).collect();
    let path = PathId(0);
    assert_eq!(
        events,
        [
            SchedulerEvent::CwndReduced(path, 2 * MSS),
            SchedulerEvent::Lost(path),
            SchedulerEvent::Acked(path)
        ]
    );
    assert_eq!(leave(&mut sender, ms(40))[0], (0, 0));
    sender.handle_segment(ms(80), 0, &ack(4, 4, 1000));
    let events: Vec<_> = heard.lock().expect("unpoisoned").drain(..).map(|(_, e)| e).collect();
    let recovered = (0..4).map(|id| SchedulerEvent::Recovered(BlockId(id)));
    assert_eq!(
        events,
        [SchedulerEvent::Acked(path)].into_iter().chain(recovered).collect::<Vec<_>>()
    );
}

#[test]
fn a_silent_subflow_is_suspect_until_it_is_heard() {
    let script = Script::new(|path, view, picks| {
        let state = view.path(path).map(|path| path.state);
        assert_eq!(state, Some(PathState::Active));
        greedy(path, view, picks)
    });
    let heard = script.heard.clone();
    let config = MetaConfig { recovery: policy("resend"), ..open(1 << 20) };
    let mut sender = sender(&config, 2, script);
    sender.write(8 * MSS);
    assert_eq!(leave(&mut sender, ms(0)).len(), 8);
    // Path 1 answers and path 0 does not. So path 1 sends the chunks of path 0 again, and path 0
    // retransmits its first one.
    sender.handle_segment(ms(40), 1, &ack(4, 0, 1000));
    let timeout = sender.next_timeout().expect("a retransmission timer");
    sender.handle_timeout(timeout);
    let path = PathId(0);
    assert_eq!(count(&heard, SchedulerEvent::PathDown(path)), 1);
    assert_eq!(count(&heard, SchedulerEvent::Timeout(path)), 1);
    let sent = leave(&mut sender, timeout);
    assert_eq!(sent, [(0, 0), (1, 0), (1, 1), (1, 2), (1, 3)]);
    sender.handle_segment(timeout + Duration::from_millis(40), 0, &ack(1, 1, 1000));
    assert_eq!(count(&heard, SchedulerEvent::PathUp(path)), 1);
}

#[test]
fn what_a_subflow_retransmits_itself_is_not_offered_to_it() {
    let script = Script::new(greedy);
    let config = MetaConfig { recovery: policy("resend"), ..open(1 << 20) };
    let mut sender = sender(&config, 2, script);
    sender.write(20 * MSS);
    assert_eq!(leave(&mut sender, ms(0)).len(), 8);
    sender.handle_segment(ms(40), 1, &ack(4, 0, 1000));
    let refilled = leave(&mut sender, ms(40));
    assert!(refilled.iter().all(|(path, chunk)| *path == 1 && *chunk >= 8));
    // Path 0 times out while path 1 is full, so path 0 itself sends its chunks again, at its own
    // pace.
    let timeout = sender.next_timeout().expect("a retransmission timer");
    sender.handle_timeout(timeout);
    let after = |n| timeout + Duration::from_millis(n);
    assert_eq!(leave(&mut sender, after(0)), [(0, 0)]);
    sender.handle_segment(after(10), 0, &ack(1, 1, 1000));
    assert_eq!(leave(&mut sender, after(10)), [(0, 1), (0, 2)]);
    sender.handle_segment(after(20), 0, &ack(2, 2, 1000));
    assert_eq!(leave(&mut sender, after(20)), [(0, 3)]);
    sender.handle_segment(after(25), 0, &ack(3, 3, 1000));
    let fresh = refilled.len() as u64 + 8;
    assert_eq!(
        leave(&mut sender, after(25)),
        [(0, fresh), (0, fresh + 1)],
        "3 is due still, but for path 1"
    );
    sender.handle_segment(after(30), 1, &ack(5, 3, 1000));
    assert_eq!(leave(&mut sender, after(30))[0], (1, 3));
}

#[test]
fn a_chunk_whose_offset_had_stood_for_another_is_sent_again() {
    let mut copies = 0;
    let script = Script::new(move |path, view, picks| {
        // Path 1 takes only one due chunk.
        if path == PathId(1) && (copies > 0 || !view.blocks.iter().any(|w| w.has_work())) {
            return Pull::Idle("enough");
        }
        copies += u32::from(path == PathId(1));
        greedy(path, view, picks)
    });
    let recovery = policy("resend:timeout=nothing,cut=unbind");
    let mut sender = sender(&MetaConfig { recovery, ..open(1 << 20) }, 2, script);
    sender.write(4 * MSS);
    assert_eq!(leave(&mut sender, ms(0)), [(0, 0), (0, 1), (0, 2), (0, 3)]);
    // The timeout is spurious, but it leaves only chunk 0 bound to path 0.
    let timeout = sender.next_timeout().expect("a retransmission timer");
    sender.handle_timeout(timeout);
    let after = |n| timeout + Duration::from_millis(n);
    assert_eq!(leave(&mut sender, after(0)), [(0, 0), (1, 1)]);
    sender.handle_segment(after(10), 0, &ack(1, 1, 1000));
    assert_eq!(leave(&mut sender, after(10)), [(0, 2), (0, 3)], "at the offsets of 1 and 2");
    // The data first sent at those offsets has arrived, but the data that replaced it is lost.
    sender.handle_segment(after(20), 0, &ack(3, 3, 1000));
    assert_eq!(leave(&mut sender, after(20)), [(0, 3)]);
}

#[test]
fn silly_segments_are_not_sent() {
    let mut sender = sender(&open(2500), 1, Script::new(greedy));
    sender.write(10 * MSS);
    assert_eq!(leave(&mut sender, ms(0)).len(), 2, "the last 500 bytes of the window stay unused");
    let flags = Flags::ACK.with(Flags::MAPPED);
    let opened =
        |data: u64, window: u64| Segment { flags, ack: data, data, window, ..Segment::EMPTY };
    sender.handle_segment(ms(40), 0, &opened(1000, 1500));
    assert_eq!(leave(&mut sender, ms(40)), []);
    sender.handle_segment(ms(41), 0, &opened(2000, 2500));
    assert_eq!(leave(&mut sender, ms(41)), [(0, 2), (0, 3)]);
    // The last segment of the data may be short.
    sender.write(300);
    sender.finish();
    let mut lens = Vec::new();
    for (at, data) in [(80, 4000), (120, 8000)] {
        sender.handle_segment(ms(at), 0, &opened(data, 10_000));
        lens.extend(
            core::iter::from_fn(|| sender.poll_transmit(ms(at))).map(|(_, segment)| segment.len),
        );
    }
    assert_eq!(lens, [1000, 1000, 1000, 1000, 1000, 1000, 300]);
}
