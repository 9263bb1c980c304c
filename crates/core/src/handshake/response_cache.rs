//! Caches answers, so that a copy of an Initiation on another path does not make another
//! connection.

use super::message::{EPHEMERAL_LEN, MAC_LEN};
use anabranch_types::Time;
use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};

/// The fate of messages by their ephemeral keys; bounded in number and age.
#[derive(Debug)]
pub(super) struct ResponseCache {
    answers: BTreeMap<[u8; EPHEMERAL_LEN], Answer>,
    /// Oldest first.
    by_age: VecDeque<(Time, [u8; EPHEMERAL_LEN])>,
    capacity: usize,
    lifetime: Duration,
}

/// Most repetitions of one answer. An initiator sends its message on up to 16 paths, about eight
/// times within an answer's lifetime; more replays would only send answers to a victim.
const MOST_REPEATS: u8 = 128;

/// The fate of a message.
#[derive(Debug)]
pub(super) struct Answer {
    /// The first MAC of the message. It covers all but the second MAC, so a message with the same
    /// ephemeral and another MAC is not a copy.
    pub(super) mac1: [u8; MAC_LEN],
    copies: Copies,
}

/// Handling of the copies of a message.
#[derive(Debug)]
enum Copies {
    /// Copies get this response, which has been repeated `repeats` times.
    Answered { response: Vec<u8>, repeats: u8 },
    /// The message waits for a decision under this number.
    Held(u32),
    /// Copies are dropped: the message is ignored.
    Dropped,
    /// The next copy is read as if it were the first message.
    Read,
}

/// Answer to one copy.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Repeat<'a> {
    /// Response that the first message got.
    Response(&'a Vec<u8>),
    /// No answer, since the response was repeated too often.
    Worn,
    /// The same answer as for the waiting message with this number.
    Held(u32),
    /// No answer, since the message is ignored.
    Nothing,
    /// No stored answer: the copy is processed as a new message.
    Read,
}

impl Answer {
    pub(super) fn new(mac1: [u8; MAC_LEN], response: Vec<u8>) -> Self {
        Answer { mac1, copies: Copies::Answered { response, repeats: 0 } }
    }

    /// The answer of a message that waits for a decision.
    pub(super) fn held(mac1: [u8; MAC_LEN], number: u32) -> Self {
        Answer { mac1, copies: Copies::Held(number) }
    }

    /// Decides on the copies of a waiting message: the next one is read if `read`, else all are
    /// dropped.
    pub(super) fn decide(&mut self, read: bool) {
        if let Copies::Held(_) = self.copies {
            self.copies = if read { Copies::Read } else { Copies::Dropped };
        }
    }

    /// Bytes of the response.
    pub(super) fn len(&self) -> usize {
        match &self.copies {
            Copies::Answered { response, .. } => response.len(),
            Copies::Held(_) | Copies::Dropped | Copies::Read => 0,
        }
    }

    /// Answer to one more copy.
    pub(super) fn repeat(&mut self) -> Repeat<'_> {
        match &mut self.copies {
            Copies::Answered { repeats, .. } if *repeats >= MOST_REPEATS => Repeat::Worn,
            Copies::Answered { response, repeats } => {
                *repeats += 1;
                Repeat::Response(response)
            }
            Copies::Held(number) => Repeat::Held(*number),
            Copies::Dropped => Repeat::Nothing,
            Copies::Read => Repeat::Read,
        }
    }
}

impl ResponseCache {
    pub(super) fn new(capacity: usize, lifetime: Duration) -> Self {
        ResponseCache { answers: BTreeMap::new(), by_age: VecDeque::new(), capacity, lifetime }
    }

    pub(super) fn find(
        &mut self,
        now: Time,
        ephemeral: &[u8; EPHEMERAL_LEN],
    ) -> Option<&mut Answer> {
        self.forget_old(now);
        self.answers.get_mut(ephemeral)
    }

    pub(super) fn insert(&mut self, now: Time, ephemeral: [u8; EPHEMERAL_LEN], answer: Answer) {
        self.forget_old(now);
        if self.answers.insert(ephemeral, answer).is_none() {
            self.by_age.push_back((now, ephemeral));
        }
        while self.answers.len() > self.capacity {
            let Some((_, oldest)) = self.by_age.pop_front() else { break };
            self.answers.remove(&oldest);
        }
    }

    fn forget_old(&mut self, now: Time) {
        while let Some((made, ephemeral)) = self.by_age.front() {
            if now.since(*made) < self.lifetime {
                break;
            }
            self.answers.remove(ephemeral);
            self.by_age.pop_front();
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.answers.len().max(self.by_age.len())
    }
}
