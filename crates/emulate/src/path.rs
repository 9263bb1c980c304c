use core::str::FromStr;

use anabranch_sim::link::{LinkConfig, LinkConfigError};

/// The two links of one emulated path.
#[derive(Clone, Debug, PartialEq)]
pub struct PathConfig {
    /// From the sender to the receiver. Its name is the path's.
    pub forward: LinkConfig,
    /// From the receiver back to the sender.
    pub reverse: LinkConfig,
}

impl PathConfig {
    /// A path whose replies meet the same rate, delay, jitter and blackouts as `forward`, but no
    /// random loss and a drop-tail queue.
    pub fn with_clean_reverse(forward: LinkConfig) -> Self {
        PathConfig { reverse: forward.clean_reverse(), forward }
    }
}

impl FromStr for PathConfig {
    type Err = LinkConfigError;

    /// Reads the forward link, as [`LinkConfig`] does; the reverse link is its clean counterpart.
    fn from_str(text: &str) -> Result<Self, LinkConfigError> {
        text.parse().map(PathConfig::with_clean_reverse)
    }
}
