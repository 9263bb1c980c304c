//! Messages between tasks, and the notification that wakes a task.

use crate::buffers::{Buffer, Buffers};
use anabranch_core::path::PathAddress;
use anabranch_core::path::received::Ecn;
use core::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// Bytes of short messages that wait for one task, at most: further ones are lost, as in a full kernel
/// buffer.
const MOST_COPIED: usize = 1 << 20;
/// Room for short messages that is kept from one collection to the next.
const KEPT: usize = 1 << 16;
/// Messages shorter than this are copied, so that they do not hold a whole receive buffer.
const SHORT: usize = 1 << 13;

/// Messages that have arrived for a task, and the bell that wakes it. A task that goes to sleep misses neither a
/// message nor a ring since it last looked.
#[derive(Debug, Default)]
pub(crate) struct Mailbox(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    letters: Letters,
    /// Rings since the task last looked.
    rings: u32,
    closed: bool,
    waker: Option<Waker>,
}

impl Mailbox {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the task, or keeps it from sleeping.
    pub(crate) fn ring(&self) {
        let mut state = self.lock();
        state.rings = state.rings.saturating_add(1);
        wake(state);
    }

    /// Hands over a received message of `len` bytes, which consists of datagrams of `stride` bytes; the last may be
    /// shorter. The buffer of a long message is handed over too, and another is left in its place.
    #[expect(
        clippy::too_many_arguments,
        reason = "a message as the socket gave it, and its buffer"
    )]
    pub(crate) fn post(
        &self,
        address: PathAddress,
        ecn: Ecn,
        stride: usize,
        len: usize,
        buffer: &mut Buffer,
        buffers: &Buffers,
    ) {
        if len < SHORT {
            self.post_short(address, ecn, stride, &buffer[..len]);
            return;
        }
        let mut state = self.lock();
        if !state.closed {
            let full = core::mem::replace(buffer, buffers.exchange());
            let bytes = Bytes::Whole(full, len);
            state.letters.list.push(Letter { address, ecn, stride, bytes });
            wake(state);
        }
    }

    /// Hands over a copy of one datagram.
    pub(crate) fn post_copy(&self, address: PathAddress, ecn: Ecn, datagram: &[u8]) {
        self.post_short(address, ecn, datagram.len(), datagram);
    }

    fn post_short(&self, address: PathAddress, ecn: Ecn, stride: usize, message: &[u8]) {
        let mut state = self.lock();
        let start = state.letters.copied.len();
        let end = start + message.len();
        if !state.closed && end <= MOST_COPIED {
            state.letters.copied.extend_from_slice(message);
            let bytes = Bytes::Copied(start..end);
            state.letters.list.push(Letter { address, ecn, stride, bytes });
            wake(state);
        }
    }

    /// Swaps received messages with `empty` letters.
    pub(crate) fn collect(&self, empty: &mut Letters) {
        let mut state = self.lock();
        state.rings = 0;
        core::mem::swap(&mut state.letters, empty);
    }

    /// How often the bell was rung since the last look; 0 if messages have arrived.
    pub(crate) fn rings(&self) -> u32 {
        let state = self.lock();
        if state.letters.list.is_empty() { state.rings } else { 0 }
    }

    /// Whether neither message nor ring waits: then the next one wakes `waker`.
    pub(crate) fn is_quiet(&self, waker: &Waker) -> bool {
        let mut state = self.lock();
        if state.rings > 0 || !state.letters.list.is_empty() {
            return false;
        }
        if state.waker.as_ref().is_none_or(|known| !known.will_wake(waker)) {
            state.waker = Some(waker.clone());
        }
        true
    }

    /// Stops accepting messages; returns those that the task has not taken.
    pub(crate) fn close(&self) -> Letters {
        let mut state = self.lock();
        state.closed = true;
        core::mem::take(&mut state.letters)
    }
}

