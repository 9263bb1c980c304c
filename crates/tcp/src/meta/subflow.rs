//! One subflow: a connection, the data that its stream carries, and its queue.

use anabranch_policy::CongestionController;
use anabranch_policy::view::PathState;
use anabranch_types::{PathId, Time};

use super::binding::{Bindings, Chunk};
use super::queue::Queue;
use crate::config::Config;
use crate::sender::Sender;

/// Whether a subflow takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Membership {
    /// The SYN waits until the first subflow is established or the receiving side's limit admits
    /// another.
    Waiting,
    /// The subflow opens or is open.
    Joined,
    /// The subflow was removed, or given up after too many timeouts.
    Gone,
}

/// One subflow.
#[derive(Debug)]
pub(super) struct Subflow {
    pub(super) sender: Sender,
    pub(super) membership: Membership,
    /// Whether the policies have been told that the subflow is usable.
    pub(super) up: bool,
    /// Whether the subflow's data was moved after a timeout and nothing has been heard since.
    pub(super) suspect: bool,
    /// Whether the subflow is used only when no other is usable.
    pub(super) backup: bool,
    pub(super) bindings: Bindings,
    /// Chunks assigned to the subflow that are not in its stream yet.
    pub(super) queue: Queue,
    /// The sender's count of changes when the subflow last asked for data to send and was given
    /// none.
    pub(super) frozen_at: Option<u64>,
    /// Time before which the scheduler is not asked for this subflow.
    pub(super) hold_until: Option<Time>,
    /// The sender's count of changes when the scheduler last had nothing for this subflow.
    pub(super) idle_at: u64,
}

impl Subflow {
    /// A subflow over `path`, whose stream begins at `offset`.
    pub(super) fn new(
        config: &Config,
        controller: Box<dyn CongestionController>,
        path: PathId,
        offset: u64,
    ) -> Self {
        let sender = Sender::subflow(config, controller, path, offset);
        Subflow {
            up: sender.is_open(),
            sender,
            membership: Membership::Waiting,
            suspect: false,
            backup: false,
            bindings: Bindings::default(),
            queue: Queue::default(),
            frozen_at: None,
            hold_until: None,
            idle_at: 0,
        }
    }

    /// Whether the subflow opens or is open.
    pub(super) fn is_joined(&self) -> bool {
        self.membership == Membership::Joined
    }

    /// Whether the subflow takes part and is established.
    pub(super) fn is_open(&self) -> bool {
        self.is_joined() && self.sender.is_open()
    }

    /// Whether the subflow is open and not suspect.
    pub(super) fn is_usable(&self) -> bool {
        self.is_open() && !self.suspect
    }

    pub(super) fn state(&self) -> PathState {
        match self.membership {
            Membership::Gone => PathState::Closed,
            _ if !self.sender.is_open() => PathState::Validating,
            _ if self.suspect => PathState::Suspect,
            _ => PathState::Active,
        }
    }

    /// View of the subflow for schedulers and coupled congestion controllers.
    pub(super) fn view(&self, slot: u8, now: Time) -> anabranch_policy::view::PathView {
        let mut view = self.sender.view(PathId(u32::from(slot)), slot, now);
        view.state = self.state();
        view.backup = self.backup;
        view.bytes_queued += self.queue.bytes();
        view.ready = view.ready && self.is_joined() && !self.queue.has_ripe(now);
        view
    }

    /// Whether the scheduler may be asked what to send on the subflow, given the sender's count of
    /// `changes`.
    pub(super) fn may_pull(&self, now: Time, changes: u64) -> bool {
        self.is_joined()
            && self.idle_at != changes
            && self.hold_until.is_none_or(|until| until <= now)
            && self.sender.wants_data(now)
    }

    /// The next time after `now` at which something has to be done for the subflow.
    pub(super) fn next_timeout(&self, now: Time) -> Option<Time> {
        if !self.is_joined() {
            return None;
        }
        // A chunk that may leave now waits for the window, not for a time.
        let ripens = self.queue.ripens(now);
        let held = self.hold_until.filter(|until| *until > now);
        [self.sender.next_timeout(), ripens, held].into_iter().flatten().min()
    }

    /// Appends a chunk to the stream.
    pub(super) fn bind(&mut self, chunk: Chunk) {
        let offset = self.sender.written();
        self.sender.write(chunk.len);
        self.bindings.push(offset, chunk);
    }
}
