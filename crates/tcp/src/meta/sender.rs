//! The sending half: bytes in, segments of several subflows out.

use anabranch_policy::view::PathView;
use anabranch_policy::{PolicyError, Scheduler, congestion, scheduler};
use anabranch_types::{PathId, Time};
use std::collections::{BTreeMap, VecDeque};

use super::binding::{Bindings, Chunk};
use super::{MetaConfig, OnCut, OnTimeout};
use crate::segment::{Flags, Segment};
use crate::sender::{Sender, SenderEvent};
use anabranch_policy::PolicySpec;
use anabranch_policy::scheduler::Pick;

/// Counters of a meta sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetaSenderStatistics {
    /// Bytes bound to a subflow for the first time.
    pub bound_bytes: u64,
    /// Bytes bound again: after a timeout, after unbinding, or as a copy.
    pub rebound_bytes: u64,
    /// Bytes unbound from shrunk windows.
    pub unbound_bytes: u64,
    /// Probes of a shut shared window.
    pub window_probes: u64,
}

/// One subflow.
#[derive(Debug)]
pub(super) struct Subflow {
    pub(super) sender: Sender,
    pub(super) bindings: Bindings,
    /// Chunks given to it ahead of its window.
    pub(super) queue: VecDeque<Chunk>,
    /// Data below this has been on this subflow or need not be (copies for redundancy start here).
    pub(super) copied: u64,
}

/// Data that waits to be bound once more.
#[derive(Clone, Copy, Debug)]
pub(super) struct Again {
    pub(super) len: u64,
    /// Bit i: subflow i has carried it.
    pub(super) carried: u16,
}

/// The sending half of a data stream over subflows.
///
/// Used as a [`Sender`]: after each `handle_*`, `write` or `finish`, call
/// [`poll_transmit`](Self::poll_transmit) until it yields nothing, then ask
/// [`next_timeout`](Self::next_timeout).
#[derive(Debug)]
pub struct MetaSender {
    pub(super) config: MetaConfig,
    pub(super) scheduler: Box<dyn Scheduler>,
    pub(super) subflows: Vec<Subflow>,
    pub(super) written: u64,
    pub(super) next: u64,
    una: u64,
    /// End of the receiver's shared window.
    pub(super) limit: u64,
    /// By data sequence number.
    pub(super) again: BTreeMap<u64, Again>,
    finished: bool,
    persist_at: Option<Time>,
    persist_backoff: u32,
    probe_due: bool,
    pub(super) views: Vec<PathView>,
    pub(super) picks: Vec<Pick>,
    pub(super) statistics: MetaSenderStatistics,
}

impl MetaSender {
    /// A stream over as many subflows as there are controllers in `controls`.
    ///
    /// # Errors
    /// When a scheduler or controller does not exist or an option of one is wrong.
    pub fn new(config: &MetaConfig, controls: &[PolicySpec]) -> Result<Self, PolicyError> {
        let subflow = config.unbounded_subflow();
        let mut subflows = Vec::new();
        for control in controls {
            let controller = congestion::build(control, u64::from(subflow.mss))?;
            subflows.push(Subflow {
                sender: Sender::new(&subflow, controller),
                bindings: Bindings::default(),
                queue: VecDeque::new(),
                copied: 0,
            });
        }
        Ok(MetaSender {
            scheduler: scheduler::build(&config.scheduler)?,
            subflows,
            written: 0,
            next: 0,
            una: 0,
            limit: config.receive_buffer,
            again: BTreeMap::new(),
            finished: false,
            persist_at: None,
            persist_backoff: 1,
            probe_due: false,
            views: Vec::new(),
            picks: Vec::new(),
            statistics: MetaSenderStatistics::default(),
            config: config.clone(),
        })
    }

    /// The application has `bytes` more to send. Returns how many the shared buffer took.
    pub fn write(&mut self, bytes: u64) -> u64 {
        if self.finished {
            return 0;
        }
        let room = self.config.send_buffer.saturating_sub(self.written - self.una);
        let taken = bytes.min(room);
        self.written += taken;
        taken
    }

    /// Nothing more will be written.
    pub fn finish(&mut self) {
        self.finished = true;
    }

    /// Takes in an acknowledgement that arrived on `subflow`.
    pub fn handle_segment(&mut self, now: Time, subflow: usize, segment: &Segment) {
        if segment.flags.has(Flags::ACK)
            && let Some(acknowledged) = segment.data_sequence()
        {
            self.take_data_ack(acknowledged, segment.window);
        }
        if self.config.coupled {
            self.refresh_views(now);
        }
        let views = core::mem::take(&mut self.views);
        if let Some(subflow) = self.subflows.get_mut(subflow) {
            let siblings: &[PathView] = if self.config.coupled { &views } else { &[] };
            subflow.sender.handle_segment_among(now, segment, siblings);
            subflow.bindings.release(subflow.sender.acknowledged());
        }
        self.views = views;
        self.take_events(subflow);
    }

    fn take_data_ack(&mut self, acknowledged: u64, window: u64) {
        if acknowledged > self.next {
            return;
        }
        self.una = self.una.max(acknowledged);
        let limit = acknowledged.saturating_add(window);
        if limit > self.limit {
            self.limit = limit;
            self.persist_at = None;
            self.persist_backoff = 1;
        }
        while let Some(entry) = self.again.first_entry()
            && *entry.key() + entry.get().len <= self.una
        {
            entry.remove();
        }
    }

