use core::fmt;
use core::str::FromStr;
use std::net::{IpAddr, SocketAddr};

use anabranch_policy::{PolicyError, PolicySpec, congestion};

use crate::interfaces::Interface;

/// A path that a person wants, whether or not its interface is there now.
///
/// Text form: `LOCAL[@REMOTE][,name=NAME][,backup|,metered][,cc=POLICY]`, such as `wwan0`,
/// `192.0.2.7@203.0.113.5:4433,name=lte`, `wwan0,metered` or `wlan0,cc=bbr`. `any` stands for every interface that
/// leads to the peer. The policy comes last, as its options are separated by commas too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathRequest {
    /// Where the path begins.
    pub local: LocalRequest,
    /// The peer's address on this path, if not the usual one.
    pub remote: Option<SocketAddr>,
    /// Known addresses of the peer, if it is not at a single one. For each interface that appears, one or two of
    /// them that are worth trying are chosen.
    pub choice: Vec<SocketAddr>,
    /// Name of the path, if not that of its interface.
    pub name: Option<String>,
    /// When the path is used.
    pub usage: PathUsage,
    /// Congestion control on it, if not the profile's choice.
    pub congestion: Option<PolicySpec>,
}

/// Where a requested path begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LocalRequest {
    /// On every interface that is running and leads to the peer.
    Any,
    /// On the interface of this name, whatever its address.
    Interface(String),
    /// On whichever interface has this address.
    Address(IpAddr),
}

/// When a path is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PathUsage {
    /// Always.
    #[default]
    Normal,
    /// When no path of normal usage works. It is kept ready, which costs a few bytes a second.
    Backup,
    /// Variant of [`Backup`](Self::Backup) on which nothing at all is sent before it is needed, so that taking over
    /// takes a round trip more. It is closed ten seconds after a path that is not metered works again.
    Metered,
}

impl PathRequest {
    /// A path on every interface that leads to the peer, always used.
    pub const ANY: PathRequest = PathRequest::from(LocalRequest::Any);

    /// A path that begins at `local`, is always used, and has the usual destination and congestion control.
    pub const fn from(local: LocalRequest) -> Self {
        let usage = PathUsage::Normal;
        let (remote, name, congestion) = (None, None, None);
        PathRequest { local, remote, choice: Vec::new(), name, usage, congestion }
    }

    /// Whether the path may begin on `interface`, and from which address to reach `remote`.
    pub(super) fn source(&self, interface: &Interface, remote: IpAddr) -> Option<IpAddr> {
        if !interface.running {
            return None;
        }
        match &self.local {
            // A loopback interface leads to no other machine, and others lead to no loopback address.
            LocalRequest::Any if interface.loopback != remote.is_loopback() => None,
            LocalRequest::Interface(name) if *name != interface.name => None,
            LocalRequest::Address(wanted) => {
                interface.addresses.contains(wanted).then_some(*wanted)
            }
            LocalRequest::Any | LocalRequest::Interface(_) => interface.source_for(remote),
        }
    }
}

/// A requested path does not parse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsePathError {
    /// The value given.
    pub given: String,
    /// The values that are allowed in its place.
    pub allowed: String,
}

impl fmt::Display for ParsePathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is not accepted; allowed: {}", self.given, self.allowed)
    }
}

impl std::error::Error for ParsePathError {}

const LOCAL: &str = "an interface such as wlan0, one of this machine's addresses, or any";
const REMOTE: &str = "the peer's address and port after the @, such as 203.0.113.5:4433";
const USAGE: &str = "name=NAME, backup, metered or cc=POLICY after a comma, the policy last";
const NAME: &str = "a name of up to 15 letters, digits, - and _, for a path with an interface or address of its own";

/// Reads the value of `cc=`: a congestion control of the registry, with options that it has.
///
/// # Errors
/// If there is no such congestion control or option; the error names those that exist.
pub fn parse_congestion(text: &str) -> Result<PolicySpec, ParsePathError> {
    let wrong = |error: PolicyError| {
        let allowed = match error {
            PolicyError::Unknown { known, .. } => format!("a congestion control: {known}"),
            other => other.to_string(),
        };
        ParsePathError { given: text.to_owned(), allowed }
    };
    let spec: PolicySpec = text.parse().map_err(wrong)?;
    congestion::build(&spec, 1200).map_err(wrong)?;
    Ok(spec)
}

impl FromStr for PathRequest {
    type Err = ParsePathError;

