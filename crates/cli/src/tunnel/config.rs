//! The settings of `serve` and `connect`, from a file and from options.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anabranch::{Profile, PublicKey};
use anabranch_forward::{Dynamic, Forward, Permit, Permits, Target, UdpForward};
use anabranch_types::DataSize;

use super::args::{CommonArgs, ConnectArgs, ServeArgs};
use super::file::{File, Interface, Peer, Text};
use crate::catalog;
use crate::failure::Failure;
use crate::paths::PathArg;
use crate::values::{Listening, Memory, Reached};

/// Interval at which an idle path is asked for a sign of life unless another is set: NATs keep UDP
/// entries for 30 s and more (RFC 4787 §4.3 asks for two minutes; many do not).
const KEEPALIVE: Duration = Duration::from_secs(15);

/// Most TCP connections that a peer may have open at a time unless said otherwise.
const MAX_FORWARDED: u16 = 256;

/// Most addresses that clients are told of: they keep no more (ADD_ADDRESS of the wire format).
const MAX_ANNOUNCED: usize = 16;

/// Settings of both commands.
#[derive(Clone, Debug)]
pub(super) struct Common {
    /// File with the secret key.
    pub(super) key: PathBuf,
    /// Files with the secrets that are shared with peers.
    pub(super) preshared: BTreeMap<PublicKey, PathBuf>,
    /// Names of peers.
    pub(super) names: BTreeMap<PublicKey, String>,
    pub(super) profile: Profile,
    pub(super) metrics: Option<SocketAddr>,
    pub(super) keepalive: Option<Duration>,
    /// Most TCP connections that a peer may have open at a time.
    pub(super) max_forwarded: u16,
    /// Most memory of all connections together, if it is not the default.
    pub(super) max_memory: Option<DataSize>,
}

impl Common {
    /// Takes over from `new` what can be changed in a process that runs.
    fn take(&mut self, new: Common) {
        (self.names, self.preshared) = (new.names, new.preshared);
    }
}

/// Settings of `serve`.
#[derive(Debug)]
pub(super) struct Serve {
    pub(super) common: Common,
    /// Addresses to listen on, one or more.
    pub(super) listen: Vec<SocketAddr>,
    /// Where clients find this side when the address that they know falls silent.
    pub(super) announce: Vec<Reached>,
    /// Peers that may connect, and where to; one or more.
    pub(super) peers: Vec<(PublicKey, Arc<Permits>)>,
}

impl Serve {
    /// Permits of a peer, if it may connect.
    pub(super) fn permits(&self, peer: &PublicKey) -> Option<&Arc<Permits>> {
        self.peers.iter().find(|(key, _)| key == peer).map(|(_, permits)| permits)
    }

    /// Takes over from `new` what can be changed while it is served.
    pub(super) fn take(&mut self, new: Serve) {
        (self.peers, self.announce) = (new.peers, new.announce);
        self.common.take(new.common);
    }

    /// Peers and what they are called.
    pub(super) fn named(&self) -> impl Iterator<Item = (PublicKey, Option<String>)> {
        self.peers.iter().map(|(key, _)| (*key, self.common.names.get(key).cloned()))
    }
}

/// Settings of `connect`.
#[derive(Debug)]
pub(super) struct Connect {
    pub(super) common: Common,
    pub(super) peer: PublicKey,
    pub(super) endpoint: Target,
    pub(super) paths: Vec<PathArg>,
    pub(super) local: Vec<Forward>,
    pub(super) remote: Vec<Forward>,
    pub(super) dynamic: Vec<Dynamic>,
    pub(super) udp: Vec<UdpForward>,
}

impl Connect {
    /// The settings, with everything from `new` that can be changed while the process runs.
    pub(super) fn changed(&self, new: Connect) -> Connect {
        let mut common = self.common.clone();
        common.take(new.common);
        Connect { common, peer: self.peer, ..new }
    }
}

