//! A connection in a prepared state, and packets for it.

use std::collections::VecDeque;

use anabranch_core::testing::Rogue;

/// A victim, and packets that have not been delivered yet.
#[derive(Debug)]
pub struct Prepared {
    rogue: Rogue,
    packets: VecDeque<(u32, Vec<u8>)>,
    /// The application reads this stream after each packet.
    reads: Option<u64>,
}

impl Prepared {
    /// Packets, each with the path that it arrives on.
    pub fn new(rogue: Rogue, packets: Vec<(u32, Vec<u8>)>) -> Self {
        Prepared { rogue, packets: packets.into(), reads: None }
    }

    /// The application reads what this stream brings.
    pub fn reading(self, stream: u64) -> Self {
        Prepared { reads: Some(stream), ..self }
    }

    /// Keeps the first `most` packets.
    pub fn shorten(&mut self, most: usize) {
        self.packets.truncate(most);
    }

    /// Delivers all packets; after each the victim reports its events and sends what it wants. Returns whether the
    /// victim keeps the connection.
    pub fn deliver(&mut self) -> bool {
        let mut buffer = [0; 2048];
        while let Some((path, mut packet)) = self.packets.pop_front() {
            self.rogue.deliver(path, &mut packet);
            if let (Some(stream), Some(connection)) = (self.reads, self.rogue.connection()) {
                let _ = connection.read(anabranch_core::wire::StreamId(stream), &mut buffer);
            }
            let now = self.rogue.now;
            while self.rogue.victim.poll_event().is_some() {}
            while self.rogue.victim.poll_transmit(now, &|_| true, &mut buffer).is_some() {}
        }
        self.rogue.closed().is_none()
    }
}
