//! Random schedulers and subflow failures: every byte arrives once, in order.

use anabranch_policy::scheduler::{Pick, Pull, Scheduler, SchedulerAction, SchedulerEvent, Work};
use anabranch_policy::view::{BlockId, SchedulerView};
use anabranch_policy::{congestion, recovery};
use anabranch_types::{PathId, Rng};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::script::greedy;
use super::*;
use crate::segment::Flags;
use crate::sender::Sender;

/// A scheduler that answers at random, but sensibly half of the time.
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

    /// A time before or after `now`.
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

/// Event that happens to a subflow after some steps.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Leaves,
    Rejoins,
    /// Another subflow joins, over a path like this one's.
    Joins,
    /// The subflow's path loses this percentage of segments from now on.
    Loses(u8),
    /// Every segment in flight on the path is lost.
    Swallows,
    /// A mark cuts the subflow's window.
    Cut,
    /// A notice reports as damaged the segment that lies this many segments beyond the acknowledged
    /// ones.
    Damaged(u8),
    /// The subflow's path passes nothing from now on (`true`), or works again (`false`).
    Dies(bool),
    Backup(bool),
    /// The subflow's path removes options from now on (`true`), or no longer does (`false`).
    Strips(bool),
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        Just(Fate::Leaves),
        Just(Fate::Rejoins),
        Just(Fate::Joins),
        (0..50_u8).prop_map(Fate::Loses),
        Just(Fate::Swallows),
        Just(Fate::Cut),
        (0..12_u8).prop_map(Fate::Damaged),
        any::<bool>().prop_map(Fate::Dies),
        any::<bool>().prop_map(Fate::Backup),
        any::<bool>().prop_map(Fate::Strips)
    ]
}

/// The congestion controller of a subflow.
fn control() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        Just("reno:initial=2"),
        Just("eln:initial=2"),
        Just("lia"),
        Just("eln:initial=2"),
        Just("westwood"),
        Just("vegas:yield=3"),
        Just("cubic"),
        Just("bbr")
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
    let acknowledged = run.sender.subflow(index).map_or(0, Sender::acknowledged);
    match fate {
        Fate::Joins if run.paths.len() < 6 => {
            if run.sender.join(controller()).is_some() {
                run.paths.push(run.paths[index]);
            }
        }
        Fate::Joins => {}
        Fate::Loses(percent) => run.paths[index].loss = f64::from(percent) / 100.0,
        Fate::Swallows => run.underway.events.retain(|_, (_, on, _)| *on != index),
        Fate::Cut => {
            let flags = Flags::ACK.with(Flags::ECE).with(Flags::MAPPED);
            let (data, window) = (run.sender.acknowledged(), 0);
            let echo = Segment { flags, ack: acknowledged, data, window, ..Segment::EMPTY };
            run.sender.handle_segment(now, index, &echo);
        }
        Fate::Damaged(beyond) => {
            let offset = acknowledged + 1000 * u64::from(beyond);
            run.sender.handle_loss_notice(now, index, offset);
        }
        Fate::Leaves => run.sender.leave(now, index),
        Fate::Rejoins => {
            run.sender.rejoin(index, controller());
        }
        Fate::Dies(true) => run.paths[index].dies = now,
        Fate::Dies(false) => run.paths[index].dies = Time::MAX,
        Fate::Backup(backup) => run.sender.set_backup(index, backup),
        Fate::Strips(strips) => run.paths[index].strips = strips,
    }
}

const BYTES: u64 = 120_345;

/// Whether a plain TCP connection was reset, because its ends disagreed on whether options were
/// lost before any data had arrived.
fn is_reset(run: &Run) -> bool {
    let mut subflows = 0..run.sender.subflows();
    run.sender.is_plain()
        && !run.sender.is_complete()
        && !subflows.any(|own| run.sender.has_joined(own))
}

/// Checks what must hold in the end. If subflows were cut off while the connection closed
/// (`cut_off`), there may be none left to signal the end of the data.
fn check(run: &Run, cut_off: bool) {
    run.sender.check();
    if is_reset(run) {
        assert!(run.sender.acknowledged() <= run.receiver.delivered());
        assert!(run.receiver.delivered() < BYTES);
        return;
    }
    let statistics = *run.sender.statistics();
    if run.sender.config.close {
        assert_eq!(run.sender.state(), State::Closed);
        assert!(cut_off || run.receiver.is_finished(), "it knows where the data ends");
        assert!(cut_off || statistics.closed_subflows > 0);
    }
    assert_eq!(run.receiver.delivered(), BYTES);
    assert_eq!(run.sender.acknowledged(), BYTES);
    assert_eq!(statistics.bound_bytes, BYTES, "each byte is cut once");
    assert!(run.receiver.statistics().peak_waiting <= run.receiver.buffer());
    assert!(run.sender.subflow_statistics().data_bytes >= BYTES);
}

