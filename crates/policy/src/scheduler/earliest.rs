//! Earliest in-order completion: a path gets data only if this does not delay the data that the
//! application reads next.

use anabranch_types::{PathId, Time};
use core::time::Duration;

use crate::registry::{Entry, Options, PolicyError};
use crate::scheduler::work::{NOTHING, arrival, carrier, carriers, one, one_way, send};
use crate::scheduler::{Pick, Pull, Scheduler, Work};
use crate::view::{BlockView, PathView, SchedulerView, TrafficClass};

/// The policy's entry in the registry.
pub const ENTRY: Entry = Entry {
    name: "earliest",
    summary: "earliest in-order completion; a slow path is used only where it delays nothing",
    source: "own; arrival estimate after FMTCP eq. 8, blocking test after BLEST (2016)",
    options: &[],
};

/// Share of the receiver's free buffer that may fill up behind a symbol in flight.
const BUFFER_SHARE: f64 = 0.7;
/// A copy of an urgent symbol on a path that already carries one counts as this much later, since a
/// run of losses often includes both.
const COPY_PENALTY: Duration = Duration::from_millis(10);

/// Longest sending time of the symbols given to a path at once. Repairs of new losses wait that
/// long behind them.
const SPAN: Duration = Duration::from_micros(20);
/// Most symbols given to a path at once.
const MOST_AT_ONCE: u64 = 16;

/// The scheduler of earliest in-order completion.
#[derive(Clone, Copy, Debug, Default)]
pub struct Earliest;

/// Builds the policy from its options.
pub fn build(_options: &Options<'_>) -> Result<Box<dyn Scheduler>, PolicyError> {
    Ok(Box::new(Earliest))
}

/// Time until the path can send: until its pacer admits a packet and, if the window is full, until a packet leaves
/// it.
fn wait(path: &PathView, view: &SchedulerView<'_>) -> Duration {
    if path.ready {
        return Duration::ZERO;
    }
    let pacing = path.next_send.since(view.now);
    let full = path.bytes_in_flight + path.packet_size > path.cwnd;
    let full = if full { path.rate.time_to_send(path.packet_size) } else { Duration::ZERO };
    pacing.saturating_add(full).min(path.rtt.smoothed)
}

/// Bytes per second that arrive.
fn goodput(path: &PathView) -> f64 {
    path.rate.as_bps() as f64 / 8.0 * (1.0 - path.loss.mean.clamp(0.0, 1.0))
}

/// Bytes that the other paths deliver within `time` from now.
fn others_deliver(
    view: &SchedulerView<'_>,
    than: PathId,
    time: Duration,
    only: impl Fn(&PathView) -> bool,
) -> f64 {
    carriers(view)
        .filter(|path| path.id != than && only(path))
        .map(|path| goodput(path) * time.saturating_sub(one_way(path, view)).as_secs_f64())
        .sum()
}

/// Whether there is no other path to choose.
fn is_alone(path: &PathView, view: &SchedulerView<'_>) -> bool {
    carriers(view).all(|other| other.id == path.id)
}

/// How many new symbols a path gets at once if there is no other: as many as it sends within
/// [`SPAN`], so that the scheduler need not decide for every packet of a fast path.
fn at_once(path: &PathView, view: &SchedulerView<'_>) -> u16 {
    let packets = path.rate.bytes_in(SPAN) / path.packet_size.max(1);
    let most = path.free_packets().min(u64::from(view.fresh.symbols)).min(MOST_AT_ONCE);
    packets.min(most).max(1) as u16
}

impl Earliest {
    /// An urgent block's next symbol, unless another path would deliver it earlier, including its
    /// wait.
    fn urgent(&self, path: &PathView, view: &SchedulerView<'_>) -> Option<Work> {
        let mut blocks = view.blocks.iter().filter(|block| block.has_work());
        let block = blocks.find(|block| block.class != TrafficClass::Bulk);
        let score = |path: &PathView| {
            let copies = block.map_or(0, |block| block.in_flight_by(path));
            wait(path, view) + one_way(path, view) + COPY_PENALTY * u32::from(copies)
        };
        let waiting = view.fresh.symbols > 0 && view.fresh.class != TrafficClass::Bulk;
        let work = match block {
            Some(block) => Work::Block(block.id),
            None if waiting => Work::Fresh,
            None => return None,
        };
        let better = carriers(view).any(|other| other.id != path.id && score(other) < score(path));
        (!better).then_some(work)
    }

