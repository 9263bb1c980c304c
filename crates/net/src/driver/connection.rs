//! The task of one connection.

use super::{ROUNDS, Timer, outbox::Outbox};
use crate::buffers::Buffer;
use crate::shared::{ConnectionShared, ConnectionState, Letters};
use anabranch_core::connection::Connection;
use anabranch_types::Time;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Most datagrams of a train. Systems that segment take at least as many.
const MOST_SEGMENTS: usize = 64;

/// Passes packets between a connection and the sockets, until the connection is over.
pub(super) struct ConnectionDriver {
    shared: Arc<ConnectionShared>,
    outbox: Outbox,
    letters: Letters,
    timer: Timer,
    coalescing: Coalescing,
}

/// Yields to other tasks after the application has rung, so that what they write leaves in the same packets.
/// Otherwise the runtime runs a connection's task right after the first task that rings.
#[derive(Default)]
struct Coalescing {
    /// Set while this task has yielded: how often the application had rung before.
    yielded_at: Option<u32>,
    /// How many of the last yields in a row brought no further ring.
    in_vain: u32,
    /// How often this task has been woken by rings since the last yield.
    wakeups: u32,
}

/// If a single task writes, yielding costs more than it gains. So after n yields in vain, 2^n wakeups pass before the
/// next yield, with n up to this.
const MOST_DOUBLINGS: u32 = 9;
/// If this many bytes wait to be sent, packets are full without yielding.
const ENOUGH: u64 = 16 << 10;

impl Coalescing {
    /// Whether to yield now. The application has rung `rings` times, 0 if packets have arrived, and has `waiting` bytes to
    /// send.
    fn yields(&mut self, rings: u32, waiting: impl FnOnce() -> u64) -> bool {
        if let Some(before) = self.yielded_at.take() {
            self.in_vain = if rings > before { 0 } else { self.in_vain + 1 };
            self.wakeups = 0;
            return false;
        }
        if rings == 0 {
            return false;
        }
        self.wakeups += 1;
        if self.in_vain > 0 && self.wakeups <= 1 << self.in_vain.min(MOST_DOUBLINGS) {
            return false;
        }
        let yields = waiting() < ENOUGH;
        self.yielded_at = yields.then_some(rings);
        yields
    }
}

/// Outcome of a round.
enum Round {
    /// Datagrams were sent, and there may be more.
    Sent,
    /// There is nothing to do until this time, or until something happens.
    Idle(Option<Time>),
    /// The connection is over.
    Over,
}

impl ConnectionDriver {
    /// `largest`: the most bytes that a datagram may have.
    pub(super) fn new(shared: Arc<ConnectionShared>, largest: usize) -> Self {
        ConnectionDriver {
            shared,
            outbox: Outbox::new(largest),
            letters: Letters::default(),
            timer: Timer::new(),
            coalescing: Coalescing::default(),
        }
    }

    fn rounds(&mut self, batch: &mut Buffer, cx: &mut Context<'_>) -> Poll<()> {
        for _ in 0..ROUNDS {
            match self.round(batch, cx) {
                Round::Sent => {}
                Round::Over => return Poll::Ready(()),
                Round::Idle(until) => {
                    let shared = &self.shared;
                    if shared.mailbox.is_quiet(cx.waker())
                        && self.timer.poll(until, &shared.endpoint.clock, cx).is_pending()
                    {
                        return Poll::Pending;
                    }
                }
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn round(&mut self, batch: &mut Buffer, cx: &mut Context<'_>) -> Round {
        let shared = Arc::clone(&self.shared);
        let endpoint = &shared.endpoint;
        shared.mailbox.collect(&mut self.letters);
        self.outbox.retry(&endpoint.sockets, cx);
        let mut state = shared.lock();
        let now = endpoint.clock.now();
        let round = self.work(&mut state, batch, now);
        drop(state);
        self.letters.recycle(&endpoint.buffers);
        if let Round::Sent = round {
            self.outbox.send(&endpoint.sockets, batch, cx);
        }
        round
    }

    /// Lets the connection take in what has arrived and what is due, and plans what it sends.
    fn work(&mut self, state: &mut ConnectionState, batch: &mut Buffer, now: Time) -> Round {
        let ConnectionDriver { shared, outbox, letters, .. } = self;
        let Some(connection) = &mut state.connection else { return Round::Over };
        letters.open(|address, ecn, payload| {
            connection.handle_packet(now, address, ecn, payload);
        });
        shared.weigh(connection, now);
        if next_timeout(connection).is_some_and(|due| due <= now) {
            connection.handle_timeout(now);
            if connection.is_gone(now) {
                shared.dispatch(state, now);
                state.connection = None;
                shared.end(state);
                return Round::Over;
            }
        }
        shared.dispatch(state, now);
        let Some(connection) = &mut state.connection else { return Round::Over };
        let some = outbox.plan(&shared.endpoint.sockets, batch, |writable, room| {
            connection.poll_train(now, writable, room, MOST_SEGMENTS)
        });
        // Sending can cause events, as when the core gives the connection up.
        shared.dispatch(state, now);
        match &state.connection {
            Some(_) if some => Round::Sent,
            Some(connection) => Round::Idle(next_timeout(connection)),
            None => Round::Over,
        }
    }
}

fn next_timeout(connection: &Connection) -> Option<Time> {
    connection.next_timeout().map(|(time, _)| time)
}

impl Future for ConnectionDriver {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let driver = self.get_mut();
        let ConnectionDriver { shared, coalescing, .. } = &mut *driver;
        let waiting = || shared.lock().connection.as_ref().map_or(0, Connection::waiting_bytes);
        if coalescing.yields(shared.mailbox.rings(), waiting) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let shared = Arc::clone(&driver.shared);
        let buffers = &shared.endpoint.buffers;
        let mut batch = buffers.take();
        let poll = driver.rounds(&mut batch, cx);
        buffers.give(batch);
        poll
    }
}

impl Drop for ConnectionDriver {
    fn drop(&mut self) {
        self.shared.mailbox.close().recycle(&self.shared.endpoint.buffers);
        self.letters.recycle(&self.shared.endpoint.buffers);
        self.shared.stop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_yields_where_others_ring_meanwhile() {
        let mut coalescing = Coalescing::default();
        assert!(!coalescing.yields(0, || 0), "nobody rang");
        for _ in 0..100 {
            assert!(coalescing.yields(1, || 7));
            assert!(!coalescing.yields(3, || 1 << 20), "once");
            assert!(!coalescing.yields(1, || 1 << 20), "much waits");
        }
    }

    #[test]
    fn it_seldom_yields_in_vain() {
        let mut coalescing = Coalescing::default();
        let mut given = 0;
        for _ in 0..1022 + 10 + 10 * 513 {
            if coalescing.yields(1, || 7) {
                given += 1;
                assert!(!coalescing.yields(1, || 7));
            }
        }
        assert_eq!(given, 20);
    }
}
