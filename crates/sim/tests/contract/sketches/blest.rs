//! BLEST's waiting, and penalisation by the default MPTCP scheduler.

use anabranch_policy::scheduler::{Pick, Pull, Scheduler, SchedulerAction, SchedulerEvent, Work};
use anabranch_policy::view::SchedulerView;
use anabranch_types::{PathId, Time};

use super::on_each;
use crate::rig::Setting;
use crate::script::pick;

/// Sends on the slow path only if the fast path will not need that room in the send window
/// meanwhile.
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
        let Some(fast) = view.paths.iter().min_by_key(|path| path.rtt.smoothed) else { return };
        // Penalise the paths that hold the oldest data, at most once per round trip of the fast path.
        let recent = self.penalised_at.is_some_and(|at| view.now < at + fast.rtt.smoothed);
        let Some(oldest) = view.blocks.first().filter(|_| !recent) else { return };
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
            if self.lambda * meanwhile > f64::from(view.fresh.credit) - on_slow as f64 {
                return Pull::Hold(view.now + fast.rtt.smoothed, "would block the fast path");
            }
        }
        picks.push(pick(Work::Fresh, 1, path.0));
        Pull::Send("does not block")
    }
}

const DELAYS: &[u64] = &[10, 50];

fn blest(lambda: f64) -> impl Fn() -> Blest {
    move || Blest { lambda, penalised_at: None }
}

#[test]
fn the_slow_path_waits_when_the_window_is_short() {
    // Five rounds of the fast path carry (10 + 2)·5 = 60 packets, which λ = 1.2 scales to 72.
    on_each(Setting::new(DELAYS, 10), blest(1.2), |engine, rig| {
        rig.write(50);
        assert_eq!((rig.on(0).len(), rig.on(1).len()), (10, 10), "{engine}");
    });
    let short = Setting { receive: Some(60), ..Setting::new(DELAYS, 10) };
    on_each(short, blest(1.2), |engine, rig| {
        rig.write(50);
        rig.run(200);
        assert!(rig.on(1).is_empty(), "{engine}");
        assert_eq!(rig.delivered(), 50, "{engine}");
    });
}

#[test]
fn a_full_receiver_penalises_the_slow_path_that_carries_the_oldest_data() {
    let full = Setting { receive: Some(12), reads: false, ..Setting::new(DELAYS, 6) };
    on_each(full, blest(0.0), |engine, rig| {
        rig.write(30);
        rig.run(15);
        assert_eq!((rig.on(0).len(), rig.cwnd(1)), (6, 6), "{engine}: both paths are full");
        // The fast path has room again, but the receiver has none until the slow path delivers.
        rig.run(10);
        assert_eq!((rig.cwnd(0), rig.cwnd(1)), (6, 3), "{engine}");
    });
}
