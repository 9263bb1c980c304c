//! The settings of `serve` and `connect`, from a file and from options.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anabranch::crypto::keys::SecretKey;
use anabranch::forward::{Forward, Permit, Target};
use anabranch::{Profile, PublicKey, parse_public_key};
use serde::Deserialize;

use super::args::{CommonArgs, ConnectArgs, ServeArgs};
use crate::catalog;
use crate::failure::Failure;
use crate::keys;
use crate::paths::PathArg;
use crate::qlog::Qlogs;

/// How often an idle path is asked for a sign of life unless said otherwise: address translators keep
/// UDP entries for 30 s and more (RFC 4787 §4.3 asks for two minutes; many do not).
const KEEPALIVE: Duration = Duration::from_secs(15);
/// Longest file that is read.
const MAX_FILE: u64 = 1 << 20;

/// A configuration file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    #[serde(default)]
    interface: InterfaceSection,
    #[serde(default, rename = "peer")]
    peers: Vec<PeerSection>,
    #[serde(default, rename = "path")]
    paths: Vec<PathSection>,
}

/// This machine.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct InterfaceSection {
    private_key_file: Option<PathBuf>,
    #[serde(default)]
    listen: Vec<SocketAddr>,
    metrics: Option<SocketAddr>,
    profile: Option<String>,
}

/// Another machine.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct PeerSection {
    public_key: String,
    endpoint: Option<String>,
    persistent_keepalive: Option<u16>,
    #[serde(default)]
    permit: Vec<String>,
    #[serde(default)]
    local_forward: Vec<String>,
    #[serde(default)]
    remote_forward: Vec<String>,
}

/// A path to the other machine.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct PathSection {
    local: String,
    remote: Option<String>,
    usage: Option<String>,
}

/// What both commands need.
#[derive(Debug)]
pub(super) struct Common {
    pub(super) key: SecretKey,
    pub(super) profile: Profile,
    pub(super) metrics: Option<SocketAddr>,
    pub(super) keepalive: Option<Duration>,
    pub(super) qlogs: Qlogs,
}

/// What `serve` does.
#[derive(Debug)]
pub(super) struct Serve {
    pub(super) common: Common,
    pub(super) listen: Vec<SocketAddr>,
    /// Who may connect, and where to.
    pub(super) peers: Vec<(PublicKey, Arc<[Permit]>)>,
}

/// What `connect` does.
#[derive(Debug)]
pub(super) struct Connect {
    pub(super) common: Common,
    pub(super) peer: PublicKey,
    pub(super) endpoint: Target,
    pub(super) paths: Vec<PathArg>,
    pub(super) local: Vec<Forward>,
    pub(super) remote: Vec<Forward>,
}

/// Settings for `serve`.
pub(super) fn serve(args: &ServeArgs) -> Result<Serve, Failure> {
    let (file, origin) = read(args.common.config.as_deref())?;
    let listen =
        if args.listen.is_empty() { file.interface.listen.clone() } else { args.listen.clone() };
    if listen.is_empty() {
        return Err(Failure::usage("an address to listen on is needed: --listen 0.0.0.0:4433"));
    }
    let default: Vec<Permit> =
        if args.permit.is_empty() { vec![Permit::Loopback] } else { args.permit.clone() };
    let mut peers: Vec<(PublicKey, Arc<[Permit]>)> =
        args.allow.iter().map(|key| (*key, default.clone().into())).collect();
    for peer in &file.peers {
        let own = parsed::<Permit>(&origin, "permit", &peer.permit)?;
        let permits = if own.is_empty() { default.clone() } else { own };
        peers.push((public_key(&origin, &peer.public_key)?, permits.into()));
    }
    if peers.is_empty() {
        return Err(Failure::usage("nobody may connect: name a peer with --allow PUBKEY"));
    }
    let keepalive = file.peers.first().and_then(|peer| peer.persistent_keepalive);
    let common = common("serve", &args.common, &file, keepalive)?;
    Ok(Serve { common, listen, peers })
}

/// Settings for `connect`.
pub(super) fn connect(args: &ConnectArgs) -> Result<Connect, Failure> {
    let (file, origin) = read(args.common.config.as_deref())?;
    let section = match file.peers.as_slice() {
        [] => None,
        [peer] => Some(peer),
        _ => return Err(Failure::usage(format!("{origin}: one [[peer]] can be connected to"))),
    };
    let in_file = section.map(|peer| public_key(&origin, &peer.public_key)).transpose()?;
    let peer = args.peer.or(in_file);
    let peer =
        peer.ok_or_else(|| Failure::usage("the peer's public key is needed: --peer PUBKEY"))?;
    let endpoint = match (&args.to, section.and_then(|peer| peer.endpoint.as_deref())) {
        (Some(target), _) => target.clone(),
        (None, Some(text)) => one::<Target>(&origin, "endpoint", text)?,
        (None, None) => return Err(Failure::usage("the peer's HOST:PORT is needed")),
    };
    let mut paths = args.paths.clone();
    if paths.is_empty() {
        for path in &file.paths {
            let remote = path.remote.iter().map(|remote| format!("@{remote}"));
            let usage = path.usage.iter().map(|usage| format!(",{usage}"));
            let text: String =
                std::iter::once(path.local.clone()).chain(remote).chain(usage).collect();
            paths.push(one(&origin, "path", &text)?);
        }
    }
    let lists = section.map(|peer| (&peer.local_forward, &peer.remote_forward));
    let (mut local, mut remote) = (args.local.clone(), args.remote.clone());
    if let Some((here, there)) = lists.filter(|_| args.stdio.is_none()) {
        local.extend(parsed::<Forward>(&origin, "local-forward", here)?);
        remote.extend(parsed::<Forward>(&origin, "remote-forward", there)?);
    }
    let keepalive = section.and_then(|peer| peer.persistent_keepalive);
    let common = common("connect", &args.common, &file, keepalive)?;
    Ok(Connect { common, peer, endpoint, paths, local, remote })
}

