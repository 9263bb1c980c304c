//! The tasks that move datagrams between the core and the sockets: one for the endpoint, which receives and handles
//! handshakes, and one for each connection.

mod connection;
mod outbox;

use self::connection::ConnectionDriver;
use self::outbox::Outbox;
use crate::clock::{Clock, wall_clock};
use crate::shared::{ConnectionShared, Letters, Shared};
use crate::socket::{Message, ReceiveBuffers, Socket};
use anabranch_core::path::received::Ecn;
use anabranch_core::path::{PathAddress, SocketId};
use anabranch_core::wire::ConnectionId;
use anabranch_core::wire::header::connection_of;
use anabranch_types::Time;
use core::time::Duration;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::time::{Instant, Sleep};
use tracing::debug;

/// Receive batches taken from one socket before the others and the sending get their turn.
const RECEIVE_TURN: usize = 4;
/// How many connection ids a sorter remembers with their connections.
const REMEMBERED: usize = 4;
/// Rounds of a task before the other tasks of the runtime get their turn.
const ROUNDS: usize = 16;
/// How long a socket that reports an error is left alone.
const ERROR_PAUSE: Duration = Duration::from_millis(100);
/// Even a timer that is due already waits this long, so that no error can make the task spin.
const LEAST_SLEEP: Duration = Duration::from_micros(100);

/// Receives from the sockets; ends when the application has dropped the endpoint and all connections.
pub(crate) struct Driver {
    shared: Arc<Shared>,
    slots: Vec<Slot>,
    buffers: ReceiveBuffers,
    outbox: Outbox,
    /// Largest datagram, bytes.
    largest: usize,
    timer: Timer,
}

/// A socket to receive from.
struct Slot {
    socket: Arc<Socket>,
    /// When receiving failed: not tried again before this time.
    pause: Option<Time>,
}

/// Outcome of a round.
enum Round {
    /// There may be more to receive or to send.
    More,
    /// There is nothing to do until this time, or until something happens.
    Idle(Option<Time>),
    /// The application has dropped the endpoint, and no connection is left.
    Over,
}

impl Driver {
    /// `largest`: the most bytes that a datagram may have.
    pub(crate) fn new(shared: Arc<Shared>, largest: usize) -> Self {
        Driver {
            shared,
            slots: Vec::new(),
            buffers: ReceiveBuffers::new(),
            outbox: Outbox::new(largest),
            largest,
            timer: Timer::new(),
        }
    }

    /// Does one round: receives from all sockets, then sends.
    fn round(&mut self, cx: &mut Context<'_>) -> Round {
        // This only resets the count of rings: the endpoint's task hands messages on and gets none
        // itself.
        self.shared.mailbox.collect(&mut Letters::default());
        self.adopt_sockets();
        let more = self.receive(cx);
        self.outbox.retry(&self.shared.sockets, cx);
        let planned = self.send(cx);
        if self.shared.lock().released && self.shared.is_empty() {
            return Round::Over;
        }
        if more || planned {
            return Round::More;
        }
        let pauses = self.slots.iter().filter_map(|slot| slot.pause);
        let timeout = self.shared.lock().router.next_timeout();
        Round::Idle(pauses.chain(timeout).min())
    }

    fn adopt_sockets(&mut self) {
        for (index, socket) in self.shared.lock().new_sockets.drain(..) {
            let slot = Slot { socket, pause: None };
            match self.slots.get_mut(index) {
                Some(replaced) => *replaced = slot,
                None => self.slots.push(slot),
            }
        }
    }

    /// Passes on what has arrived; true if there may be more.
    fn receive(&mut self, cx: &mut Context<'_>) -> bool {
        let mut more = false;
        for (index, slot) in self.slots.iter_mut().enumerate() {
            if slot.pause.is_some_and(|until| self.shared.clock.now() < until) {
                continue;
            }
            slot.pause = None;
            for turn in 0..RECEIVE_TURN {
                if !self.shared.buffers.has_room(cx.waker()) {
                    return false;
                }
                match slot.socket.poll_recv(cx, &mut self.buffers) {
                    Poll::Pending => break,
                    Poll::Ready(Ok(())) => {
                        let mut sorter = Sorter::new(&self.shared, index, self.largest);
                        self.buffers.messages().for_each(|message| sorter.sort(message));
                        more |= turn + 1 == RECEIVE_TURN;
                    }
                    Poll::Ready(Err(error)) => {
                        debug!(local = %slot.socket.local_addr(), %error, "cannot receive");
                        slot.pause = Some(self.shared.clock.now() + ERROR_PAUSE);
                        break;
                    }
                }
            }
        }
        more
    }

    /// Sends the datagrams of handshakes; true if there were any.
    fn send(&mut self, cx: &mut Context<'_>) -> bool {
        let shared = &self.shared;
        let now = shared.clock.now();
        let mut endpoint = shared.lock();
        let router = &mut endpoint.router;
        if router.next_timeout().is_some_and(|due| due <= now) {
            router.handle_timeout(now);
        }
        let mut batch = shared.buffers.take();
        let planned = self.outbox.plan(&shared.sockets, &mut batch, |writable, room| {
            router.poll_transmit(now, writable, room)
        });
        drop(endpoint);
        start(shared.take_events(now), self.largest);
        if planned {
            self.outbox.send(&shared.sockets, &batch, cx);
        }
        shared.buffers.give(batch);
        planned
    }
}

