//! Observations of single packets and of waiting, which cost nothing without an observer.

use anabranch_policy::view::Blocked;
use anabranch_types::Time;
use core::time::Duration;

use super::Connection;
use super::paths::PathIndex;
use crate::observe::{FrameKinds, Observation, waits};
use crate::path::UDP_OVERHEAD;
use crate::path::sent::SentPacket;

/// Shorter waits are not reported, since a sender may wait that long between any two packets.
const SHORTEST_WAIT: Duration = Duration::from_millis(1);

/// Since when nothing could be sent, and why not.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wait(Option<(Time, &'static str)>);

impl Connection {
    /// Reports a packet that has its number and is about to be encrypted.
    #[cold]
    pub(super) fn watch_sent(
        &mut self,
        now: Time,
        slot: PathIndex,
        (number, frames): (u64, &[u8]),
        len: usize,
    ) {
        let (path, bytes, frames) = (self.paths[slot].id, len as u32, FrameKinds::of(frames));
        self.observe(now, Observation::PacketSent { path, number, bytes, frames });
    }

    /// Reports a packet that was decrypted and whose frames have been processed.
    #[cold]
    pub(super) fn watch_received(
        &mut self,
        now: Time,
        slot: PathIndex,
        (number, frames): (u64, &[u8]),
        len: usize,
    ) {
        let (path, bytes, frames) = (self.paths[slot].id, len as u32, FrameKinds::of(frames));
        self.observe(now, Observation::PacketReceived { path, number, bytes, frames });
    }

    /// Reports packets of a path that are acknowledged for the first time.
    pub(super) fn watch_acknowledged(
        &mut self,
        now: Time,
        slot: PathIndex,
        runs: &[core::ops::Range<u64>],
    ) {
        if self.observer.is_none() {
            return;
        }
        let path = self.paths[slot].id;
        for run in runs {
            let (first, last) = (run.start, run.end.saturating_sub(1));
            self.observe(now, Observation::Acknowledged { path, first, last });
        }
    }

    /// Reports a packet that was declared lost.
    pub(super) fn watch_lost(
        &mut self,
        now: Time,
        slot: PathIndex,
        number: u64,
        packet: &SentPacket,
    ) {
        let bytes = packet.bytes.saturating_sub(UDP_OVERHEAD as u32);
        let path = self.paths[slot].id;
        self.observe(now, Observation::PacketLost { path, number, bytes });
    }

    /// Reports the path's metrics after an acknowledgement was processed.
    pub(super) fn watch_metrics(&mut self, now: Time, slot: PathIndex) {
        if self.observer.is_none() {
            return;
        }
        let path = &self.paths[slot];
        let (rtt, in_flight, path) = (path.rtt.view(), path.sent.bytes_in_flight, path.id);
        let (latest, smoothed, min) = (rtt.latest, rtt.smoothed, rtt.min);
        self.observe(now, Observation::Metrics { path, latest, smoothed, min, in_flight });
    }

    /// Notes what the sender waits for when no path has anything to send.
    pub(super) fn watch_wait(&mut self, now: Time) {
        if self.observer.is_none() {
            return;
        }
        let what = self.waits_for();
        if self.wait.0.map(|(_, what)| what) != what {
            self.watch_work(now);
            self.wait.0 = what.map(|what| (now, what));
        }
    }

    /// Reports the end of a wait: a symbol leaves, or the sender now waits for something else.
    pub(super) fn watch_work(&mut self, now: Time) {
        if let Some((since, what)) = self.wait.0.take()
            && now.since(since) >= SHORTEST_WAIT
        {
            self.observe(now, Observation::Waited { since, what });
        }
    }

    /// What the sender waits for. `None` if it waits only for paths or time: no path is usable, a
    /// pacer admits no packet yet, or the scheduler holds a path back.
    fn waits_for(&self) -> Option<&'static str> {
        let usable = |slot: &PathIndex| self.may_carry_data(*slot);
        let mut usable = self.paths.indices().filter(usable).peekable();
        usable.peek()?;
        let has_room = usable.any(|slot| self.paths[slot].cwnd_open());
        let mut blocks = self.send.iter().flat_map(|send| send.views());
        let due = blocks.any(|view| view.has_work());
        let pending = self.pending();
        let space = self.send.of_class(pending.class.unwrap_or_default());
        let no_credit = self.symbol_credit(space) == 0;
        let refused = self.credit[space as usize].left(self.send[space].next_symbol()) == 0;
        match pending.blocked {
            Some(Blocked::Application) if !due => Some(waits::APPLICATION),
            Some(Blocked::FlowControl | Blocked::DecoderCredit) if !due => Some(self.creditor()),
            None if !due && refused => Some(self.creditor()),
            _ if !has_room || (no_credit && !due) => Some(waits::ACKNOWLEDGEMENTS),
            _ => None,
        }
    }

    /// Whose action would make the peer's credit grow.
    fn creditor(&self) -> &'static str {
        if self.send.is_empty() { waits::READER } else { waits::CREDIT }
    }
}