    /// # Errors
    /// The error names the part that is not accepted, and what would be accepted instead.
    fn from_str(text: &str) -> Result<Self, ParsePathError> {
        let wrong = |given: &str, allowed: &str| ParsePathError {
            given: given.to_owned(),
            allowed: allowed.to_owned(),
        };
        let (text, congestion) = match text.split_once(",cc=") {
            None => (text, None),
            Some((text, policy)) => (text, Some(parse_congestion(policy)?)),
        };
        let mut words = text.split(',');
        let place = words.next().unwrap_or_default();
        let (mut name, mut usage) = (None, PathUsage::Normal);
        for word in words {
            match (word, word.strip_prefix("name=")) {
                ("backup", _) if usage == PathUsage::Normal => usage = PathUsage::Backup,
                ("metered", _) if usage == PathUsage::Normal => usage = PathUsage::Metered,
                (_, Some(own)) if name.is_none() && is_name(own) => name = Some(own.to_owned()),
                (_, Some(own)) => return Err(wrong(own, NAME)),
                _ => return Err(wrong(word, USAGE)),
            }
        }
        let (local, remote) = match place.split_once('@') {
            None => (place, None),
            Some((local, remote)) => {
                (local, Some(remote.parse().map_err(|_| wrong(remote, REMOTE))?))
            }
        };
        // Interface names are at most 15 bytes on Linux, without slashes and spaces.
        let is_interface = (1..=15).contains(&local.len())
            && local.chars().all(|c| c.is_ascii_graphic() && c != '/' && c != ':');
        let local = match local.parse::<IpAddr>() {
            Ok(address) => LocalRequest::Address(address),
            Err(_) if local == "any" => LocalRequest::Any,
            Err(_) if is_interface && local.starts_with(|c: char| c.is_ascii_alphabetic()) => {
                LocalRequest::Interface(local.to_owned())
            }
            Err(_) => return Err(wrong(local, LOCAL)),
        };
        // One name for all interfaces would tell none of them apart.
        if let Some(name) = name.as_ref().filter(|_| local == LocalRequest::Any) {
            return Err(wrong(name, NAME));
        }
        Ok(PathRequest { local, remote, choice: Vec::new(), name, usage, congestion })
    }
}

/// Whether `text` can be the name of a path.
fn is_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    (1..=15).contains(&text.len()) && text.chars().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read() {
        let read = |text: &str| text.parse::<PathRequest>().unwrap();
        assert_eq!(read("any"), PathRequest::ANY);
        let wwan = LocalRequest::Interface("wwan0".into());
        let expected = PathRequest { usage: PathUsage::Metered, ..PathRequest::from(wwan.clone()) };
        assert_eq!(read("wwan0,metered"), expected);
        let policy: PolicySpec = "cubic:initial=20".parse().unwrap();
        let expected = PathRequest { congestion: Some(policy), ..expected };
        assert_eq!(read("wwan0,metered,cc=cubic:initial=20"), expected);
        assert_eq!(read("wwan0,cc=bbr").usage, PathUsage::Normal);
        let full = read("192.0.2.7@203.0.113.5:4433,backup");
        assert_eq!(full.local, LocalRequest::Address("192.0.2.7".parse().unwrap()));
        assert_eq!(full.remote, Some("203.0.113.5:4433".parse().unwrap()));
        assert_eq!(full.usage, PathUsage::Backup);
        let named = read("wwan0,name=lte,metered");
        assert_eq!((named.name.as_deref(), named.usage), (Some("lte"), PathUsage::Metered));
        assert_eq!(read("wwan0,metered,name=lte"), named);
        assert_eq!(
            read("2001:db8::1").local,
            LocalRequest::Address("2001:db8::1".parse().unwrap())
        );
    }

    #[test]
    fn what_cannot_be_a_path_is_named() {
        for (text, given) in [
            ("", ""),
            ("wlan0,always", "always"),
            ("wlan0@somewhere", "somewhere"),
            ("wlan0@203.0.113.5", "203.0.113.5"),
            ("300.1.1.1", "300.1.1.1"),
            ("a-name-that-is-far-too-long", "a-name-that-is-far-too-long"),
            ("with space", "with space"),
            ("wlan0,name=", ""),
            ("wlan0,name=a b", "a b"),
            ("wlan0,name=a,name=b", "b"),
            ("any,name=wan", "wan"),
            ("wlan0,backup,metered", "metered"),
            ("wlan0,cc=warp", "warp"),
            ("wlan0,cc=bbr,backup", "bbr,backup"),
            ("wlan0,cc=cubic:speed=9", "cubic:speed=9"),
        ] {
            let error = text.parse::<PathRequest>().unwrap_err();
            assert_eq!(error.given, given, "{text}");
            assert!(error.to_string().contains("allowed: "), "{error}");
        }
    }

    #[test]
    fn an_unknown_congestion_control_is_told_those_there_are() {
        let error = "wlan0,cc=warp".parse::<PathRequest>().unwrap_err().to_string();
        assert!(["bbr", "cubic", "reno"].iter().all(|name| error.contains(name)), "{error}");
        let error = "wlan0,cc=cubic:speed=9".parse::<PathRequest>().unwrap_err().to_string();
        assert!(error.contains("initial"), "{error}");
    }

    #[test]
    fn a_request_finds_its_interface() {
        let wlan = Interface {
            name: "wlan0".into(),
            index: 2,
            addresses: vec!["192.0.2.7".parse().unwrap()],
            running: true,
            loopback: false,
        };
        let remote = "203.0.113.5".parse().unwrap();
        let source = |text: &str, interface: &Interface| {
            text.parse::<PathRequest>().unwrap().source(interface, remote).is_some()
        };
        assert!(source("wlan0", &wlan) && source("192.0.2.7", &wlan) && source("any", &wlan));
        assert!(!source("wlan1", &wlan) && !source("192.0.2.8", &wlan));
        let silent = Interface { running: false, ..wlan.clone() };
        assert!(!source("wlan0", &silent) && !source("any", &silent));
        let own = Interface { loopback: true, ..wlan };
        assert!(source("wlan0", &own) && !source("any", &own));
    }
}
