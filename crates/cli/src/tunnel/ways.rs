//! The forwards of `connect`: where it accepts TCP connections and UDP datagrams, where it has its peer accept
//! connections, and how these change while it runs.

use std::fmt;
use std::future::Future;
use std::path::PathBuf;

use anabranch_forward::{
    DatagramListener, Dynamic, Forward, Link, Listener, Place, UdpForward, listen_for_datagrams,
    listen_for_socks, listen_here, listen_there,
};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};

use super::config::Connect;
use super::events::{Reporter, TunnelEvent, protocol_of};
use super::metrics::Metrics;
use crate::failure::Failure;

/// A forward of `connect`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Local(Forward),
    Dynamic(Dynamic),
    Remote(Forward),
    Udp(UdpForward),
}

/// A listener bound on this side.
#[derive(Debug)]
enum Bound {
    Tcp(Listener),
    Udp(DatagramListener),
}

impl Bound {
    fn local(&self) -> std::io::Result<Place> {
        match self {
            Bound::Tcp(listener) => listener.local(),
            Bound::Udp(listener) => listener.local_addr().map(Place::from),
        }
    }

    async fn run_until(self, link: Link, over: impl Future<Output = ()>) -> Self {
        match self {
            Bound::Tcp(listener) => Bound::Tcp(listener.run_until(link, over).await),
            Bound::Udp(listener) => Bound::Udp(listener.run_until(link, over).await),
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Way::Local(forward) => write!(f, "local-forward {forward}"),
            Way::Dynamic(dynamic) => write!(f, "dynamic-forward {dynamic}"),
            Way::Remote(forward) => write!(f, "remote-forward {forward}"),
            Way::Udp(forward) => write!(f, "udp-forward {forward}"),
        }
    }
}

impl Way {
    /// All forwards that the settings name.
    pub(super) fn all(settings: &Connect) -> Vec<Way> {
        let Connect { local, dynamic, remote, udp, .. } = settings;
        let local = local.iter().cloned().map(Way::Local);
        let dynamic = dynamic.iter().cloned().map(Way::Dynamic);
        let remote = remote.iter().cloned().map(Way::Remote);
        local.chain(dynamic).chain(remote).chain(udp.iter().cloned().map(Way::Udp)).collect()
    }

    /// Where this side listens for the forward, if it does, and whether it does so for UDP.
    fn bind(&self) -> Option<(Place, bool)> {
        match self {
            Way::Local(forward) => Some((forward.bind.clone(), false)),
            Way::Dynamic(dynamic) => Some((Place::Port(dynamic.bind.clone()), false)),
            Way::Udp(forward) => Some((Place::Port(forward.bind.clone()), true)),
            Way::Remote(_) => None,
        }
    }

    /// Binds the listener on this side; `None` if only the peer listens.
    async fn listen(&self) -> Result<Option<Bound>, Failure> {
        let Some((bind, _)) = self.bind() else { return Ok(None) };
        let bound = match self {
            Way::Local(forward) => listen_here(forward).await.map(Bound::Tcp),
            Way::Dynamic(dynamic) => listen_for_socks(dynamic).await.map(Bound::Tcp),
            Way::Udp(forward) => listen_for_datagrams(forward).await.map(Bound::Udp),
            Way::Remote(_) => return Ok(None),
        };
        bound.map(Some).map_err(|error| Failure::cannot_listen(bind, &error))
    }

    /// Makes connections that are accepted from now on go to this forward's target.
    fn lead(&self, bound: Bound) -> Bound {
        match (self, bound) {
            (Way::Local(forward), Bound::Tcp(listener)) => Bound::Tcp(listener.leading(forward)),
            (Way::Dynamic(dynamic), Bound::Tcp(listener)) => {
                Bound::Tcp(listener.for_socks(dynamic))
            }
            (Way::Udp(forward), Bound::Udp(listener)) => Bound::Udp(listener.leading(forward)),
            (_, bound) => bound,
        }
    }
}

/// The directories of the Unix sockets among `places`.
pub(super) fn directories<'a>(places: impl IntoIterator<Item = &'a Place>) -> Vec<PathBuf> {
    let sockets = places.into_iter().filter_map(|place| match place {
        Place::Socket(path) => path.absolute().parent().map(PathBuf::from),
        Place::Port(_) => None,
    });
    sockets.collect()
}

