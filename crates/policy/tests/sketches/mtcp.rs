//! M-TCP: every packet is copied to the second path, some random time later.

use anabranch_policy::redundancy;
use anabranch_policy::scheduler::{Pick, Pull, Scheduler, Work};
use anabranch_policy::view::SchedulerView;
use anabranch_types::{PathId, Rng, Time};
use core::time::Duration;

use crate::executor::{World, path};

/// New data on the first path; the others copy it after a jitter of up to 10 ms.
#[derive(Debug)]
struct Jittered {
    rng: Rng,
}

impl Scheduler for Jittered {
    fn pull(&mut self, path: PathId, view: &SchedulerView<'_>, picks: &mut Vec<Pick>) -> Pull {
        let Some(own) = view.path(path) else { return Pull::Idle("no path") };
        if view.paths.first().is_some_and(|first| first.id == path) {
            if view.fresh.symbols == 0 {
                return Pull::Idle("nothing to send");
            }
            picks.push(Pick { work: Work::Fresh, count: 1, path, not_before: Time::ZERO });
            return Pull::Send("original");
        }
        // Copies that wait in the queue are missing on the path, but not to be asked for again.
        let mut queued = own.bytes_queued / own.packet_size;
        for window in view.windows {
            let carried = window.in_flight_on[usize::from(own.slot)];
            let missing = u64::from(window.in_flight.saturating_sub(carried));
            if missing > queued {
                let jitter = Duration::from_micros(self.rng.below(10_000));
                let (work, not_before) = (Work::Copy(window.id), view.now + jitter);
                picks.push(Pick { work, count: 1, path, not_before });
                return Pull::Send("copy");
            }
            queued -= missing;
        }
        Pull::Idle("all copied")
    }
}

#[test]
fn copies_leave_at_random_times_within_the_jitter() {
    let none = redundancy::build(&"none:sources=4".parse().unwrap()).unwrap();
    let scheduler = Box::new(Jittered { rng: Rng::substream(1, "jitter") });
    let mut world = World::new(vec![path(0, 20, 40), path(1, 20, 40)], scheduler, none);
    world.fresh = 10;
    let mut times = Vec::new();
    for step in 0..=10_u64 {
        world.now = Time::from_millis(step);
        let before = world.departures.len();
        world.run();
        let copies = world.departures[before..].iter().filter(|sent| sent.path == 1);
        times.extend(copies.map(|_| step));
    }
    assert_eq!(world.departures.iter().filter(|sent| sent.path == 0).count(), 10);
    assert_eq!(times.len(), 10, "each symbol is copied once");
    assert!(times.iter().any(|step| *step != times[0]), "{times:?}");
    let original = |sent: &&crate::executor::Departure| sent.path == 0;
    assert!(world.departures.iter().filter(original).all(|sent| sent.at == Time::ZERO));
}