/// Settings for `serve`: options override the file.
pub(super) fn serve(args: &ServeArgs, file: File) -> Result<Serve, Failure> {
    let keepalive = keepalive(&args.common, &file.peers)?;
    let listen = args.listen.iter().map(|Listening(at)| *at).collect();
    let listen: Vec<SocketAddr> = given(listen, &file.interface.listen);
    if listen.is_empty() {
        return Err(Failure::usage("an address to listen on is needed: --listen 0.0.0.0:4433"));
    }
    let announce = given(args.announce.clone(), &plain(file.interface.announce.clone()));
    if announce.len() > MAX_ANNOUNCED {
        return Err(Failure::usage(format!(
            "{} addresses to announce, but clients accept {MAX_ANNOUNCED} at most",
            announce.len()
        )));
    }
    let connect = given(args.permit.clone(), &[Permit::Loopback]);
    let (listen_for, udp) = (args.permit_listen.clone(), args.permit_udp.clone());
    no_sockets(&udp)?;
    let default = Arc::new(Permits { connect, listen: listen_for, udp });
    let mut peers: Vec<(PublicKey, Arc<Permits>)> =
        args.allow.iter().map(|key| (*key, default.clone())).collect();
    let shared = args.common.preshared_key.as_ref();
    let mut preshared: BTreeMap<PublicKey, PathBuf> =
        args.allow.iter().filter_map(|key| Some((*key, shared?.clone()))).collect();
    if shared.is_some() && args.allow.is_empty() {
        return Err(Failure::usage(
            "--preshared-key is for peers that --allow names; a peer of the file has its \
             preshared-key-file there",
        ));
    }
    let mut named = BTreeSet::new();
    let mut names = BTreeMap::new();
    for peer in file.peers {
        if !named.insert(peer.public_key) {
            let key = peer.public_key.to_string();
            return Err(Failure::usage(format!("the file has two peers with the key {key}")));
        }
        let connect = given(plain(peer.permit), &default.connect);
        let listen = given(plain(peer.permit_listen), &default.listen);
        let udp = given(plain(peer.permit_udp), &default.udp);
        no_sockets(&udp)?;
        peers.push((peer.public_key, Arc::new(Permits { connect, listen, udp })));
        names.extend(peer.name.map(|name| (peer.public_key, name)));
        if let Some(file) = peer.preshared_key_file {
            preshared.entry(peer.public_key).or_insert(file);
        }
    }
    if peers.is_empty() {
        return Err(Failure::usage("nobody may connect: name a peer with --allow PUBKEY"));
    }
    let common = common(&args.common, file.interface, keepalive)?;
    Ok(Serve { common: Common { preshared, names, ..common }, listen, announce, peers })
}

/// Refuses Unix sockets as targets of UDP.
fn no_sockets(permits: &[Permit]) -> Result<(), Failure> {
    match permits.iter().find(|it| matches!(it, Permit::Socket(_) | Permit::SocketsIn(_))) {
        Some(socket) => Err(Failure::usage(format!(
            "permit-udp {socket}: UDP leads to no Unix socket; write loopback, any, none, HOST:PORT or HOST:*"
        ))),
        None => Ok(()),
    }
}

/// Interval at which an idle path is asked for a sign of life, if at all: that of the option, or else the
/// one on which the file's peers agree, as an endpoint has one interval for all of its connections.
fn keepalive(args: &CommonArgs, peers: &[Peer]) -> Result<Option<Duration>, Failure> {
    let mut named = peers.iter().filter_map(|peer| peer.persistent_keepalive);
    let first = named.next();
    if args.persistent_keepalive.is_none() && named.any(|other| Some(other) != first) {
        return Err(Failure::usage(
            "the file's peers have different values of persistent-keepalive, but `serve` has one for all: make them equal, or give --persistent-keepalive SECONDS",
        ));
    }
    Ok(match args.persistent_keepalive.or(first) {
        Some(0) => None,
        Some(seconds) => Some(Duration::from_secs(u64::from(seconds))),
        None => Some(KEEPALIVE),
    })
}