/// The forwards that are open, over one link.
#[derive(Debug)]
pub(super) struct Ways {
    link: Link,
    reporter: Reporter,
    metrics: Metrics,
    open: Vec<Open>,
    /// Tasks of the forwards for which the peer listens.
    there: JoinSet<()>,
}

/// A forward that is open.
#[derive(Debug)]
struct Open {
    way: Way,
    end: End,
}

/// How a forward is closed.
#[derive(Debug)]
enum End {
    Here(oneshot::Sender<()>, JoinHandle<Bound>),
    There(tokio::task::AbortHandle),
}

impl Ways {
    /// Forwards over `link`, none of them open yet.
    pub(super) fn new(link: Link, reporter: Reporter, metrics: Metrics) -> Self {
        Ways { link, reporter, metrics, open: Vec::new(), there: JoinSet::new() }
    }

    /// Opens the forwards of `ways` that are not open, and closes all others; connections that these carry go on.
    ///
    /// # Errors
    /// If a forward cannot be opened: all stay as they were.
    pub(super) async fn set(&mut self, ways: &[Way]) -> Result<(), Failure> {
        let mut old = std::mem::take(&mut self.open);
        let mut added = Vec::new();
        for way in ways {
            match old.iter().position(|open| open.way == *way) {
                Some(at) => self.open.push(old.swap_remove(at)),
                None => added.push(way.clone()),
            }
        }
        let mut bound = Vec::new();
        let mut changed = Vec::new();
        for way in added {
            let same = |open: &Open| open.way.bind().is_some() && open.way.bind() == way.bind();
            match old.iter().position(same) {
                // The socket stays open meanwhile.
                Some(at) => changed.push((old.swap_remove(at), way)),
                None => match way.listen().await {
                    Ok(listener) => bound.push((way, listener)),
                    Err(failure) => {
                        self.open.extend(old.into_iter().chain(changed.into_iter().map(|it| it.0)));
                        return Err(failure);
                    }
                },
            }
        }
        for open in old {
            self.end(open).await;
        }
        for (open, way) in changed {
            bound.extend(self.end(open).await.map(|listener| (way, Some(listener))));
        }
        bound.into_iter().try_for_each(|(way, listener)| self.begin(way, listener))
    }

    fn begin(&mut self, way: Way, listener: Option<Bound>) -> Result<(), Failure> {
        let end = match (listener, &way) {
            (Some(listener), _) => {
                let listener = way.lead(listener);
                self.say(&way, &listener)?;
                if let Some(name) = counted(&way) {
                    let counters = match &listener {
                        Bound::Udp(listener) => listener.counters(),
                        Bound::Tcp(listener) => listener.counters(),
                    };
                    self.metrics.count_datagrams("forward", &name, counters);
                }
                let (end, ended) = oneshot::channel();
                let over = async { drop(ended.await) };
                End::Here(end, tokio::spawn(listener.run_until(self.link.clone(), over)))
            }
            (None, Way::Remote(forward)) => {
                End::There(self.there.spawn(listen_there(self.link.clone(), forward.clone())))
            }
            (None, _) => return Ok(()),
        };
        self.open.push(Open { way, end });
        Ok(())
    }

    /// Stops listening; returns the listener on this side, if there is one.
    async fn end(&self, open: Open) -> Option<Bound> {
        if let Some(name) = counted(&open.way) {
            self.metrics.forget_datagrams("forward", &name);
        }
        match open.end {
            End::Here(end, listener) => {
                let _ = end.send(());
                listener.await.ok()
            }
            End::There(task) => {
                task.abort();
                None
            }
        }
    }

    fn say(&self, way: &Way, listener: &Bound) -> Result<(), Failure> {
        let place = listener.local().map_err(Failure::failed)?;
        let (target, protocol) = match way {
            Way::Udp(forward) => (forward.target.to_string(), "udp"),
            Way::Local(forward) => (forward.target.to_string(), protocol_of(&place)),
            _ => ("where SOCKS5 clients ask".to_owned(), "tcp"),
        };
        let address = place.to_string();
        self.reporter.say(&TunnelEvent::Listening { address, target, protocol });
        Ok(())
    }
}

/// The name under which metrics count the datagrams of `way`, if it carries any.
fn counted(way: &Way) -> Option<String> {
    match way {
        Way::Udp(forward) => Some(forward.to_string()),
        Way::Dynamic(dynamic) => Some(dynamic.to_string()),
        _ => None,
    }
}
