//! Subflows that join and leave.

use anabranch_policy::CongestionController;
use anabranch_policy::view::MAX_PATHS;
use anabranch_types::{PathId, Time};

use super::Join;
use super::chunks::bit;
use super::sender::MetaSender;
use super::subflow::{Membership, Subflow};

impl MetaSender {
    /// Adds a subflow (pTCP's `open`), which opens as [`MetaConfig::join`](super::MetaConfig::join) says. Returns its
    /// index, or `None` if there are [`MAX_PATHS`] of them, the connection is plain TCP, or it closes and all its
    /// data has been acknowledged.
    pub fn join(&mut self, controller: Box<dyn CongestionController>) -> Option<usize> {
        let index = self.subflows.len();
        if index >= MAX_PATHS || !self.takes_subflows() {
            return None;
        }
        let config = self.config.unbounded_subflow();
        let mut subflow = Subflow::new(&config, controller, PathId(index as u32), 0);
        subflow.backup = self.config.backups & bit(index as u8) != 0;
        self.subflows.push(subflow);
        self.changed();
        self.admit();
        Some(index)
    }

    /// Adds a subflow in the place of one that is gone, over the same path. The new stream begins
    /// beyond the old one, so that late segments of the old one are ignored. Returns false if there
    /// is no such subflow, if it is not gone, if the connection is plain TCP, or if the connection
    /// closes and all its data has been acknowledged.
    pub fn rejoin(&mut self, index: usize, controller: Box<dyn CongestionController>) -> bool {
        let config = self.config.unbounded_subflow();
        let takes = self.takes_subflows();
        let Some(old) = self.subflows.get_mut(index).filter(|_| takes) else { return false };
        if old.membership != Membership::Gone {
            return false;
        }
        let past = *old.sender.statistics();
        let backup = old.backup;
        let path = PathId(index as u32);
        // If nothing was sent, there are no late segments. A plain connection must begin at 0.
        let offset = if old.sender.written() == 0 { 0 } else { old.sender.written() + 1 };
        *old = Subflow::new(&config, controller, path, offset);
        old.backup = backup;
        self.past += past;
        self.chunks.clear_slot(index as u8);
        if let Some(sharing) = &mut self.sharing {
            sharing.forget(index as u8);
        }
        self.changed();
        self.admit();
        true
    }

    /// Removes a subflow: its data goes to the others, and segments that arrive on it are ignored.
    /// A plain TCP connection has no other subflow, so its only one stays and waits for the
    /// interface to return.
    pub fn leave(&mut self, now: Time, index: usize) {
        if !self.is_plain() {
            self.remove(now, index);
        }
    }

    /// Whether subflows may still join. They may while the connection closes, until all its data
    /// has been acknowledged.
    fn takes_subflows(&self) -> bool {
        !self.is_plain() && (!self.closes() || !self.is_drained())
    }

    /// Removes a subflow from the connection, whatever the reason.
    pub(super) fn remove(&mut self, now: Time, index: usize) {
        let Some(subflow) = self.subflows.get_mut(index) else { return };
        if subflow.membership == Membership::Gone {
            return;
        }
        let was_up = subflow.up;
        subflow.membership = Membership::Gone;
        subflow.suspect = false;
        self.release_all(index);
        self.chunks.rescue_oldest();
        self.admit();
        if was_up {
            self.path_down(now, PathId(index as u32));
        }
        self.changed();
    }

    /// Sets whether a subflow is used only when no other is usable (MPTCP's backup flag, RFC 8684 §3.3.8).
    pub fn set_backup(&mut self, index: usize, backup: bool) {
        if let Some(subflow) = self.subflows.get_mut(index) {
            subflow.backup = backup;
        }
        self.changed();
    }

    /// Grows the send buffer with the number of subflows, if it is sized per subflow.
    fn widen(&mut self) {
        if self.config.buffers_per_subflow {
            let joined = self.subflows.iter().filter(|own| own.is_joined()).count();
            let buffer = self.config.shared_buffer(self.config.send_buffer, joined);
            self.shared.send_buffer = self.shared.send_buffer.max(buffer);
        }
    }

    /// Lets waiting subflows open, as many as the receiving side agrees to. Under
    /// [`Join::AfterFirst`] only one opens until it is established.
    pub(super) fn admit(&mut self) {
        let established = self.subflows.iter().any(Subflow::is_open);
        let all =
            established || self.config.join != Join::AfterFirst || !self.config.subflow.handshake;
        let first = usize::from(!self.subflows.iter().any(Subflow::is_joined));
        let most = self.openings().min(if all { usize::MAX } else { first });
        let waiting = self.subflows.iter_mut().filter(|s| s.membership == Membership::Waiting);
        for subflow in waiting.take(most) {
            subflow.membership = Membership::Joined;
        }
        self.widen();
        let full = self.openings() == 0;
        let mut present = self.subflows.iter().filter(|s| match s.membership {
            Membership::Gone => false,
            Membership::Waiting => !full,
            Membership::Joined => true,
        });
        self.may_send |= self.config.join != Join::BeforeData || present.all(Subflow::is_open);
    }
}
