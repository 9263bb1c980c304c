//! Takes back cuts that no loss had caused: the receiver shows that it had what was sent again.

use anabranch_types::Time;

use super::{Phase, Sender, SenderEvent};
use crate::segment::Segment;

/// What was sent again since the last cut, and whether it had to be.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    /// The last cut has not been taken back.
    possible: bool,
    /// When the first of it left.
    first_resent: Option<Time>,
    /// How many segments, and how many of them the receiver reported as duplicates.
    resent: u32,
    duplicates: u32,
}

impl Undo {
    /// A cut was made.
    pub(super) fn on_cut(&mut self) {
        *self = Undo { possible: true, ..Undo::default() };
    }

    pub(super) fn on_resent(&mut self, now: Time) {
        self.first_resent.get_or_insert(now);
        self.resent += 1;
    }

    pub(super) fn on_duplicate(&mut self) {
        self.duplicates += 1;
    }

    /// All that was sent again had arrived before (RFC 3708 §3; the receiver reports it as RFC 2883 says).
    fn was_needless(&self) -> bool {
        self.resent > 0 && self.duplicates >= self.resent
    }

    /// The acknowledgement answers a segment that left before anything was sent again (RFC 3522 §3.2): not the
    /// retransmission filled the hole, but the first copy.
    fn is_early(&self, segment: &Segment) -> bool {
        let echo = segment.timestamps.map_or(Time::MAX, |timestamps| timestamps.echo);
        self.first_resent.is_some_and(|resent| echo < resent)
    }
}

impl Sender {
    /// Whether an acknowledgement shows that the last cut was for nothing, as Linux judges: by duplicates at any time, and,
    /// while the losses are being repaired (`repairing`), by the timestamp of one that moves the cumulative
    /// acknowledgement.
    pub(super) fn undo_needless_cut(&mut self, segment: &Segment, repairing: bool, progress: bool) {
        let undo = &self.undo;
        let early = repairing && progress && undo.is_early(segment);
        if !undo.possible || !(early || undo.was_needless()) {
            return;
        }
        self.undo.possible = false;
        self.statistics.undone_cuts += 1;
        self.rack.on_reordering();
        if !matches!(self.phase, Phase::Ordinary) {
            self.phase = Phase::Ordinary;
            self.recovery_point = None;
            self.duplicates = 0;
            self.board.forgive();
        }
        self.controller.undo();
        self.events.push_back(SenderEvent::CutUndone(self.controller.cwnd()));
    }
}
