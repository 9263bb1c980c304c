//! Finds out which paths share a bottleneck: each path sometimes sends slightly more or less, and
//! acknowledgements show which paths this delays.

use anabranch_policy::bottleneck::Bottlenecks;
use anabranch_policy::view::PathState;
use anabranch_types::{Rng, Time};

use super::Connection;
use super::paths::PathIndex;
use crate::observe::Observation;
use crate::path::Path;
use crate::path::swing::Swing;

/// Whether the path is included in the search for shared bottlenecks.
fn takes_part(path: &Path) -> bool {
    path.state() != PathState::Closed && path.congestion.couples()
}

impl Connection {
    /// Processes the acknowledgement of a packet of the path in `slot` that left at `sent`; the
    /// path's snapshot has the packet's delay.
    pub(super) fn look_for_bottlenecks(&mut self, now: Time, slot: PathIndex, sent: Time) {
        if !takes_part(&self.paths[slot]) {
            return;
        }
        if self.paths.iter().filter(|path| takes_part(path)).count() < 2 {
            self.rest_swings(now);
            return;
        }
        let rng = &mut self.rng;
        let bottlenecks = self
            .bottlenecks
            .get_or_insert_with(|| Box::new(Bottlenecks::new(Rng::new(rng.next_u64()))));
        if bottlenecks.on_ack(now, sent, slot.0, self.paths.views()) {
            self.take_swings(now);
        }
    }

    /// Applies the current swings to the paths, and updates which of them share a bottleneck.
    fn take_swings(&mut self, now: Time) {
        for slot in self.paths.indices() {
            let Some(bottlenecks) = &self.bottlenecks else { return };
            let (factor, shares) = (bottlenecks.factor(slot.0), bottlenecks.shares(slot.0));
            let path = &mut self.paths[slot];
            if takes_part(path) {
                path.swing = Swing(factor);
                path.update_pacing(now);
            }
            let changed = path.shares ^ shares;
            path.shares = shares;
            if changed != 0 {
                self.tell_of_sharing(now, slot, changed);
            }
        }
    }

    /// Tells the observer of changes between a path and the paths in lower slots; `changed` has a
    /// bit for each changed slot.
    fn tell_of_sharing(&mut self, now: Time, slot: PathIndex, changed: u16) {
        let (path, shares) = (self.paths[slot].id, self.paths[slot].shares);
        for other in self.paths.indices().take_while(|other| *other < slot) {
            if changed & other.bit() != 0 {
                let (with, shared) = (self.paths[other].id, shares & other.bit() != 0);
                self.observe(now, Observation::SharedBottleneck { path, with, shared });
            }
        }
    }

    /// Ends all swings and sharing, since a single path shares no bottleneck.
    fn rest_swings(&mut self, now: Time) {
        if self.bottlenecks.take().is_some() {
            for path in self.paths.iter_mut() {
                path.shares = 0;
                path.swing = Swing::default();
                path.update_pacing(now);
            }
        }
    }
}