proptest! {
    // A fixed seed gives the same cases in every run.
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(4), ..ProptestConfig::default() })]

    #[test]
    fn every_byte_arrives_once_and_in_order(
        seed in any::<u64>(),
        fates in prop::collection::vec((1..400_usize, 0..3_usize, fate()), 0..24),
        timeout in prop_oneof![Just("nothing"), Just("reinject"), Just("copy")],
        unbind in any::<bool>(),
        buffer in prop_oneof![Just(2_500_u64), Just(9_000), Just(60_000), Just(1 << 30)],
        rack in any::<bool>(),
        close in any::<bool>(),
        late in prop::collection::vec((0..60_usize, 0..6_usize, fate()), 0..12),
    ) {
        let cut = if unbind { "unbind" } else { "keep" };
        let base = config("min-rtt");
        let config = MetaConfig {
            recovery: policy(&format!("resend:timeout={timeout},cut={cut}")),
            receive_buffer: buffer,
            send_buffer: 2 * buffer,
            read_at_once: false,
            close,
            subflow: Config { rack, prr: rack, ecn: true, ..base.subflow.clone() },
            ..base
        };
        let paths = [path(8, 10, 0.03), path(2, 60, 0.1), path(1, 5, 0.2)];
        let mut run = Run::of(erratic(&config, seed), &config, &paths, seed);
        run.check_every = 1;
        let cut_off = live(&mut run, fates, late);
        check(&run, cut_off);
    }

    #[test]
    fn pipes_deliver_everything_whatever_becomes_of_them(
        seed in any::<u64>(),
        fates in prop::collection::vec((1..300_usize, 0..6_usize, fate()), 0..40),
        scheduler in prop_oneof![Just("blind"), Just("round-robin")],
        late in prop::collection::vec((0..60_usize, 0..6_usize, fate()), 0..12),
        controls in prop::array::uniform3(control()),
        timeout in prop_oneof![Just("copy"), Just("copy,stale=3")],
        buffer in prop_oneof![Just(2_500_u64), Just(9_000), Just(60_000), Just(1 << 30)],
        limit in prop_oneof![Just(None), (1..4_u8).prop_map(Some)],
        at_once in any::<bool>(),
        (couple_shared, buffers_per_subflow) in any::<(bool, bool)>(),
    ) {
        let base = config(scheduler);
        let config = MetaConfig {
            recovery: policy(&format!("resend:timeout={timeout},cut=unbind")),
            receive_buffer: buffer,
            send_buffer: 2 * buffer,
            buffers_per_subflow,
            read_at_once: false,
            close: true,
            couple_shared,
            most_subflows: limit,
            join: if at_once { Join::AllAtOnce } else { Join::AfterFirst },
            subflow: Config { ecn: true, ..base.subflow.clone() },
            ..base
        };
        let paths = [path(8, 10, 0.03), path(2, 60, 0.1), path(1, 5, 0.2)];
        let sender = MetaSender::new(&config, &controls.map(policy));
        let mut run = Run::of(sender.expect("policies"), &config, &paths, seed);
        run.check_every = 1;
        let cut_off = live(&mut run, fates, late);
        check(&run, cut_off);
        prop_assert_eq!(run.receiver.statistics().refused, 0, "the window is kept to");
    }
}

/// Sends everything while `fates` happen to the subflows, then closes the connection while `late`
/// happen. After `fates` and after `late` every path works again, so that the connection can
/// finish. Returns whether a subflow may have been gone or its path dead when all data was written.
fn live(run: &mut Run, fates: Vec<(usize, usize, Fate)>, late: Vec<(usize, usize, Fate)>) -> bool {
    let mut left = BYTES;
    let mut go = |run: &mut Run, steps| {
        for _ in 0..steps {
            left -= run.sender.write(left);
            if left == 0 {
                run.sender.finish();
            }
            run.receiver.read(3000);
            run.step();
        }
        left
    };
    let mut cut_off = false;
    for (steps, index, fate) in fates {
        cut_off |= go(run, steps) == 0;
        suffer(run, index % run.paths.len(), fate);
    }
    revive(run);
    while !is_reset(run) && go(run, 1) > 0 {}
    for (steps, index, fate) in late {
        go(run, steps);
        cut_off |= matches!(fate, Fate::Leaves | Fate::Dies(true));
        suffer(run, index % run.paths.len(), fate);
    }
    revive(run);
    if !is_reset(run) {
        run.transfer(0, 3000);
    }
    cut_off
}

fn revive(run: &mut Run) {
    for index in 0..run.paths.len() {
        suffer(run, index, Fate::Dies(false));
        suffer(run, index, Fate::Strips(false));
        suffer(run, index, Fate::Loses(5));
    }
    suffer(run, 0, Fate::Rejoins);
}
