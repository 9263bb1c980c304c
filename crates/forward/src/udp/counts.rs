use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use super::rate::Rate;

/// Counters of what happened to datagrams. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct DatagramCounters(Arc<Counters>);

/// The counters, shared by all clones.
#[derive(Debug, Default)]
pub(super) struct Counters {
    flows: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
    sent_bytes: AtomicU64,
    received_bytes: AtomicU64,
    no_room: AtomicU64,
    not_connected: AtomicU64,
    no_flow: AtomicU64,
    failed: AtomicU64,
    invalid: AtomicU64,
    rate: Rate,
}

/// Counts of datagrams so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatagramCounts {
    /// Number of flows at present.
    pub flows: u64,
    /// Datagrams passed to the peer.
    pub sent: u64,
    /// Datagrams received from the peer and passed on.
    pub received: u64,
    /// Bytes of those passed to the peer.
    pub sent_bytes: u64,
    /// Bytes of those passed on.
    pub received_bytes: u64,
    /// Datagrams dropped because the connection's send queue was full.
    pub no_room: u64,
    /// Datagrams dropped because the peer was not connected or had not agreed to carry them.
    pub not_connected: u64,
    /// Datagrams dropped because there were too many flows, flows began too fast, or their flow was
    /// forgotten.
    pub no_flow: u64,
    /// Datagrams dropped because they could not be sent.
    pub failed: u64,
    /// Datagrams dropped because they were malformed, fragments, or not from the SOCKS5 client.
    pub invalid: u64,
}

/// Why a datagram is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dropped {
    NoRoom,
    NotConnected,
    NoFlow,
    Failed,
    Invalid,
}

impl DatagramCounters {
    /// Present values of the counters.
    pub fn counts(&self) -> DatagramCounts {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let all = &self.0;
        DatagramCounts {
            flows: of(&all.flows),
            sent: of(&all.sent),
            received: of(&all.received),
            sent_bytes: of(&all.sent_bytes),
            received_bytes: of(&all.received_bytes),
            no_room: of(&all.no_room),
            not_connected: of(&all.not_connected),
            no_flow: of(&all.no_flow),
            failed: of(&all.failed),
            invalid: of(&all.invalid),
        }
    }

    /// A handle to `counters`.
    pub(super) fn of(counters: Arc<Counters>) -> Self {
        DatagramCounters(counters)
    }

    pub(super) fn sent(&self, bytes: usize) {
        self.0.sent.fetch_add(1, Ordering::Relaxed);
        self.0.sent_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn received(&self, bytes: usize) {
        self.0.received.fetch_add(1, Ordering::Relaxed);
        self.0.received_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn dropped(&self, why: Dropped) {
        let counter = match why {
            Dropped::NoRoom => &self.0.no_room,
            Dropped::NotConnected => &self.0.not_connected,
            Dropped::NoFlow => &self.0.no_flow,
            Dropped::Failed => &self.0.failed,
            Dropped::Invalid => &self.0.invalid,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether a peer may begin another flow now.
    pub(super) fn may_begin(&self) -> bool {
        self.0.rate.take()
    }

    /// Counts one more flow until the result is dropped; `None` if there are `most` already.
    pub(super) fn flow(&self, most: usize) -> Option<Counted> {
        let more = |flows: u64| (flows < most as u64).then_some(flows + 1);
        let before = self.0.flows.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        before.ok().map(|_| Counted(self.clone()))
    }
}

/// A counted flow.
#[derive(Debug)]
pub(super) struct Counted(DatagramCounters);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0.flows.fetch_sub(1, Ordering::Relaxed);
    }
}
