//! Probes the links to a peer. Each link has a connection of its own, so that every answer comes back over the link
//! that carried the question.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use anabranch::interfaces::{self, Interface};
use anabranch::paths::LocalRequest;
use anabranch::policy::registry::PolicySpec;
use anabranch::{
    Config, ConnectError, Connection, Endpoint, PathId, PathSpec, PathStats, Permitted, Profile,
    PublicKey, Schedule, SecretKey, SocketSpec, TrafficClass,
};
use anabranch_policy::Axis;
use tokio::net::UdpSocket;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use super::args::DoctorArgs;
use super::facts::{Measured, Outcome, Path};
use super::load;
use super::trace::{self, Recorder, Recording};
use crate::failure::Failure;
use crate::paths::Route;
use crate::{catalog, keys, machine};

/// How long a link may take to answer at first. The first message of the handshake is repeated
/// several times meanwhile.
const PATIENCE: Duration = Duration::from_secs(6);
/// Time between one pair of packets and the next. The second packet of a pair makes the peer
/// acknowledge at once, so that round-trip times contain no acknowledgement delay.
const PAIR: Duration = Duration::from_millis(40);
/// Longest wait for the fate of the last packets.
const SETTLE: Duration = Duration::from_secs(2);
/// Longest wait for another machine to say that nothing listens.
const REFUSAL: Duration = Duration::from_millis(500);

/// Results of all links.
#[derive(Debug)]
pub(super) struct Probed {
    /// An ICMP message reported that nothing listens on the port.
    pub(super) refused: bool,
    /// The links, and what was recorded of them if that was asked for.
    pub(super) paths: Vec<(Path, Option<Recording>)>,
}

/// A link that was tried, and its connection, which is still open.
#[derive(Debug)]
struct Tried {
    path: Path,
    connection: Option<Connection>,
    recorder: Recorder,
    recording: Option<Recording>,
}

/// A link to try.
#[derive(Clone, Debug)]
struct Candidate {
    name: String,
    source: IpAddr,
    device: Option<String>,
    remote: SocketAddr,
    /// The routing table has no route to `remote` over `device`.
    astray: bool,
}

/// Tries every link of `route`.
///
/// # Errors
/// When there is no link, or this machine's key cannot be read.
pub(super) async fn examine(
    args: &DoctorArgs,
    peer: PublicKey,
    route: &Route,
) -> Result<Probed, Failure> {
    let secret = match &args.key {
        Some(file) => keys::load(file)?,
        None => SecretKey::generate().map_err(Failure::failed)?,
    };
    let profile = catalog::profile("uncoded", &[])?;
    let schedule = Schedule { give_up: PATIENCE, ..Schedule::default() };
    let permitted = Permitted::Nobody;
    let config = Config { profile, schedule, permitted, ..Config::new(secret) };
    let endpoint = Endpoint::client(config);
    let endpoint = endpoint.map_err(|error| Failure::failed(format!("cannot start: {error}")))?;
    let mut trying = JoinSet::new();
    for (number, candidate) in candidates(&machine::interfaces()?, route)?.into_iter().enumerate() {
        let (endpoint, pings) = (endpoint.clone(), args.pings);
        let (profile, recorder) = trace::recording(catalog::profile("uncoded", &[])?)?;
        trying.spawn(async move {
            let (path, connection) = probe(&endpoint, (peer, profile), &candidate, pings).await;
            (number, Tried { path, connection, recorder, recording: None })
        });
    }
    let mut tried = trying.join_all().await;
    tried.sort_by_key(|(number, _)| *number);
    let mut tried: Vec<Tried> = tried.into_iter().map(|(_, tried)| tried).collect();
    if args.load {
        // The default congestion control, which users have; that of `uncoded` takes every loss for congestion.
        let control = catalog::profile("anabranch", &[])?.policy(Axis::Congestion).clone();
        load_each(&mut tried, &control).await;
    }
    if args.trace.is_some() {
        record_all(&mut tried, Duration::from_secs(args.time)).await;
    }
    for connection in tried.iter().filter_map(|tried| tried.connection.as_ref()) {
        connection.close(0, "examined");
    }
    let silent = !tried.iter().any(|tried| tried.path.outcome == Outcome::Answered);
    let refused = silent && is_refused(route.remote).await;
    let _ = timeout(SETTLE, endpoint.wait_idle()).await;
    let paths = tried.into_iter().map(|tried| (tried.path, tried.recording)).collect();
    Ok(Probed { refused, paths })
}

