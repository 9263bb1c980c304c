//! The side that waits for peers.

use std::sync::Arc;

use anabranch::forward::{self, Permits, Service};
use anabranch::{Config, Connection, Endpoint, Permitted};

use super::config::Serve;
use super::events::{Reporter, TunnelEvent};
use super::metrics::{Metrics, Side};
use super::{FAREWELL, privileges, tell_news};
use crate::confine::is_root;
use crate::failure::Failure;
use crate::interrupt::asked_to_end;
use crate::status::Telling;

pub(super) async fn run(
    (settings, mut config): (Serve, Config),
    user: Option<String>,
    reporter: Reporter,
    telling: Option<&Telling>,
) -> Result<(), Failure> {
    let Serve { common, listen, peers } = settings;
    config.permitted = Permitted::Only(peers.iter().map(|(key, _)| *key).collect());
    let endpoint = Endpoint::bind(config, listen.iter().copied())
        .map_err(|error| Failure::cannot_listen_on(&listen, &error))?;
    let metrics = Metrics::of(peers.iter().map(|(key, _)| (*key, common.names.get(key).cloned())));
    metrics.listen(common.metrics).await?;
    privileges::become_user(user.as_deref())?;
    let addresses = endpoint.local_addrs().iter().map(ToString::to_string).collect();
    let public_key = endpoint.public_key().to_string();
    reporter.say(&TunnelEvent::Serving { addresses, public_key: &public_key });
    if is_root() && !reporter.quiet {
        eprintln!(
            "anabranch: this serves as root, which it does not need: with --user NAME it becomes another user once \
             its sockets are bound"
        );
    }
    let service = Service::default();
    let side = Side {
        command: "serve",
        public_key: endpoint.public_key(),
        listening: endpoint.local_addrs(),
    };
    let mut told = std::pin::pin!(metrics.tell(telling, side));
    loop {
        let connection = tokio::select! {
            connection = endpoint.accept() => connection,
            () = asked_to_end() => None,
            () = &mut told => None,
        };
        let Some(connection) = connection else { break };
        let peer = connection.peer();
        let permits = peers.iter().find(|(key, _)| *key == peer).map(|(_, permits)| permits);
        common.qlogs.follow(&connection, "server");
        let permits = permits.cloned().unwrap_or_default();
        let attending = Attending { connection, permits, service: service.clone() };
        tokio::spawn(attending.run(metrics.clone(), reporter));
    }
    endpoint.close(0, "the server ends");
    // Peers that cannot be told find out by themselves.
    let _ = tokio::time::timeout(FAREWELL, endpoint.wait_idle()).await;
    Ok(())
}

/// A connection to be served, and what its peer may do.
struct Attending {
    connection: Connection,
    permits: Arc<Permits>,
    service: Service,
}

impl Attending {
    /// Serves the connection to its end.
    async fn run(self, metrics: Metrics, reporter: Reporter) {
        let Attending { connection, permits, service } = self;
        let peer = connection.peer().to_string();
        reporter.say(&TunnelEvent::Connected { peer: &peer });
        let watched = metrics.watch(&connection);
        let news = tokio::spawn(tell_news(connection.clone(), reporter));
        let counted = metrics.clone();
        let tell = Arc::new(move |event| {
            counted.count(&event);
            reporter.forward(event);
        });
        let reason = forward::serve(connection, permits, service, tell).await.to_string();
        news.abort();
        metrics.forget(watched);
        reporter.say(&TunnelEvent::Disconnected { peer: &peer, reason });
    }
}
