//! Fallback where a SYN was answered without the option, of a connection or a single subflow (RFC 8684 §3.7, §3.2).
//!
//! A host that does not know it, or a middlebox that removes options it does not know, leaves the answer to the first SYN
//! without it. The connection then is plain TCP over that one subflow: its stream is the data, its acknowledgements are the
//! data acknowledgements, no other subflow joins, and nothing is moved or taken back. If the first has the option and a later
//! subflow's answer does not, only that one is given up.

use anabranch_types::Time;

use super::sender::MetaSender;
use super::subflow::Membership;
use crate::segment::{Flags, Segment};

/// What is known of the peer and the path to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Peer {
    /// No SYN has been answered.
    #[default]
    Unknown,
    /// The first answer had the option.
    Capable,
    /// It had not.
    Plain,
}

impl MetaSender {
    /// Looks for the option in what answers a SYN. False if the subflow has been given up for the lack of it.
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
            (Peer::Unknown, false) => self.fall_back(index),
            (Peer::Capable, false) => {
                self.remove(now, index);
                return false;
            }
            (Peer::Capable, true) | (Peer::Plain, _) => {}
        }
        true
    }

    /// From now on the connection is plain TCP over one subflow. None has carried data yet.
    fn fall_back(&mut self, index: usize) {
        self.peer = Peer::Plain;
        for (other, subflow) in self.subflows.iter_mut().enumerate() {
            if other != index {
                subflow.membership = Membership::Gone;
            }
        }
        self.changed();
    }

    /// Whether the connection has fallen back to plain TCP.
    pub fn is_plain(&self) -> bool {
        self.peer == Peer::Plain
    }

    /// What an acknowledgement on `subflow` says of the data.
    pub(super) fn data_ack(&self, subflow: usize, segment: &Segment) -> Option<u64> {
        let plain = self.is_plain() && self.has_joined(subflow);
        let known = segment.flags.has(Flags::ACK) && !segment.flags.has(Flags::SYN);
        let own = (plain && known).then_some(segment.ack);
        segment.data_sequence().filter(|_| segment.flags.has(Flags::ACK)).or(own)
    }
}
