//! Trains: packets of one length for one path, as segmentation offload wants them.
//!
//! The first packet of a train is planned as any packet is. It settles what the others have in common: the path,
//! the mark, how many more the window and the pacer admit, and that no report or control frame is due, since
//! sending makes none. So each further one only takes its symbol, and all are sealed at the end.

use anabranch_policy::scheduler::{Pick, Work};
use anabranch_types::Time;

use super::Connection;
use super::egress::Transmit;
use super::packet::{Departed, PacketBuilder};
use super::paths::PathIndex;
use crate::path::PathAddress;
use crate::path::queue::Granted;

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
        let most = most.min(usize::try_from(self.keys.remaining()).unwrap_or(usize::MAX));
        let mut left = self.paths[slot].admits(most.saturating_sub(1));
        let mut end = segment;
        while left > 0
            && self.goes_on(now, slot)
            && let Some(room) = buffer.get_mut(end..end + segment)
        {
            let mut packet = PacketBuilder::new(now, slot, room, segment as u16);
            packet.in_train = true;
            self.write_data(&mut packet);
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
        let id = self.identity.remote_id;
        self.keys.seal_train(id, path.id, first.number, &mut buffer[..end], segment);
        Transmit { socket, remote, ecn, len: end, segment, mtu_probe: false }
    }

    /// Whether the next packet on the path can be another of symbols alone: nothing has to be done first that
    /// the symbols sent may have brought up.
    fn goes_on(&self, now: Time, slot: PathIndex) -> bool {
        let flushes = self.streams.pending().bytes == 0 || self.symbol_credit() == 0;
        !flushes && self.mtu_probe_due(now, slot).is_none()
    }

    /// Whether it makes no difference when the picked symbols are cut: all are of the open block, which they
    /// neither fill nor empty the stream for, so that no policy is asked anything in between.
    pub(super) fn can_grant(&self, pick: &Pick) -> bool {
        let Some(block) = self.send.open_block() else { return false };
        let pending = self.streams.pending();
        let count = u64::from(pick.count);
        let size = u64::from(self.send.open_symbol_size().unwrap_or_default());
        pick.work == Work::Fresh
            && !self.send.slides()
            && pending.class == Some(block.class)
            && pending.bytes > count * size
            && self.streams.least_symbol(block.class) == 0
            && block.sources.saturating_add(pick.count) < block.planned
            && self.symbol_credit() > count
    }

    /// The train has ended: what the scheduler gave the path beyond it waits in the path's queue.
    fn assign_granted(&mut self, now: Time, slot: PathIndex) {
        let path = &mut self.paths[slot];
        if let Some(Granted { work, left, not_before, reason }) = path.queue.take_granted() {
            let pick = Pick { work, count: left, path: path.id, not_before };
            self.assign(now, pick, reason);
        }
    }
}
