//! A connection's state under its lock, and the notifications that the application waits for.

use super::{Mailbox, Shared, StreamWaitCounts};
use crate::connection::PathEvent;
use crate::error::ConnectionError;
use crate::log::{self, Voice};
use crate::paths::PathNames;
use anabranch_core::connection::{CloseReason, Connection, ConnectionStats};
use anabranch_core::endpoint::Handle;
use anabranch_core::path::PathAddress;
use anabranch_core::stream::{StreamEvent, StreamId};
use anabranch_core::wire::{Direction, Role};
use anabranch_types::Time;
use core::{fmt, sync::atomic::AtomicBool};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use tokio::sync::Notify;

/// Bytes read at a time when a closed connection's streams are emptied.
const DRAIN_STEP: usize = 1 << 16;

/// A connection, shared by its task and the application's handles.
pub(crate) struct ConnectionShared {
    pub(crate) endpoint: Arc<Shared>,
    pub(crate) handle: Handle,
    state: Mutex<ConnectionState>,
    /// Packets for the connection's task, and the signal that wakes it.
    pub(crate) mailbox: Mailbox,
    pub(crate) wait: Wait,
    pub(crate) stream_waits: StreamWaitCounts,
    /// Set when connections with the peer hold too much memory: the connection's task then closes this one.
    pub(super) takes_too_much: AtomicBool,
}

/// Events that the application can wait for; all are notified when the connection ends.
#[derive(Debug, Default)]
pub(crate) struct Wait {
    /// The connection is answered, or over.
    pub(crate) phase: Notify,
    /// The peer permits a further stream.
    pub(crate) openable: Notify,
    /// The peer has opened a stream.
    pub(crate) incoming: Notify,
    /// Something happened to a path.
    pub(crate) paths: Notify,
    /// The peer falls silent, or is heard again.
    pub(crate) hearing: Notify,
    /// Everything written has arrived.
    pub(crate) drained: Notify,
    /// There is a datagram to read.
    pub(crate) datagram: Notify,
    /// There is space for a datagram to send.
    pub(crate) datagram_space: Notify,
}

impl Wait {
    pub(super) fn notify_all(&self) {
        for one in [
            &self.phase,
            &self.openable,
            &self.incoming,
            &self.paths,
            &self.hearing,
            &self.drained,
            &self.datagram,
            &self.datagram_space,
        ] {
            one.notify_waiters();
        }
    }
}

impl fmt::Debug for ConnectionShared {
    /// Prints the handle only: the endpoint refers back to this connection, which would recurse for ever.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ConnectionShared").field(&self.handle).finish()
    }
}