/// Starts a task for each connection that begins.
fn start(begun: Vec<Arc<ConnectionShared>>, largest: usize) {
    for connection in begun {
        tokio::spawn(ConnectionDriver::new(connection, largest));
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let driver = self.get_mut();
        for _ in 0..ROUNDS {
            match driver.round(cx) {
                Round::More => {}
                Round::Over => return Poll::Ready(()),
                Round::Idle(until) => {
                    if driver.shared.mailbox.is_quiet(cx.waker())
                        && driver.timer.poll(until, &driver.shared.clock, cx).is_pending()
                    {
                        return Poll::Pending;
                    }
                }
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.shared.stop();
    }
}

/// Passes the messages of one socket on to their connections, and those of handshakes to the router.
struct Sorter<'a> {
    shared: &'a Arc<Shared>,
    socket: usize,
    largest: usize,
    /// Local address of the last message, and its socket id: usually the next message has the same.
    port: Option<(Option<IpAddr>, SocketId)>,
    /// The connections of the most recent ids: messages arrive on a few paths in turn, so most of them repeat an id.
    connections: [Option<(ConnectionId, Arc<ConnectionShared>)>; REMEMBERED],
    /// The place in `connections` that is overwritten next.
    place: usize,
}

impl<'a> Sorter<'a> {
    fn new(shared: &'a Arc<Shared>, socket: usize, largest: usize) -> Self {
        let connections = [const { None }; REMEMBERED];
        Sorter { shared, socket, largest, port: None, connections, place: 0 }
    }

    fn sort(&mut self, message: Message<'_>) {
        let Message { remote, local, ecn, stride, len, buffer } = message;
        let Some(socket) = self.port(local) else { return };
        let (address, ecn) = (PathAddress { socket, remote }, Ecn::from_bits(ecn));
        let mut ids = buffer[..len].chunks(stride).map(connection_of);
        let first = ids.next().flatten();
        if let Some(id) = first
            && ids.all(|other| other == Some(id))
        {
            let shared = self.shared;
            if let Some(connection) = self.connection(id) {
                connection.mailbox.post(address, ecn, stride, len, buffer, &shared.buffers);
            }
            return;
        }
        for payload in buffer[..len].chunks(stride) {
            self.handle_alone(address, ecn, payload);
        }
    }

    /// Handles a datagram of a handshake, or one of a message that has datagrams of several connections.
    fn handle_alone(&mut self, address: PathAddress, ecn: Ecn, payload: &[u8]) {
        if let Some(id) = connection_of(payload) {
            if let Some(connection) = self.connection(id) {
                connection.mailbox.post_copy(address, ecn, payload);
            }
            return;
        }
        let now = self.shared.clock.now();
        let mut endpoint = self.shared.lock();
        // The system's clock may have been set since, as after a start without the network.
        endpoint.router.set_wall_clock(now, wall_clock());
        let answered = endpoint.router.handle_datagram(now, address, payload);
        drop(endpoint);
        match answered {
            Some(handle) => {
                if let Some(connection) = self.shared.connection(handle) {
                    connection.path_answered(now, address, payload);
                }
            }
            None => start(self.shared.take_events(now), self.largest),
        }
    }

    fn port(&mut self, local: Option<IpAddr>) -> Option<SocketId> {
        match self.port {
            Some((known, socket)) if known == local => Some(socket),
            _ => {
                let socket = self.shared.sockets.of_address(self.socket, local)?;
                self.port = Some((local, socket));
                Some(socket)
            }
        }
    }

    fn connection(&mut self, id: ConnectionId) -> Option<&ConnectionShared> {
        let is_of =
            |known: &Option<(ConnectionId, _)>| known.as_ref().is_some_and(|(of, _)| *of == id);
        let known = self.connections.iter().position(is_of);
        let place = match known {
            Some(place) => place,
            None => {
                let place = self.place;
                self.connections[place] = Some((id, self.shared.receiver(id)?));
                self.place = (place + 1) % REMEMBERED;
                place
            }
        };
        self.connections[place].as_ref().map(|(_, connection)| connection.as_ref())
    }
}

/// The timer of a task.
struct Timer(Pin<Box<Sleep>>);

impl Timer {
    fn new() -> Self {
        Timer(Box::pin(tokio::time::sleep(Duration::ZERO)))
    }

    /// Ready once `until` has passed; pending for ever if it is `None`.
    fn poll(&mut self, until: Option<Time>, clock: &Clock, cx: &mut Context<'_>) -> Poll<()> {
        let earliest = clock.now() + LEAST_SLEEP;
        let Some(instant) = until.and_then(|time| clock.instant(time.max(earliest))) else {
            return Poll::Pending;
        };
        if self.0.deadline() != instant || self.0.is_elapsed() {
            self.0.as_mut().reset(instant.max(Instant::now()));
        }
        self.0.as_mut().poll(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Endpoint, SecretKey, SocketSpec};
    use std::net::SocketAddr;
    use std::task::Waker;

    #[tokio::test]
    async fn a_socket_added_within_a_round_is_taken_before_any_sleep() {
        let config = Config::new(SecretKey::generate().unwrap());
        let endpoint = Endpoint::bind(config, std::iter::empty::<SocketSpec>()).unwrap();
        let mut driver = Driver::new(Arc::clone(endpoint.shared()), 1500);
        let cx = &mut Context::from_waker(Waker::noop());
        driver.adopt_sockets();
        endpoint.add_socket(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        driver.send(cx);
        assert!(!driver.shared.mailbox.is_quiet(cx.waker()));
        assert!(matches!(driver.round(cx), Round::Idle(None)));
        assert_eq!(driver.slots.len(), 1);
    }
}
