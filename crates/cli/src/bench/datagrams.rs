//! Datagram traffic: sent at a fixed rate or as fast as possible, and counted at the receiver.

use std::future::pending;
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anabranch::{Connection, DatagramError, RecvStream, SendStream, TrafficClass};
use tokio::io::AsyncReadExt;
use tokio::time::{Instant, sleep, timeout_at};

use super::inbox::{HEAD, Inbox, head};
use super::traffic::{Budget, Done, Meter};

/// Datagrams sent and received by one side.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    sent: Arc<AtomicU64>,
    inbox: Arc<Mutex<Inbox>>,
}

impl Counts {
    /// Datagrams sent.
    pub(super) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Counters of the datagrams received.
    pub(super) fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends datagrams, and at the end their number on `stream`, which is reliable.
pub(super) async fn send(
    connection: Connection,
    mut stream: SendStream,
    (meter, counts): (Arc<Meter>, Counts),
    budget: Budget,
    started: Instant,
) -> io::Result<Done> {
    let mut size = room(&connection)?;
    let mut datagram = vec![0x5a; size];
    let mut number = 0;
    while Instant::now() < budget.deadline {
        let Some(bytes) = budget.take(size) else { break };
        if timeout_at(budget.deadline, budget.pace(bytes)).await.is_err() {
            break;
        }
        datagram.resize(bytes.max(HEAD), 0x5a);
        if let Some(place) = datagram.get_mut(..HEAD) {
            place.copy_from_slice(&head(number, started.elapsed()));
        }
        let sending = connection.send_datagram(&datagram, TrafficClass::Live);
        match timeout_at(budget.deadline, sending).await {
            Err(_) => break,
            Ok(Ok(())) => {
                number += 1;
                counts.sent.store(number, Ordering::Relaxed);
                meter.sent.fetch_add(datagram.len() as u64, Ordering::Relaxed);
            }
            // A path with a smaller MTU has joined.
            Ok(Err(DatagramError::TooLong)) => size = room(&connection)?.min(size - 1),
            Ok(Err(error)) => return Err(io::Error::other(error)),
        }
    }
    let took = started.elapsed();
    stream.write_all(&number.to_le_bytes()).await?;
    stream.finish()?;
    stream.acked().await?;
    Ok(Done::Sent(took))
}

/// Longest datagram of the connection, bytes; an error if the header of `bench` does not fit into it.
fn room(connection: &Connection) -> io::Result<usize> {
    let most = connection.max_datagram_size().ok_or(io::ErrorKind::ConnectionAborted)?;
    if most > HEAD { Ok(most) } else { Err(io::Error::other("no path carries datagrams")) }
}

/// Counts datagrams until all that the other side has announced are here, or none has come for a while.
pub(super) async fn receive(
    connection: Connection,
    stream: RecvStream,
    (meter, counts): (Arc<Meter>, Counts),
    started: Instant,
) -> io::Result<Done> {
    let mut total = pin!(total(stream));
    let (mut last, mut ended) = (Duration::ZERO, false);
    loop {
        let quiet = async {
            match ended {
                true => sleep(grace(&connection)).await,
                false => pending().await,
            }
        };
        tokio::select! {
            datagram = connection.recv_datagram() => {
                let datagram = datagram?;
                last = started.elapsed();
                counts.inbox().take(&datagram, last);
                meter.received.fetch_add(datagram.len() as u64, Ordering::Relaxed);
            }
            said = &mut total, if !ended => {
                counts.inbox().expect(said?);
                ended = true;
            }
            () = quiet => break,
        }
        if counts.inbox().is_complete() {
            break;
        }
    }
    Ok(Done::Received(last))
}

/// How many datagrams the other side says it has sent; 0 if it does not say.
async fn total(mut stream: RecvStream) -> io::Result<u64> {
    match stream.read_u64_le().await {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
        result => result,
    }
}

/// Silence after which no further datagram is expected.
fn grace(connection: &Connection) -> Duration {
    let paths = connection.named_paths();
    let slowest = paths.iter().map(|path| path.stats.rtt.smoothed).max().unwrap_or_default();
    (slowest * 3).clamp(Duration::from_millis(200), Duration::from_secs(2))
}
