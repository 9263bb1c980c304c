//! Buffers for batches of datagrams, which tasks pass to each other.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// Bytes of a buffer: the most that the kernel coalesces into one message, and more than the most that it
/// segments.
pub(crate) const BUFFER: usize = 1 << 16;
/// Most buffers with received datagrams that may wait for connections' tasks. Beyond that, what arrives
/// waits in the kernel.
const MOST_HANDED: usize = 128;
/// Free buffers that are kept.
const MOST_FREE: usize = 64;

/// [`BUFFER`] bytes.
pub(crate) type Buffer = Box<[u8]>;

/// The buffers of an endpoint and its connections.
#[derive(Debug, Default)]
pub(crate) struct Buffers(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    free: Vec<Buffer>,
    /// How many buffers connections' tasks hold.
    handed: usize,
    /// The task that waits until `handed` has fallen.
    waker: Option<Waker>,
}

impl State {
    fn take(&mut self) -> Buffer {
        self.free.pop().unwrap_or_else(|| vec![0; BUFFER].into_boxed_slice())
    }

    fn give(&mut self, buffer: Buffer) {
        if self.free.len() < MOST_FREE {
            self.free.push(buffer);
        }
    }
}

impl Buffers {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A buffer with arbitrary contents.
    pub(crate) fn take(&self) -> Buffer {
        self.lock().take()
    }

    /// Takes a buffer back.
    pub(crate) fn give(&self, buffer: Buffer) {
        self.lock().give(buffer);
    }

    /// A free buffer in exchange for one that is handed to a connection's task, which is counted until
    /// [`hand_back`](Self::hand_back).
    pub(crate) fn exchange(&self) -> Buffer {
        let mut state = self.lock();
        state.handed += 1;
        state.take()
    }

    /// Takes back a buffer that was handed to a connection's task.
    pub(crate) fn hand_back(&self, buffer: Buffer) {
        let mut state = self.lock();
        state.handed = state.handed.saturating_sub(1);
        state.give(buffer);
        let waker = if state.handed <= MOST_HANDED / 2 { state.waker.take() } else { None };
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Whether more may be handed to connections' tasks; if not, `waker` is woken when they have made
    /// some progress.
    pub(crate) fn has_room(&self, waker: &Waker) -> bool {
        let mut state = self.lock();
        let room = state.handed < MOST_HANDED;
        if !room {
            state.waker = Some(waker.clone());
        }
        room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tasks_hold_is_bounded_and_wakes_who_waits() {
        let (buffers, waker) = (Buffers::default(), Waker::noop());
        let held: Vec<_> = (0..MOST_HANDED).map(|_| buffers.exchange()).collect();
        assert!(!buffers.has_room(waker));
        for buffer in held {
            assert!(buffers.lock().waker.is_some() || buffers.lock().handed <= MOST_HANDED / 2);
            buffers.hand_back(buffer);
        }
        assert!(buffers.has_room(waker));
        assert_eq!(buffers.lock().free.len(), MOST_FREE);
    }
}
