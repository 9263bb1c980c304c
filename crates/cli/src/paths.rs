//! Chooses the paths of a connection from the command line and the machine's interfaces.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use anabranch::interfaces::Interface;
use anabranch::paths::{LocalRequest, PathRequest};
use tokio::net::lookup_host;

use crate::failure::Failure;
use crate::machine;

/// `--path LOCAL[@REMOTE][,name=NAME][,backup|,metered][,cc=POLICY]`, where REMOTE may be a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathArg {
    /// The argument as it was given.
    text: String,
    /// The path, without its destination.
    request: PathRequest,
    /// `HOST:PORT` or `HOST`.
    remote: Option<String>,
}

impl FromStr for PathArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (way, usage) = text.split_once(',').map_or((text, None), |(w, u)| (w, Some(u)));
        let (local, remote) = way.split_once('@').map_or((way, None), |(l, r)| (l, Some(r)));
        if remote == Some("") {
            return Err("write the destination after the @, such as wlan0@HOST:PORT".to_owned());
        }
        let plain = usage.map_or(local.to_owned(), |usage| format!("{local},{usage}"));
        let request = plain.parse().map_err(|error| format!("{error}"))?;
        Ok(PathArg { text: text.to_owned(), request, remote: remote.map(str::to_owned) })
    }
}

impl fmt::Display for PathArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Destination of a connection, and the paths to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Destination of the paths that have none of their own.
    pub remote: SocketAddr,
    /// The paths to it.
    pub requests: Vec<PathRequest>,
}

impl Route {
    /// Every address that is tried, each once.
    pub fn destinations(&self) -> Vec<SocketAddr> {
        let mut all: Vec<SocketAddr> = Vec::new();
        for request in &self.requests {
            let own = request.remote.iter().chain(&request.choice);
            all.extend(own.filter(|own| !all.contains(own)).copied().collect::<Vec<_>>());
        }
        if all.is_empty() { vec![self.remote] } else { all }
    }

    /// Interfaces and addresses that were asked for and are not there, each once.
    pub fn missing(&self, list: &[Interface]) -> Vec<String> {
        let mut missing: Vec<String> = Vec::new();
        for request in &self.requests {
            let name = match &request.local {
                LocalRequest::Interface(name) if !list.iter().any(|i| i.name == *name) => {
                    name.clone()
                }
                LocalRequest::Address(ip) if machine::interface_of(list, *ip).is_none() => {
                    ip.to_string()
                }
                _ => continue,
            };
            if !missing.contains(&name) {
                missing.push(name);
            }
        }
        missing
    }
}

/// Tells on standard error which of the requested interfaces or addresses are missing, as they may come yet.
pub fn tell_missing(route: &Route) {
    let missing = machine::interfaces().map(|list| route.missing(&list)).unwrap_or_default();
    if !missing.is_empty() {
        let missing = missing.join(", ");
        eprintln!("anabranch: waiting for {missing}, which this machine does not have now");
    }
}

/// The route to a host that was given as HOST:PORT.
pub async fn to_host(host: &str, paths: &[PathArg]) -> Result<Route, Failure> {
    let remotes = resolve(host, None).await?;
    // One IP version is enough: both versions of an interface share its link.
    let routed = remotes.iter().find(|remote| machine::has_route(None, **remote));
    let remote = *routed.or(remotes.first()).ok_or_else(|| no_address(host))?;
    if paths.is_empty() {
        let list = machine::interfaces()?;
        let requests = vec![itself(&list, remote).unwrap_or(PathRequest::ANY)];
        return Ok(Route { remote, requests });
    }
    asked(paths, remote, &remotes).await
}

/// The route to a machine that listens on all of `remotes`, as a ticket lists them.
pub async fn to_addresses(remotes: &[SocketAddr], paths: &[PathArg]) -> Result<Route, Failure> {
    let remote = *remotes.first().ok_or_else(|| no_address("the ticket"))?;
    if paths.is_empty() {
        return Ok(automatic(&machine::interfaces()?, remotes, remote));
    }
    asked(paths, remote, remotes).await
}

