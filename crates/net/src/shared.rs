//! What the driver and the application's handles share: the core behind a lock, and who waits for it.

use crate::clock::Clock;
use crate::connection::PathEvent;
use crate::error::ConnectionError;
use crate::socket::Socket;
use crate::sockets::Ports;
use crate::telling;
use anabranch_core::connection::{CloseReason, ConnectionStats, Event};
use anabranch_core::endpoint::{Endpoint, EndpointEvent, Handle};
use anabranch_core::stream::{StreamEvent, StreamId};
use anabranch_types::Time;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use tokio::sync::Notify;
use tracing::Span;

/// Bytes read at a time when a closed connection's streams are emptied.
const DRAIN_STEP: usize = 1 << 16;

/// News of paths kept for an application that does not ask for them.
const MOST_PATH_EVENTS: usize = 64;

/// State shared by all handles of an endpoint.
#[derive(Debug)]
pub(crate) struct Shared {
    core: Mutex<Core>,
    pub(crate) clock: Clock,
    /// A connection was accepted, or none will be any more.
    pub(crate) incoming: Notify,
    /// The last connection is gone.
    pub(crate) idle: Notify,
}

impl Shared {
    pub(crate) fn new(endpoint: Endpoint, ports: Ports, clock: Clock) -> Self {
        let core = Core {
            endpoint,
            ports,
            connections: BTreeMap::new(),
            incoming: VecDeque::new(),
            new_sockets: Vec::new(),
            driver: None,
            refuses: false,
            released: false,
            stopped: false,
            scratch: vec![0; usize::from(u16::MAX)].into_boxed_slice(),
        };
        Shared { core: Mutex::new(core), clock, incoming: Notify::new(), idle: Notify::new() }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Core> {
        // A panic elsewhere under the lock leaves the protocol's state as sound as any error does.
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes the core's news on to those who wait for it.
    pub(crate) fn dispatch(&self, core: &mut Core, now: Time) {
        while let Some(event) = core.endpoint.poll_event() {
            match event {
                EndpointEvent::Accepted(handle) => self.on_accepted(core, handle, now),
                EndpointEvent::Connected(handle) => {
                    let state = core.state(handle);
                    telling::opened(&state.span);
                    state.phase = Phase::Open;
                    state.news.notify_waiters();
                    if !state.referenced {
                        core.close(handle, now, 0, "");
                    }
                }
                EndpointEvent::ConnectFailed(handle) => {
                    let state = core.state(handle);
                    telling::unanswered(&state.span);
                    state.phase = Phase::Failed;
                    state.gone = true;
                    state.news.notify_waiters();
                    self.forget(core, handle);
                }
                EndpointEvent::Connection(handle, event) => core.on_event(handle, event),
                EndpointEvent::Refused(remote, why) => telling::refused(remote, why),
                EndpointEvent::Gone(handle) => {
                    core.state(handle).gone = true;
                    self.forget(core, handle);
                }
            }
        }
    }

    fn on_accepted(&self, core: &mut Core, handle: Handle, now: Time) {
        if core.refuses {
            core.close(handle, now, 0, "the endpoint accepts no more connections");
            return;
        }
        if let Some(connection) = core.endpoint.connection(handle) {
            let span = telling::connection(handle, &connection.peer(), "server");
            telling::opened(&span);
            core.state(handle).span = span;
        }
        core.state(handle).referenced = true;
        core.incoming.push_back(handle);
        self.incoming.notify_waiters();
    }

    /// Drops what is known of a connection once neither the core nor the application needs it.
    pub(crate) fn forget(&self, core: &mut Core, handle: Handle) {
        if core.connections.get(&handle).is_some_and(|state| state.gone && !state.referenced) {
            core.connections.remove(&handle);
        }
        if core.connections.values().all(|state| state.gone) {
            self.idle.notify_waiters();
        }
        if core.connections.is_empty() {
            core.wake_driver();
        }
    }

    /// The driver has ended: nothing will happen any more.
    pub(crate) fn stop(&self) {
        let mut core = self.lock();
        core.stopped = true;
        for state in core.connections.values_mut() {
            state.wake_all();
        }
        self.incoming.notify_waiters();
        self.idle.notify_waiters();
    }
}

/// The core and its surroundings, under the lock.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) endpoint: Endpoint,
    pub(crate) ports: Ports,
    pub(crate) connections: BTreeMap<Handle, ConnectionState>,
    /// Accepted connections that the application has not taken yet.
    pub(crate) incoming: VecDeque<Handle>,
    /// Sockets that the driver has not taken yet, by their index; one may replace another.
    pub(crate) new_sockets: Vec<(usize, Socket)>,
    pub(crate) driver: Option<Waker>,
    /// No connections are accepted any more.
    pub(crate) refuses: bool,
    /// The application has let go of the endpoint.
    pub(crate) released: bool,
    /// The driver has ended.
    pub(crate) stopped: bool,
    /// Room for one datagram of any length.
    pub(crate) scratch: Box<[u8]>,
}

impl Core {
    /// Makes the driver look at the core again.
    pub(crate) fn wake_driver(&mut self) {
        if let Some(waker) = self.driver.take() {
            waker.wake();
        }
    }

