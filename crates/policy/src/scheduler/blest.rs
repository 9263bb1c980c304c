//! BLEST: a slower path stays idle if the data that it would carry would block the receiver's
//! buffer.

use anabranch_types::{PathId, Time};
use core::time::Duration;

use crate::registry::{Entry, Options, PolicyError, option};
use crate::scheduler::best::fastest_unless;
use crate::scheduler::unblock;
use crate::scheduler::{Pick, Pull, Scheduler, SchedulerAction, SchedulerEvent};
use crate::view::{MAX_PATHS, PathView, Round, SchedulerView};

/// The policy's entry in the registry.
pub const ENTRY: Entry = Entry {
    name: "blest",
    summary: "least RTT first; a slower path waits if it would block the receiver's buffer",
    source: "Ferlin et al. 2016; the MPTCP implementation for Linux, its blest scheduler",
    options: &[
        option("lambda", "initial factor on the estimate, from 1.0 to 1.3", "1.2"),
        option("up", "added to the factor once the buffer has been full", "0.04"),
        option("down", "subtracted from the factor while it has not", "0.01"),
        unblock::OPTION,
    ],
};

/// Range of the factor.
const LAMBDA: (f64, f64) = (1.0, 1.3);
/// Most round trips of slow start that the estimate includes.
const MOST_DOUBLINGS: f64 = 16.0;

/// Least and greatest smoothed round-trip time of a path so far.
#[derive(Clone, Copy, Debug)]
struct Span {
    path: PathId,
    least: Duration,
    greatest: Duration,
}

/// The BLEST scheduler.
#[derive(Clone, Debug)]
pub struct Blest {
    lambda: f64,
    up: f64,
    down: f64,
    /// The spans of the paths, by slot.
    spans: [Option<Span>; MAX_PATHS],
    /// When the factor was adapted last, and whether the receiver's buffer has been full since.
    adapted: Time,
    limited: bool,
}

/// Builds the policy from its options.
pub fn build(options: &Options<'_>) -> Result<Box<dyn Scheduler>, PolicyError> {
    let blest = Blest {
        lambda: options.real("lambda", LAMBDA.0..=LAMBDA.1)?,
        up: options.real("up", 0.0..=0.3)?,
        down: options.real("down", 0.0..=0.3)?,
        spans: [None; MAX_PATHS],
        adapted: Time::ZERO,
        limited: false,
    };
    unblock::wrap(options, blest)
}

impl Blest {
    /// The path's span, including the current round-trip time.
    fn span(&mut self, path: &PathView) -> Span {
        let now = path.rtt.smoothed;
        let fresh = Span { path: path.id, least: now, greatest: now };
        let Some(kept) = self.spans.get_mut(usize::from(path.slot)) else { return fresh };
        let before = kept.filter(|span| span.path == path.id).unwrap_or(fresh);
        let (least, greatest) = (before.least.min(now), before.greatest.max(now));
        let span = Span { least, greatest, ..before };
        *kept = Some(span);
        span
    }

    /// How long a symbol given to `slow` keeps the receiver's window from advancing.
    fn linger(&mut self, slow: &PathView) -> Duration {
        let Span { least, greatest, .. } = self.span(slow);
        let share = (slow.bytes_in_flight + slow.packet_size) as f64 / slow.cwnd.max(1) as f64;
        let linger = least + (greatest - least).mul_f64(share.min(1.0));
        linger.max(slow.rtt.smoothed)
    }

    /// Bytes that `fast` sends during `linger`, while its window grows.
    fn sends(&mut self, fast: &PathView, linger: Duration) -> f64 {
        let Span { least, greatest, .. } = self.span(fast);
        let round = ((least + greatest) / 2).max(Duration::from_micros(1));
        let rounds = (linger.as_secs_f64() / round.as_secs_f64()).floor() + 1.0;
        let Round { packets: window, ssthresh, .. } = fast.round();
        let cwnd = window as f64;
        let packets = if ssthresh == u64::MAX {
            cwnd * (2_f64.powi(rounds.min(MOST_DOUBLINGS) as i32) - 1.0)
        } else {
            let ssthresh = ssthresh as f64;
            (cwnd.max(ssthresh + 1.0) + (rounds - 1.0) / 2.0) * rounds
        };
        packets * fast.packet_size as f64
    }

    /// Whether the data that `slow` would carry leaves too little of the receiver's buffer to
    /// `fast`.
    fn blocks(&mut self, slow: &PathView, fast: &PathView, view: &SchedulerView<'_>) -> bool {
        self.adapt(slow, view.now);
        let linger = self.linger(slow);
        let needed = self.lambda * self.sends(fast, linger);
        let size = f64::from(view.fresh.symbol_size);
        let window = f64::from(view.fresh.window) * size;
        needed > window - (size + (slow.bytes_in_flight + slow.bytes_queued) as f64)
    }

    /// Raises the factor if the buffer has been full since the last change, else lowers it; at most
    /// once per least round-trip time of the slow path.
    fn adapt(&mut self, slow: &PathView, now: Time) {
        let period = self.span(slow).least;
        if now < self.adapted + period {
            return;
        }
        let change = if self.limited { self.up } else { -self.down };
        self.lambda = (self.lambda + change).clamp(LAMBDA.0, LAMBDA.1);
        (self.adapted, self.limited) = (now, false);
    }
}

impl Scheduler for Blest {
    fn on_event(
        &mut self,
        event: SchedulerEvent,
        _view: &SchedulerView<'_>,
        _actions: &mut Vec<SchedulerAction>,
    ) {
        self.limited |= event == SchedulerEvent::ReceiverLimited;
    }

    fn pull(&mut self, path: PathId, view: &SchedulerView<'_>, picks: &mut Vec<Pick>) -> Pull {
        let yields = |slow: &PathView, fast: &PathView| self.blocks(slow, fast, view);
        let why = "would block the receiver's buffer for the faster path";
        fastest_unless(path, view, picks, yields, why)
    }
}
