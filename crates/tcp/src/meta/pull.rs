//! Pulling: a subflow with window asks for data, and the scheduler says whose turn it is.

use anabranch_policy::scheduler::{Pick, Pull, Work};
use anabranch_policy::view::{
    Blocked, Demand, FreshView, SchedulerView, TrafficClass, WindowId, WindowView,
};
use anabranch_types::{PathId, Time};

use super::binding::Chunk;
use super::sender::{MetaSender, Subflow, carried_by};
use crate::segment::{Flags, Segment};

impl MetaSender {
    /// The next segment to send now, and the subflow on which it leaves.
    pub fn poll_transmit(&mut self, now: Time) -> Option<(usize, Segment)> {
        for index in 0..self.subflows.len() {
            if let Some(segment) = self.poll_subflow(now, index) {
                return Some((index, segment));
            }
        }
        for index in 0..self.subflows.len() {
            let wants = self.subflows.get(index).is_some_and(|s| s.sender.wants_data(now));
            if wants && self.pull(now, index) {
                // The scheduler may have given another subflow something as well.
                for index in 0..self.subflows.len() {
                    if let Some(segment) = self.poll_subflow(now, index) {
                        return Some((index, segment));
                    }
                }
            }
        }
        self.watch_window(now)
    }

    /// What a subflow has to send by itself: retransmissions, and data bound to it.
    fn poll_subflow(&mut self, now: Time, index: usize) -> Option<Segment> {
        let subflow = self.subflows.get_mut(index)?;
        if subflow.sender.wants_data(now)
            && let Some(chunk) = subflow.queue.pop_front()
        {
            bind(subflow, chunk);
        }
        let segment = subflow.sender.poll_transmit(now)?;
        Some(self.map(index, segment))
    }

    /// Writes the data sequence number into a segment. One whose data was unbound gets other data.
    fn map(&mut self, index: usize, segment: Segment) -> Segment {
        if segment.len == 0 {
            return segment;
        }
        let unbound =
            self.subflows.get(index).and_then(|subflow| subflow.bindings.unbound_at(segment.seq));
        if let Some(len) = unbound
            && let Some(chunk) = self.take_for(index, len)
            && let Some(subflow) = self.subflows.get_mut(index)
        {
            subflow.bindings.rebind(segment.seq, chunk);
        }
        let data =
            self.subflows.get(index).and_then(|subflow| subflow.bindings.lookup(segment.seq));
        match data {
            Some(data) => Segment { data, flags: segment.flags.with(Flags::MAPPED), ..segment },
            // Nothing to put there: the subflow's stream goes on with bytes that mean nothing.
            None => segment,
        }
    }

    /// Data to fill a run of exactly `len` bytes of a subflow's stream: what waits again, else new data.
    fn take_for(&mut self, index: usize, len: u64) -> Option<Chunk> {
        let waiting = self.again.iter().find(|(_, again)| again.len == len).map(|(data, _)| *data);
        if let Some(data) = waiting {
            self.again.remove(&data);
            self.statistics.rebound_bytes += len;
            return Some(Chunk { data, len });
        }
        (self.fresh_bytes() >= len).then(|| self.cut_fresh(index, len))
    }

    /// Bytes that may be bound for the first time now.
    fn fresh_bytes(&self) -> u64 {
        (self.written.min(self.limit)).saturating_sub(self.next)
    }

    fn cut_fresh(&mut self, index: usize, len: u64) -> Chunk {
        let chunk = Chunk { data: self.next, len };
        self.next += len;
        self.statistics.bound_bytes += len;
        if let Some(subflow) = self.subflows.get_mut(index)
            && subflow.copied >= chunk.data
        {
            subflow.copied = chunk.end();
        }
        chunk
    }

