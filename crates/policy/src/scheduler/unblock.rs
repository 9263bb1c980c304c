//! Opportunistic retransmission and penalisation: when the receiver's or the sender's buffer is
//! full, the symbol that keeps it full is sent again on a faster path, and the slower paths that
//! carry this symbol are held back.
//!
//! This follows Raiciu et al. 2012, §4.2, as in the MPTCP implementation for Linux. It starts when
//! a path has room but the next symbol is beyond the receiver's window, or when nothing is left to
//! send because the application is blocked on the send buffer. In the second case, paths are held
//! back only while the buffer is full; when it has room, the copy only uses the time until the
//! application writes.

use anabranch_types::{PathId, Time};

use crate::registry::{OptionEntry, Options, PolicyError, option};
use crate::scheduler::work::{carriers, one};
use crate::scheduler::{Pick, Pull, Scheduler, SchedulerAction, SchedulerEvent, Work};
use crate::view::{MAX_PATHS, PathView, SchedulerView};

/// The option of every scheduler to which [`wrap`] is applied.
pub(super) const OPTION: OptionEntry = option(
    "full",
    "a full buffer on either side: unblock (its oldest symbol again on a faster path, slower ones held back), or wait",
    "unblock",
);

/// A path whose window has at most this many packets repairs its losses slowly.
const SMALL_WINDOW: u64 = 4;
/// A path is much slower than the fast path if its round trip is more than this many times as long.
const FASTER: u32 = 4;

/// A scheduler that is wrapped so that full buffers are unblocked.
#[derive(Debug)]
struct Unblocking {
    scheduler: Box<dyn Scheduler>,
    /// By slot of a fast path: when other paths were last held back in its favour.
    held_back: [Option<Time>; MAX_PATHS],
}

/// Wraps `scheduler` in [`Unblocking`], unless its options say otherwise.
pub(super) fn wrap(
    options: &Options<'_>,
    scheduler: impl Scheduler + 'static,
) -> Result<Box<dyn Scheduler>, PolicyError> {
    let scheduler = Box::new(scheduler);
    Ok(match options.choice("full", &[("unblock", true), ("wait", false)])? {
        true => Box::new(Unblocking { scheduler, held_back: [None; MAX_PATHS] }),
        false => scheduler,
    })
}

impl Unblocking {
    /// Unblocks a buffer; paths are held back only if it is `full`.
    fn unblock(
        &mut self,
        full: bool,
        view: &SchedulerView<'_>,
        actions: &mut Vec<SchedulerAction>,
    ) {
        let ready = carriers(view).filter(|path| path.ready);
        let Some(fast) = ready.min_by_key(|path| (path.rtt.smoothed, path.id)) else { return };
        // A symbol that is due goes to a path with room anyway.
        let Some(oldest) = view.blocks.first().filter(|block| !block.has_work()) else { return };
        let others =
            || view.paths.iter().filter(|path| path.id != fast.id && oldest.carried_by(path));
        if full && self.may_hold_back(fast, view.now) {
            let slower = others().filter(|path| path.rtt.smoothed > fast.rtt.smoothed);
            actions.extend(slower.map(|path| SchedulerAction::Penalise(path.id)));
        }
        if oldest.uncopied(fast) > 0 && is_worth_a_copy(others(), fast) {
            actions.push(SchedulerAction::Assign(one(Work::Copy(oldest.id), fast.id)));
        }
    }

    /// Whether at least one round trip of `fast` has passed since paths were last held back in its
    /// favour. If so, notes the current time.
    fn may_hold_back(&mut self, fast: &PathView, now: Time) -> bool {
        let Some(last) = self.held_back.get_mut(usize::from(fast.slot)) else { return false };
        let may = last.is_none_or(|last| now >= last + fast.rtt.smoothed);
        if may {
            *last = Some(now);
        }
        may
    }
}

/// Whether a copy on `fast` is likely to arrive much sooner than those on `carriers`: all of these
/// are much slower, or one has a small window. As in Linux, the first of them that is not much
/// slower prevents the copy, unless one with a small window comes before it.
fn is_worth_a_copy<'a>(carriers: impl Iterator<Item = &'a PathView>, fast: &PathView) -> bool {
    let mut worth = false;
    for path in carriers {
        if path.cwnd_packets() <= SMALL_WINDOW {
            return true;
        }
        if path.rtt.smoothed <= fast.rtt.smoothed * FASTER {
            return false;
        }
        worth = true;
    }
    worth
}

impl Scheduler for Unblocking {
    fn on_event(
        &mut self,
        event: SchedulerEvent,
        view: &SchedulerView<'_>,
        actions: &mut Vec<SchedulerAction>,
    ) {
        self.scheduler.on_event(event, view, actions);
        match event {
            SchedulerEvent::ReceiverLimited => self.unblock(true, view, actions),
            SchedulerEvent::SenderLimited { full } => self.unblock(full, view, actions),
            _ => {}
        }
    }

    fn pull(&mut self, path: PathId, view: &SchedulerView<'_>, picks: &mut Vec<Pick>) -> Pull {
        self.scheduler.pull(path, view, picks)
    }

    fn wakeup(&self) -> Option<Time> {
        self.scheduler.wakeup()
    }
}
