//! Accepted connections whose peers have not yet proven that they have the keys.

use std::collections::VecDeque;

use anabranch_types::Time;
use core::time::Duration;

use crate::crypto::PublicKey;
use crate::handshake::Source;

/// Longest time for which a half-open connection is not given up for another. Any honest peer on
/// earth answers sooner, unless packets are lost.
const GRACE: Duration = Duration::from_secs(2);

/// A half-open connection is given up after this time. Initiators give up after the same time.
pub(super) const LIFETIME: Duration = Duration::from_secs(30);

/// Whether there is room for one more half-open connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// There is room.
    Free,
    /// There is room once this connection is given up.
    InPlaceOf(u32),
    /// There is no room.
    None,
}

/// The half-open connections, the oldest first.
#[derive(Debug)]
pub(super) struct HalfOpen {
    entries: VecDeque<Entry>,
    /// How long a connection is not given up for one of another source and key. For one of its own
    /// source or key, this time is [`GRACE`].
    safe: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    id: u32,
    since: Time,
    source: Source,
    peer: PublicKey,
}

/// A peer that wants a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asking {
    /// Source from which the peer asks.
    pub(super) source: Source,
    /// The peer's static key.
    pub(super) peer: PublicKey,
}

impl HalfOpen {
    /// An empty list of at most `most` connections, which arrive at `rate` per second and at most
    /// `burst` at once.
    ///
    /// Each connection is kept only for as long as there are places for all that arrive in the
    /// meantime, so that every new one is admitted. If connections were kept longer, a flood that
    /// takes each place as it becomes free would lock others out.
    pub(super) fn new(most: usize, rate: u64, burst: u64) -> Self {
        let room = (most as u64).saturating_sub(burst);
        let safe = Duration::from_millis(room.saturating_mul(1000) / rate.max(1)).min(GRACE);
        HalfOpen { entries: VecDeque::new(), safe }
    }

    /// The number of half-open connections.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether `asking` may have one more half-open connection. A source and a key may each have
    /// `most`; `full` says that there is no room for anybody.
    pub(super) fn room(&self, now: Time, asking: Asking, most: usize, full: bool) -> Room {
        let of_source = |entry: &&Entry| entry.source == asking.source;
        let of_peer = |entry: &&Entry| entry.peer == asking.peer;
        let crowd = if self.entries.iter().filter(of_source).count() >= most {
            self.entries.iter().find(of_source)
        } else if self.entries.iter().filter(of_peer).count() >= most {
            self.entries.iter().find(of_peer)
        } else {
            None
        };
        if crowd.is_none() && !full {
            return Room::Free;
        }
        let (oldest, safe) =
            if crowd.is_some() { (crowd, GRACE) } else { (self.entries.front(), self.safe) };
        match oldest {
            Some(entry) if now.since(entry.since) >= safe => Room::InPlaceOf(entry.id),
            _ => Room::None,
        }
    }

    pub(super) fn insert(&mut self, id: u32, since: Time, asking: Asking) {
        let Asking { source, peer } = asking;
        self.entries.push_back(Entry { id, since, source, peer });
    }

    /// Removes a connection that has been established or given up.
    pub(super) fn remove(&mut self, id: u32) {
        self.entries.retain(|entry| entry.id != id);
    }

    /// Removes the oldest connection if its time has expired, and returns its id.
    pub(super) fn pop_expired(&mut self, now: Time) -> Option<u32> {
        let oldest = self.entries.front()?;
        let expired = now.since(oldest.since) >= LIFETIME;
        if expired { self.entries.pop_front().map(|entry| entry.id) } else { None }
    }

    /// When the oldest connection is given up.
    pub(super) fn next_timeout(&self) -> Option<Time> {
        self.entries.front().map(|entry| entry.since + LIFETIME)
    }
}
