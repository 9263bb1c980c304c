//! Undoes cuts of the window after spurious retransmissions, as Linux does.

use anabranch_types::Time;

use super::{Phase, Sender, SenderEvent};
use crate::segment::Segment;

/// The retransmissions since the last cut, and what shows that they were spurious.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    /// Whether there was a cut that has not been undone.
    possible: bool,
    /// When the first retransmission left.
    first_resent: Option<Time>,
    /// Number of retransmissions, and of duplicates that the receiver reported.
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

    /// Whether every retransmission arrived as a duplicate (RFC 3708 §3), as the receiver reports (RFC 2883).
    fn all_duplicates(&self) -> bool {
        self.resent > 0 && self.duplicates >= self.resent
    }

    /// Whether the acknowledgement echoes the timestamp of a segment that left before the first
    /// retransmission. If so, the original filled the hole (RFC 3522 §3.2).
    fn answers_original(&self, segment: &Segment) -> bool {
        let echo = segment.timestamps.map_or(Time::MAX, |timestamps| timestamps.echo);
        self.first_resent.is_some_and(|resent| echo < resent)
    }
}

impl Sender {
    /// Undoes the last cut if this acknowledgement shows that the retransmissions after it were
    /// spurious. Reported duplicates show that at any time. The echoed timestamp shows it while
    /// losses are being repaired (`repairing`) and only if the cumulative acknowledgement moves
    /// (`progress`).
    pub(super) fn undo_spurious_cut(&mut self, segment: &Segment, repairing: bool, progress: bool) {
        let undo = &self.undo;
        let original = repairing && progress && undo.answers_original(segment);
        if !undo.possible || !(original || undo.all_duplicates()) {
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