fn wake(mut state: MutexGuard<'_, State>) {
    let waker = state.waker.take();
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// Received messages, in the order of their arrival.
#[derive(Debug, Default)]
pub(crate) struct Letters {
    list: Vec<Letter>,
    copied: Vec<u8>,
}

#[derive(Debug)]
struct Letter {
    address: PathAddress,
    ecn: Ecn,
    stride: usize,
    bytes: Bytes,
}

#[derive(Debug)]
enum Bytes {
    Whole(Buffer, usize),
    Copied(Range<usize>),
}

impl Letters {
    /// Passes each datagram to `take`.
    pub(crate) fn open(&mut self, mut take: impl FnMut(PathAddress, Ecn, &mut [u8])) {
        let Letters { list, copied } = self;
        for letter in list {
            let bytes = match &mut letter.bytes {
                Bytes::Whole(buffer, len) => &mut buffer[..*len],
                Bytes::Copied(range) => &mut copied[range.clone()],
            };
            for datagram in bytes.chunks_mut(letter.stride.max(1)) {
                take(letter.address, letter.ecn, datagram);
            }
        }
    }

    /// Empties the list and gives its buffers back.
    pub(crate) fn recycle(&mut self, buffers: &Buffers) {
        for letter in self.list.drain(..) {
            if let Bytes::Whole(buffer, _) = letter.bytes {
                buffers.hand_back(buffer);
            }
        }
        self.copied.clear();
        self.copied.shrink_to(KEPT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_core::path::SocketId;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn address() -> PathAddress {
        PathAddress { socket: SocketId(3), remote: ([127, 0, 0, 1], 9).into() }
    }

    #[test]
    fn nothing_is_missed_between_the_last_look_and_sleep() {
        let (mailbox, count) = (Mailbox::default(), Arc::new(Count::default()));
        let waker = Waker::from(Arc::clone(&count));
        assert!(mailbox.is_quiet(&waker));
        mailbox.ring();
        mailbox.ring();
        assert_eq!(count.0.load(Ordering::Relaxed), 1, "one sleeper is woken once");
        assert!(!mailbox.is_quiet(&waker), "rung since the last look");
        mailbox.collect(&mut Letters::default());
        assert!(mailbox.is_quiet(&waker));
    }

    #[test]
    fn messages_arrive_in_order_as_the_datagrams_they_are_made_of() {
        let (mailbox, buffers) = (Mailbox::default(), Buffers::default());
        let mut expected = Vec::new();
        for (number, (len, stride)) in
            [(10, 10), (20_000, 1500), (3, 2), (9000, 9000)].into_iter().enumerate()
        {
            let mut buffer = buffers.take();
            buffer[..len].fill(number as u8);
            mailbox.post(address(), Ecn::Ce, stride, len, &mut buffer, &buffers);
            expected.extend(vec![number as u8; len].chunks(stride).map(<[u8]>::to_vec));
        }
        let (mut letters, mut received) = (Letters::default(), Vec::new());
        mailbox.collect(&mut letters);
        letters.open(|from, ecn, payload| {
            assert_eq!((from, ecn), (address(), Ecn::Ce));
            received.push(payload.to_vec());
        });
        assert!(received == expected);
        letters.recycle(&buffers);
        letters.open(|_, _, _| panic!("nothing is left"));
    }

    #[test]
    fn a_task_that_does_not_look_is_not_sent_more_than_it_may_hold() {
        let (mailbox, buffers) = (Mailbox::default(), Buffers::default());
        let mut buffer = buffers.take();
        for _ in 0..2000 {
            mailbox.post(address(), Ecn::NotEct, 1000, 1000, &mut buffer, &buffers);
        }
        assert!(mailbox.close().copied.len() <= MOST_COPIED);
        mailbox.post(address(), Ecn::NotEct, 1000, 1000, &mut buffer, &buffers);
        assert!(mailbox.close().list.is_empty(), "closed");
    }
}
