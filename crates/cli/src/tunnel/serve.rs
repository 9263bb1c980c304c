//! `serve`: the side that accepts peers.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch::{Config, Connection, Endpoint, Permitted, PublicKey};
use anabranch_forward::{self as forward, Grant, Service};

use super::args::ServeArgs;
use super::changes::{Changes, Preshared};
use super::config::{self, Serve};
use super::events::{Reporter, TunnelEvent};
use super::hangup::{Hangup, Hangups};
use super::manager::Manager;
use super::metrics::{Metrics, Side};
use super::voice::Voice;
use super::{FAREWELL, file, preshared, privileges, tell_news};
use crate::arrivals::Arrivals;
use crate::confine::is_root;
use crate::failure::Failure;
use crate::insight::Insight;
use crate::interrupt::{self, asked_to_end};
use crate::output::warn;
use crate::status::Telling;
use crate::values::Reached;

/// Code and reason for closing the connections of a peer that is no longer permitted (`docs/spec/forward-0.md`).
const PERMITTED_NO_MORE: (u64, &str) = (257, "this key is no longer permitted");

pub(super) async fn run(
    args: &ServeArgs,
    (settings, config): (Serve, Config),
    insight: &Insight,
    reporter: Reporter,
    telling: Option<&Telling>,
) -> Result<(), Failure> {
    let mut server = Server::start(settings, config, insight.clone(), reporter).await?;
    privileges::become_user(args.user.as_deref())?;
    let endpoint = server.endpoint.clone();
    let addresses = endpoint.local_addrs().iter().map(ToString::to_string).collect();
    let public_key = endpoint.public_key().to_string();
    // Signals are handled before anything shows that the process runs.
    interrupt::flag();
    let mut hangups = Hangups::listen(args.common.config.as_deref());
    reporter.say(&TunnelEvent::Serving { addresses, public_key: &public_key });
    if is_root() && !reporter.quiet {
        warn(
            "running as root is not needed: --user NAME changes to another user once the sockets \
             are bound",
        );
    }
    let side = Side {
        command: "serve",
        public_key: endpoint.public_key(),
        listening: endpoint.local_addrs(),
    };
    let metrics = server.metrics.clone();
    let mut told = std::pin::pin!(metrics.tell(telling, &side));
    let mut manager = Manager::of_environment();
    manager.ready();
    let arrivals = Arrivals::of(&endpoint);
    loop {
        tokio::select! {
            // New peers, who may come at any rate, have the lowest priority.
            biased;
            () = asked_to_end() => break,
            hangup = hangups.next() => match hangup {
                Hangup::Reload => reporter.reload(&manager, async { server.reload(args) }).await,
                Hangup::End => break,
            },
            () = manager.asks() => {
                // Answers the watchdog only after taking the locks, so not in a deadlock.
                drop(metrics.state(&side));
                manager.works();
            }
            () = &mut told => break,
            connection = arrivals.next() => match connection {
                Some(connection) => server.attend(connection),
                None => break,
            },
        }
    }
    manager.stopping();
    endpoint.close(0, "the server ends");
    // Peers that do not learn of this close their connections after their idle timeouts.
    let _ = tokio::time::timeout(FAREWELL, endpoint.wait_idle()).await;
    Ok(())
}

/// Serves the peers of the settings.
struct Server {
    endpoint: Endpoint,
    settings: Serve,
    preshared: Preshared,
    /// Permissions of each peer.
    grants: BTreeMap<PublicKey, Grant>,
    service: Service,
    metrics: Metrics,
    insight: Insight,
    reporter: Reporter,
    /// A reporter for each peer that has connected.
    voices: BTreeMap<PublicKey, Voice>,
}

impl Server {
    /// Binds the sockets of the settings.
    async fn start(
        settings: Serve,
        mut config: Config,
        insight: Insight,
        reporter: Reporter,
    ) -> Result<Self, Failure> {
        config.permitted = permitted(&settings);
        let preshared = config.preshared.clone();
        let listen = &settings.listen;
        let endpoint = Endpoint::bind(config, listen.iter().copied())
            .map_err(|error| Failure::cannot_listen_on(listen, &error))?;
        let metrics = Metrics::of(settings.named());
        metrics.listen(settings.common.metrics).await?;
        let mut grants = BTreeMap::new();
        for (key, permits) in &settings.peers {
            // If a peer is named twice, its first entry counts.
            grants.entry(*key).or_insert_with(|| permits.clone().into());
        }
        // Twice as many, because connections from before a peer's crash stay open for some seconds
        // after it is back.
        let service = Service::carrying(2 * usize::from(settings.common.max_forwarded));
        let voices = BTreeMap::new();
        Ok(Server {
            endpoint,
            settings,
            preshared,
            grants,
            service,
            metrics,
            insight,
            reporter,
            voices,
        })
    }

