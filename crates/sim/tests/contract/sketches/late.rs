//! LATE: the slow path's next packet carries data beyond the data that faster paths will deliver
//! meanwhile.

use anabranch_policy::scheduler::{Pick, Pull, Scheduler, SchedulerAction, SchedulerEvent, Work};
use anabranch_policy::view::SchedulerView;
use anabranch_types::{PathId, Time};

use super::on_each;
use crate::rig::Setting;
use crate::script::pick;

/// Assigns to each faster path the data that it can deliver until the slow path's packets arrive.
/// The slow path then takes the data that follows. Without losses, N(T, w, ∞) is the window times
/// the number of rounds that fit.
#[derive(Debug)]
struct Late {
    begin: Time,
    planned: bool,
}

impl Late {
    fn plan(&mut self, view: &SchedulerView<'_>, actions: &mut Vec<SchedulerAction>) {
        self.planned = true;
        let Some(master) = view.paths.iter().max_by_key(|path| path.rtt.smoothed) else { return };
        let horizon = master.rtt.smoothed / 2;
        let mut left = view.fresh.symbols as u16;
        for fast in view.paths.iter().filter(|path| path.id != master.id) {
            let rtt = fast.rtt.smoothed;
            let rounds = (horizon + rtt / 2).as_nanos() / rtt.as_nanos().max(1);
            let reach = fast.cwnd_packets() * rounds as u64;
            let count = left.min(reach.saturating_sub(fast.bytes_queued / fast.packet_size) as u16);
            left -= count;
            if count > 0 {
                actions.push(SchedulerAction::Assign(pick(Work::Fresh, count, fast.id.0)));
            }
        }
    }
}

impl Scheduler for Late {
    fn on_event(
        &mut self,
        event: SchedulerEvent,
        view: &SchedulerView<'_>,
        actions: &mut Vec<SchedulerAction>,
    ) {
        let master = view.paths.iter().max_by_key(|path| path.rtt.smoothed);
        let of_master = master.is_some_and(|path| event == SchedulerEvent::Acked(path.id));
        if event == SchedulerEvent::Wakeup || (of_master && self.planned) {
            self.plan(view, actions);
        }
    }

    fn pull(&mut self, path: PathId, view: &SchedulerView<'_>, picks: &mut Vec<Pick>) -> Pull {
        if let Some(block) = view.blocks.iter().find(|block| block.has_work()) {
            picks.push(pick(Work::Block(block.id), 1, path.0));
            return Pull::Send("due");
        }
        let master = view.paths.iter().max_by_key(|path| path.rtt.smoothed);
        let own = master.is_some_and(|master| master.id == path);
        if !self.planned || !own || view.fresh.symbols == 0 {
            return Pull::Idle("waits for the next plan");
        }
        picks.push(pick(Work::Fresh, 1, path.0));
        Pull::Send("beyond what faster paths deliver")
    }

    fn wakeup(&self) -> Option<Time> {
        Some(self.begin)
    }
}

#[test]
fn fast_paths_are_assigned_data_ahead_of_their_windows() {
    let late = || Late { begin: Time::from_millis(510), planned: false };
    on_each(Setting::new(&[10, 55], 4), late, |engine, rig| {
        rig.write(50);
        assert!(rig.departures().is_empty(), "{engine}");
        rig.run(15);
        // T = 55 ms has room for three rounds of 20 ms (arrivals at 10, 30 and 50 ms), that is,
        // twelve symbols. Four of them leave now.
        assert_eq!(rig.on(0), [0, 1, 2, 3], "{engine}");
        assert_eq!(rig.on(1), [12, 13, 14, 15], "{engine}");
        rig.run(42);
        assert_eq!(rig.on(0), (0..12).collect::<Vec<_>>(), "{engine}: without asking anyone");
        // Acknowledgements of the slowest path, the master, start the next plans.
        rig.run(3000);
        assert_eq!(rig.delivered(), 50, "{engine}");
    });
}
