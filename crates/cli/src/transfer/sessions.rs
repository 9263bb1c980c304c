//! Several transfers with allowed peers at the same time.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anabranch::Connection;
use tokio::sync::watch;
use tokio::time::timeout;

/// Longest wait for a transfer whose peer is gone to release its files.
const LET_GO: Duration = Duration::from_secs(10);

/// Most transfers with one peer at a time.
pub(super) const MAX_PER_PEER: usize = 16;

/// The transfers under way.
#[derive(Clone, Debug, Default)]
pub(super) struct Sessions(Arc<Mutex<Vec<Session>>>);

#[derive(Clone, Debug)]
struct Session {
    connection: Connection,
    /// Closed when the transfer ends.
    under_way: watch::Receiver<()>,
}

/// Marks a transfer as under way until this is dropped.
#[derive(Debug)]
pub(super) struct UnderWay {
    _going: watch::Sender<()>,
}

impl Sessions {
    /// Registers a transfer over `connection`. Earlier ones with the same peer whose connections no longer answer,
    /// since the peer has crashed and come back, are ended first, so that they release their files.
    /// `None` if the peer has too many that are alive.
    pub(super) async fn begin(&self, connection: &Connection) -> Option<UnderWay> {
        let (going, under_way) = watch::channel(());
        let earlier = self.add(Session { connection: connection.clone(), under_way });
        let mut alive = 0;
        for mut session in earlier {
            if !session.connection.is_alive().await {
                session.connection.close(0, "");
                // An error says that its `UnderWay` was dropped, which is what this waits for.
                let _ = timeout(LET_GO, session.under_way.changed()).await;
            } else {
                alive += 1;
            }
        }
        (alive < MAX_PER_PEER).then_some(UnderWay { _going: going })
    }

    /// Adds a transfer; returns those with the same peer that are under way.
    fn add(&self, session: Session) -> Vec<Session> {
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|session| session.under_way.has_changed().is_ok());
        let peer = session.connection.peer();
        let same = sessions.iter().filter(|other| other.connection.peer() == peer);
        let earlier = same.cloned().collect();
        sessions.push(session);
        earlier
    }
}
