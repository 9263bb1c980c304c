//! Helpers that schedulers share: which paths may carry data, and the due work, oldest first.

use anabranch_types::{PathId, Time};
use core::time::Duration;

use crate::scheduler::{Pick, Pull, Reason, Work};
use crate::view::{BlockView, PathView, SchedulerView};

/// Paths on which ordinary data may go now: usable paths, and backups only if there are no others.
pub(super) fn carriers<'a>(
    view: &SchedulerView<'a>,
) -> impl Iterator<Item = &'a PathView> + use<'a> {
    let paths = view.paths;
    let any = paths.iter().any(|path| path.usable() && !path.backup);
    paths.iter().filter(move |path| path.usable() && !(any && path.backup))
}

/// The carrier with this identifier, or why it carries nothing.
pub(crate) fn carrier<'a>(view: &SchedulerView<'a>, id: PathId) -> Result<&'a PathView, Pull> {
    carriers(view).find(|path| path.id == id).ok_or_else(|| match view.path(id) {
        Some(path) if path.usable() => Pull::Idle("backup, not needed"),
        _ => Pull::Idle("path not usable"),
    })
}

/// One-way delay of a packet that leaves now. Acknowledgements may return on another path, so half
/// a round trip would be wrong; the forward delays of the paths are compared directly.
pub(super) fn one_way(path: &PathView, view: &SchedulerView<'_>) -> Duration {
    let lead = carriers(view)
        .filter(|other| other.rtt.samples > 0 && path.rtt.samples > 0)
        .map(|other| (other.rtt.forward_lead(&path.rtt), other.rtt.min / 2))
        .max_by_key(|(lead, _)| *lead);
    let base = match lead {
        Some((lead, half)) if lead > Duration::ZERO => half + lead,
        _ => path.rtt.min / 2,
    };
    base + path.rtt.queue
}

/// Expected time until a symbol sent now has arrived, including retransmissions after losses.
pub(super) fn arrival(path: &PathView, view: &SchedulerView<'_>) -> Duration {
    let loss = path.loss.mean.clamp(0.0, 0.9);
    one_way(path, view) + path.rtt.smoothed.mul_f64(loss / (1.0 - loss))
}

/// The oldest of `blocks` that has a symbol to take.
pub(super) fn oldest(blocks: &[BlockView]) -> Option<Work> {
    blocks.iter().find(|block| block.has_work()).map(|block| Work::Block(block.id))
}

/// New data, if there is any and nothing blocks it.
pub(super) fn fresh(view: &SchedulerView<'_>) -> Option<Work> {
    (view.fresh.symbols > 0).then_some(Work::Fresh)
}

/// The oldest due work, else new data.
pub(super) fn first_in_line(view: &SchedulerView<'_>) -> Option<Work> {
    oldest(view.blocks).or_else(|| fresh(view))
}

/// One symbol of `work` for `path`, at once.
pub(super) fn one(work: Work, path: PathId) -> Pick {
    Pick { work, count: 1, path, not_before: Time::ZERO }
}

/// Gives `count` symbols of new data to `path` at once, even if its window is full.
pub(super) fn assign_fresh(
    picks: &mut Vec<Pick>,
    path: PathId,
    count: u16,
    reason: Reason,
) -> Pull {
    picks.push(Pick { count, ..one(Work::Fresh, path) });
    Pull::Send(reason)
}

/// Gives one symbol of `work` to `path` at once.
pub(crate) fn send(picks: &mut Vec<Pick>, path: PathId, work: Work, reason: Reason) -> Pull {
    picks.push(one(work, path));
    Pull::Send(reason)
}

/// The decision when nothing is due and no new symbol can be made.
pub(super) const NOTHING: Pull = Pull::Idle("nothing to send");
