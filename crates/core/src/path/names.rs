//! The connection ids of a path.

use anabranch_policy::view::PathState;

use super::Path;
use crate::wire::ConnectionId;

/// The connection ids of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathNames {
    /// The id under which this side receives.
    pub local: Option<ConnectionId>,
    /// The id under which the peer receives, once it has supplied it.
    pub remote: Option<ConnectionId>,
}

impl Path {
    /// Whether packets may be sent on the path: the path is open, and the peer has supplied its id
    /// for it.
    pub fn can_send(&self) -> bool {
        self.state != PathState::Closed && self.names.remote.is_some()
    }

    /// The id under which the peer receives on a path that [can send](Self::can_send).
    pub fn remote_id(&self) -> ConnectionId {
        self.names.remote.unwrap_or_default()
    }
}
