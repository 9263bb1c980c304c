use crate::connection::Connection;
use crate::endpoint::Endpoint;
use crate::error::AcceptError;
use crate::shared::Phase;
use anabranch_core::crypto::PublicKey;
use anabranch_core::endpoint::{self as core_endpoint, AcceptConfig};
use core::fmt;
use core::pin::Pin;
use std::net::SocketAddr;

/// A permitted peer that asks for a connection, and has no answer yet.
///
/// `incoming.await` accepts it, as [`accept`](Self::accept) does; dropping it [refuses](Self::refuse) it.
/// Accepting takes a round trip, or up to thirty seconds if the peer goes away meanwhile. So a server of many
/// peers awaits each in a task of its own:
///
/// ```no_run
/// # async fn serve(endpoint: anabranch::Endpoint) {
/// while let Some(incoming) = endpoint.accept().await {
///     tokio::spawn(async move {
///         let connection = incoming.await?;
///         println!("{} is here", connection.peer());
///         Ok::<_, anabranch::AcceptError>(())
///     });
/// }
/// # }
/// ```
///
/// A peer waits for thirty seconds. At most 512 peers wait at a time, and at most 16 from one address or with one
/// key; beyond that, those that have waited longest are given up for new ones.
#[must_use = "dropping it refuses the connection"]
pub struct Incoming {
    endpoint: Endpoint,
    asked: core_endpoint::Incoming,
    decided: bool,
}

impl fmt::Debug for Incoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (peer, remote) = (self.peer(), self.remote_addr());
        f.debug_struct("Incoming")
            .field("peer", &peer)
            .field("remote", &remote)
            .finish_non_exhaustive()
    }
}

impl Incoming {
    pub(crate) fn new(endpoint: Endpoint, asked: core_endpoint::Incoming) -> Self {
        Incoming { endpoint, asked, decided: false }
    }

    /// The peer's public key. The message was made with the secret key, but an eavesdropper may
    /// have sent a copy of it. Only an open [`Connection`] proves that the peer holds the key.
    pub fn peer(&self) -> PublicKey {
        self.asked.peer
    }

    /// Where the peer's message came from.
    pub fn remote_addr(&self) -> SocketAddr {
        self.asked.address.remote
    }

    /// Where the peer's message arrived; `None` if that socket was replaced since.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.endpoint.shared().sockets.local_of(self.asked.address.socket)
    }

    /// Whether the peer has proven that it receives at [`remote_addr`](Self::remote_addr); otherwise the address may
    /// be forged.
    pub fn remote_addr_validated(&self) -> bool {
        self.asked.validated
    }

    /// Configuration that [`accept`](Self::accept) makes the connection from, to be changed for
    /// [`accept_with`](Self::accept_with): the endpoint's profile and limits.
    pub fn config(&self) -> AcceptConfig {
        self.endpoint.shared().accept_config.clone()
    }

    /// Accepts the connection; returns when the peer has answered and the connection is open. Dropping the
    /// future closes the connection.
    ///
    /// # Errors
    /// If the peer does not wait any more, does not answer, or closes the connection.
    pub async fn accept(self) -> Result<Connection, AcceptError> {
        let config = self.config();
        self.accept_with(config).await
    }

    /// Accepts the connection with another profile or other limits than the endpoint's. Packets are never longer than
    /// the endpoint's.
    ///
    /// # Errors
    /// As [`accept`](Self::accept), and if a policy of the profile cannot be made.
    pub async fn accept_with(mut self, config: AcceptConfig) -> Result<Connection, AcceptError> {
        self.decided = true;
        let shared = self.endpoint.shared().accept(&self.asked, config, true)?;
        let connection = Connection::new(shared, self.peer());
        let shared = connection.shared();
        let answer =
            shared.until(&shared.wait.phase, |state| match (&state.phase, state.error()) {
                (Phase::Failed, _) => Some(Err(AcceptError::NoAnswer)),
                (_, Some(error)) => Some(Err(error.into())),
                (Phase::Accepting, None) => None,
                _ => Some(Ok(())),
            });
        answer.await.map(|()| connection.clone())
    }

    /// Refuses the connection. The peer learns of it by a handshake: its [`Endpoint::connect`] succeeds, and the connection
    /// is closed at once. To give a reason, accept it and close it with a code and a text.
    pub fn refuse(self) {
        drop(self);
    }

    /// Answers neither this message nor its copies: the peer gives up after thirty seconds.
    pub fn ignore(mut self) {
        self.decided = true;
        let shared = self.endpoint.shared();
        shared.lock().router.ignore(shared.clock.now(), &self.asked);
    }

    /// Has the peer prove that it receives at [`remote_addr`](Self::remote_addr), which takes a round trip. It then
    /// asks again, with its address [validated](Self::remote_addr_validated). No state is kept for it meanwhile.
    ///
    /// # Errors
    /// If the address is validated already; the error returns the [`Incoming`].
    pub fn retry(mut self) -> Result<(), RetryError> {
        if self.asked.validated {
            return Err(RetryError(Box::new(self)));
        }
        self.decided = true;
        self.endpoint.shared().retry(&self.asked);
        Ok(())
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if !self.decided {
            self.endpoint.shared().refuse(&self.asked);
        }
    }
}

impl IntoFuture for Incoming {
    type Output = Result<Connection, AcceptError>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.accept())
    }
}

/// The peer's address is validated already.
#[derive(Debug, thiserror::Error)]
#[error("the peer's address is already validated: accept or refuse the connection")]
pub struct RetryError(Box<Incoming>);

impl RetryError {
    /// The peer that asks.
    pub fn into_incoming(self) -> Incoming {
        *self.0
    }
}
