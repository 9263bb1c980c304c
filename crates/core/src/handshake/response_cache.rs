//! Answers already given, so that a copy of an Initiation on another path makes no new connection.

use super::message::{EPHEMERAL_LEN, MAC_LEN};
use anabranch_types::Time;
use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};

/// Responses by the ephemeral key of what they answer; bounded in number and age.
#[derive(Debug)]
pub(super) struct ResponseCache {
    answers: BTreeMap<[u8; EPHEMERAL_LEN], Answer>,
    /// Oldest first.
    by_age: VecDeque<(Time, [u8; EPHEMERAL_LEN])>,
    capacity: usize,
    lifetime: Duration,
}

/// Times that one answer is repeated at most. An initiator sends its message on up to 16 paths, some eight
/// times within an answer's life; whoever replays it more often only wants the answers to hit somebody.
const MOST_REPEATS: u8 = 128;

/// A response that was sent.
#[derive(Debug)]
pub(super) struct Answer {
    /// The first MAC of the message answered. It covers all but the second MAC, so a message with the
    /// same ephemeral and another MAC is not a copy.
    pub(super) mac1: [u8; MAC_LEN],
    response: Vec<u8>,
    repeats: u8,
}

impl Answer {
    pub(super) fn new(mac1: [u8; MAC_LEN], response: Vec<u8>) -> Self {
        Answer { mac1, response, repeats: 0 }
    }

    /// Bytes of the response.
    pub(super) fn len(&self) -> usize {
        self.response.len()
    }

    /// The response for one more copy, unless there have been too many.
    pub(super) fn repeat(&mut self) -> Option<&Vec<u8>> {
        if self.repeats >= MOST_REPEATS {
            return None;
        }
        self.repeats += 1;
        Some(&self.response)
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
