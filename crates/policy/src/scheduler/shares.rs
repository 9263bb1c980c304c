//! Plans of shares: each path but the slowest is given what it is expected to deliver until a packet that leaves now on
//! the slowest arrives; the slowest carries what comes after.
//!
//! LATE's algorithm 1, for any expectation.

use anabranch_types::{PathId, Time};
use core::fmt::Debug;
use core::time::Duration;

use crate::analysis::rounds::{Forecast, MAX_ROUNDS, MAX_WINDOW};
use crate::registry::{OptionEntry, Options, PolicyError, option};
use crate::scheduler::best::{Due, due_of_fastest};
use crate::scheduler::work::{NOTHING, carrier, carriers, fresh, send};
use crate::scheduler::{Pick, Pull, Scheduler, SchedulerAction, SchedulerEvent, Work};
use crate::view::{MAX_PATHS, PathView, SchedulerView};

/// What is expected of a path.
pub(super) trait Expectation: Debug + Send {
    /// The packets that it delivers within `time` from a window of `window` packets with slow-start threshold `ssthresh`.
    fn packets(&mut self, path: &Forecast, time: Duration, window: u32, ssthresh: u32) -> f64;

    /// A new symbol, which comes after the shares of the others, goes to the slowest path, `master`, now.
    fn on_beyond(&mut self, _master: &PathView, _view: &SchedulerView<'_>) {}

    /// Something happened.
    fn on_event(&mut self, _event: SchedulerEvent, _view: &SchedulerView<'_>) {}

    /// Packets that all shares together have to be larger than expected, by what came of earlier plans.
    fn correction(&self) -> f64 {
        0.0
    }
}

/// What a path is expected to deliver until the slowest one's packets arrive.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    /// Whose, and when it was forecast.
    of: Option<(PathId, Time)>,
    /// Packets.
    forecast: f64,
    /// Symbols that may be queued on the path: the forecast, less half of what is in flight.
    queue: u64,
    /// Those of them that the path has not been given yet.
    left: u32,
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub(super) struct Shares<E> {
    expectation: E,
    /// What may be chosen.
    options: SharesOptions,
    /// By slot.
    shares: [Share; MAX_PATHS],
    /// When the plan in force has been carried out: a half round trip of the slowest path after it was made.
    ends: Option<Time>,
}

/// The options of all schedulers by shares.
#[derive(Clone, Copy, Debug)]
pub(super) struct SharesOptions {
    /// A path that has sent its share sends more, rather than wait.
    goes_on: bool,
    /// A window leaves evenly over a round trip, rather than at its beginning.
    spread: bool,
}

impl SharesOptions {
    pub(super) const SPARE: OptionEntry =
        option("spare", "a fast path that has sent its share: send more, or wait", "send");
    pub(super) const WINDOW: OptionEntry =
        option("window", "leaves evenly over its round trip: spread, or at once", "spread");

    /// As `options` say.
    pub(super) fn read(options: &Options<'_>) -> Result<Self, PolicyError> {
        Ok(SharesOptions {
            goes_on: options.choice("spare", &[("send", true), ("wait", false)])?,
            spread: options.choice("window", &[("spread", true), ("at-once", false)])?,
        })
    }
}

/// The packets delivered within `time` if each window leaves evenly over its round trip, `rtt`. `within` has all of a
/// window arrive half a round trip after the window began; those that leave evenly arrive from then until a round trip
/// later, so that after whole round trips both have delivered as many, and between them these lie on a line.
fn spread(rtt: Duration, time: Duration, mut within: impl FnMut(Duration) -> f64) -> f64 {
    let rounds = (time.as_secs_f64() / rtt.as_secs_f64()).min(f64::from(MAX_ROUNDS));
    let whole = rounds as u32;
    let (before, after) = (within(rtt * whole), within(rtt * (whole + 1)));
    before + (after - before) * (rounds - f64::from(whole))
}

/// The path of the greatest round-trip time, LATE's *master subflow*.
pub(super) fn slowest<'a>(view: &SchedulerView<'a>) -> Option<&'a PathView> {
    carriers(view).max_by_key(|path| (path.rtt.smoothed, path.id))
}

/// The others.
pub(super) fn faster<'a>(
    view: &SchedulerView<'a>,
    master: &PathView,
) -> impl Iterator<Item = &'a PathView> + use<'a> {
    let master = master.id;
    carriers(view).filter(move |path| path.id != master)
}

impl<E: Expectation> Shares<E> {
    /// Shares as `expectation` has them.
    pub(super) fn new(expectation: E, options: SharesOptions) -> Self {
        Shares { expectation, options, shares: Default::default(), ends: None }
    }

    /// Shares the data of the next half round trip of `master` out among the others (algorithm 1, lines 4 to 16). What
    /// is queued on a path is part of its share, and half of what is in flight: the other half has arrived.
    fn plan(&mut self, master: &PathView, view: &SchedulerView<'_>) {
        let time = master.rtt.smoothed / 2;
        self.ends = Some(view.now + time);
        let correction = self.expectation.correction() / faster(view, master).count().max(1) as f64;
        for path in faster(view, master) {
            let forecast = (self.forecast(path, time, view) + correction).max(0.0).floor() as u64;
            let size = path.packet_size.max(1);
            if let Some(share) = self.shares.get_mut(usize::from(path.slot)) {
                share.queue = forecast.saturating_sub(path.bytes_in_flight / 2 / size);
                share.left = share.queue.saturating_sub(path.bytes_queued / size) as u32;
            }
        }
    }

