use core::str::FromStr;

use anabranch_sim::link::{LinkConfig, LinkConfigError};

/// Forward and reverse link of one emulated path.
#[derive(Clone, Debug, PartialEq)]
pub struct PathConfig {
    /// The link from the sender to the receiver. Its name is also the path's name.
    pub forward: LinkConfig,
    /// The link from the receiver back to the sender.
    pub reverse: LinkConfig,
}

/// Prefix of the keys for the reverse link.
const REVERSE: &str = "reverse.";

impl PathConfig {
    /// A path whose replies meet the same rate, delays and blackouts as `forward`, but no random loss, no policer
    /// and a drop-tail queue.
    pub fn with_clean_reverse(forward: LinkConfig) -> Self {
        PathConfig { reverse: forward.clean_reverse(), forward }
    }
}

impl FromStr for PathConfig {
    type Err = LinkConfigError;

    /// Reads the forward link as [`LinkConfig::read`] does, with the files that the text names. The
    /// reverse link is that of [`PathConfig::with_clean_reverse`], changed by keys such as
    /// `reverse.loss=1%`.
    fn from_str(text: &str) -> Result<Self, LinkConfigError> {
        let (back, there): (Vec<&str>, Vec<&str>) =
            text.split(',').partition(|item| item.trim_start().starts_with(REVERSE));
        let files = &mut |path: &str| std::fs::read_to_string(path).map_err(|why| why.to_string());
        let mut path = PathConfig::with_clean_reverse(LinkConfig::read(&there.join(","), files)?);
        if !back.is_empty() {
            let keys = back.iter().filter_map(|item| item.trim_start().strip_prefix(REVERSE));
            let keys: Vec<&str> = keys.collect();
            path.reverse = path.reverse.changed(&keys.join(","), files).map_err(|error| {
                LinkConfigError { key: format!("{REVERSE}{}", error.key), ..error }
            })?;
        }
        Ok(path)
    }
}