fn common(
    command: &str,
    args: &CommonArgs,
    file: &File,
    keepalive: Option<u16>,
) -> Result<Common, Failure> {
    let path = args.key.as_deref().or(file.interface.private_key_file.as_deref());
    let path = path.ok_or_else(|| {
        Failure::usage(
            "a secret key is needed: --key FILE; `anabranch keygen --out FILE` makes one",
        )
    })?;
    let key = keys::load(path)?;
    let name = args.profile.as_deref().or(file.interface.profile.as_deref()).unwrap_or("anabranch");
    let profile = catalog::profile(name, &[])?;
    let keepalive = match keepalive {
        Some(0) => None,
        Some(seconds) => Some(Duration::from_secs(u64::from(seconds))),
        None => Some(KEEPALIVE),
    };
    let qlogs = Qlogs::new(args.qlog.as_deref(), command)?;
    let metrics = args.metrics.or(file.interface.metrics);
    Ok(Common { key, profile, metrics, keepalive, qlogs })
}

/// The file's settings, and how errors name it.
fn read(path: Option<&Path>) -> Result<(File, String), Failure> {
    let Some(path) = path else { return Ok((File::default(), String::new())) };
    let origin = path.display().to_string();
    let failed = |error: std::io::Error| Failure::failed(format!("cannot read {origin}: {error}"));
    if std::fs::metadata(path).map_err(failed)?.len() > MAX_FILE {
        return Err(Failure::usage(format!("{origin} is too long to be a configuration")));
    }
    let text = std::fs::read_to_string(path).map_err(failed)?;
    let file = parse(&text).map_err(|why| Failure::usage(format!("{origin}{why}")))?;
    Ok((rooted(file, path), origin))
}

/// The key's file is named from the place of the configuration.
fn rooted(mut file: File, config: &Path) -> File {
    if let (Some(key), Some(directory)) = (&mut file.interface.private_key_file, config.parent()) {
        *key = directory.join(&*key);
    }
    file
}

/// Parses a file; an error begins with the place, as `:3: `.
fn parse(text: &str) -> Result<File, String> {
    toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let before = text.get(..at).unwrap_or_default();
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        format!(":{}:{column}: {}", before.matches('\n').count() + 1, error.message())
    })
}

fn public_key(origin: &str, text: &str) -> Result<PublicKey, Failure> {
    parse_public_key(text)
        .map_err(|error| Failure::usage(format!("{origin}: public-key {text}: {error}")))
}

fn one<T: std::str::FromStr<Err: std::fmt::Display>>(
    origin: &str,
    key: &str,
    text: &str,
) -> Result<T, Failure> {
    text.parse().map_err(|error| Failure::usage(format!("{origin}: {key}: {error}")))
}

fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(
    origin: &str,
    key: &str,
    texts: &[String],
) -> Result<Vec<T>, Failure> {
    texts.iter().map(|text| one(origin, key, text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_help_is_read() {
        let text = "[interface]\nprivate-key-file = \"laptop.key\"\n[[peer]]\npublic-key = \"x\"\n\
            endpoint = \"home.example:4433\"\npersistent-keepalive = 15\n\
            local-forward = [\"5432:db:5432\"]\n[[path]]\nlocal = \"wwan0\"\nusage = \"metered\"\n";
        let file = parse(text).unwrap();
        assert_eq!(file.peers[0].persistent_keepalive, Some(15));
        assert_eq!(file.paths[0].usage.as_deref(), Some("metered"));
        let file = rooted(file, Path::new("/etc/anabranch/home.toml"));
        let key = file.interface.private_key_file.unwrap();
        assert_eq!(key, Path::new("/etc/anabranch/laptop.key"));
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        let error = parse("[interface]\nlisten = [\"0.0.0.0:4433\"]\nport = 3\n").unwrap_err();
        assert!(error.starts_with(":3:") && error.contains("port"), "{error}");
        let error = parse("[interface]\nlisten = [\"nowhere\"]\n").unwrap_err();
        assert!(error.starts_with(":2:"), "{error}");
        let error = parse("[[peer]]\n").unwrap_err();
        assert!(error.contains("public-key"), "{error}");
        assert!(parse("= 1").is_err());
    }

    #[test]
    fn lists_name_the_entry_that_is_wrong() {
        let error = parsed::<Permit>("f.toml", "permit", &["loopback".into(), "x".into()]);
        let text = error.unwrap_err().to_string();
        assert!(text.starts_with("f.toml: permit: 'x'"), "{text}");
    }
}
