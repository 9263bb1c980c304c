//! Plans of shares: each path except the slowest gets the data that it is expected to deliver until
//! a packet that leaves now on the slowest path arrives. The slowest path carries the data after
//! that.
//!
//! This is LATE's algorithm 1 for any kind of forecast.

use anabranch_types::{Bitrate, PathId, Time};
use core::fmt::Debug;
use core::time::Duration;

use crate::analysis::rounds::{Forecast, MAX_WINDOW};
use crate::registry::{OptionEntry, Options, PolicyError, option};
use crate::scheduler::best::due_on_fastest;
use crate::scheduler::work::{
    NOTHING, carrier, carriers, first_in_line, oldest, one, one_way, send,
};
use crate::scheduler::{Pick, Pull, Scheduler, SchedulerAction, SchedulerEvent, Work};
use crate::view::{MAX_PATHS, PathView, SchedulerView};

/// A forecast of what paths deliver.
pub(super) trait Expectation: Debug + Send {
    /// Packets that `path` delivers within `time` from a window of `window` packets with slow-start threshold
    /// `ssthresh`.
    fn packets(&mut self, path: &Forecast, time: Duration, window: u32, ssthresh: u32) -> f64;

    /// A new symbol, which comes after the shares of the other paths, now goes to the slowest path,
    /// `master`.
    fn on_beyond(&mut self, _master: &PathView, _view: &SchedulerView<'_>) {}

    /// A scheduler event, from which the forecast may learn.
    fn on_event(&mut self, _event: SchedulerEvent, _view: &SchedulerView<'_>) {}

    /// Packets to add to all shares together because of the results of earlier plans; may be
    /// negative.
    fn correction(&self) -> f64 {
        0.0
    }
}

/// Packets that a path is expected to deliver until the slowest path's packets arrive.
#[derive(Clone, Copy, Debug, Default)]
struct Share {
    /// The path, and when its share was forecast.
    of: Option<(PathId, Time)>,
    /// Packets that the path is expected to deliver if its whole window leaves now.
    forecast: f64,
    /// Packets expected for each packet in flight, whose acknowledgement makes room for them if
    /// windows are clocked.
    by_flight: f64,
    /// Set after a timeout: nothing is expected before this time or an acknowledgement.
    silent: Option<Time>,
    /// Symbols that may be queued on the path, so that it delivers them in time.
    queue: u64,
    /// Symbols of the share that the path has not been given yet.
    left: u32,
}

/// A scheduler by shares; the module's documentation describes it.
#[derive(Clone, Debug)]
pub(super) struct Shares<E> {
    expectation: E,
    /// How windows leave, when packets arrive, and what follows a share.
    options: SharesOptions,
    /// The shares of the paths, by slot.
    shares: [Share; MAX_PATHS],
    /// When the current plan ends: after the time that a packet on the slowest path takes to
    /// arrive.
    ends: Option<Time>,
}

/// Number of equal parts of the data in flight; each part is assumed to be of one age.
const AGES: u32 = 2;

/// The options of all schedulers by shares.
#[derive(Clone, Copy, Debug)]
pub(super) struct SharesOptions {
    /// Whether a path that has sent its share sends more instead of waiting.
    goes_on: bool,
    /// Whether only the free part of a window leaves now, and the rest as packets in flight are acknowledged.
    clocked: bool,
    /// Whether a packet is expected to take the measured forward delay if this is longer than half
    /// a round trip: acknowledgements may return on another path, and queues may be in the forward
    /// direction.
    forward: bool,
}

impl SharesOptions {
    pub(super) const SPARE: OptionEntry =
        option("spare", "a fast path that has sent its share: send more, or wait", "send");
    pub(super) const WINDOW: OptionEntry = option(
        "window",
        "when a window leaves: as what is in flight is acknowledged (clocked), or at-once",
        "clocked",
    );
    pub(super) const ARRIVAL: OptionEntry = option(
        "arrival",
        "delay of a packet: forward (as measured, where that is more than half a round trip), or half (a round trip)",
        "forward",
    );

    /// Reads the options of a scheduler by shares.
    pub(super) fn read(options: &Options<'_>) -> Result<Self, PolicyError> {
        Ok(SharesOptions {
            goes_on: options.choice("spare", &[("send", true), ("wait", false)])?,
            clocked: options.choice("window", &[("clocked", true), ("at-once", false)])?,
            forward: options.choice("arrival", &[("forward", true), ("half", false)])?,
        })
    }
}

/// Splits the packets in flight by age into `AGES` equal parts, and returns how much of `time` is
/// left for each part when it is acknowledged, a round trip after it was sent. Ages are assumed to
/// be spread evenly from zero to that of the oldest packet; if nothing is in flight, they are zero.
/// After a cut, the oldest packets exceed the window, so their acknowledgement makes no room.
fn left_when_acknowledged(path: &PathView, time: Duration, now: Time) -> [Duration; AGES as usize] {
    let rtt = path.rtt.smoothed;
    let oldest = path.oldest_unacked.map_or(Duration::ZERO, |sent| now.since(sent)).min(rtt);
    let oldest = oldest.mul_f64((path.cwnd as f64 / path.bytes_in_flight.max(1) as f64).min(1.0));
    core::array::from_fn(|part| {
        let age = oldest * (2 * part as u32 + 1) / (2 * AGES);
        (time + age).saturating_sub(rtt)
    })
}

/// The path of the greatest round-trip time, LATE's *master subflow*.
pub(super) fn slowest<'a>(view: &SchedulerView<'a>) -> Option<&'a PathView> {
    carriers(view).max_by_key(|path| (path.rtt.smoothed, path.id))
}

