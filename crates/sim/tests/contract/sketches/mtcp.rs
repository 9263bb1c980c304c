//! M-TCP: every packet is copied to the second path, some random time later.

use anabranch_policy::scheduler::{Pick, Pull, Scheduler, Work};
use anabranch_policy::view::SchedulerView;
use anabranch_types::{PathId, Rng};
use core::time::Duration;

use super::on_each;
use crate::rig::Setting;
use crate::script::pick;

/// New data on the first path; the others copy it after a jitter of up to 10 ms.
#[derive(Debug)]
struct Jittered {
    rng: Rng,
}

impl Scheduler for Jittered {
    fn pull(&mut self, path: PathId, view: &SchedulerView<'_>, picks: &mut Vec<Pick>) -> Pull {
        let Some(own) = view.path(path) else { return Pull::Idle("no path") };
        if own.slot == 0 {
            if view.fresh.symbols == 0 {
                return Pull::Idle("nothing to send");
            }
            picks.push(pick(Work::Fresh, 1, path.0));
            return Pull::Send("original");
        }
        let Some(block) = view.blocks.iter().find(|block| block.uncopied(own) > 0) else {
            return Pull::Idle("all copied");
        };
        let not_before = view.now + Duration::from_micros(self.rng.below(10_000));
        picks.push(Pick { not_before, ..pick(Work::Copy(block.id), 1, path.0) });
        Pull::Send("copy")
    }
}

#[test]
fn copies_leave_at_random_times_within_the_jitter() {
    let jittered = || Jittered { rng: Rng::substream(1, "jitter") };
    on_each(Setting::new(&[20, 20], 20), jittered, |engine, rig| {
        let start = rig.now();
        rig.write(10);
        rig.run(15);
        assert_eq!(rig.on(0), (0..10).collect::<Vec<_>>(), "{engine}");
        let mut copies = rig.on(1);
        copies.sort_unstable();
        assert_eq!(copies, (0..10).collect::<Vec<_>>(), "{engine}: each once");
        let departures = rig.departures();
        let delays =
            departures.iter().filter(|sent| sent.path == 1).map(|sent| sent.at.since(start));
        let (least, most) = (delays.clone().min().unwrap(), delays.max().unwrap());
        assert!(least < most && most <= Duration::from_millis(11), "{engine}: {least:?} {most:?}");
    });
}
