//! The states of a connection from the first SYN to the last FIN, and how it closes.
//!
//! **Opening.** [`MetaSender::join`] adds a subflow; its SYN leaves when [`Join`](super::Join) and
//! the receiving side's limit permit it. **Closing.** When no more will be written and all data has
//! been acknowledged, every subflow sends a FIN after its stream (pTCP §4.4, RFC 8684 §3.3.3).
//! Places in the stream whose data was taken back are filled with meaningless bytes. The end of the
//! data takes one data sequence number of its own. It is signalled by segments with the last bytes
//! and by every FIN, so that the receiver learns it from any subflow. A subflow that has not been
//! established is dropped, unless no other one is left to signal the end. A subflow that cannot be
//! reached survives [`CLOSING_TIMEOUTS`](crate::sender::CLOSING_TIMEOUTS) timeouts in a row, and is
//! given up at the next one.

use anabranch_types::Time;

use super::fallback::Peer;
use super::sender::MetaSender;
use super::subflow::{Membership, Subflow};
use crate::segment::{Flags, Segment};

/// The state of a connection (pTCP §4.4, figure 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// No subflow has been opened, or the connection has delivered everything and closed all its
    /// subflows.
    Closed,
    /// No subflow is established: some open, or all have been given up and another may join.
    Opening,
    /// This many subflows are established; data may flow.
    Established(usize),
    /// Nothing more will be written, and some subflow has not closed yet.
    Closing,
}

impl MetaSender {
    /// The state of the connection. A connection ends in [`State::Closing`] and [`State::Closed`]
    /// only with [`MetaConfig::close`](super::MetaConfig::close).
    pub fn state(&self) -> State {
        let present = self.subflows.iter().any(|own| own.membership != Membership::Gone);
        if self.closes() {
            return match present {
                true => State::Closing,
                false if self.is_drained() => State::Closed,
                false => State::Opening,
            };
        }
        match self.subflows.iter().filter(|own| own.is_open()).count() {
            0 if self.subflows.is_empty() => State::Closed,
            0 => State::Opening,
            count => State::Established(count),
        }
    }

    /// Whether everything written has been acknowledged and the connection, if it is to be closed, is closed.
    pub fn is_complete(&self) -> bool {
        self.is_drained() && (!self.config.close || self.state() == State::Closed)
    }

    /// Whether the receiver has acknowledged the end of the data.
    pub fn is_end_acknowledged(&self) -> bool {
        self.shared.ended
    }

    /// Whether nothing more will be written and the connection is to be closed.
    pub(super) fn closes(&self) -> bool {
        self.config.close && self.shared.finished
    }

    /// Closes the subflows (pTCP's `close`) once all data has been acknowledged.
    pub(super) fn close_subflows(&mut self) {
        if !self.closes() || !self.is_drained() {
            return;
        }
        // True if no subflow has signalled the end to the peer, and none is left that is open and
        // answers.
        let alone = self.peer != Peer::Unknown
            && self.statistics.closed_subflows == 0
            && !self
                .subflows
                .iter()
                .any(|own| own.is_open() && own.sender.consecutive_timeouts() == 0);
        for own in &mut self.subflows {
            match own.membership {
                // Bound data leaves first, so that the FIN travels in a segment of its own.
                Membership::Joined if own.sender.sent() < own.sender.written() => {}
                Membership::Joined if alone || own.sender.is_open() => own.sender.close(),
                // A subflow that is not established is dropped (RFC 9293 §3.10.4, SYN-SENT).
                Membership::Joined | Membership::Waiting => own.membership = Membership::Gone,
                Membership::Gone => {}
            }
        }
    }

    /// A subflow whose FIN has been acknowledged is closed (pTCP's `closed`).
    pub(super) fn note_closed(&mut self, now: Time, index: usize) {
        if self.subflows.get(index).is_some_and(|own| own.is_joined() && own.sender.is_closed()) {
            self.statistics.closed_subflows += 1;
            self.remove(now, index);
        }
    }

    /// Whether a chunk that ends at `end` is the last.
    pub(super) fn ends_data(&self, end: u64) -> bool {
        self.closes() && end == self.shared.written
    }

    /// Writes the end of the data into a FIN.
    pub(super) fn mark_fin(&self, segment: Segment) -> Segment {
        if self.is_plain() {
            return segment;
        }
        let flags = segment.flags.with(Flags::MAPPED).with(Flags::DATA_FIN);
        Segment { flags, data: self.shared.written, ..segment }
    }

    /// Adds the multipath header without a mapping to a segment that carries no data.
    pub(super) fn mark_header(&self, segment: Segment) -> Segment {
        if self.is_plain() {
            return segment;
        }
        Segment { flags: segment.flags.with(Flags::MULTIPATH), ..segment }
    }

    /// Writes into a SYN how many subflows the connection would like.
    pub(super) fn mark_syn(&self, segment: Segment) -> Segment {
        let wanted = self.subflows.iter().filter(|own| own.membership != Membership::Gone).count();
        let subflows = u8::try_from(wanted).unwrap_or(u8::MAX);
        Segment { flags: segment.flags.with(Flags::MULTIPATH), subflows, ..segment }
    }

    /// Applies the limit `most`, if any, that the first answer, on the subflow `first`, has named.
    /// Subflows beyond the limit that opened together with the first wait from now on.
    pub(super) fn limit_subflows(&mut self, first: usize, most: Option<u8>) {
        self.most_subflows = most;
        let others = self
            .subflows
            .iter_mut()
            .enumerate()
            .filter(|(at, own)| *at != first && own.is_joined());
        let places = usize::from(most.unwrap_or(u8::MAX)).saturating_sub(1);
        for (_, own) in others.skip(places) {
            own.membership = Membership::Waiting;
        }
    }

    /// How many further subflows may open: as many as the receiving side's limit leaves.
    pub(super) fn openings(&self) -> usize {
        let joined = self.subflows.iter().filter(|own| Subflow::is_joined(own)).count();
        self.most_subflows.map_or(usize::MAX, |most| usize::from(most).saturating_sub(joined))
    }
}