    /// Serves a connection to its end.
    fn attend(&mut self, connection: Connection) {
        let Some(grant) = self.grants.get(&connection.peer()).cloned() else {
            // The handshake began before the settings were read again.
            let (code, reason) = PERMITTED_NO_MORE;
            return connection.close(code, reason);
        };
        self.insight.follow(&connection, "server");
        announce(&self.settings.announce, &connection);
        let peer = connection.peer();
        self.metrics.count_datagrams("peer", &peer.to_string(), self.service.datagrams_of(peer));
        let watched = self.metrics.watch(&connection);
        let voice = self.voices.entry(peer).or_insert_with(|| Voice::new(self.reporter, peer));
        let (voice, service) = (voice.clone(), self.service.clone());
        let attending = Attending { connection, grant, service, watched, voice };
        tokio::spawn(attending.run(self.metrics.clone()));
    }

    /// Reads the settings again and applies them. What cannot be changed stays.
    ///
    /// # Errors
    /// If the settings have a mistake: nothing has changed.
    fn reload(&mut self, args: &ServeArgs) -> Result<Changes, Failure> {
        let new = config::serve(args, file::read(args.common.config.as_deref())?)?;
        let secrets = preshared(&new.common)?;
        let mut changes = Changes::of_serve((&self.settings, &self.preshared), (&new, &secrets));
        changes.keep_key(self.endpoint.public_key(), &new.common);
        self.endpoint.set_permitted(permitted(&new));
        self.endpoint.set_preshared(secrets.clone());
        self.metrics.set_peers(new.named());
        self.grants.retain(|key, _| new.permits(key).is_some());
        self.voices.retain(|key, _| new.permits(key).is_some());
        for (key, permits) in new.peers.iter().rev() {
            let grant = self.grants.entry(*key).or_default();
            if *grant.permits() != **permits {
                grant.set((**permits).clone());
            }
        }
        for (key, _) in self.settings.peers.iter().filter(|(key, _)| new.permits(key).is_none()) {
            for connection in self.metrics.connections_of(key) {
                connection.close(PERMITTED_NO_MORE.0, PERMITTED_NO_MORE.1);
            }
            self.metrics.forget_datagrams("peer", &key.to_string());
        }
        self.preshared = secrets;
        self.settings.take(new);
        // A connection sends only the addresses that are new to it.
        for connection in
            self.settings.peers.iter().flat_map(|(key, _)| self.metrics.connections_of(key))
        {
            announce(&self.settings.announce, &connection);
        }
        Ok(changes)
    }
}

/// Tells the peer where else this side is reached.
fn announce(addresses: &[Reached], connection: &Connection) {
    for Reached(address) in addresses {
        connection.announce_address(*address);
    }
}

fn permitted(settings: &Serve) -> Permitted {
    Permitted::Only(settings.peers.iter().map(|(key, _)| *key).collect())
}

/// A connection to be served, and what its peer may do.
struct Attending {
    connection: Connection,
    grant: Grant,
    service: Service,
    /// Number of the connection among those whose metrics are served.
    watched: u64,
    voice: Voice,
}

impl Attending {
    /// Serves the connection to its end.
    async fn run(self, metrics: Metrics) {
        let Attending { connection, grant, service, watched, voice } = self;
        let peer = connection.peer().to_string();
        voice.say(&TunnelEvent::Connected { peer: &peer });
        let (of_news, of_forwards, counted) = (voice.clone(), voice.clone(), metrics.clone());
        let news = tell_news(connection.clone(), move |event| of_news.say(event));
        let news = tokio::spawn(news);
        let tell = Arc::new(move |event| {
            counted.count(&event);
            of_forwards.forward(event);
        });
        let reason = forward::serve(connection, grant, service, tell).await.to_string();
        news.abort();
        metrics.forget(watched);
        voice.say(&TunnelEvent::Disconnected { peer: &peer, reason });
    }
}
