//! The configuration file of `serve` and `connect`. Keys, addresses and names are checked where they stand, so that an
//! error names its line.

use std::fmt::Display;
use std::io::Read;
use std::net::SocketAddr;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anabranch::{Profile, PublicKey};
use anabranch_forward::{Dynamic, Forward, Permit, Place, Target, UdpForward};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::catalog;
use crate::confine::explain;
use crate::failure::Failure;
use crate::paths::PathArg;
use crate::values::{self, Memory, Reached};

/// Longest file that is read, bytes.
const MAX_FILE: u64 = 1 << 20;

/// A configuration file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    #[serde(default)]
    pub(super) interface: Interface,
    #[serde(default, rename = "peer")]
    pub(super) peers: Vec<Peer>,
    #[serde(default, rename = "path")]
    pub(super) paths: Vec<FilePath>,
}

/// This machine.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Interface {
    pub(super) private_key_file: Option<PathBuf>,
    #[serde(default)]
    pub(super) listen: Vec<SocketAddr>,
    #[serde(default)]
    pub(super) announce: Vec<Text<Reached>>,
    pub(super) metrics: Option<SocketAddr>,
    pub(super) max_forwarded: Option<NonZero<u16>>,
    pub(super) max_memory: Option<Text<Memory>>,
    #[serde(default, deserialize_with = "profile")]
    pub(super) profile: Option<Profile>,
}

/// Another machine.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Peer {
    #[serde(deserialize_with = "public_key")]
    pub(super) public_key: PublicKey,
    /// Name of the peer in `anabranch status`.
    pub(super) name: Option<String>,
    /// Secret shared with the peer beside the keys: WireGuard's `PresharedKey`, in a file of its own.
    pub(super) preshared_key_file: Option<PathBuf>,
    pub(super) endpoint: Option<Text<Target>>,
    pub(super) persistent_keepalive: Option<u16>,
    #[serde(default)]
    pub(super) permit: Vec<Text<Permit>>,
    #[serde(default)]
    pub(super) permit_listen: Vec<Text<Permit>>,
    #[serde(default)]
    pub(super) permit_udp: Vec<Text<Permit>>,
    #[serde(default)]
    pub(super) local_forward: Vec<Text<Forward>>,
    #[serde(default)]
    pub(super) remote_forward: Vec<Text<Forward>>,
    #[serde(default)]
    pub(super) dynamic_forward: Vec<Text<Dynamic>>,
    #[serde(default)]
    pub(super) udp_forward: Vec<Text<UdpForward>>,
}

/// A path to the other machine.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "PathSection")]
pub(super) struct FilePath(pub(super) PathArg);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PathSection {
    local: String,
    remote: Option<String>,
    name: Option<String>,
    usage: Option<String>,
    congestion: Option<String>,
}

/// A value that is written as on the command line.
#[derive(Clone, Debug)]
pub(super) struct Text<T>(pub(super) T);