/// The carriers other than `master`.
pub(super) fn faster<'a>(
    view: &SchedulerView<'a>,
    master: &PathView,
) -> impl Iterator<Item = &'a PathView> + use<'a> {
    let master = master.id;
    carriers(view).filter(move |path| path.id != master)
}

impl<E: Expectation> Shares<E> {
    /// A scheduler whose shares come from the forecasts of `expectation`.
    pub(super) fn new(expectation: E, options: SharesOptions) -> Self {
        Shares { expectation, options, shares: Default::default(), ends: None }
    }

    /// Plans what the other paths carry in the time that a packet on `master` takes to arrive
    /// (algorithm 1, lines 4 to 16). Data queued on a path is part of its share.
    fn plan(&mut self, master: &PathView, view: &SchedulerView<'_>) {
        let half = |path: &PathView| path.rtt.smoothed / 2;
        let forward = self.options.forward;
        let arrival = |path| if forward { half(path).max(one_way(path, view)) } else { half(path) };
        let time = arrival(master);
        self.ends = Some(view.now + time);
        let correction = self.expectation.correction() / faster(view, master).count().max(1) as f64;
        for path in faster(view, master) {
            // In the model, packets arrive half a round trip after they left.
            let time = (time + half(path)).saturating_sub(arrival(path));
            let new = (self.new_packets(path, time, view) + correction).max(0.0).floor() as u64;
            if let Some(share) = self.shares.get_mut(usize::from(path.slot)) {
                share.queue = new;
                share.left = new.saturating_sub(path.bytes_queued / path.packet_size.max(1)) as u32;
            }
        }
    }