/// Fills one link after the other, using the congestion control `control`.
async fn load_each(tried: &mut [Tried], control: &PolicySpec) {
    for Tried { path, connection, .. } in tried {
        let (Some(connection), Some(measured)) = (connection, path.measured.as_mut()) else {
            continue;
        };
        match load::fill(connection, control).await {
            Ok(load) => measured.load = Some(load),
            Err(why) => measured.load_failed = Some(why),
        }
    }
}

/// Records all links at the same time, so that events that affect several links at once are
/// recorded as such.
async fn record_all(tried: &mut [Tried], time: Duration) {
    let mut recording = JoinSet::new();
    for (number, Tried { path, connection, recorder, .. }) in tried.iter().enumerate() {
        let (Some(connection), Some(measured)) = (connection.clone(), &path.measured) else {
            continue;
        };
        let (recorder, loss) = (recorder.clone(), measured.loss());
        recording.spawn(async move {
            (number, trace::record(&connection, &recorder, (time, loss)).await)
        });
    }
    for (number, result) in recording.join_all().await {
        let Some(tried) = tried.get_mut(number) else { continue };
        match result {
            Ok(recording) => tried.recording = Some(recording),
            Err(why) => {
                tried.path.measured.iter_mut().for_each(|it| it.trace_failed = Some(why.clone()));
            }
        }
    }
}

/// The links that were asked for, or all that may lead to the peer.
fn candidates(list: &[Interface], route: &Route) -> Result<Vec<Candidate>, Failure> {
    let mut found = Vec::new();
    for request in &route.requests {
        let remote = request.remote.unwrap_or(route.remote);
        for interface in list.iter().filter(|interface| interface.running) {
            let source = match &request.local {
                LocalRequest::Any if interface.loopback != remote.ip().is_loopback() => continue,
                LocalRequest::Interface(name) if *name != interface.name => continue,
                LocalRequest::Address(ip) => interface.addresses.contains(ip).then_some(*ip),
                LocalRequest::Any | LocalRequest::Interface(_) => interface.source_for(remote.ip()),
            };
            let Some(source) = source else { continue };
            let by_address = matches!(request.local, LocalRequest::Address(_));
            let device = (!by_address && !interface.loopback).then(|| interface.name.clone());
            let way = || interfaces::route(remote.ip(), None, Some(interface.index));
            let astray = device.is_some() && matches!(way(), Ok(None));
            // A link that was not named is tried only where the routing table has a route over it.
            if astray && request.local == LocalRequest::Any {
                continue;
            }
            let name = interface.name.clone();
            found.push(Candidate { name, source, device, remote, astray });
        }
    }
    let missing = route.missing(list);
    if found.is_empty() && !missing.is_empty() {
        return Err(Failure::failed(format!("this machine has no {}", missing.join(", "))));
    }
    if found.is_empty() {
        return Err(Failure::unreached(format!(
            "no interface has a route to {}; `anabranch doctor` without a peer tells more",
            route.remote
        )));
    }
    Ok(found)
}

/// Tries one link, to a peer and with a profile. Leaves the connection open.
async fn probe(
    endpoint: &Endpoint,
    to: (PublicKey, Profile),
    candidate: &Candidate,
    pings: u16,
) -> (Path, Option<Connection>) {
    let connected = if candidate.astray {
        Err(Outcome::NoRoute)
    } else {
        connect(endpoint, to, candidate).await
    };
    let (outcome, connection) = match connected {
        Ok(connection) => (Outcome::Answered, Some(connection)),
        Err(outcome) => (outcome, None),
    };
    let measured = match &connection {
        Some(connection) => measure(connection, pings).await,
        None => None,
    };
    let Candidate { name, source, remote, .. } = candidate.clone();
    (Path { name, local: source, remote, outcome, measured }, connection)
}

async fn connect(
    endpoint: &Endpoint,
    (peer, profile): (PublicKey, Profile),
    candidate: &Candidate,
) -> Result<Connection, Outcome> {
    let failed = |error: &dyn std::fmt::Display| Outcome::Failed(error.to_string());
    let local = bind(endpoint, candidate).map_err(|error| failed(&error))?;
    let path = [PathSpec { local, remote: candidate.remote }];
    endpoint.connect_with(peer, path, profile).await.map_err(|error| match error {
        ConnectError::NoAnswer => Outcome::Silent,
        error => failed(&error),
    })
}