    /// Asks the scheduler for a subflow that has window. True if anything was bound.
    fn pull(&mut self, now: Time, index: usize) -> bool {
        self.refresh_views(now);
        let mss = u64::from(self.config.subflow.mss);
        let windows = self.windows_for(index);
        let symbols = self.fresh_bytes().div_ceil(mss);
        let blocked = (symbols == 0).then_some(if self.next < self.written {
            Blocked::FlowControl
        } else {
            Blocked::Application
        });
        let fresh = FreshView {
            symbols: u32::try_from(symbols).unwrap_or(u32::MAX),
            more: false,
            class: TrafficClass::Bulk,
            symbol_size: u16::try_from(mss).unwrap_or(u16::MAX),
            blocked,
            window: u32::try_from(self.limit.saturating_sub(self.next) / mss).unwrap_or(u32::MAX),
        };
        let present = windows.iter().filter(|window| window.sources > 0).count();
        let view = SchedulerView {
            now,
            paths: &self.views,
            windows: windows.get(2 - present..).unwrap_or_default(),
            fresh,
            demand: Demand::default(),
        };
        let mut picks = core::mem::take(&mut self.picks);
        picks.clear();
        let answer = self.scheduler.pull(PathId(index as u32), &view, &mut picks);
        let sends = matches!(answer, Pull::Send(_));
        let mut bound = false;
        for pick in picks.drain(..).filter(|_| sends) {
            for _ in 0..pick.count {
                bound |= self.carry_out(&pick);
            }
        }
        self.picks = picks;
        bound
    }

    /// What the scheduler sees of data in doubt, at the end of the array: a chunk that waits to be bound
    /// again, and the oldest chunk in flight that this subflow has not carried.
    fn windows_for(&self, index: usize) -> [WindowView; 2] {
        let chunk = |data: u64| WindowView {
            id: WindowId(data),
            sources: 1,
            closed: true,
            ..WindowView::default()
        };
        let due = self.again.first_key_value().map(|(data, again)| WindowView {
            due: 1,
            lost_on: again.carried,
            ..chunk(*data)
        });
        let behind = self.copy_start(index).map(|data| WindowView { in_flight: 1, ..chunk(data) });
        match (due, behind) {
            (Some(due), Some(behind)) => [due, behind],
            (Some(one), None) | (None, Some(one)) => [WindowView::default(), one],
            (None, None) => [WindowView::default(); 2],
        }
    }

    /// Where a copy of data in flight would start on this subflow, if it lags behind the others.
    fn copy_start(&self, index: usize) -> Option<u64> {
        let start = self.subflows.get(index)?.copied.max(self.acknowledged());
        (start < self.next).then_some(start)
    }

    /// Binds one chunk as the scheduler said. False if there was none after all.
    fn carry_out(&mut self, pick: &Pick) -> bool {
        let index = pick.path.index();
        if index >= self.subflows.len() {
            return false;
        }
        let Some(chunk) = self.choose(pick.work, index) else { return false };
        if let Some(subflow) = self.subflows.get_mut(index) {
            subflow.queue.push_back(chunk);
        }
        true
    }

    fn choose(&mut self, work: Work, index: usize) -> Option<Chunk> {
        let mss = u64::from(self.config.subflow.mss);
        match work {
            Work::Fresh => {
                let len = self.fresh_bytes().min(mss);
                (len > 0).then(|| self.cut_fresh(index, len))
            }
            Work::Window(_) => {
                let (data, again) = self.again.pop_first()?;
                self.statistics.rebound_bytes += again.len;
                Some(Chunk { data, len: again.len })
            }
            Work::Copy(_) => {
                let data = self.copy_start(index)?;
                let len = (self.next - data).min(mss);
                self.subflows.get_mut(index)?.copied = data + len;
                self.statistics.rebound_bytes += len;
                Some(Chunk { data, len })
            }
        }
    }

    /// Which subflows have carried the chunk that waits at `data`, as a mask by index.
    pub fn carried(&self, data: u64) -> u16 {
        let bound = self.subflows.iter().enumerate().filter(|(_, subflow)| {
            subflow.bindings.from(0).any(|chunk| (chunk.data..chunk.end()).contains(&data))
        });
        bound.fold(0, |mask, (index, _)| mask | carried_by(index))
    }
}

/// Gives a chunk to the subflow's stream.
fn bind(subflow: &mut Subflow, chunk: Chunk) {
    let offset = subflow.sender.written();
    subflow.sender.write(chunk.len);
    subflow.bindings.push(offset, chunk);
}
