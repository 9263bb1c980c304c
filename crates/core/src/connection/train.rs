//! Trains: packets of one length for one path, as segmentation offload requires.
//!
//! The first packet of a train is planned like any packet. It determines what all packets share:
//! the path, the ECN mark, how many more the window and the pacer admit, and that no report or
//! control frame is due, since sending packets makes none due. So each further packet only takes a
//! symbol, and all packets are sealed at the end.

use anabranch_policy::scheduler::{Pick, Reason, Work};
use anabranch_policy::view::SymbolSpace;
use anabranch_types::Time;

use super::Connection;
use super::egress::Transmit;
use super::packet::{Departed, PacketBuilder};
use super::paths::PathIndex;
use crate::coding::send::OutgoingSymbol;
use crate::path::PathAddress;
use crate::path::queue::QueuedSymbol;

impl Connection {
    /// Adds packets to the `first` in `buffer`, `most` in all, and seals the train.
    pub(super) fn lengthen(
        &mut self,
        now: Time,
        first: Departed,
        buffer: &mut [u8],
        most: usize,
    ) -> Transmit {
        let Departed { slot, len: segment, ecn, .. } = first;
        let sealable = usize::try_from(self.keys.remaining()).unwrap_or(usize::MAX);
        let path = &self.paths[slot];
        let numbered = usize::try_from(path.skips.left(path.sent.next_number()));
        let most = most.min(sealable).saturating_sub(1).min(numbered.unwrap_or(usize::MAX));
        let mut left = path.admits(most);
        if self.mtu_probe_due(now, slot).is_some() {
            left = 0;
        }
        let mut end = segment;
        while left > 0
            && let Some(room) = buffer.get_mut(end..end + segment)
        {
            let mut packet = PacketBuilder::new(now, slot, room, segment as u16);
            packet.in_train = true;
            if let Some((symbol, reason)) = self.next_granted(slot) {
                self.write_granted(symbol, reason, &mut packet);
            } else if self.has_more() {
                self.write_data(&mut packet);
            }
            if packet.is_empty() {
                break;
            }
            let len = self.record(&packet).len;
            end += len;
            left -= 1;
            if len < segment {
                break;
            }
        }
        self.assign_granted(now, slot);
        let path = &self.paths[slot];
        let PathAddress { socket, remote } = path.address;
        let id = path.remote_id();
        self.keys.seal_train(id, path.id, first.number, &mut buffer[..end], segment);
        Transmit { socket, remote, ecn, len: end, segment, mtu_probe: false }
    }

    /// Whether data and credit remain, so that the open block need not be closed before the scheduler is asked.
    fn has_more(&self) -> bool {
        !self.streams.is_idle() && self.symbol_credit(self.next_space()) > 0
    }

    /// Whether the picked symbols may be cut one by one later. All must belong to the main space's
    /// open block, and must not fill it or use up the waiting data or the credit, so that no policy
    /// has to be asked in between.
    pub(super) fn can_grant(&self, pick: &Pick) -> bool {
        let send = &self.send[SymbolSpace::Main];
        let Some(block) = send.open_block() else { return false };
        let pending = self.pending();
        let count = u64::from(pick.count);
        let size = u64::from(send.open_symbol_size().unwrap_or_default());
        pick.work == Work::Fresh
            && !send.slides()
            && pending.class == Some(block.class)
            && pending.bytes > count * size
            && self.streams.least_symbol(block.class) == 0
            && block.sources.saturating_add(pick.count) < block.planned
            && self.symbol_credit(SymbolSpace::Main) > count
            && size <= u64::from(self.symbol_capacity())
    }

    /// The next symbol of the work that the scheduler gave the path for this train, with the
    /// scheduler's reason.
    #[inline]
    fn next_granted(&mut self, slot: PathIndex) -> Option<(OutgoingSymbol, Reason)> {
        let reason = self.paths[slot].queue.take_granted()?;
        // Symbols of a code that slides are never granted, so granted symbols belong to the main
        // space.
        let send = &mut self.send[SymbolSpace::Main];
        let class = send.open_block().map(|block| block.class);
        let streams = &mut self.streams;
        let cut =
            class.and_then(|class| send.push(|id, buffer| streams.fill_symbol(class, id, buffer)));
        let Some((symbol, _)) = cut else {
            self.paths[slot].queue.end_grant();
            return None;
        };
        self.was_drained = false;
        Some((symbol, reason))
    }

    #[inline]
    fn write_granted(
        &mut self,
        symbol: OutgoingSymbol,
        reason: Reason,
        packet: &mut PacketBuilder<'_>,
    ) {
        if !self.write_symbol(&symbol, packet) {
            self.put_first(packet.slot, granted(symbol, reason));
        } else if self.observer.is_some() {
            self.explain(packet.now, packet.slot, &granted(symbol, reason));
        }
    }

    /// After the train, queues on the path the remaining work that the scheduler gave it.
    fn assign_granted(&mut self, now: Time, slot: PathIndex) {
        while let Some((symbol, reason)) = self.next_granted(slot) {
            self.send[symbol.carried.space()].enqueue(symbol.carried, slot.0);
            self.paths[slot].queue.push(now, granted(symbol, reason));
            self.changed();
        }
    }
}

fn granted(symbol: OutgoingSymbol, reason: Reason) -> QueuedSymbol {
    QueuedSymbol { symbol, not_before: Time::ZERO, reason }
}