impl ConnectionShared {
    pub(super) fn new(endpoint: Arc<Shared>, handle: Handle, state: ConnectionState) -> Self {
        ConnectionShared {
            endpoint,
            handle,
            state: Mutex::new(state),
            mailbox: Mailbox::default(),
            wait: Wait::default(),
            stream_waits: StreamWaitCounts::default(),
            takes_too_much: AtomicBool::new(false),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, ConnectionState> {
        // A panic elsewhere under the lock leaves the protocol's state as sound as any error does.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `ask` now and whenever `notify` is notified, until it gives an answer.
    pub(crate) async fn until<T>(
        &self,
        notify: &Notify,
        mut ask: impl FnMut(&mut ConnectionState) -> Option<T>,
    ) -> T {
        loop {
            let notified = notify.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            let answer = ask(&mut self.lock());
            if let Some(answer) = answer {
                return answer;
            }
            notified.await;
        }
    }

    /// Calls `act` with the connection if its handshake was answered and it is not over, and wakes its task,
    /// which sends what `act` may have queued.
    pub(crate) fn act<T>(&self, act: impl FnOnce(&mut Connection) -> T) -> Option<T> {
        let done = self.lock().connection.as_mut().map(act);
        self.mailbox.ring();
        done
    }

    /// Closes the connection. From now on, every use of it gives the reason as an error.
    pub(crate) fn close(self: &Arc<Self>, now: Time, code: u64, reason: &str) {
        let mut state = self.lock();
        state.close(now, code, reason);
        self.dispatch(&mut state, now);
        drop(state);
        self.mailbox.ring();
    }

    /// Takes over the connection of a handshake that has been answered.
    pub(super) fn begin(&self, connection: Connection, now: Time) {
        let mut state = self.lock();
        let asked_for_here = connection.role() == Role::Initiator;
        state.connection = Some(connection);
        if asked_for_here {
            state.tell(log::opened);
            state.phase = Phase::Open;
            if !state.referenced {
                state.close(now, 0, "");
            }
            drop(state);
            self.wait.phase.notify_waiters();
        }
    }

    /// Ends a connection that nobody answered.
    pub(super) fn fail(&self) {
        let mut state = self.lock();
        state.tell(log::unanswered);
        state.phase = Phase::Failed;
        self.end(&mut state);
        drop(state);
        self.wait.phase.notify_waiters();
    }

    /// Gives up a half-open connection; one that is open by now goes on.
    pub(super) fn give_up(&self) {
        let mut state = self.lock();
        match &state.connection {
            Some(connection) if connection.is_established() => {
                self.endpoint.lock().router.on_established(connection);
            }
            _ => {
                state.connection = None;
                state.phase = Phase::Failed;
                self.end(&mut state);
                drop(state);
                self.wait.phase.notify_waiters();
                self.mailbox.ring();
            }
        }
    }

    /// Marks a connection that the core no longer knows as gone: releases its ids, and drops it if unused.
    pub(crate) fn end(&self, state: &mut ConnectionState) {
        if !core::mem::replace(&mut state.gone, true) {
            self.endpoint.on_gone(self.handle);
        }
        self.forget_if_unused(state);
    }

    /// Drops the connection once neither its task nor the application needs it.
    pub(crate) fn forget_if_unused(&self, state: &ConnectionState) {
        if state.gone && !state.referenced {
            self.endpoint.forget(self.handle);
        }
    }

    /// Marks the connection as one that no task serves any more.
    pub(crate) fn stop(&self) {
        let mut state = self.lock();
        state.stopped = true;
        state.wake_streams();
        drop(state);
        self.wait.notify_all();
    }

    /// Takes in a copy of the handshake's answer that came over another path.
    pub(crate) fn path_answered(&self, now: Time, address: PathAddress, payload: &[u8]) {
        self.act(|connection| connection.path_answered(now, address, payload));
    }
}

/// Progress of a connection, from the handshake to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Connecting,
    /// The peer was answered, and has not completed the handshake yet.
    Accepting,
    /// Nobody answered.
    Failed,
    Open,
    Closed(CloseReason),
}

/// A connection as its task and its handles see it.
#[derive(Debug)]
pub(crate) struct ConnectionState {
    /// The core's connection, from the answer of the handshake until there is nothing left to send.
    pub(crate) connection: Option<Connection>,
    pub(crate) phase: Phase,
    /// The application holds the connection.
    pub(crate) referenced: bool,
    /// The core has forgotten the connection.
    pub(crate) gone: bool,
    /// No task serves the connection any more.
    stopped: bool,
    /// Whether it was logged that the peer is silent.
    pub(super) silent: bool,
    pub(crate) streams: BTreeMap<StreamId, StreamState>,
    /// Streams of the peer that the application has not taken yet, of each direction.
    pub(crate) incoming: [VecDeque<StreamId>; 2],
    last_stats: Option<ConnectionStats>,
    /// Where the peer says that it can be reached.
    pub(crate) peer_addresses: Vec<SocketAddr>,
    /// Path events that nobody has asked for yet, the newest only.
    pub(crate) path_events: VecDeque<PathEvent>,
    /// Number of path events so far.
    pub(crate) path_changes: u64,
    /// Names of the connection's paths.
    pub(crate) names: PathNames,
    /// The log of the connection's events.
    pub(crate) voice: Option<Voice>,
    /// Room for one datagram of any length, once one has been read.
    datagram: Vec<u8>,
}

impl ConnectionState {
    pub(crate) fn new(phase: Phase) -> Self {
        ConnectionState {
            connection: None,
            phase,
            referenced: false,
            gone: false,
            stopped: false,
            silent: false,
            streams: BTreeMap::new(),
            incoming: [const { VecDeque::new() }; 2],
            last_stats: None,
            peer_addresses: Vec::new(),
            path_events: VecDeque::new(),
            path_changes: 0,
            names: PathNames::default(),
            voice: None,
            datagram: Vec::new(),
        }
    }

    /// Why the connection cannot be used, if it cannot.
    pub(crate) fn error(&self) -> Option<ConnectionError> {
        match &self.phase {
            Phase::Closed(reason) => Some(ConnectionError::Closed(reason.clone())),
            Phase::Open | Phase::Connecting | Phase::Accepting if !self.stopped => None,
            _ => Some(ConnectionError::Stopped),
        }
    }

    /// The connection, if it can be used.
    pub(crate) fn usable(&mut self) -> Result<&mut Connection, ConnectionError> {
        match self.error() {
            Some(error) => Err(error),
            None => self.connection.as_mut().ok_or(ConnectionError::Stopped),
        }
    }

    pub(crate) fn close(&mut self, now: Time, code: u64, reason: &str) {
        if let Some(connection) = &mut self.connection {
            connection.close(now, code, reason);
        }
    }

    /// Figures as of now, or of the connection's end; `None` if it never began.
    pub(crate) fn stats(&self) -> Option<ConnectionStats> {
        let now = self.connection.as_ref().map(Connection::stats);
        now.or_else(|| self.last_stats.clone())
    }

    /// Adds the state that the halves of a new stream share.
    pub(crate) fn track(&mut self, id: StreamId) {
        let halves = match id.direction() {
            Direction::Bidirectional => 2,
            Direction::Unidirectional => 1,
        };
        self.streams.insert(id, StreamState { halves, ..StreamState::default() });
    }

    /// The next datagram of the peer.
    pub(crate) fn recv_datagram(&mut self) -> Option<Vec<u8>> {
        let connection = self.connection.as_mut()?;
        self.datagram.resize(usize::from(u16::MAX), 0);
        let len = connection.recv_datagram(&mut self.datagram)?;
        Some(self.datagram[..len.min(self.datagram.len())].to_vec())
    }

    pub(super) fn on_stream_event(&mut self, event: StreamEvent, wait: &Wait) {
        match event {
            StreamEvent::Opened(id) => {
                self.track(id);
                self.incoming[id.direction() as usize].push_back(id);
                wait.incoming.notify_waiters();
            }
            StreamEvent::Openable => wait.openable.notify_waiters(),
            StreamEvent::Datagram => wait.datagram.notify_waiters(),
            StreamEvent::DatagramSpace => wait.datagram_space.notify_waiters(),
            StreamEvent::Readable(id) => self.with_stream(id, |stream| wake(&mut stream.reader)),
            StreamEvent::Reset { id, code } => self.with_stream(id, |stream| {
                stream.reset = Some(code);
                wake(&mut stream.reader);
            }),
            StreamEvent::Writable(id) => self.with_stream(id, |stream| wake(&mut stream.writer)),
            StreamEvent::Stopped { id, code } => self.with_stream(id, |stream| {
                stream.stopped = Some(code);
                wake(&mut stream.writer);
                wake(&mut stream.delivery);
            }),
            StreamEvent::Acked(id) => self.with_stream(id, |stream| {
                stream.acked = true;
                wake(&mut stream.delivery);
            }),
        }
    }

    /// Logs something, once there is a log for the connection.
    pub(super) fn tell(&self, what: impl FnOnce(&Voice)) {
        if let Some(voice) = &self.voice {
            what(voice);
        }
    }

    fn with_stream(&mut self, id: StreamId, act: impl FnOnce(&mut StreamState)) {
        if let Some(stream) = self.streams.get_mut(&id) {
            act(stream);
        }
    }

    /// Keeps what outlives the core's memory of the connection: figures, and bytes not read yet.
    pub(super) fn on_closed(&mut self, reason: CloseReason) {
        self.tell(|voice| log::closed(voice, &reason));
        self.phase = Phase::Closed(reason);
        if let Some(connection) = &mut self.connection {
            self.last_stats = Some(connection.stats());
            let mut step = vec![0; DRAIN_STEP];
            for (id, stream) in &mut self.streams {
                let mut rest = Rest::default();
                while let Ok(outcome) = connection.read(*id, &mut step) {
                    rest.bytes.extend(&step[..outcome.n]);
                    rest.finished = outcome.finished;
                    if outcome.finished || outcome.n == 0 {
                        break;
                    }
                }
                stream.rest = Some(rest);
            }
        }
        self.wake_streams();
    }

    fn wake_streams(&mut self) {
        for stream in self.streams.values_mut() {
            wake(&mut stream.reader);
            wake(&mut stream.writer);
            wake(&mut stream.delivery);
        }
    }
}

/// A stream as its halves see it.
#[derive(Debug, Default)]
pub(crate) struct StreamState {
    pub(crate) reader: Option<Waker>,
    pub(crate) writer: Option<Waker>,
    /// Woken when the peer has all of the stream.
    pub(crate) delivery: Option<Waker>,
    /// The peer has all of the stream.
    pub(crate) acked: bool,
    /// The peer's code for reading no more of the stream, kept even if the core has forgotten the stream since.
    pub(crate) stopped: Option<u64>,
    /// The peer's code for abandoning the stream, kept even if the core has forgotten the stream since.
    pub(crate) reset: Option<u64>,
    /// Halves that the application holds or can still take.
    pub(crate) halves: u8,
    /// Bytes left to read when the connection closed.
    pub(crate) rest: Option<Rest>,
}

/// Bytes that outlived their connection.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    pub(crate) bytes: VecDeque<u8>,
    /// The stream ends after these bytes.
    pub(crate) finished: bool,
}

fn wake(waker: &mut Option<Waker>) {
    if let Some(waker) = waker.take() {
        waker.wake();
    }
}