    /// Whether the faster paths would deliver `bytes` before this path delivers anything.
    fn faster_without(&self, path: &PathView, bytes: f64, view: &SchedulerView<'_>) -> bool {
        let own = one_way(path, view);
        let faster = |other: &PathView| one_way(other, view) < own;
        others_deliver(view, path.id, arrival(path, view), faster) > bytes
    }

    /// Whether no other path delivers sooner. Such a path does not wait for others; if all paths
    /// waited for one another, they would deadlock.
    fn delivers_first(&self, path: &PathView, view: &SchedulerView<'_>) -> bool {
        !carriers(view).any(|other| arrival(other, view) < arrival(path, view))
    }

    /// Whether the receiver's buffer would fill up behind a symbol that this path carries.
    fn would_block(&self, path: &PathView, view: &SchedulerView<'_>) -> bool {
        let resolved =
            arrival(path, view) + path.rtt.smoothed.mul_f64(path.loss.mean.clamp(0.0, 1.0));
        let free = f64::from(view.fresh.credit) * f64::from(view.fresh.symbol_size);
        others_deliver(view, path.id, resolved, |_| true) > free * BUFFER_SHARE
    }

    /// The oldest due block that this path does not delay by taking it.
    fn due<'a>(&self, path: &PathView, view: &SchedulerView<'a>) -> Option<(&'a BlockView, bool)> {
        let size = f64::from(view.fresh.symbol_size);
        let mut ahead = 0.0;
        let mut first = true;
        for block in view.blocks.iter().filter(|block| block.has_work()) {
            ahead += f64::from(block.takeable()) * size;
            if !self.faster_without(path, ahead, view) {
                return Some((block, first));
            }
            first = false;
        }
        None
    }
}

impl Scheduler for Earliest {
    fn pull(&mut self, path: PathId, view: &SchedulerView<'_>, picks: &mut Vec<Pick>) -> Pull {
        let path = match carrier(view, path) {
            Ok(path) => path,
            Err(answer) => return answer,
        };
        if let Some(work) = self.urgent(path, view) {
            return send(picks, path.id, work, "urgent data, earliest arrival");
        }
        if let Some((block, first)) = self.due(path, view) {
            let reason = if first { "oldest block due" } else { "newer block due, older left" };
            return send(picks, path.id, Work::Block(block.id), reason);
        }
        if view.fresh.class != TrafficClass::Bulk && view.fresh.beyond > 0 {
            let count = view.fresh.symbols.min(u16::MAX.into()) as u16;
            picks.push(Pick { count, ..one(Work::Ahead, path.id) });
            return Pull::Send("urgent data left to another path, what follows comes next");
        }
        if view.fresh.symbols == 0 || view.fresh.class != TrafficClass::Bulk {
            return NOTHING;
        }
        if is_alone(path, view) {
            let count = at_once(path, view);
            picks.push(Pick { work: Work::Fresh, count, path: path.id, not_before: Time::ZERO });
            return Pull::Send("new data, on the only path");
        }
        if self.delivers_first(path, view) {
            return send(picks, path.id, Work::Fresh, "new data, on the first path to deliver");
        }
        if self.would_block(path, view) {
            return Pull::Idle("would fill the receiver's buffer behind this path");
        }
        let waiting = f64::from(view.fresh.symbols) * f64::from(view.fresh.symbol_size);
        if !view.fresh.more && self.faster_without(path, waiting, view) {
            return Pull::Idle("faster paths finish the rest sooner");
        }
        send(picks, path.id, Work::Fresh, "new data")
    }
}
