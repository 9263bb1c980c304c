//! MPLOT: a block's first transmission, reactive repairs on the good half, blocks side by side.

use anabranch_policy::recovery::{self, RecoveryAction, RecoveryEvent};
use anabranch_policy::scheduler::Work;
use anabranch_policy::view::{LossView, WindowId};
use anabranch_policy::{PolicySpec, redundancy, scheduler};
use anabranch_types::{PathId, Time};

use crate::executor::{World, path};

fn spec(text: &str) -> PolicySpec {
    text.parse().unwrap()
}

#[test]
fn blocks_are_sent_repaired_and_mapped_by_rank() {
    // Ranks 500, 250, 125 and 100 packets per second: paths 0 and 1 are good.
    let paths = vec![path(0, 20, 40), path(1, 10, 40), path(2, 5, 40), path(3, 4, 40)];
    let mut world = World::new(
        paths,
        scheduler::build(&spec("rank")).unwrap(),
        redundancy::build(&spec("mean-sigma")).unwrap(),
    );
    world.loss = LossView { mean: 0.1, deviation: 0.1 };
    world.fresh = 60;
    world.run();
    // 39 packets in all windows, q = .2: 31 sources and 8 repairs; the repairs leave first, because
    // they are the older block's, and the next block fills no more than what is left.
    let first = world.windows[0];
    assert_eq!((first.sources, first.closed, first.in_flight), (31, true, 39));
    assert_eq!(world.departures.len(), 39);
    assert_eq!(world.windows.len(), 1);

    // Everything of the bad paths arrives, twelve packets of path 0 are lost: four short.
    let first = world.windows[0];
    world.resolve(2, 0, first.in_flight_on[2], true);
    world.resolve(3, 0, first.in_flight_on[3], true);
    let lost = RecoveryEvent::Lost { window: WindowId(0), open: false, path: PathId(0) };
    let mut recovery = recovery::build(&spec("fresh-repairs")).unwrap();
    assert_eq!(recovery.on_event(Time::ZERO, lost, &world.paths), RecoveryAction::Repair);
    world.resolve(0, 0, 12, false);
    // ⌈4/(1 − .1)⌉ repairs are due.
    assert_eq!(world.windows[0].due, 5);

    let before = world.departures.len();
    world.run();
    let after = &world.departures[before..];
    let repairs: Vec<u32> = after
        .iter()
        .filter(|sent| sent.work == Work::Window(WindowId(0)))
        .map(|sent| sent.path)
        .collect();
    // The old block's repairs go to the good path with room, new data to the bad ones.
    assert_eq!(repairs, [0; 5]);
    let fresh_on = |id| after.iter().filter(|s| s.work == Work::Fresh && s.path == id).count();
    assert_eq!((fresh_on(2), fresh_on(3)), (5, 4));
    assert!(world.windows.len() > 1, "the next block started while the first is repaired");
}
