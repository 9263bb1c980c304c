//! What both the connecting and the listening side need.

use std::time::Duration;

use anabranch::TransportConfig;

/// How long the news of a connection's end may take.
pub(super) const FLUSH: Duration = Duration::from_secs(3);

/// Limits of a connection that is lost after so long a silence.
pub(super) fn transport(silence: Duration) -> TransportConfig {
    TransportConfig { idle_timeout: Some(silence), ..TransportConfig::default() }
}
