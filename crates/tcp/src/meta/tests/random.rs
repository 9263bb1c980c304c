//! Whatever a scheduler does and whatever becomes of the subflows: every byte arrives once, in order.

use anabranch_policy::scheduler::{Pick, Pull, Scheduler, SchedulerAction, SchedulerEvent, Work};
use anabranch_policy::view::{BlockId, SchedulerView};
use anabranch_policy::{congestion, recovery};
use anabranch_types::{PathId, Rng};
use proptest::prelude::*;

use super::script::greedy;
use super::*;

/// Answers at random, sensibly half of the time.
#[derive(Debug)]
struct Erratic {
    rng: Rng,
    wakeup: Time,
}

impl Erratic {
    fn pick(&mut self, view: &SchedulerView<'_>) -> Pick {
        let paths = view.paths.len() as u64 + 1;
        let near = view.blocks.first().map_or(0, |block| block.id.0) + self.rng.below(30);
        let id = BlockId(near.saturating_sub(5));
        Pick {
            work: match self.rng.below(3) {
                0 => Work::Fresh,
                1 => Work::Block(id),
                _ => Work::Copy(id),
            },
            count: self.rng.below(4) as u16,
            path: PathId(self.rng.below(paths) as u32),
            not_before: self.some_time(view.now),
        }
    }

    /// Past or future.
    fn some_time(&mut self, now: Time) -> Time {
        let around = Duration::from_millis(self.rng.below(60));
        (now - Duration::from_millis(20)) + around
    }
}

impl Scheduler for Erratic {
    fn on_event(
        &mut self,
        _event: SchedulerEvent,
        view: &SchedulerView<'_>,
        actions: &mut Vec<SchedulerAction>,
    ) {
        self.wakeup = self.some_time(view.now).max(view.now);
        let path = PathId(self.rng.below(4) as u32);
        match self.rng.below(40) {
            0..4 => actions.push(SchedulerAction::Assign(self.pick(view))),
            4..6 => {
                actions.push(SchedulerAction::TakeBack { path, keep: self.rng.below(5) as u32 })
            }
            6 => actions.push(SchedulerAction::Penalise(path)),
            _ => {}
        }
    }

    fn pull(&mut self, path: PathId, view: &SchedulerView<'_>, picks: &mut Vec<Pick>) -> Pull {
        self.wakeup = view.now + Duration::from_millis(1 + self.rng.below(20));
        match self.rng.below(8) {
            0..4 => greedy(path, view, picks),
            4 => Pull::Idle("a whim"),
            5 => Pull::Hold(self.some_time(view.now), "a whim"),
            _ => {
                for _ in 0..self.rng.below(4) {
                    picks.push(self.pick(view));
                }
                Pull::Send("a whim")
            }
        }
    }

    fn wakeup(&self) -> Option<Time> {
        Some(self.wakeup)
    }
}

/// What happens to subflow `n % 3` after some steps.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Leaves,
    Rejoins,
    /// Its path passes nothing, or everything again.
    Dies(bool),
    Backup(bool),
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        Just(Fate::Leaves),
        Just(Fate::Rejoins),
        any::<bool>().prop_map(Fate::Dies),
        any::<bool>().prop_map(Fate::Backup)
    ]
}

fn erratic(config: &MetaConfig, seed: u64) -> MetaSender {
    let controls = (0..3).map(|_| controller()).collect();
    let scheduler = Erratic { rng: Rng::new(seed), wakeup: Time::ZERO };
    let recovery = recovery::build(&config.recovery).expect("a policy");
    MetaSender::with_policies(config, controls, Box::new(scheduler), recovery)
}

fn controller() -> Box<dyn anabranch_policy::CongestionController> {
    congestion::build(&policy("reno:initial=2"), 1000).expect("a controller")
}

fn suffer(run: &mut Run, index: usize, fate: Fate) {
    let now = run.now;
    match fate {
        Fate::Leaves => run.sender.leave(now, index),
        Fate::Rejoins => {
            run.sender.rejoin(index, controller());
        }
        Fate::Dies(true) => run.paths[index].dies = now,
        Fate::Dies(false) => run.paths[index].dies = Time::MAX,
        Fate::Backup(backup) => run.sender.set_backup(index, backup),
    }
}

const BYTES: u64 = 120_345;

fn check(run: &Run) {
    let statistics = *run.sender.statistics();
    assert_eq!(run.receiver.delivered(), BYTES);
    assert_eq!(run.sender.acknowledged(), BYTES);
    assert_eq!(statistics.bound_bytes, BYTES, "each byte is cut once");
    assert!(run.receiver.statistics().peak_waiting <= run.sender.config.receive_buffer);
    assert!(run.sender.subflow_statistics().data_bytes >= BYTES);
}

proptest! {
    #[test]
    fn every_byte_arrives_once_and_in_order(
        seed in any::<u64>(),
        fates in prop::collection::vec((1..400_usize, 0..3_usize, fate()), 0..24),
        timeout in prop_oneof![Just("nothing"), Just("reinject"), Just("copy")],
        unbind in any::<bool>(),
        buffer in prop_oneof![Just(2_500_u64), Just(9_000), Just(60_000), Just(1 << 30)],
        rack in any::<bool>(),
    ) {
        let cut = if unbind { "unbind" } else { "keep" };
        let base = config("min-rtt");
        let config = MetaConfig {
            recovery: policy(&format!("resend:timeout={timeout},cut={cut}")),
            receive_buffer: buffer,
            send_buffer: 2 * buffer,
            read_at_once: false,
            subflow: Config { rack, prr: rack, ..base.subflow.clone() },
            ..base
        };
        let paths = [path(8, 10, 0.03), path(2, 60, 0.1), path(1, 5, 0.2)];
        let mut run = Run::of(erratic(&config, seed), &config, &paths, seed);
        run.check_every = 1;
        let mut left = BYTES;
        for (steps, index, fate) in fates {
            for _ in 0..steps {
                left -= run.sender.write(left);
                run.receiver.read(3000);
                run.step();
            }
            suffer(&mut run, index, fate);
        }
        // In the end there is a path, and none that swallows what it is given for ever.
        (0..3).for_each(|index| suffer(&mut run, index, Fate::Dies(false)));
        suffer(&mut run, 0, Fate::Rejoins);
        run.transfer(left, 3000);
        check(&run);
    }
}
