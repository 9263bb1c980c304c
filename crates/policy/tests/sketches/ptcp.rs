//! pTCP: data bound to a pipe goes back when its window is cut, and a timeout copies its first symbol.

use anabranch_policy::recovery::{self, RecoveryAction, RecoveryEvent};
use anabranch_policy::scheduler::{Pick, Work};
use anabranch_policy::{redundancy, scheduler};
use anabranch_types::{PathId, Time};

use crate::executor::{World, path};

#[test]
fn a_window_cut_gives_bound_data_to_the_other_pipe() {
    let none = redundancy::build(&"none".parse().unwrap()).unwrap();
    let blind = scheduler::build(&"blind".parse().unwrap()).unwrap();
    let mut world = World::new(vec![path(0, 6, 40), path(1, 20, 40)], blind, none);
    world.fresh = 6;
    let work = Work::Fresh;
    world.bind(Pick { work, count: 6, path: PathId(0), not_before: Time::from_millis(5) });

    // The pipe's window halves before anything left.
    world.paths[0].cwnd /= 2;
    let cut = RecoveryEvent::WindowCut { path: PathId(0), window: world.paths[0].cwnd };
    let mut recovery = recovery::build(&"resend:cut=unbind,timeout=copy".parse().unwrap()).unwrap();
    let action = recovery.on_event(world.now, cut, &world.paths);
    let RecoveryAction::Unbind(pipe, window) = action else { panic!("{action:?}") };
    world.unbind(pipe, (window / world.paths[0].packet_size) as usize);
    assert_eq!(world.windows[0].due, 3);

    world.paths[0].cwnd = 0;
    world.run();
    assert_eq!(world.carriers(0), [1, 1, 1]);

    // The pipe's own three leave when their time has come.
    world.paths[0].cwnd = 6 * world.paths[0].packet_size;
    world.now = Time::from_millis(5);
    world.run();
    let own: Vec<_> = world.departures.iter().filter(|sent| sent.path == 0).collect();
    assert_eq!(own.iter().filter_map(|sent| sent.symbol).collect::<Vec<_>>(), [0, 1, 2]);

    let timeout = RecoveryEvent::Timeout { path: PathId(0), consecutive: 1, alternatives: true };
    let action = recovery.on_event(world.now, timeout, &world.paths);
    assert_eq!(action, RecoveryAction::Copy(PathId(0)));
}