/// Pairs each given path with a destination, of the same IP version if the path names a local address.
async fn asked(
    paths: &[PathArg],
    remote: SocketAddr,
    remotes: &[SocketAddr],
) -> Result<Route, Failure> {
    let mut requests = Vec::new();
    for path in paths {
        let own = match &path.remote {
            Some(host) => resolve(host, Some(remote.port())).await?,
            None => remotes.to_vec(),
        };
        let family = match path.request.local {
            LocalRequest::Address(ip) => Some(ip.is_ipv4()),
            LocalRequest::Any | LocalRequest::Interface(_) => None,
        };
        let fits = |remote: &&SocketAddr| family.is_none_or(|v4| v4 == remote.is_ipv4());
        let Some(remote) = own.iter().find(fits) else {
            return Err(Failure::usage(format!(
                "path {}: the local address and the destination are not of the same IP version",
                path.text
            )));
        };
        requests.push(PathRequest { remote: Some(*remote), ..path.request.clone() });
    }
    Ok(Route { remote, requests })
}

/// The path to this machine itself, if `remote` is one of its addresses. The path is bound to the
/// address and not to an interface, because no answer would come back over the interface.
fn itself(list: &[Interface], remote: SocketAddr) -> Option<PathRequest> {
    let interface = machine::interface_of(list, remote.ip())?;
    // A loopback interface has more addresses than it lists; the first one reaches them all.
    let ip = if interface.loopback { interface.source_for(remote.ip())? } else { remote.ip() };
    let local = LocalRequest::Address(ip);
    Some(PathRequest { remote: Some(remote), ..PathRequest::from(local) })
}

/// The path to this machine itself, if one of `remotes` is its address; else every interface with a route to any of
/// them, whether it is there now or comes later.
fn automatic(list: &[Interface], remotes: &[SocketAddr], remote: SocketAddr) -> Route {
    let itself = remotes.iter().find_map(|remote| itself(list, *remote));
    let any = || PathRequest { choice: remotes.to_vec(), ..PathRequest::ANY };
    Route { remote, requests: vec![itself.unwrap_or_else(any)] }
}

/// The addresses of `HOST:PORT`, or of `HOST` with `port`: the first of each family.
async fn resolve(host: &str, port: Option<u16>) -> Result<Vec<SocketAddr>, Failure> {
    if let (Some(ip), Some(port)) = (parse_ip(host), port) {
        return Ok(vec![SocketAddr::new(ip, port)]);
    }
    let with_port = match port {
        Some(port) if !host.contains(':') => format!("{host}:{port}"),
        _ => host.to_owned(),
    };
    let given = with_port.rsplit_once(':').map(|(_, port)| port.parse::<u16>());
    // The end of a bare IPv6 address looks like a port.
    let bare = parse_ip(host).is_some();
    if bare || !given.is_some_and(|port| port.is_ok_and(|port| port > 0)) {
        return Err(Failure::usage(format!("`{host}`: write HOST:PORT, such as nas.example:4433")));
    }
    let found = lookup_host(&with_port).await.map_err(|error| {
        Failure::unreached(format!("cannot find {host}: {error}; check the name"))
    })?;
    let mut first: Vec<SocketAddr> = Vec::new();
    for address in found {
        if !first.iter().any(|other| other.is_ipv4() == address.is_ipv4()) {
            first.push(address);
        }
    }
    if first.is_empty() { Err(no_address(host)) } else { Ok(first) }
}

fn no_address(host: &str) -> Failure {
    Failure::unreached(format!("{host} has no address"))
}

fn parse_ip(text: &str) -> Option<IpAddr> {
    text.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

/// The addresses to listen on for ADDR: an address with or without a port, or an interface's.
pub fn listening(text: &str) -> Result<Vec<SocketAddr>, Failure> {
    let exact = text.parse().ok();
    if let Some(address) = exact.or_else(|| parse_ip(text).map(|ip| SocketAddr::new(ip, 0))) {
        return Ok(vec![address]);
    }
    let list = machine::interfaces()?;
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) => (name, port.parse().ok()),
        None => (text, Some(0)),
    };
    let interface = list.iter().find(|interface| interface.name == name);
    let (Some(interface), Some(port)) = (interface, port) else {
        let names: Vec<&str> = list.iter().map(|interface| interface.name.as_str()).collect();
        return Err(Failure::failed(format!(
            "{text} is neither an address nor an interface of this machine; there are {}",
            names.join(", ")
        )));
    };
    let alone = Interface { running: true, ..interface.clone() };
    Ok(machine::reachable(&[alone]).into_iter().map(|ip| SocketAddr::new(ip, port)).collect())
}

#[cfg(test)]
mod tests;
