//! Couples subflows that share a bottleneck, and no others.
//!
//! Two subflows through one queue would together take two flows' share of it (pTCP §6, TCP
//! friendliness). So such subflows are detected: the sending rate of each swings by a few percent,
//! and if the forward delay of one follows the swings of another, the two share a queue
//! ([`Bottlenecks`]). A forward delay is an acknowledgement's timestamp minus the timestamp that it
//! echoes. Only its changes count, so that clocks need not agree. A coupled congestion controller
//! then reads only the snapshots of its own subflow and of those that share a bottleneck with it.

use anabranch_policy::bottleneck::Bottlenecks;
use anabranch_policy::view::{MAX_PATHS, PathView};
use anabranch_types::{Rng, Time};
use core::time::Duration;

use super::chunks::bit;
use super::sender::MetaSender;
use super::subflow::Subflow;
use crate::segment::Segment;

/// Forward delays of one subflow, plus the unknown offset between the clocks.
#[derive(Clone, Copy, Debug)]
struct Forward {
    latest: Duration,
    least: Duration,
}

/// State of the detection of shared bottlenecks.
#[derive(Debug)]
pub(super) struct Sharing {
    bottlenecks: Bottlenecks,
    forward: [Option<Forward>; MAX_PATHS],
    /// The snapshots that a controller reads.
    group: Vec<PathView>,
}

impl Sharing {
    /// State in which nothing is known yet; `rng` tosses the coins of the swings.
    pub(super) fn new(rng: Rng) -> Self {
        let forward = [None; MAX_PATHS];
        Sharing { bottlenecks: Bottlenecks::new(rng), forward, group: Vec::new() }
    }

    /// Forgets what is known of a slot, because another subflow takes it.
    pub(super) fn forget(&mut self, slot: u8) {
        if let Some(forward) = self.forward.get_mut(usize::from(slot)) {
            *forward = None;
        }
    }

    /// Enters the forward delay and the sharing subflows into a subflow's snapshot.
    pub(super) fn complete(&self, view: &mut PathView) {
        if let Some(forward) = self.forward.get(usize::from(view.slot)).copied().flatten() {
            view.rtt.queue = forward.latest.saturating_sub(forward.least);
            view.rtt.forward = i64::try_from(forward.least.as_micros()).unwrap_or(i64::MAX);
        }
        view.shares = self.bottlenecks.shares(view.slot);
    }

    /// The `views` that the controller of the subflow in `slot` reads.
    pub(super) fn group(&mut self, slot: u8, views: &[PathView]) -> &[PathView] {
        let members = self.bottlenecks.shares(slot) | bit(slot);
        self.group.clear();
        self.group.extend(views.iter().filter(|view| bit(view.slot) & members != 0).copied());
        &self.group
    }
}

impl MetaSender {
    /// Uses `rng` for the random swings of
    /// [`MetaConfig::couple_shared`](super::MetaConfig::couple_shared). Connections that may share
    /// a bottleneck should have different seeds. To be called before anything is sent.
    pub fn toss_with(&mut self, rng: Rng) {
        if self.sharing.is_some() {
            self.sharing = Some(Box::new(Sharing::new(rng)));
        }
    }

    /// The subflows that share a bottleneck with this one: bit i stands for slot i.
    pub fn shares(&self, index: usize) -> u16 {
        let slot = u8::try_from(index).unwrap_or(u8::MAX);
        self.sharing.as_ref().map_or(0, |sharing| sharing.bottlenecks.shares(slot))
    }

    /// Updates a subflow's forward delay from an acknowledgement's timestamps, then the shared bottlenecks and swings.
    pub(super) fn watch_sharing(&mut self, now: Time, index: usize, segment: &Segment) {
        let Some(stamps) = segment.timestamps.filter(|stamps| stamps.echo != Time::MAX) else {
            return;
        };
        let open = self.subflows.iter().filter(|own| own.is_open()).count();
        let Some(sharing) = &mut self.sharing else { return };
        if open < 2 {
            self.subflows.iter_mut().for_each(|own: &mut Subflow| own.sender.set_swing(1.0));
            return;
        }
        let Some(place) = sharing.forward.get_mut(index) else { return };
        let latest = stamps.value.since(stamps.echo);
        let least = place.map_or(latest, |forward| forward.least.min(latest));
        *place = Some(Forward { latest, least });
        self.changed();
        self.refresh_views(now);
        let Some(sharing) = &mut self.sharing else { return };
        if sharing.bottlenecks.on_ack(now, stamps.echo, index as u8, &self.views) {
            for (slot, own) in (0_u8..).zip(&mut self.subflows) {
                own.sender.set_swing(sharing.bottlenecks.factor(slot));
            }
            self.changed();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_types::PathId;

    #[test]
    fn a_controller_reads_nothing_of_those_that_do_not_share_with_it() {
        let view = |slot: u8| PathView { slot, ..PathView::unknown(PathId(u32::from(slot))) };
        let mut sharing = Sharing::new(Rng::new(1));
        let views = [0, 1, 2].map(view);
        let slots = |group: &[PathView]| group.iter().map(|view| view.slot).collect::<Vec<_>>();
        assert_eq!(slots(sharing.group(1, &views)), [1]);
        assert_eq!(slots(sharing.group(2, &views)), [2]);
    }

    #[test]
    fn the_way_forward_is_the_queue_of_the_snapshot() {
        let mut sharing = Sharing::new(Rng::new(1));
        let mut view = PathView { slot: 1, ..PathView::unknown(PathId(1)) };
        let before = view.rtt.queue;
        sharing.complete(&mut view);
        assert_eq!(view.rtt.queue, before, "nothing is known of it");
        let ms = Duration::from_millis;
        sharing.forward[1] = Some(Forward { latest: ms(35), least: ms(30) });
        sharing.complete(&mut view);
        assert_eq!((view.rtt.queue, view.rtt.forward, view.shares), (ms(5), 30_000, 0));
        sharing.forget(1);
        assert!(sharing.forward[1].is_none());
    }
}
