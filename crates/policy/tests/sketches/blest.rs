//! BLEST's waiting, and the penalty of the default MPTCP scheduler.

use anabranch_policy::redundancy;
use anabranch_policy::scheduler::{Pick, Pull, Scheduler, SchedulerAction, SchedulerEvent, Work};
use anabranch_policy::view::SchedulerView;
use anabranch_types::{PathId, Time};

use crate::executor::{World, path};

/// Sends on the slow path only if the fast one will not need the room in the send window meanwhile.
#[derive(Debug)]
struct Blest {
    lambda: f64,
    penalised_at: Option<Time>,
}

impl Scheduler for Blest {
    fn on_event(
        &mut self,
        event: SchedulerEvent,
        view: &SchedulerView<'_>,
        actions: &mut Vec<SchedulerAction>,
    ) {
        if event != SchedulerEvent::ReceiverLimited {
            return;
        }
        self.lambda = (self.lambda + 0.04).min(1.3);
        let Some(fast) = view.paths.iter().min_by_key(|path| path.rtt.smoothed) else { return };
        // At most once per round trip of the fast path: those that hold the oldest data.
        let recent = self.penalised_at.is_some_and(|at| view.now < at + fast.rtt.smoothed);
        let Some(oldest) = view.windows.first().filter(|_| !recent) else { return };
        self.penalised_at = Some(view.now);
        for path in view.paths.iter().filter(|path| path.rtt.smoothed > fast.rtt.smoothed) {
            if oldest.in_flight_on[usize::from(path.slot)] > 0 {
                actions.push(SchedulerAction::Penalise(path.id));
            }
        }
    }

    fn pull(&mut self, path: PathId, view: &SchedulerView<'_>, picks: &mut Vec<Pick>) -> Pull {
        let fast = view.paths.iter().min_by_key(|path| path.rtt.smoothed);
        let (Some(fast), Some(own)) = (fast, view.path(path)) else { return Pull::Idle("no path") };
        if view.fresh.symbols == 0 {
            return Pull::Idle("nothing to send");
        }
        if fast.id != path {
            let rounds = own.rtt.smoothed.as_secs_f64() / fast.rtt.smoothed.as_secs_f64();
            let meanwhile = (fast.cwnd_packets() as f64 + (rounds - 1.0) / 2.0) * rounds;
            let on_slow = own.bytes_in_flight / own.packet_size + 1;
            if self.lambda * meanwhile > f64::from(view.fresh.window) - on_slow as f64 {
                return Pull::Hold(view.now + fast.rtt.smoothed, "would block the fast path");
            }
        }
        picks.push(Pick { work: Work::Fresh, count: 1, path, not_before: view.now });
        Pull::Send("does not block")
    }
}

fn world(window: u32) -> World {
    let none = redundancy::build(&"none".parse().unwrap()).unwrap();
    let scheduler = Box::new(Blest { lambda: 1.2, penalised_at: None });
    let mut world = World::new(vec![path(0, 10, 20), path(1, 10, 100)], scheduler, none);
    (world.fresh, world.window) = (1000, window);
    world
}

#[test]
fn the_slow_path_waits_when_the_window_is_short() {
    // Five rounds of the fast path carry (10 + 2)·5 = 60 packets, times 1.2.
    let mut wide = world(200);
    wide.run();
    assert_eq!(wide.departures.iter().filter(|sent| sent.path == 1).count(), 10);
    let mut narrow = world(60);
    narrow.run();
    assert!(narrow.departures.iter().all(|sent| sent.path == 0));
    let until = Time::from_millis(20);
    assert_eq!(narrow.answers[1], Some(Pull::Hold(until, "would block the fast path")));
}

#[test]
fn a_blocked_receiver_penalises_the_slow_carrier_once_per_round_trip() {
    let mut world = world(200);
    world.run();
    world.tell(SchedulerEvent::ReceiverLimited);
    world.tell(SchedulerEvent::ReceiverLimited);
    assert_eq!(world.penalised, [1]);
    world.now = Time::from_millis(25);
    world.tell(SchedulerEvent::ReceiverLimited);
    assert_eq!(world.penalised, [1, 1]);
}