    /// The state of a connection; a new one for a peer's connection that is first heard of.
    pub(crate) fn state(&mut self, handle: Handle) -> &mut ConnectionState {
        self.connections.entry(handle).or_insert_with(|| ConnectionState::new(Phase::Open))
    }

    /// Why a connection cannot be used, if it cannot.
    pub(crate) fn error(&self, handle: Handle) -> Option<ConnectionError> {
        match self.connections.get(&handle).map(|state| &state.phase) {
            Some(Phase::Closed(reason)) => Some(ConnectionError::Closed(reason.clone())),
            Some(Phase::Open | Phase::Connecting) if !self.stopped => None,
            _ => Some(ConnectionError::Stopped),
        }
    }

    pub(crate) fn close(&mut self, handle: Handle, now: Time, code: u64, reason: &str) {
        if let Some(connection) = self.endpoint.connection(handle) {
            connection.close(now, code, reason);
        }
        self.wake_driver();
    }

    fn on_event(&mut self, handle: Handle, event: Event) {
        match event {
            Event::Stream(event) => self.state(handle).on_stream_event(event),
            Event::Closed(reason) => self.on_closed(handle, reason),
            Event::Established | Event::Drained => self.state(handle).news.notify_waiters(),
            Event::PathUp(path) => self.on_path_event(handle, PathEvent::Up(path)),
            Event::PathDown(path) => self.on_path_event(handle, PathEvent::Down(path)),
            Event::PathMoved(path) => self.on_path_event(handle, PathEvent::Moved(path)),
            Event::PathClosed(path) => self.on_path_event(handle, PathEvent::Closed(path)),
        }
    }

    fn on_path_event(&mut self, handle: Handle, event: PathEvent) {
        telling::path(self, handle, event);
        let state = self.state(handle);
        if state.path_events.len() == MOST_PATH_EVENTS {
            state.path_events.pop_front();
        }
        state.path_events.push_back(event);
        state.path_changes += 1;
        state.news.notify_waiters();
    }