/// Opens a socket. It is bound to the interface if the system supports and permits that.
fn bind(endpoint: &Endpoint, candidate: &Candidate) -> io::Result<SocketAddr> {
    let local = SocketAddr::new(candidate.source, 0);
    let bound = endpoint.add_socket(SocketSpec { local, device: candidate.device.clone() });
    match bound {
        Err(error)
            if matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::Unsupported) =>
        {
            endpoint.add_socket(local)
        }
        other => other,
    }
}

/// Sends pairs of packets and waits until each is acknowledged or lost; `None` if the connection ends meanwhile.
async fn measure(connection: &Connection, pings: u16) -> Option<Measured> {
    // Path MTU discovery runs only once data has been sent. Every command ignores a datagram this
    // short.
    connection.send_datagram(&[0], TrafficClass::Bulk).await.ok()?;
    let mut samples = Samples::default();
    let mut ticks = interval(PAIR);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for _ in 0..pings.div_ceil(2) {
        ticks.tick().await;
        samples.take(&only_path(connection)?);
        connection.ping(PathId(0), 2);
    }
    let settled = async {
        while only_path(connection).is_some_and(|path| path.bytes_in_flight > 0) {
            sleep(PAIR / 2).await;
        }
    };
    let _ = timeout(SETTLE, settled).await;
    let path = only_path(connection)?;
    samples.take(&path);
    let counters = &path.counters;
    let lost = counters.lost_packets.saturating_sub(counters.spurious_losses);
    Some(Measured {
        rtt_min_ms: samples.min(),
        rtt_median_ms: samples.median(),
        sent: counters.acked_packets + lost,
        lost,
        peer_sent: path.peer_sent_packets,
        peer_lost: path.peer_sent_packets.saturating_sub(counters.received_packets),
        ecn_sent: path.ecn.sent.min(counters.acked_packets),
        ecn_arrived: path.ecn.arrived,
        ecn_ce: path.ecn.ce,
        mtu: path.mtu,
        mtu_limit: path.mtu_limit,
        load: None,
        load_failed: None,
        trace: None,
        trace_failed: None,
    })
}

/// Statistics of a connection's only path.
pub(super) fn only_path(connection: &Connection) -> Option<PathStats> {
    connection.stats()?.paths.first().copied()
}

/// Round-trip times as they were measured.
#[derive(Debug, Default)]
pub(super) struct Samples {
    seen: u64,
    millis: Vec<f64>,
}

impl Samples {
    /// Adds the path's latest sample, if it is new.
    pub(super) fn take(&mut self, path: &PathStats) {
        if path.rtt.samples > self.seen {
            self.seen = path.rtt.samples;
            self.millis.push(path.rtt.latest.as_secs_f64() * 1e3);
        }
    }

    fn min(&self) -> Option<f64> {
        self.millis.iter().copied().min_by(f64::total_cmp)
    }

    /// Median of the samples, ms.
    pub(super) fn median(&self) -> Option<f64> {
        let mut sorted = self.millis.clone();
        sorted.sort_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied()
    }
}

/// Whether a machine is there and says that nothing listens on the port (ICMP port unreachable). One
/// byte is sent, which endpoints ignore.
async fn is_refused(remote: SocketAddr) -> bool {
    let any: IpAddr = match remote {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let Ok(socket) = UdpSocket::bind(SocketAddr::new(any, 0)).await else { return false };
    if socket.connect(remote).await.is_err() || socket.send(&[0]).await.is_err() {
        return false;
    }
    let answer = timeout(REFUSAL, socket.recv(&mut [0; 1])).await;
    matches!(answer, Ok(Err(error)) if error.kind() == ErrorKind::ConnectionRefused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        let samples = Samples { seen: 3, millis: vec![30.0, 10.0, 20.0] };
        assert_eq!((samples.min(), samples.median()), (Some(10.0), Some(20.0)));
        assert_eq!(Samples::default().median(), None);
    }

    #[tokio::test]
    async fn a_port_on_which_nothing_listens_is_told() {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        assert!(!is_refused(address).await);
        drop(socket);
        assert!(is_refused(address).await);
    }
}