    /// Does what is due at `now`; harmless if nothing is.
    pub fn handle_timeout(&mut self, now: Time) {
        for index in 0..self.subflows.len() {
            if let Some(subflow) = self.subflows.get_mut(index) {
                subflow.sender.handle_timeout(now);
            }
            self.take_events(index);
        }
        if self.persist_at.is_some_and(|at| at <= now) {
            self.persist_at = None;
            self.probe_due = true;
            self.persist_backoff = (self.persist_backoff * 2).min(1 << 10);
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) has something to do.
    pub fn next_timeout(&self) -> Option<Time> {
        let subflows = self.subflows.iter().filter_map(|subflow| subflow.sender.next_timeout());
        let others = [self.persist_at, self.scheduler.wakeup()];
        subflows.chain(others.into_iter().flatten()).min()
    }

    fn take_events(&mut self, index: usize) {
        while let Some(event) =
            self.subflows.get_mut(index).and_then(|subflow| subflow.sender.poll_event())
        {
            match (event, self.config.on_timeout, self.config.on_cut) {
                (SenderEvent::Timeout(from), OnTimeout::ReinjectAll, _) => {
                    self.reinject(index, from, usize::MAX);
                }
                (SenderEvent::Timeout(from), OnTimeout::ReinjectFirst, _) => {
                    self.reinject(index, from, 1);
                }
                (SenderEvent::WindowCut(window), _, OnCut::Unbind) => {
                    self.unbind_beyond(index, window);
                }
                // What a dead subflow had must go elsewhere under every policy.
                (SenderEvent::GaveUp, ..) => self.reinject(index, 0, usize::MAX),
                _ => {}
            }
        }
    }

    /// Offers the first `most` chunks bound to `subflow` from stream offset `from` on to all others, as
    /// far as they are not acknowledged; the subflow keeps them.
    pub fn reinject(&mut self, subflow: usize, from: u64, most: usize) {
        let Some(source) = self.subflows.get(subflow) else { return };
        let una = self.una;
        for chunk in source.bindings.from(from).filter(|chunk| chunk.end() > una).take(most) {
            let again = Again { len: chunk.len, carried: carried_by(subflow) };
            self.again.entry(chunk.data).or_insert(again).carried |= carried_by(subflow);
        }
    }

    /// Unbinds what `subflow` has bound beyond its first `window` outstanding bytes and offers it to
    /// all. What was sent already may still arrive; the receiver drops what comes twice.
    pub fn unbind_beyond(&mut self, subflow: usize, window: u64) {
        let una = self.una;
        let Some(source) = self.subflows.get_mut(subflow) else { return };
        let from = source.sender.acknowledged().saturating_add(window);
        let (again, statistics) = (&mut self.again, &mut self.statistics);
        source.bindings.unbind_from(from, |chunk| {
            if chunk.end() > una {
                again.entry(chunk.data).or_insert(Again { len: chunk.len, carried: 0 });
                statistics.unbound_bytes += chunk.len;
            }
        });
    }

    /// Everything below this data sequence number is acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.una
    }

    /// Everything written has been acknowledged.
    pub fn is_drained(&self) -> bool {
        self.una >= self.written
    }

    /// The sender of one subflow.
    pub fn subflow(&self, index: usize) -> Option<&Sender> {
        self.subflows.get(index).map(|subflow| &subflow.sender)
    }

    /// The sender of one subflow, to penalise it or to hand it notices of loss.
    pub fn subflow_mut(&mut self, index: usize) -> Option<&mut Sender> {
        self.subflows.get_mut(index).map(|subflow| &mut subflow.sender)
    }

    /// Number of subflows.
    pub fn subflows(&self) -> usize {
        self.subflows.len()
    }

    /// Counters since the start.
    pub fn statistics(&self) -> &MetaSenderStatistics {
        &self.statistics
    }

    /// Brings the snapshots of the subflows up to date.
    pub(super) fn refresh_views(&mut self, now: Time) {
        self.views.clear();
        for (index, subflow) in self.subflows.iter().enumerate() {
            let slot = u8::try_from(index).unwrap_or(u8::MAX);
            let mut view = subflow.sender.view(PathId(index as u32), slot, now);
            view.bytes_queued += subflow.queue.iter().map(|chunk| chunk.len).sum::<u64>();
            view.ready = view.ready && subflow.queue.is_empty();
            self.views.push(view);
        }
    }

    /// The shared window is shut and nothing is on its way that would open it: probe for it.
    pub(super) fn watch_window(&mut self, now: Time) -> Option<(usize, Segment)> {
        let blocked = self.next < self.written && self.next >= self.limit && self.una >= self.next;
        if !blocked {
            return None;
        }
        let index = (0..self.subflows.len())
            .filter(|index| self.subflow(*index).is_some_and(Sender::is_open))
            .min_by_key(|index| self.subflow(*index).and_then(Sender::smoothed_rtt))?;
        let sender = self.subflows.get_mut(index).map(|subflow| &mut subflow.sender)?;
        if core::mem::take(&mut self.probe_due) {
            self.statistics.window_probes += 1;
            return Some((index, sender.probe(now)));
        }
        if self.persist_at.is_none() {
            let wait = sender.rto().saturating_mul(self.persist_backoff);
            self.persist_at = Some(now + wait.min(self.config.subflow.timers.max_rto));
        }
        None
    }
}

/// The bit of a subflow in [`Again::carried`].
pub(super) fn carried_by(subflow: usize) -> u16 {
    u32::try_from(subflow).ok().and_then(|shift| 1_u16.checked_shl(shift)).unwrap_or(0)
}