/// Settings for `connect`: options override the file.
pub(super) fn connect(args: &ConnectArgs, mut file: File) -> Result<Connect, Failure> {
    if file.peers.len() > 1 {
        return Err(Failure::usage("`connect` takes one peer, but the file has several"));
    }
    let keepalive = keepalive(&args.common, &file.peers)?;
    let section = file.peers.pop();
    let peer = args.peer.or(section.as_ref().map(|peer| peer.public_key));
    let peer =
        peer.ok_or_else(|| Failure::usage("the peer's public key is needed: --peer PUBKEY"))?;
    let (mut local, mut remote) = (args.local.clone(), args.remote.clone());
    let (mut dynamic, mut udp) = (args.dynamic.clone(), args.udp.clone());
    let mut endpoint = args.to.clone();
    let mut shared = args.common.preshared_key.clone();
    let mut names = BTreeMap::new();
    if let Some(section) = section {
        names.extend(section.name.map(|name| (section.public_key, name)));
        // If an option names another peer than the file, the file's secret is not used.
        shared = shared.or(section.preshared_key_file.filter(|_| peer == section.public_key));
        endpoint = endpoint.or(section.endpoint.map(|Text(endpoint)| endpoint));
        if args.stdio.is_none() {
            local.extend(plain(section.local_forward));
            remote.extend(plain(section.remote_forward));
            dynamic.extend(plain(section.dynamic_forward));
            udp.extend(plain(section.udp_forward));
        }
    }
    let endpoint = endpoint.ok_or_else(|| Failure::usage("the peer's HOST:PORT is needed"))?;
    let in_file: Vec<_> = file.paths.into_iter().map(|path| path.0).collect();
    let paths = given(args.paths.clone(), &in_file);
    let common = common(&args.common, file.interface, keepalive)?;
    let preshared = shared.map(|file| (peer, file)).into_iter().collect();
    Ok(Connect {
        common: Common { preshared, names, ..common },
        peer,
        endpoint,
        paths,
        local,
        remote,
        dynamic,
        udp,
    })
}

fn common(
    args: &CommonArgs,
    file: Interface,
    keepalive: Option<Duration>,
) -> Result<Common, Failure> {
    let key = args.key.clone().or(file.private_key_file).ok_or_else(|| {
        Failure::usage(
            "a secret key is needed: --key FILE; `anabranch keygen --out FILE` makes one",
        )
    })?;
    let profile = match (&args.profile, file.profile) {
        (None, Some(profile)) => profile,
        (name, _) => catalog::profile(name.as_deref().unwrap_or("anabranch"), &[])?,
    };
    let max_forwarded = args.max_forwarded.or(file.max_forwarded.map(NonZero::get));
    let max_forwarded = max_forwarded.unwrap_or(MAX_FORWARDED);
    let max_memory = args.max_memory.or(file.max_memory.map(|Text(memory)| memory));
    let max_memory = max_memory.map(|Memory(size)| size);
    let metrics = args.metrics.or(file.metrics);
    let (preshared, names) = (BTreeMap::new(), BTreeMap::new());
    Ok(Common { key, preshared, names, profile, metrics, keepalive, max_forwarded, max_memory })
}

/// `own`, or `usual` if `own` is empty.
fn given<T: Clone>(own: Vec<T>, usual: &[T]) -> Vec<T> {
    if own.is_empty() { usual.to_vec() } else { own }
}

fn plain<T>(texts: Vec<Text<T>>) -> Vec<T> {
    texts.into_iter().map(|Text(value)| value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tunnel::file::parse;
    use crate::tunnel::fuzzing::parsed;

    fn keepalive(options: &[&str], peers: [&str; 2]) -> Result<Option<Duration>, String> {
        let keys =
            ["hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=", &format!("{}=", "A".repeat(43))];
        let peer = |(key, rest)| format!("[[peer]]\npublic-key = \"{key}\"\n{rest}\n");
        let peers: String = keys.into_iter().zip(peers).map(peer).collect();
        let text =
            format!("interface = {{ private-key-file = 'k', listen = ['[::]:1'] }}\n{peers}");
        let options: ServeArgs = parsed(options.iter().map(Into::into).collect());
        let settings = serve(&options, parse(&text).unwrap());
        settings.map(|serve| serve.common.keepalive).map_err(|failure| failure.to_string())
    }

    #[test]
    fn peers_agree_on_signs_of_life_or_the_option_decides() {
        let (five, none) = ("persistent-keepalive = 5", "persistent-keepalive = 0");
        assert_eq!(keepalive(&[], ["", ""]), Ok(Some(KEEPALIVE)));
        assert_eq!(keepalive(&[], ["", five]), Ok(Some(Duration::from_secs(5))));
        assert_eq!(keepalive(&[], [none, none]), Ok(None));
        let error = keepalive(&[], [none, five]).unwrap_err();
        assert!(error.contains("--persistent-keepalive SECONDS"), "{error}");
        let option = ["--persistent-keepalive", "7"];
        assert_eq!(keepalive(&option, [none, five]), Ok(Some(Duration::from_secs(7))));
    }
}