/// Reads the file at `path`; without one, nothing is set.
pub(super) fn read(path: Option<&Path>) -> Result<File, Failure> {
    let Some(path) = path else { return Ok(File::default()) };
    let origin = path.display();
    let failed = |error: std::io::Error| {
        let text = format!("cannot read {origin}: {error}{}", explain(path, &error));
        // If the file does not exist, the usage is wrong: trying again, as service managers do, would not help.
        Failure::of_file(&error, text)
    };
    let mut text = String::new();
    let opened = std::fs::File::open(path).map_err(failed)?;
    opened.take(MAX_FILE + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > MAX_FILE {
        return Err(Failure::usage(format!("{origin} is too long to be a configuration")));
    }
    let file = parse(&text).map_err(|why| Failure::usage(format!("{origin}{why}")))?;
    Ok(rooted(file, path))
}

/// Path that has to be readable to read the file at `path` again, and others beside it: its directory, since editors
/// replace files. Where the directory is the root, or the user's home or above it, it is the file alone.
pub(super) fn to_read_again(path: Option<&Path>) -> Option<PathBuf> {
    let path = path?.canonicalize().ok()?;
    let directory = path.parent()?;
    let home =
        std::env::var_os("HOME").map(PathBuf::from).and_then(|home| home.canonicalize().ok());
    let is_much =
        directory.parent().is_none() || home.is_some_and(|home| home.starts_with(directory));
    Some(if is_much { path } else { directory.to_owned() })
}

/// Paths of key files and of this side's Unix sockets start at the directory of the configuration.
fn rooted(mut file: File, config: &Path) -> File {
    let Some(directory) = config.parent() else { return file };
    let shared = file.peers.iter_mut().map(|peer| &mut peer.preshared_key_file);
    for key in shared.chain([&mut file.interface.private_key_file]).flatten() {
        *key = directory.join(&*key);
    }
    for peer in &mut file.peers {
        let binds = peer.local_forward.iter_mut().map(|Text(forward)| &mut forward.bind);
        let targets = peer.remote_forward.iter_mut().map(|Text(forward)| &mut forward.target);
        for place in binds.chain(targets) {
            if let Place::Socket(path) = place {
                *path = path.below(directory);
            }
        }
        for Text(permit) in peer.permit.iter_mut().chain(&mut peer.permit_listen) {
            *permit = permit.clone().below(directory);
        }
    }
    file
}

/// Parses a file; an error begins with the place, line and column, as `:3:1: `.
pub(super) fn parse(text: &str) -> Result<File, String> {
    toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let before = text.get(..at).unwrap_or_default();
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        format!(":{}:{column}: {}", before.matches('\n').count() + 1, error.message())
    })
}

impl<'de, T: FromStr<Err: Display>> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Text).map_err(D::Error::custom)
    }
}

impl TryFrom<PathSection> for FilePath {
    type Error = String;

    fn try_from(section: PathSection) -> Result<Self, String> {
        let PathSection { local, remote, name, usage, congestion } = section;
        let plain = [Some(&local), remote.as_ref(), name.as_ref()];
        if plain.into_iter().flatten().any(|at| at.contains(['@', ','])) {
            return Err(
                "`remote`, `name`, `usage` and `congestion` of a path are keys of their own"
                    .to_owned(),
            );
        }
        let remote = remote.map_or_else(String::new, |remote| format!("@{remote}"));
        let name = name.map_or_else(String::new, |name| format!(",name={name}"));
        let usage = usage.map_or_else(String::new, |usage| format!(",{usage}"));
        let congestion = congestion.map_or_else(String::new, |policy| format!(",cc={policy}"));
        format!("{local}{remote}{name}{usage}{congestion}").parse().map(FilePath)
    }
}

fn public_key<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PublicKey, D::Error> {
    let text = String::deserialize(deserializer)?;
    values::public_key(&text).map_err(|error| D::Error::custom(format!("public-key: {error}")))
}