    /// Takes back what is queued on faster paths beyond their shares.
    fn take_back(
        &self,
        master: &PathView,
        view: &SchedulerView<'_>,
        actions: &mut Vec<SchedulerAction>,
    ) {
        for path in faster(view, master) {
            let share = self.shares.get(usize::from(path.slot));
            let keep = share.map_or(u64::MAX, |share| share.queue);
            if path.bytes_queued / path.packet_size.max(1) > keep {
                actions.push(SchedulerAction::TakeBack { path: path.id, keep: keep as u32 });
            }
        }
    }

    /// N(T, w, s) of a path; made anew when T is over. What may happen meanwhile is in it.
    fn forecast(&mut self, path: &PathView, time: Duration, view: &SchedulerView<'_>) -> f64 {
        let Some(share) = self.shares.get_mut(usize::from(path.slot)) else { return 0.0 };
        let made = share.of.filter(|(id, _)| *id == path.id).map(|(_, at)| at);
        if made.is_some_and(|at| view.now < at + time) {
            return share.forecast;
        }
        let packets =
            |bytes: u64| u32::try_from(bytes / path.packet_size.max(1)).unwrap_or(u32::MAX);
        let granted = u64::from(view.fresh.window) * u64::from(view.fresh.symbol_size);
        let forecast = Forecast {
            rtt: path.rtt.smoothed.max(Duration::from_nanos(1)),
            rto: path.rto,
            loss: path.loss.mean.clamp(0.0, 1.0),
            cap: packets(granted).clamp(1, MAX_WINDOW),
        };
        let window = path.cwnd_packets() as u32;
        share.of = Some((path.id, view.now));
        let mut within =
            |time| self.expectation.packets(&forecast, time, window, packets(path.ssthresh));
        share.forecast = match self.options.spread {
            true => spread(forecast.rtt, time, within),
            false => within(time),
        };
        share.forecast
    }

    /// The fastest path that has something of its share left.
    fn owed<'a>(&self, view: &SchedulerView<'a>, master: &PathView) -> Option<(&'a PathView, u32)> {
        let left = |path: &PathView| self.shares.get(usize::from(path.slot)).map_or(0, |s| s.left);
        faster(view, master)
            .filter(|path| left(path) > 0)
            .min_by_key(|path| (path.rtt.smoothed, path.id))
            .map(|path| (path, left(path)))
    }
}

impl<E: Expectation> Scheduler for Shares<E> {
    fn on_event(
        &mut self,
        event: SchedulerEvent,
        view: &SchedulerView<'_>,
        actions: &mut Vec<SchedulerAction>,
    ) {
        if let SchedulerEvent::Timeout(id) = event
            && let Some(path) = view.path(id)
            && let Some(share) = self.shares.get_mut(usize::from(path.slot))
        {
            share.of = None;
        }
        self.expectation.on_event(event, view);
        let plans = match event {
            SchedulerEvent::Acked(path) => slowest(view).is_some_and(|master| master.id == path),
            SchedulerEvent::PathUp(_) | SchedulerEvent::PathDown(_) => true,
            _ => false,
        };
        if let Some(master) = slowest(view).filter(|_| plans) {
            self.plan(master, view);
            self.take_back(master, view, actions);
        }
    }

    fn pull(&mut self, path: PathId, view: &SchedulerView<'_>, picks: &mut Vec<Pick>) -> Pull {
        match carrier(view, path).map(|path| due_of_fastest(path, view)) {
            Err(idle) => return idle,
            Ok(Due::Take(work)) => return send(picks, path, work, "due, least RTT"),
            Ok(Due::Leave) if fresh(view).is_none() => {
                return Pull::Idle("a faster path has room for what is due");
            }
            Ok(_) => {}
        }
        let (Some(work), Some(master)) = (fresh(view), slowest(view)) else { return NOTHING };
        // What leaves on the slowest path now arrives half a round trip from now, not from when the last plan was made.
        if path == master.id || self.ends.is_none_or(|end| end <= view.now) {
            self.plan(master, view);
        }
        // Data is cut in the order of the paths: the faster ones' first, as far as they are expected to deliver it.
        if let Some((fast, left)) = self.owed(view, master) {
            let count = left.min(view.fresh.symbols).min(u32::from(u16::MAX));
            if let Some(share) = self.shares.get_mut(usize::from(fast.slot)) {
                share.left -= count;
            }
            picks.push(Pick {
                work: Work::Fresh,
                count: count as u16,
                path: fast.id,
                not_before: Time::ZERO,
            });
            return Pull::Send("a faster path delivers it before the slowest path could");
        }
        if path == master.id {
            self.expectation.on_beyond(master, view);
            return send(picks, path, work, "beyond what faster paths deliver until it arrives");
        }
        match self.options.goes_on {
            true => send(picks, path, work, "more than was expected of the path"),
            false => Pull::Idle("has sent its share"),
        }
    }
}
