use std::collections::VecDeque;

use super::Message;

/// Which of two waiting lines a message joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// Packets of a routing protocol: before all data.
    Routing,
    /// Everything else.
    Data,
}

/// The queue between a station's network layer and its MAC: two lines, each first come first served
/// with room for `limit` messages, that of routing packets served first.
#[derive(Clone, Debug)]
pub(super) struct InterfaceQueue {
    lines: [VecDeque<Message>; 2],
    limit: usize,
}

impl InterfaceQueue {
    pub(super) fn new(limit: usize) -> Self {
        let line = || VecDeque::with_capacity(limit.min(64));
        InterfaceQueue { lines: [line(), line()], limit }
    }

    /// Whether the message has found room.
    pub(super) fn push(&mut self, message: Message) -> bool {
        let line = &mut self.lines[message.priority as usize];
        let room = line.len() < self.limit;
        if room {
            line.push_back(message);
        }
        room
    }

    pub(super) fn pop(&mut self) -> Option<Message> {
        let [routing, data] = &mut self.lines;
        routing.pop_front().or_else(|| data.pop_front())
    }

    pub(super) fn len(&self) -> usize {
        self.lines.iter().map(VecDeque::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Destination;
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
        assert!(queue.push(message(3, Priority::Routing)));
        assert_eq!(queue.len(), 3);
        let order: Vec<u32> = core::iter::from_fn(|| queue.pop()).map(|sent| sent.token).collect();
        assert_eq!(order, [3, 0, 1]);
    }
}
