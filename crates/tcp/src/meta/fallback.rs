//! Fallback of a connection or a single subflow when multipath options are missing (RFC 8684 §3.7,
//! §3.2).
//!
//! If the peer does not know the multipath option, or a middlebox removes it, the answer to the
//! first SYN comes without the option. The connection then is plain TCP over that one subflow: its
//! stream is the data, its acknowledgements are the data acknowledgements, no other subflow joins,
//! and nothing is moved or taken back. If the first answer has the option and a later subflow's
//! answer does not, only the later subflow is given up.
//!
//! A path may also lose the options later, when its route changes. If all data so far was given to
//! this subflow and none has been acknowledged with the option, the connection still becomes plain
//! TCP. Otherwise the subflow is reset, and the others send its data again.

use anabranch_types::Time;

use super::sender::MetaSender;
use crate::segment::{Flags, Segment};

/// Whether the peer, and the path to the peer, support the option.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Peer {
    /// No SYN has been answered.
    #[default]
    Unknown,
    /// The first answer had the option.
    Capable,
    /// The first answer did not have the option.
    Plain,
}

impl MetaSender {
    /// Looks for the option in the answer to a SYN. Returns false if the option is missing and the
    /// subflow has been given up.
    pub(super) fn check_answer(&mut self, now: Time, index: usize, segment: &Segment) -> bool {
        let opening = |subflow: &super::subflow::Subflow| {
            subflow.is_joined() && !subflow.sender.is_open() && segment.flags.has(Flags::SYN)
        };
        if !self.subflows.get(index).is_some_and(opening) {
            return true;
        }
        match (self.peer, segment.flags.has(Flags::MULTIPATH)) {
            (Peer::Unknown, true) => {
                self.peer = Peer::Capable;
                let limited = segment.flags.has(Flags::LIMITED);
                self.limit_subflows(index, limited.then_some(segment.subflows));
            }
            (Peer::Unknown, false) => self.fall_back(now, index),
            (Peer::Capable, false) => {
                self.remove(now, index);
                return false;
            }
            (Peer::Capable, true) | (Peer::Plain, _) => {}
        }
        true
    }

    /// Looks for the option in an acknowledgement of data. Returns false if the option is missing
    /// and either end has closed the subflow.
    pub(super) fn check_options(&mut self, now: Time, index: usize, segment: &Segment) -> bool {
        let Some(own) = self.subflows.get(index).filter(|own| own.is_open()) else { return true };
        let acknowledged = own.sender.acknowledged();
        // A late reset of an earlier subflow acknowledges less.
        if segment.flags.has(Flags::RESET) && segment.ack >= acknowledged {
            self.remove(now, index);
            return false;
        }
        let acknowledges_data = segment.flags.has(Flags::ACK) && segment.ack > acknowledged;
        let has_option = segment.flags.has(Flags::SYN) || segment.data_sequence().is_some();
        if self.is_plain() || has_option || !acknowledges_data {
            return true;
        }
        if self.is_all_on(index) {
            self.fall_back(now, index);
            return true;
        }
        self.remove(now, index);
        false
    }

    /// Whether this subflow's stream, with its queue, holds all data given out so far, and no data
    /// has been acknowledged.
    fn is_all_on(&self, index: usize) -> bool {
        let mut subflows = self.subflows.iter().enumerate();
        self.shared.una == 0
            && subflows.all(|(at, own)| {
                let expected = if at == index { self.shared.next } else { 0 };
                let end = own.queue.continues(own.sender.written());
                end == Some(expected) && own.bindings.are_in_order()
            })
    }

    /// From now on the connection is plain TCP over one subflow. No other subflow has carried data.
    fn fall_back(&mut self, now: Time, index: usize) {
        self.peer = Peer::Plain;
        (0..self.subflows.len())
            .filter(|other| *other != index)
            .for_each(|other| self.remove(now, other));
    }

    /// Whether the connection has fallen back to plain TCP.
    pub fn is_plain(&self) -> bool {
        self.peer == Peer::Plain
    }

    /// The data acknowledgement in a segment on `subflow`; on a plain connection, its ordinary
    /// acknowledgement.
    pub(super) fn data_ack(&self, subflow: usize, segment: &Segment) -> Option<u64> {
        let plain = self.is_plain() && self.has_joined(subflow);
        let known = segment.flags.has(Flags::ACK) && !segment.flags.has(Flags::SYN);
        let own = (plain && known).then_some(segment.ack);
        segment.data_sequence().filter(|_| segment.flags.has(Flags::ACK)).or(own)
    }
}