fn profile<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Profile>, D::Error> {
    let name = String::deserialize(deserializer)?;
    catalog::profile(&name, &[]).map(Some).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=";

    #[test]
    fn the_example_of_the_help_is_read() {
        let text = format!(
            "[interface]\nprivate-key-file = \"laptop.key\"\n[[peer]]\npublic-key = \"{KEY}\"\n\
             preshared-key-file = \"laptop.psk\"\n\
             endpoint = \"home.example:4433\"\npersistent-keepalive = 15\n\
             local-forward = [\"5432:db:5432\"]\ndynamic-forward = [\"1080\"]\n[[path]]\nlocal = \"wwan0\"\nname = \"lte\"\nusage = \"metered\"\ncongestion = \"bbr\"\n"
        );
        let file = parse(&text).unwrap();
        assert_eq!(file.peers[0].persistent_keepalive, Some(15));
        assert_eq!(file.paths[0].0, "wwan0,name=lte,metered,cc=bbr".parse().unwrap());
        let file = rooted(file, Path::new("/etc/anabranch/home.toml"));
        let key = file.interface.private_key_file.unwrap();
        assert_eq!(key, Path::new("/etc/anabranch/laptop.key"));
        let shared = file.peers[0].preshared_key_file.as_deref();
        assert_eq!(shared, Some(Path::new("/etc/anabranch/laptop.psk")));
    }

    #[test]
    fn sockets_of_this_side_lie_beside_the_file() {
        let text = format!(
            "[[peer]]\npublic-key = \"{KEY}\"\nlocal-forward = [\"a.sock:b.sock\", \"./c:d:1\"]\n\
             remote-forward = [\"a.sock:b.sock\"]\npermit = [\"e.sock\", \"/run/f.sock\"]\n\
             permit-listen = [\"g/*\"]\n"
        );
        let file = rooted(parse(&text).unwrap(), Path::new("/etc/anabranch/home.toml"));
        let peer = &file.peers[0];
        let forward = |Text(forward): &Text<Forward>| forward.to_string();
        let permit = |Text(permit): &Text<Permit>| permit.to_string();
        assert_eq!(forward(&peer.local_forward[0]), "/etc/anabranch/a.sock to b.sock");
        assert_eq!(forward(&peer.local_forward[1]), "/etc/anabranch/./c to d:1");
        assert_eq!(forward(&peer.remote_forward[0]), "a.sock to /etc/anabranch/b.sock");
        let permits: Vec<_> = peer.permit.iter().chain(&peer.permit_listen).map(permit).collect();
        assert_eq!(permits, ["/etc/anabranch/e.sock", "/run/f.sock", "/etc/anabranch/g/*"]);
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        let peer = format!("[[peer]]\npublic-key = \"{KEY}\"\n");
        for (text, place, part) in [
            ("[interface]\nlisten = [\"0.0.0.0:4433\"]\nport = 3\n".to_owned(), ":3:1: ", "port"),
            (
                "[interface]\nlisten = [\"0.0.0.0:1\", \"nowhere\"]\n".to_owned(),
                ":2:24: ",
                "address",
            ),
            (
                "[interface]\nannounce = [\"::\"]\n".to_owned(),
                ":2:12: ",
                "clients reach this machine",
            ),
            ("[interface]\nprofile = \"ftp\"\n".to_owned(), ":2:11: ", "no profile 'ftp'; known"),
            ("[[peer]]\n".to_owned(), ":1:1: ", "public-key"),
            ("[[peer]]\npublic-key = \"x\"\n".to_owned(), ":2:14: ", "44 characters"),
            (format!("{peer}permit = [\"loopback\", \"x\"]\n"), ":3:10: ", "'x' is not accepted"),
            (format!("{peer}endpoint = \"home\"\n"), ":3:12: ", "HOST:PORT"),
            (format!("{peer}local-forward = [\"80\"]\n"), ":3:17: ", "[BIND:]PORT"),
            (format!("{peer}dynamic-forward = [\"a:b\"]\n"), ":3:19: ", "such as 1080"),
            (format!("{peer}udp-forward = [\"53\"]\n"), ":3:15: ", "[BIND:]PORT"),
            (format!("{peer}permit-udp = [\"x\"]\n"), ":3:14: ", "'x' is not accepted"),
            (
                format!("{peer}permit = [\"/run/../x\"]\n"),
                ":3:10: ",
                "a path such as /run/app.sock",
            ),
            (format!("{peer}local-forward = [\"80:/\"]\n"), ":3:17: ", "8080:/run/app.sock"),
            ("[[path]]\nlocal = \"wlan0\"\nusage = \"now\"\n".to_owned(), ":1:1: ", "metered"),
            ("[[path]]\nlocal = \"wlan0,backup\"\n".to_owned(), ":1:1: ", "keys of their own"),
            ("= 1".to_owned(), ":1:1: ", ""),
        ] {
            let error = parse(&text).unwrap_err();
            assert!(error.starts_with(place) && error.contains(part), "{text}{error}");
        }
    }
}
