//! Reinjection as in XLINK: a symbol that has been in flight on one path for a long time is sent
//! again on another path before it counts as lost.

use anabranch_types::{PathId, Time};
use core::time::Duration;

use crate::recovery::resend::Resend;
use crate::recovery::{RecoveryAction, RecoveryEvent, RecoveryPolicy};
use crate::registry::{Entry, Options, PolicyError, option};
use crate::scheduler::work::{carrier, send};
use crate::scheduler::{Pick, Pull, Reason, Scheduler, SchedulerAction, SchedulerEvent, Work};
use crate::view::{BlockView, Blocked, PathView, SchedulerView};

/// The policy's entry in the registry.
pub const ENTRY: Entry = Entry {
    name: "xlink",
    summary: "as resend; what is long in flight, or in flight when nothing new waits, is copied to another path",
    source: "Zheng et al. 2021 (XLINK), as XQUIC has it, without the gate by play-time left",
    options: &[
        option("factor", "age at which a copy is made, in least round-trip times", "1.1"),
        option("most", "and at most", "500ms"),
        option("least", "and at least", "20ms"),
    ],
};

/// Retransmits lost symbols and copies symbols that may be late. XLINK makes copies only while a
/// video has little play-time left. Play-time is not known here, so copies are always made.
#[derive(Clone, Copy, Debug)]
pub struct Xlink {
    losses: Resend,
    age: Age,
}

/// Builds the policy from its options.
pub fn build(options: &Options<'_>) -> Result<Box<dyn RecoveryPolicy>, PolicyError> {
    let minute = Duration::from_secs(60);
    let age = Age {
        factor: options.real("factor", 0.0..=100.0)?,
        most: options.duration("most", Duration::ZERO..=minute)?,
        least: options.duration("least", Duration::ZERO..=minute)?,
    };
    Ok(Box::new(Xlink { losses: Resend::plain(), age }))
}

impl RecoveryPolicy for Xlink {
    fn on_event(&mut self, now: Time, event: RecoveryEvent, paths: &[PathView]) -> RecoveryAction {
        self.losses.on_event(now, event, paths)
    }

    fn resends(&self) -> bool {
        true
    }

    fn around(&self, scheduler: Box<dyn Scheduler>) -> Box<dyn Scheduler> {
        Box::new(Copying { scheduler, age: self.age, ripens: None })
    }
}

/// The age from which a symbol in flight is copied: max(min(factor · least smoothed round-trip
/// time, most), least).
#[derive(Clone, Copy, Debug)]
struct Age {
    factor: f64,
    most: Duration,
    least: Duration,
}

impl Age {
    fn of(&self, view: &SchedulerView<'_>) -> Duration {
        let usable = view.paths.iter().filter(|path| path.usable());
        let fastest = usable.map(|path| path.rtt.smoothed).min().unwrap_or_default();
        let minute = Duration::from_secs(60);
        fastest.min(minute).mul_f64(self.factor).min(self.most).max(self.least)
    }
}

/// Wraps a scheduler. A path gets copies before the scheduler is asked, or afterwards if the
/// scheduler has nothing for the path.
#[derive(Debug)]
struct Copying {
    scheduler: Box<dyn Scheduler>,
    age: Age,
    /// When the next symbol in flight will be old enough.
    ripens: Option<Time>,
}

const LONG_IN_FLIGHT: Reason = "long in flight on another path";
const NOTHING_NEW: Reason = "in flight on another path, and nothing new waits";

/// Blocks of which `path` may take a copy of a symbol in flight, oldest first. These blocks have
/// symbols that are not copied yet.
fn single<'a>(path: &PathView, view: &SchedulerView<'a>) -> impl Iterator<Item = &'a BlockView> {
    view.blocks.iter().filter(move |block| {
        let carried: u32 = block.in_flight_on.iter().map(|count| u32::from(*count)).sum();
        block.uncopied(path) > 0 && carried < 2 * u32::from(block.in_flight)
    })
}

/// The earliest time at which other paths can have sent the block's symbols that they carry: when
/// the block's first symbol left, or when the oldest unacknowledged packet of these paths left,
/// whichever is later.
fn left(block: &BlockView, path: &PathView, view: &SchedulerView<'_>) -> Time {
    let carries = |other: &&PathView| other.id != path.id && block.in_flight_by(other) > 0;
    let oldest = view.paths.iter().filter(carries).filter_map(|other| other.oldest_unacked).min();
    oldest.map_or(block.opened, |oldest| oldest.max(block.opened))
}

impl Copying {
    /// The oldest block of which a symbol has long been in flight on another path. If there is
    /// none, notes in `ripens` when there will be one.
    fn aged<'a>(&mut self, path: &PathView, view: &SchedulerView<'a>) -> Option<&'a BlockView> {
        let age = self.age.of(view);
        for block in single(path, view) {
            let ripe = left(block, path, view) + age;
            if ripe <= view.now {
                return Some(block);
            }
            let sooner = self.ripens.is_none_or(|other| other <= view.now || ripe < other);
            self.ripens = if sooner { Some(ripe) } else { self.ripens };
        }
        None
    }
}

impl Scheduler for Copying {
    fn on_event(
        &mut self,
        event: SchedulerEvent,
        view: &SchedulerView<'_>,
        actions: &mut Vec<SchedulerAction>,
    ) {
        let is_due = |time: Option<Time>| time.is_some_and(|time| time <= view.now);
        if event == SchedulerEvent::Wakeup && is_due(self.ripens) {
            self.ripens = None;
            if !is_due(self.scheduler.wakeup()) {
                return;
            }
        }
        self.scheduler.on_event(event, view, actions);
    }

    fn pull(&mut self, path: PathId, view: &SchedulerView<'_>, picks: &mut Vec<Pick>) -> Pull {
        let Ok(own) = carrier(view, path) else { return self.scheduler.pull(path, view, picks) };
        if let Some(block) = self.aged(own, view) {
            return send(picks, path, Work::Copy(block.id), LONG_IN_FLIGHT);
        }
        let answer = self.scheduler.pull(path, view, picks);
        if matches!(answer, Pull::Idle(_))
            && view.fresh.blocked == Some(Blocked::Application)
            && let Some(block) = single(own, view).next()
        {
            picks.clear();
            return send(picks, path, Work::Copy(block.id), NOTHING_NEW);
        }
        answer
    }

    fn wakeup(&self) -> Option<Time> {
        [self.scheduler.wakeup(), self.ripens].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests;
