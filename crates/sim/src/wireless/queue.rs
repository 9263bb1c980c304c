use std::collections::VecDeque;

use super::{Destination, Message};

/// The priority of a message in a station's interface queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// Packets of a routing protocol, which are sent before all others.
    Routing,
    /// Acknowledgements of a transport, which are sent before data.
    Acknowledgement,
    /// All other messages.
    Data,
}

/// The queue between a station's network layer and its MAC. There is a first-in, first-out queue
/// with room for `limit` messages for each [`Priority`].
#[derive(Clone, Debug)]
pub(super) struct InterfaceQueue {
    lines: [VecDeque<Message>; 3],
    limit: usize,
}

impl InterfaceQueue {
    pub(super) fn new(limit: usize) -> Self {
        let line = || VecDeque::with_capacity(limit.min(64));
        InterfaceQueue { lines: [line(), line(), line()], limit }
    }

    /// Queues a message. Returns whether there was room.
    pub(super) fn push(&mut self, message: Message) -> bool {
        let line = &mut self.lines[message.priority as usize];
        let room = line.len() < self.limit;
        if room {
            line.push_back(message);
        }
        room
    }

    pub(super) fn pop(&mut self) -> Option<Message> {
        self.lines.iter_mut().find_map(VecDeque::pop_front)
    }

    /// Removes the messages for one destination, and appends their tokens to `tokens` in the order
    /// of priority.
    pub(super) fn withdraw(&mut self, to: Destination, tokens: &mut Vec<u32>) {
        for line in &mut self.lines {
            line.retain(|message| {
                if message.to == to {
                    tokens.push(message.token);
                }
                message.to != to
            });
        }
    }

    pub(super) fn len(&self) -> usize {
        self.lines.iter().map(VecDeque::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(token: u32, priority: Priority) -> Message {
        Message { token, to: Destination::Broadcast, bytes: 100, priority }
    }

    #[test]
    fn routing_packets_go_first_and_each_line_has_its_own_room() {
        let mut queue = InterfaceQueue::new(2);
        for token in 0..2 {
            assert!(queue.push(message(token, Priority::Data)));
        }
        assert!(!queue.push(message(2, Priority::Data)));
        assert!(queue.push(message(3, Priority::Acknowledgement)));
        assert!(queue.push(message(4, Priority::Routing)));
        assert_eq!(queue.len(), 4);
        let order: Vec<u32> = core::iter::from_fn(|| queue.pop()).map(|sent| sent.token).collect();
        assert_eq!(order, [4, 3, 0, 1]);
    }

    #[test]
    fn messages_for_a_lost_neighbour_are_taken_back() {
        let mut queue = InterfaceQueue::new(5);
        let to = |token, station| Message {
            to: Destination::Station(station),
            ..message(token, Priority::Data)
        };
        for (token, station) in [(0, 1), (1, 2), (2, 1)] {
            assert!(queue.push(to(token, station)));
        }
        let mut tokens = Vec::new();
        queue.withdraw(Destination::Station(1), &mut tokens);
        assert_eq!(tokens, [0, 2]);
        assert_eq!(queue.pop().map(|left| left.token), Some(1));
    }
}
