//! Computes delays of packets and of stream slices from the progress at both ends.

use std::collections::{BTreeMap, VecDeque};

use anabranch_types::Time;

use super::blocks::{Block, Blocks};
use crate::endpoint::{Log, Watched};

/// Computes the delays of one flow.
///
/// The delay of a packet is the time from its first transmission to its delivery in order. The
/// delay of a slice is the time from the first transmission of its first byte to the arrival of its
/// last missing byte. Packets and slices that were first sent before the measurement began are left
/// out.
#[derive(Debug)]
pub(super) struct Delays {
    /// Length of a full packet, bytes.
    packet: u64,
    /// Length of a slice, bytes.
    slice: u64,
    measured_from: Time,
    transfers: BTreeMap<u64, Transfer>,
    /// Delays of packets, s.
    pub packet_delays: Vec<f64>,
    pub blocks: Blocks,
}

/// The packets and slices of one transfer that are not yet delivered or complete.
#[derive(Debug, Default)]
struct Transfer {
    /// Packets that have not been delivered: the offset of their end, and when they were first
    /// sent.
    packets: VecDeque<(u64, Time)>,
    /// Offset up to which the sent data is divided into packets.
    cut: u64,
    /// When each slice from `first_slice` on was first sent; `None` once the slice is complete.
    slices: VecDeque<Option<Time>>,
    first_slice: u64,
}

impl Delays {
    pub(super) fn new(watched: Watched, slice: u64, measured_from: Time) -> Self {
        Delays {
            packet: watched.packet.max(1),
            slice: slice.max(1),
            measured_from,
            transfers: BTreeMap::new(),
            packet_delays: Vec::new(),
            blocks: Blocks::new(watched.losses),
        }
    }

    /// The blocks that were first sent after the measurement had begun.
    pub(super) fn measured_blocks(&self) -> Vec<Block> {
        self.blocks.all(self.measured_from)
    }

    /// Processes the logged progress of the sender and of the receiver.
    pub(super) fn take(&mut self, sender: Log, receiver: Log) {
        for (transfer, end, time) in sender.sent {
            let transfer = self.transfers.entry(transfer).or_default();
            transfer.send(end, time, self.packet, self.slice);
        }
        sender.symbols_sent.into_iter().for_each(|(end, time)| self.blocks.symbols_sent(end, time));
        for (transfer, offset) in sender.lost {
            self.blocks.slice_lost(transfer, offset / self.slice);
        }
        for (number, slice, time) in receiver.whole {
            let transfer = self.transfers.get_mut(&number);
            if let Some(sent) = transfer.and_then(|transfer| transfer.complete(slice)) {
                self.blocks.slice_whole(number, slice, sent, time);
            }
        }
        receiver.symbols_held.into_iter().for_each(|(id, time)| self.blocks.symbol_held(id, time));
        sender.blocks.into_iter().for_each(|record| self.blocks.complete(record));
        for (transfer, end, time) in receiver.delivered {
            let Some(transfer) = self.transfers.get_mut(&transfer) else { continue };
            while let Some((_, sent)) = transfer.packets.front().filter(|(at, _)| *at <= end) {
                if *sent >= self.measured_from {
                    self.packet_delays.push(time.since(*sent).as_secs_f64());
                }
                transfer.packets.pop_front();
            }
        }
    }
}

impl Transfer {
    fn send(&mut self, end: u64, time: Time, packet: u64, slice: u64) {
        while self.cut < end {
            self.cut = (self.cut + packet).min(end);
            self.packets.push_back((self.cut, time));
        }
        while (self.first_slice + self.slices.len() as u64) * slice < end {
            self.slices.push_back(Some(time));
        }
    }

    /// Marks a slice as complete. Returns when it was first sent.
    fn complete(&mut self, slice: u64) -> Option<Time> {
        let index = usize::try_from(slice.checked_sub(self.first_slice)?).ok()?;
        let sent = self.slices.get_mut(index)?.take();
        while self.slices.front() == Some(&None) {
            self.slices.pop_front();
            self.first_slice += 1;
        }
        sent
    }
}

/// The mean absolute difference of successive values; zero for fewer than two values.
pub(super) fn mean_step(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let steps: f64 = values.iter().zip(values.iter().skip(1)).map(|(a, b)| (b - a).abs()).sum();
    steps / (values.len() - 1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    const OF_100: Watched = Watched { packet: 100, losses: true };

    fn slices(delays: &Delays) -> Vec<f64> {
        delays.measured_blocks().iter().map(|block| block.delay).collect()
    }

    #[test]
    fn packets_and_slices_are_timed_from_their_first_transmission() {
        let mut delays = Delays::new(OF_100, 250, Time::ZERO);
        let sender = Log { sent: vec![(0, 200, ms(0)), (0, 500, ms(10))], ..Log::default() };
        let receiver = Log {
            // The second packet is lost and arrives last, long after the second slice is complete.
            whole: vec![(0, 1, ms(31)), (0, 0, ms(60))],
            delivered: vec![(0, 100, ms(20)), (0, 500, ms(60))],
            ..Log::default()
        };
        delays.take(sender, receiver);
        assert_eq!(delays.packet_delays, [0.020, 0.060, 0.050, 0.050, 0.050]);
        assert_eq!(slices(&delays), [0.060, 0.021]);
    }

    #[test]
    fn transfers_are_kept_apart_and_the_warm_up_left_out() {
        let mut delays = Delays::new(OF_100, 100, ms(5));
        let sender = Log { sent: vec![(0, 100, ms(0)), (1, 100, ms(5))], ..Log::default() };
        let receiver = Log {
            whole: vec![(1, 0, ms(9)), (0, 0, ms(9))],
            delivered: vec![(1, 100, ms(9)), (0, 100, ms(9))],
            ..Log::default()
        };
        delays.take(sender, receiver);
        assert_eq!(delays.packet_delays, [0.004]);
        assert_eq!(slices(&delays), [0.004]);
    }

    #[test]
    fn steps_are_between_neighbours() {
        assert_eq!(mean_step(&[1.0, 3.0, 2.0]), 1.5);
        assert_eq!(mean_step(&[1.0]), 0.0);
    }
}
