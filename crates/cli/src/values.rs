//! Parsers of command-line values that several commands share.

use std::fmt::{self, Display, Formatter};
use std::net::{AddrParseError, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use anabranch::PublicKey;
use anabranch_policy::{Axis, PolicyError};
use anabranch_types::{Bitrate, DataSize, parse_duration};

use crate::limit::LOWEST;

/// Longest time of a demo or a measurement.
pub const MAX_TIME: Duration = Duration::from_secs(3600);
/// Shortest time of a demo or a measurement.
pub const MIN_TIME: Duration = Duration::from_millis(100);

/// `AXIS=POLICY`: another policy on one axis of a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The axis.
    pub axis: Axis,
    /// The policy with its options.
    pub policy: String,
}

/// Memory of all connections of a command, 64 MB to 1 TB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory(pub DataSize);

impl FromStr for Memory {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let size = text.parse::<DataSize>().ok();
        let size = size.filter(|size| (64_000_000..=1_000_000_000_000).contains(&size.as_bytes()));
        size.map(Memory).ok_or_else(|| "write a size from 64MB to 1000GB, such as 2GB".to_owned())
    }
}

/// Port of `serve` if none is given.
const PORT: u16 = 4433;

/// An address of this machine with its port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listening(pub SocketAddr);

impl FromStr for Listening {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bare = || text.trim_matches(['[', ']']).parse().map(|ip| SocketAddr::new(ip, PORT));
        text.parse().or_else(|_| bare()).map(Listening).map_err(|_: AddrParseError| {
            "write an address of this machine with or without a port, such as 0.0.0.0:4433 or [::]"
                .to_owned()
        })
    }
}

/// An address where this machine is reached, with its port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reached(pub SocketAddr);

impl FromStr for Reached {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let one_host = |at: &SocketAddr| !at.ip().is_unspecified() && !at.ip().is_multicast();
        let address = text.parse().ok().map(|Listening(address)| address);
        let address = address.filter(|at| one_host(at) && at.port() != 0);
        address.map(Reached).ok_or_else(|| {
            "write the address at which clients reach this machine, with or without a port, such as \
             198.51.100.7:4433 or [2001:db8::7]"
                .to_owned()
        })
    }
}

impl Display for Reached {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Reads a public key.
pub fn public_key(text: &str) -> Result<PublicKey, String> {
    text.parse::<PublicKey>().map_err(|error| error.to_string())
}

/// Reads `AXIS=POLICY`.
pub fn setting(text: &str) -> Result<Setting, String> {
    match text.split_once('=') {
        Some((axis, policy)) if !axis.is_empty() && !policy.is_empty() => {
            let axis = axis.trim().parse().map_err(|error: PolicyError| error.to_string())?;
            Ok(Setting { axis, policy: policy.trim().to_owned() })
        }
        _ => Err("write axis=policy, such as scheduler=min-rtt".to_owned()),
    }
}

/// Reads seconds without a unit, or a duration with one.
pub fn duration(text: &str) -> Option<Duration> {
    let bare = text.parse::<f64>().ok().and_then(|secs| Duration::try_from_secs_f64(secs).ok());
    bare.or_else(|| parse_duration(text).ok())
}

/// Reads how long a demo or a measurement takes.
pub fn time(text: &str) -> Result<Duration, String> {
    duration(text)
        .filter(|time| (MIN_TIME..=MAX_TIME).contains(time))
        .ok_or_else(|| "write seconds from 0.1 to 3600, such as 20, or 500ms, 5m".to_owned())
}

/// Reads an upper bound on a sending rate.
pub fn rate(text: &str) -> Result<Bitrate, String> {
    let rate = text.parse::<Bitrate>().ok().filter(|rate| *rate >= LOWEST);
    rate.ok_or_else(|| "write a rate from 8kbit to 1000gbit, such as 20mbit".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_may_be_left_out() {
        for (text, address) in [
            ("0.0.0.0", "0.0.0.0:4433"),
            ("0.0.0.0:9", "0.0.0.0:9"),
            ("::1", "[::1]:4433"),
            ("[::]", "[::]:4433"),
            ("[::1]:9", "[::1]:9"),
        ] {
            assert_eq!(text.parse(), Ok(Listening(address.parse().unwrap())), "{text}");
        }
        for bad in ["", "eth0", "0.0.0.0:", "0.0.0.0:65536", "256.0.0.1"] {
            let error = bad.parse::<Listening>().unwrap_err();
            assert!(error.contains("0.0.0.0:4433"), "{bad}");
        }
    }

    #[test]
    fn what_is_announced_is_one_host() {
        for (text, address) in
            [("192.0.2.7", "192.0.2.7:4433"), ("[2001:db8::7]:9", "[2001:db8::7]:9")]
        {
            assert_eq!(text.parse(), Ok(Reached(address.parse().unwrap())), "{text}");
        }
        for bad in ["", "0.0.0.0", "[::]:9", "192.0.2.7:0", "224.0.0.1", "ff02::1", "home.example"]
        {
            let error = bad.parse::<Reached>().unwrap_err();
            assert!(error.contains("clients reach this machine"), "{bad}");
        }
    }

    #[test]
    fn rates_have_bounds() {
        assert_eq!(rate("20mbit"), Ok(Bitrate::from_bps(20_000_000)));
        assert_eq!(rate("8 kbps"), Ok(LOWEST));
        for bad in ["", "20", "0mbit", "7999bit", "-1mbit", "2tbit", "20MB", "fast"] {
            assert!(rate(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn memory_has_a_unit_and_bounds() {
        let megabytes = |count: u64| Memory(DataSize::from_bytes(count * 1_000_000));
        assert_eq!("64MB".parse(), Ok(megabytes(64)));
        assert_eq!("1.5GB".parse(), Ok(megabytes(1500)));
        for bad in ["", "64", "63MB", "-1GB", "1001GB", "0", "much"] {
            assert!(bad.parse::<Memory>().is_err(), "{bad}");
        }
    }

    #[test]
    fn times_need_no_unit_and_have_bounds() {
        assert_eq!(time("20"), Ok(Duration::from_secs(20)));
        assert_eq!(time("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(time("5m"), Ok(Duration::from_secs(300)));
        for bad in ["", "-1", "0", "1e9", "NaN", "inf", "3601", "5 parsecs", "999999h"] {
            assert!(time(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn settings_name_an_axis_and_a_policy() {
        assert_eq!(setting("code=none").map(|s| s.axis), Ok(Axis::Code));
        for bad in ["", "code", "=none", "code=", "colour=red"] {
            assert!(setting(bad).is_err(), "{bad}");
        }
    }
}