    /// Keeps what outlives the core's memory of the connection: figures, and bytes not read yet.
    fn on_closed(&mut self, handle: Handle, reason: CloseReason) {
        let state =
            self.connections.entry(handle).or_insert_with(|| ConnectionState::new(Phase::Open));
        telling::closed(&state.span, &reason);
        state.phase = Phase::Closed(reason);
        if let Some(connection) = self.endpoint.connection(handle) {
            state.last_stats = Some(connection.stats());
            let mut step = vec![0; DRAIN_STEP];
            for (id, stream) in &mut state.streams {
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
        state.wake_all();
    }
}

/// Where a connection stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Connecting,
    /// Nobody answered.
    Failed,
    Open,
    Closed(CloseReason),
}

/// A connection as its handles see it.
#[derive(Debug)]
pub(crate) struct ConnectionState {
    pub(crate) phase: Phase,
    /// The application holds it, or it waits to be accepted.
    pub(crate) referenced: bool,
    /// The core has forgotten it.
    pub(crate) gone: bool,
    pub(crate) streams: BTreeMap<StreamId, StreamState>,
    /// Streams of the peer that the application has not taken yet.
    pub(crate) incoming: VecDeque<StreamId>,
    /// Anything but datagrams and streams in use.
    pub(crate) news: Arc<Notify>,
    /// Datagrams to read, or space for more.
    pub(crate) datagrams: Arc<Notify>,
    pub(crate) last_stats: Option<ConnectionStats>,
    /// What happened to paths and nobody has asked for yet, the newest only.
    pub(crate) path_events: VecDeque<PathEvent>,
    /// How many there have been.
    pub(crate) path_changes: u64,
    /// Under which its events are told.
    pub(crate) span: Span,
}

impl ConnectionState {
    pub(crate) fn new(phase: Phase) -> Self {
        ConnectionState {
            phase,
            referenced: false,
            gone: false,
            streams: BTreeMap::new(),
            incoming: VecDeque::new(),
            news: Arc::new(Notify::new()),
            datagrams: Arc::new(Notify::new()),
            last_stats: None,
            path_events: VecDeque::new(),
            path_changes: 0,
            span: Span::none(),
        }
    }

    fn on_stream_event(&mut self, event: StreamEvent) {
        match event {
            StreamEvent::Opened(id) => {
                self.streams.entry(id).or_default();
                self.incoming.push_back(id);
                self.news.notify_waiters();
            }
            StreamEvent::Openable => self.news.notify_waiters(),
            StreamEvent::Datagram | StreamEvent::DatagramSpace => self.datagrams.notify_waiters(),
            StreamEvent::Readable(id) => {
                self.with_stream(id, |stream| wake(&mut stream.reader));
            }
            StreamEvent::Reset { id, code } => self.with_stream(id, |stream| {
                stream.reset = Some(code);
                wake(&mut stream.reader);
            }),
            StreamEvent::Writable(id) => self.with_stream(id, |stream| wake(&mut stream.writer)),
            StreamEvent::Stopped { id, .. } => {
                self.with_stream(id, |stream| wake(&mut stream.writer));
                self.news.notify_waiters();
            }
            StreamEvent::Acked(id) => {
                self.with_stream(id, |stream| stream.acked = true);
                self.news.notify_waiters();
            }
        }
    }

    fn with_stream(&mut self, id: StreamId, act: impl FnOnce(&mut StreamState)) {
        if let Some(stream) = self.streams.get_mut(&id) {
            act(stream);
        }
    }

    fn wake_all(&mut self) {
        for stream in self.streams.values_mut() {
            wake(&mut stream.reader);
            wake(&mut stream.writer);
        }
        self.news.notify_waiters();
        self.datagrams.notify_waiters();
    }
}

/// A stream as its halves see it.
#[derive(Debug, Default)]
pub(crate) struct StreamState {
    pub(crate) reader: Option<Waker>,
    pub(crate) writer: Option<Waker>,
    /// The peer has all of it.
    pub(crate) acked: bool,
    /// The peer has abandoned it, and why: told even if the core has forgotten the stream since.
    pub(crate) reset: Option<u64>,
    /// Halves that the application has dropped.
    pub(crate) dropped: u8,
    /// What was left to read when the connection closed.
    pub(crate) rest: Option<Rest>,
}

/// Bytes that outlived their connection.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    pub(crate) bytes: VecDeque<u8>,
    /// The stream ends after them.
    pub(crate) finished: bool,
}

fn wake(waker: &mut Option<Waker>) {
    if let Some(waker) = waker.take() {
        waker.wake();
    }
}