    /// Packets, including those queued, that a path can be given now and deliver within `time`.
    fn new_packets(&mut self, path: &PathView, time: Duration, view: &SchedulerView<'_>) -> f64 {
        self.forecast(path, time, view);
        let Some(share) = self.shares.get(usize::from(path.slot)) else { return 0.0 };
        let in_flight = path.bytes_in_flight as f64 / path.packet_size.max(1) as f64;
        if !self.options.clocked {
            // Half of the packets in flight are still on the way; the other half has arrived.
            return share.forecast - (in_flight / 2.0).floor();
        }
        let window = path.round().packets as f64;
        let free = (window - in_flight).max(0.0);
        share.forecast * free / window + share.by_flight * in_flight.min(window)
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

    /// Forecasts N(T, w, s) of a path. A new forecast is made only when T is over, since the
    /// forecast includes what may happen until then.
    fn forecast(&mut self, path: &PathView, time: Duration, view: &SchedulerView<'_>) {
        let Some(share) = self.shares.get_mut(usize::from(path.slot)) else { return };
        if share.silent.is_some_and(|until| view.now < until) {
            return;
        }
        let made = share.of.filter(|(id, _)| *id == path.id).map(|(_, at)| at);
        if made.is_some_and(|at| view.now < at + time) {
            return;
        }
        let packets = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        let granted = u64::from(view.fresh.window) * u64::from(view.fresh.symbol_size);
        let round = path.round();
        let loss = path.loss.mean.clamp(0.0, 1.0);
        // The model includes the effect of losses on a window. A paced rate stays the same except
        // for the packets lost.
        let (loss, arriving) = if round.paced { (0.0, 1.0 - loss) } else { (loss, 1.0) };
        let forecast = Forecast {
            rtt: path.rtt.smoothed.max(Duration::from_nanos(1)),
            rto: path.rto,
            loss,
            cap: packets(granted / path.packet_size.max(1)).clamp(1, MAX_WINDOW),
        };
        let (window, ssthresh) = (packets(round.packets), packets(round.ssthresh));
        let mut within =
            |time, window| arriving * self.expectation.packets(&forecast, time, window, ssthresh);
        (share.of, share.by_flight) = (Some((path.id, view.now)), 0.0);
        share.forecast = within(time, window);
        if self.options.clocked {
            let next = if window < ssthresh { window.saturating_mul(2) } else { window + 1 };
            let each = f64::from(AGES * window.max(1));
            let left = left_when_acknowledged(path, time, view.now);
            share.by_flight = left.map(|left| within(left, next) / each).iter().sum();
        }
    }

    /// After a timeout, the model expects nothing to arrive for another timeout. Queued data would
    /// wait as long, so it is taken back.
    fn watch_silence(
        &mut self,
        event: SchedulerEvent,
        view: &SchedulerView<'_>,
        actions: &mut Vec<SchedulerAction>,
    ) {
        let (SchedulerEvent::Timeout(id) | SchedulerEvent::Acked(id)) = event else { return };
        let Some(path) = view.path(id) else { return };
        let Some(share) = self.shares.get_mut(usize::from(path.slot)) else { return };
        if event == SchedulerEvent::Timeout(id) {
            *share = Share { silent: Some(view.now + path.rto), ..Share::default() };
            if path.bytes_queued > 0 {
                actions.push(SchedulerAction::TakeBack { path: id, keep: 0 });
            }
        } else if share.silent.take().is_some() {
            share.of = None;
        }
    }

    /// Queues `count` symbols of `work` on `fast`, as part of its share.
    fn fill(&mut self, fast: &PathView, count: u32, work: Work, picks: &mut Vec<Pick>) -> Pull {
        let count = count.clamp(1, u32::from(u16::MAX));
        if let Some(share) = self.shares.get_mut(usize::from(fast.slot)) {
            share.left = share.left.saturating_sub(count);
        }
        picks.push(Pick { count: count as u16, ..one(work, fast.id) });
        Pull::Send("a faster path delivers it before the slowest path could")
    }

    /// If a lost symbol is due, takes back all queued data: the lost symbol goes first, and the
    /// rest is assigned again.
    fn make_room(&mut self, view: &SchedulerView<'_>, actions: &mut Vec<SchedulerAction>) {
        if oldest(view.blocks).is_none() {
            return;
        }
        let queued = view.paths.iter().filter(|path| path.usable() && path.bytes_queued > 0);
        for path in queued {
            actions.push(SchedulerAction::TakeBack { path: path.id, keep: 0 });
            self.ends = None;
        }
    }

    /// The fastest path that has a part of its share left, and how much. A path gets `due` work
    /// only as far as its window lets it leave within a round trip: later rounds are less certain,
    /// and the reader waits for all due work. A paced path gets no due work, since its losses may
    /// be caused by too much data.
    fn owed<'a>(
        &self,
        view: &SchedulerView<'a>,
        master: &PathView,
        due: bool,
    ) -> Option<(&'a PathView, u32)> {
        let left = |path: &PathView| {
            let left = self.shares.get(usize::from(path.slot)).map_or(0, |share| share.left);
            if !due {
                return left;
            }
            let window = if path.pacing_rate > Bitrate::ZERO { 0 } else { path.cwnd };
            let round = window.saturating_sub(path.bytes_queued) / path.packet_size.max(1);
            left.min(u32::try_from(round).unwrap_or(u32::MAX))
        };
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
        self.watch_silence(event, view, actions);
        self.expectation.on_event(event, view);
        if matches!(event, SchedulerEvent::Lost(_)) {
            self.make_room(view, actions);
        }
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
        let master = match carrier(view, path) {
            Err(idle) => return idle,
            Ok(_) if first_in_line(view).is_none() => return NOTHING,
            Ok(path) => slowest(view).unwrap_or(path),
        };
        // Packets sent on the slowest path now arrive half a round trip from now, not from the last plan.
        if path == master.id || self.ends.is_none_or(|end| end <= view.now) {
            self.plan(master, view);
        }
        // Data is assigned in the order of the paths: first to the faster paths, as far as they are
        // expected to deliver it.
        let due = view.blocks.iter().find(|block| block.has_work());
        if let Some(block) = due
            && let Some((fast, left)) = self.owed(view, master, true)
        {
            return self.fill(fast, left.min(block.takeable()), Work::Block(block.id), picks);
        }
        if let Some(answer) = due_on_fastest(path, view, picks) {
            return answer;
        }
        if let Some((fast, left)) = self.owed(view, master, false) {
            return self.fill(fast, left.min(view.fresh.symbols), Work::Fresh, picks);
        }
        if path == master.id {
            self.expectation.on_beyond(master, view);
            let reason = "beyond what faster paths deliver until it arrives";
            return send(picks, path, Work::Fresh, reason);
        }
        match self.options.goes_on {
            true => send(picks, path, Work::Fresh, "more than was expected of the path"),
            false => Pull::Idle("has sent its share"),
        }
    }
}
