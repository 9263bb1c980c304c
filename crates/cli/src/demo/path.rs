//! `--path` of the demo: an emulated link and its congestion control.

use std::str::FromStr;

use anabranch::paths::parse_congestion;
use anabranch_emulate::PathConfig;
use anabranch_policy::PolicySpec;

/// A path as it is given to the demo.
#[derive(Clone, Debug, PartialEq)]
pub struct DemoPath {
    /// The path's links, forward and reverse.
    pub links: PathConfig,
    /// Congestion control on the path, if not the profile's choice.
    pub congestion: Option<PolicySpec>,
}

impl FromStr for DemoPath {
    type Err = String;

    /// Reads the link, and `cc=POLICY` after it.
    fn from_str(text: &str) -> Result<Self, String> {
        let (link, policy) = text.split_once(",cc=").map_or((text, None), |(l, p)| (l, Some(p)));
        let links = link.parse().map_err(|error| format!("{error}"))?;
        let congestion = policy.map(parse_congestion).transpose();
        Ok(DemoPath { links, congestion: congestion.map_err(|error| error.to_string())? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_comes_last_and_has_to_exist() {
        let read = |text: &str| text.parse::<DemoPath>();
        let path = read("rate=9mbit,delay=5ms,cc=cubic:initial=20").unwrap();
        assert_eq!(path.congestion, Some("cubic:initial=20".parse().unwrap()));
        assert_eq!(path.links, "rate=9mbit,delay=5ms".parse().unwrap());
        assert_eq!(read("rate=9mbit,delay=5ms").unwrap().congestion, None);
        let error = read("rate=9mbit,delay=5ms,cc=warp").unwrap_err();
        assert!(error.contains("warp") && error.contains("bbr"), "{error}");
    }
}
