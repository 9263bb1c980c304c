//! LATE: the slow path's next packet carries data beyond what faster paths will deliver meanwhile.

use anabranch_policy::scheduler::{Pick, Pull, Scheduler, SchedulerAction, SchedulerEvent, Work};
use anabranch_policy::view::SchedulerView;
use anabranch_policy::{redundancy, scheduler};
use anabranch_types::PathId;

use crate::executor::{World, path};

/// Binds to each faster path what it delivers until the slow path's packets arrive; the slow path
/// then takes what follows. Without losses N(T, w, ∞) is the window times the rounds that fit.
#[derive(Debug)]
struct Late;

impl Scheduler for Late {
    fn on_event(
        &mut self,
        event: SchedulerEvent,
        view: &SchedulerView<'_>,
        actions: &mut Vec<SchedulerAction>,
    ) {
        let Some(master) = view.paths.iter().max_by_key(|path| path.rtt.smoothed) else { return };
        if event != SchedulerEvent::Acked(master.id) {
            return;
        }
        let horizon = master.rtt.smoothed / 2;
        let mut left = view.fresh.symbols as u16;
        for fast in view.paths.iter().filter(|path| path.id != master.id) {
            let rtt = fast.rtt.smoothed;
            let rounds = (horizon + rtt / 2).as_nanos() / rtt.as_nanos().max(1);
            let bound = fast.bytes_queued / fast.packet_size;
            let reach = fast.cwnd_packets() * rounds as u64;
            let count = left.min(reach.saturating_sub(bound) as u16);
            left -= count;
            if count > 0 {
                let (path, not_before) = (fast.id, view.now);
                actions.push(SchedulerAction::Bind(Pick {
                    work: Work::Fresh,
                    count,
                    path,
                    not_before,
                }));
            }
        }
    }

    fn pull(&mut self, path: PathId, view: &SchedulerView<'_>, picks: &mut Vec<Pick>) -> Pull {
        let master = view.paths.iter().max_by_key(|path| path.rtt.smoothed);
        if view.fresh.symbols == 0 || master.is_some_and(|master| master.id != path) {
            return Pull::Idle("waits for the next plan");
        }
        picks.push(Pick { work: Work::Fresh, count: 1, path, not_before: view.now });
        Pull::Send("beyond what faster paths deliver")
    }
}

#[test]
fn fast_paths_are_assigned_data_ahead_of_their_windows() {
    let paths = vec![path(0, 4, 20), path(1, 3, 100)];
    let none = redundancy::build(&"none".parse().unwrap()).unwrap();
    let mut world = World::new(paths, Box::new(Late), none);
    world.fresh = 100;
    world.tell(SchedulerEvent::Acked(PathId(1)));
    world.run();
    let symbols = |id| -> Vec<u64> {
        let of = world.departures.iter().filter(|sent| sent.path == id);
        of.filter_map(|sent| sent.symbol).collect()
    };
    // T = 50 ms holds three rounds of 20 ms (arrivals at 10, 30, 50): twelve symbols, four of them now.
    assert_eq!(symbols(0), [0, 1, 2, 3]);
    assert_eq!(symbols(1), [12, 13, 14]);
    assert_eq!(world.paths[0].bytes_queued, 8 * world.paths[0].packet_size);

    // A round later the next four leave without asking anyone.
    world.resolve(0, 0, 4, true);
    world.run();
    let tail: Vec<u64> = world.departures[7..].iter().filter_map(|sent| sent.symbol).collect();
    assert_eq!(tail, [4, 5, 6, 7]);
}

#[test]
fn a_new_plan_may_take_back_the_old_one() {
    let paths = vec![path(0, 4, 20), path(1, 3, 100)];
    let none = redundancy::build(&"none".parse().unwrap()).unwrap();
    let mut world = World::new(paths, Box::new(Late), none);
    world.fresh = 100;
    world.tell(SchedulerEvent::Acked(PathId(1)));
    world.unbind(PathId(0), 2);
    assert_eq!(world.paths[0].bytes_queued, 2 * world.paths[0].packet_size);
    // What was taken back is due, so that any scheduler can place it.
    assert_eq!(world.windows[0].due, 10);
    world.scheduler = scheduler::build(&"blind".parse().unwrap()).unwrap();
    world.run();
    assert_eq!(world.carriers(0).len(), 5);
}
