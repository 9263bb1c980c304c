//! Messages that are sent at fixed intervals in DATAGRAM frames. Each carries the time it was sent
//! and its number.

use core::time::Duration;

use anabranch_core::connection::Connection;
use anabranch_types::Time;

use crate::endpoint::FlowFailure;
use crate::traffic::Messages;

/// The sending end of the messages.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    messages: Messages,
    next: Time,
    pub sent: u64,
    buffer: Vec<u8>,
}

/// The receiving end of the messages, which accepts each message once.
#[derive(Clone, Debug, Default)]
pub(super) struct Taken {
    seen: Vec<bool>,
    pub arrived: Vec<(Time, Duration)>,
}

/// Message numbers from here on are corrupt: no run sends this many.
const MOST: u64 = 1 << 32;

impl Sent {
    /// A sender whose first message is due at `start`.
    pub(super) fn new(messages: Messages, start: Time) -> Self {
        let size = messages.size.max(Messages::LEAST) as usize;
        Sent { messages, next: start, sent: 0, buffer: vec![0; size] }
    }

    pub(super) fn next_event(&self) -> Option<Time> {
        (self.next < Time::MAX).then_some(self.next)
    }

    pub(super) fn stop(&mut self) {
        self.next = Time::MAX;
    }

    pub(super) fn send(&mut self, now: Time, connection: &mut Connection) {
        while self.next <= now {
            let head = [now.as_nanos().to_be_bytes(), self.sent.to_be_bytes()].concat();
            for (to, from) in self.buffer.iter_mut().zip(head) {
                *to = from;
            }
            if connection.send_datagram(&self.buffer, self.messages.class).is_ok() {
                self.sent += 1;
            }
            let more = self.sent < self.messages.count;
            let interval = self.messages.interval.max(Duration::from_nanos(1));
            self.next = if more { self.next + interval } else { Time::MAX };
        }
    }
}

impl Taken {
    /// Takes a message that has arrived.
    ///
    /// # Errors
    /// When `message` is malformed, or has arrived before.
    pub(super) fn take(&mut self, now: Time, message: &[u8]) -> Result<(), FlowFailure> {
        let field = |at: usize| {
            let bytes = message.get(at..at + 8)?;
            bytes.try_into().ok().map(u64::from_be_bytes)
        };
        let (Some(sent), Some(number)) = (field(0), field(8).filter(|number| *number < MOST))
        else {
            let what = format!("a datagram of {} bytes is no message", message.len());
            return Err(FlowFailure::Corrupt(what));
        };
        let index = number as usize;
        if self.seen.len() <= index {
            self.seen.resize(index + 1, false);
        }
        if let Some(seen) = self.seen.get_mut(index)
            && core::mem::replace(seen, true)
        {
            return Err(FlowFailure::Corrupt(format!("message {number} arrived twice")));
        }
        let sent = Time::from_nanos(sent);
        self.arrived.push((sent, now.since(sent)));
        Ok(())
    }
}
