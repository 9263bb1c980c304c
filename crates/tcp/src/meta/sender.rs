//! The sender: bytes in, segments of several subflows out.

use anabranch_policy::congestion::CongestionController;
use anabranch_policy::loss::{self, LossEstimator, Resolved};
use anabranch_policy::recovery::{RecoveryEvent, RecoveryPolicy};
use anabranch_policy::scheduler::{Pick, Scheduler, SchedulerAction, SchedulerEvent};
use anabranch_policy::view::{BlockId, PathView};
use anabranch_policy::{PolicyError, PolicySpec, Registry};
use anabranch_types::{PathId, Rng, Time};

use super::MetaConfig;
use super::autotune::SendTuner;
use super::chunks::Chunks;
use super::fallback::Peer;
use super::sharing::Sharing;
use super::subflow::{Membership, Subflow};
use super::window::{Persist, Shared};
use crate::scoreboard::Fate;
use crate::segment::Segment;
use crate::sender::{Sender, SenderEvent, SenderStatistics};

/// Counters of a meta sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MetaSenderStatistics {
    /// Bytes given to a subflow for the first time.
    pub bound_bytes: u64,
    /// Bytes given to a subflow again: after a timeout, after they were taken back, or as a copy.
    pub rebound_bytes: u64,
    /// Bytes taken back from shrunk windows.
    pub unbound_bytes: u64,
    /// Probes of a shut shared window.
    pub window_probes: u64,
    /// Subflows that have closed, each with a FIN and its acknowledgement.
    pub closed_subflows: u64,
}

/// The sending half of a data stream over subflows.
///
/// Use it like a [`Sender`]: after each `handle_*`, `write` or `finish`, call
/// [`poll_transmit`](Self::poll_transmit) until it yields nothing, then ask
/// [`next_timeout`](Self::next_timeout). A subflow's index is also its path's identifier and slot.
#[derive(Debug)]
pub struct MetaSender {
    pub(super) config: MetaConfig,
    pub(super) scheduler: Box<dyn Scheduler>,
    pub(super) recovery: Box<dyn RecoveryPolicy>,
    pub(super) loss: Option<Box<dyn LossEstimator>>,
    pub(super) subflows: Vec<Subflow>,
    pub(super) chunks: Chunks,
    pub(super) shared: Shared,
    pub(super) persist: Persist,
    pub(super) peer: Peer,
    /// Finds out which subflows share a bottleneck, if that is configured.
    pub(super) sharing: Option<Box<Sharing>>,
    /// The most subflows that the receiving side has agreed to, if it has said so.
    pub(super) most_subflows: Option<u8>,
    /// Tunes the size of the send buffer; `None` if it does not grow with the transfer.
    pub(super) tuner: Option<SendTuner>,
    /// Latest time seen.
    pub(super) now: Time,
    /// When the scheduler was last woken.
    pub(super) woken: Option<Time>,
    /// Whether the scheduler knows that the receiver's buffer limits the sender.
    pub(super) receiver_limited: bool,
    /// Whether the scheduler knows that the application is blocked on the send buffer.
    pub(super) sender_limited: bool,
    /// Whether data may be sent: the subflows that [`Join`](super::Join) makes it wait for are
    /// established.
    pub(super) may_send: bool,
    /// Counts all changes after which a scheduler may answer differently.
    pub(super) changes: u64,
    /// Snapshots of the subflows, and the time for which they are valid; `None` if they are outdated.
    pub(super) views: Vec<PathView>,
    pub(super) views_at: Option<Time>,
    pub(super) picks: Vec<Pick>,
    pub(super) actions: Vec<SchedulerAction>,
    fates: Vec<(u64, Fate)>,
    pub(super) statistics: MetaSenderStatistics,
    /// Counters of subflows whose place another has taken.
    pub(super) past: SenderStatistics,
}

impl MetaSender {
    /// A stream over as many subflows as there are controllers in `controls`, with the policies
    /// that `config` names.
    ///
    /// # Errors
    /// When a policy does not exist or an option of one is wrong.
    pub fn new(config: &MetaConfig, controls: &[PolicySpec]) -> Result<Self, PolicyError> {
        MetaSender::from_registry(&Registry::new(), config, controls)
    }

    /// [`new`](Self::new) with the policies of `registry`.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn from_registry(
        registry: &Registry,
        config: &MetaConfig,
        controls: &[PolicySpec],
    ) -> Result<Self, PolicyError> {
        let mss = u64::from(config.subflow.mss);
        let controls: Result<Vec<_>, _> =
            controls.iter().map(|control| registry.build_for(control, mss)).collect();
        let scheduler = registry.build(&config.scheduler)?;
        let recovery = registry.build(&config.recovery)?;
        let loss = registry.build(&config.loss)?;
        Ok(MetaSender::assemble(config, controls?, scheduler, recovery, Some(loss)))
    }

    /// [`new`](Self::new) with policies that were built elsewhere. Only the loss estimator is built
    /// from `config`; if that fails, schedulers see no loss.
    pub fn with_policies(
        config: &MetaConfig,
        controls: Vec<Box<dyn CongestionController>>,
        scheduler: Box<dyn Scheduler>,
        recovery: Box<dyn RecoveryPolicy>,
    ) -> Self {
        let loss = loss::build_estimator(&config.loss).ok();
        MetaSender::assemble(config, controls, scheduler, recovery, loss)
    }

    fn assemble(
        config: &MetaConfig,
        controls: Vec<Box<dyn CongestionController>>,
        scheduler: Box<dyn Scheduler>,
        recovery: Box<dyn RecoveryPolicy>,
        loss: Option<Box<dyn LossEstimator>>,
    ) -> Self {
        let mss = u64::from(config.subflow.mss.max(1));
        let tuner = config.autotune.map(|_| SendTuner::new(config.send_buffer, mss));
        let send_buffer = tuner.as_ref().map_or(config.send_buffer, SendTuner::buffer);
        let mut sender = MetaSender {
            scheduler: recovery.around(scheduler),
            recovery,
            loss,
            subflows: Vec::new(),
            chunks: Chunks::default(),
            shared: Shared::new(mss, send_buffer, config.initial_receive_buffer()),
            persist: Persist::default(),
            peer: Peer::default(),
            sharing: config.couple_shared.then(|| Box::new(Sharing::new(Rng::new(0)))),
            most_subflows: None,
            tuner,
            now: Time::ZERO,
            woken: None,
            receiver_limited: false,
            sender_limited: false,
            may_send: false,
            changes: 1,
            views: Vec::new(),
            views_at: None,
            picks: Vec::new(),
            actions: Vec::new(),
            fates: Vec::new(),
            statistics: MetaSenderStatistics::default(),
            past: SenderStatistics::default(),
            config: config.clone(),
        };
        for control in controls {
            sender.join(control);
        }
        sender
    }

    /// The application has `bytes` more to send. Returns how many of them the shared buffer took.
    pub fn write(&mut self, bytes: u64) -> u64 {
        if self.shared.finished {
            return 0;
        }
        let taken = bytes.min(self.shared.room());
        self.shared.written += taken;
        self.shared.blocked = taken < bytes;
        if taken > 0 {
            self.changed();
        }
        taken
    }

    /// Declares that nothing more will be written.
    pub fn finish(&mut self) {
        if !self.shared.finished {
            self.shared.finished = true;
            self.changed();
        }
    }

    /// Takes in an acknowledgement that arrived on `subflow`.
    pub fn handle_segment(&mut self, now: Time, subflow: usize, segment: &Segment) {
        self.now = now;
        if !self.check_answer(now, subflow, segment) || !self.check_options(now, subflow, segment) {
            return;
        }
        let acknowledged = self.data_ack(subflow, segment);
        let recovered = acknowledged
            .map_or(0..0, |acknowledged| self.take_data_ack(acknowledged, segment.window));
        self.changed();
        if self.config.coupled || self.sharing.is_some() {
            self.refresh_views(now);
        }
        if let Some(own) = self.subflows.get_mut(subflow).filter(|own| own.is_joined()) {
            let siblings: &[PathView] = match &mut self.sharing {
                Some(sharing) => sharing.group(subflow as u8, &self.views),
                None if self.config.coupled => &self.views,
                None => &[],
            };
            own.sender.handle_segment_among(now, segment, siblings);
            self.changed();
            self.digest(now, subflow);
            self.watch_sharing(now, subflow, segment);
            self.tune(subflow);
        }
        for id in recovered {
            self.tell(now, SchedulerEvent::Recovered(BlockId(id)));
        }
    }

    /// Takes in a loss notice for the segment at an offset of a subflow's stream: see [`Sender::handle_loss_notice`].
    pub fn handle_loss_notice(&mut self, now: Time, subflow: usize, offset: u64) {
        self.now = now;
        let Some(own) = self.subflows.get_mut(subflow).filter(|own| own.is_joined()) else {
            return;
        };
        own.sender.handle_loss_notice(now, offset);
        self.changed();
        self.digest(now, subflow);
    }

    /// Lets the send buffer grow after an acknowledgement on a subflow.
    fn tune(&mut self, index: usize) {
        let own = self.subflows.get(index).filter(|own| own.is_open());
        if let (Some(tuner), Some(own)) = (&mut self.tuner, own) {
            tuner.on_ack(index, own.sender.cwnd(), own.sender.in_flight());
            self.shared.send_buffer = tuner.buffer();
        }
    }

    /// Processes the effects of an acknowledgement or a timer on a subflow and on the stream.
    fn digest(&mut self, now: Time, index: usize) {
        let path = PathId(index as u32);
        let (acked, lost) = self.take_fates(index);
        self.resolve(now, index, acked, lost);
        self.chunks.rescue_oldest();
        self.heard(now, index);
        self.take_events(now, index);
        self.note_closed(now, index);
        if lost > 0 {
            self.tell(now, SchedulerEvent::Lost(path));
        }
        if acked > 0 {
            self.tell(now, SchedulerEvent::Acked(path));
        }
    }

    /// Enters the fates of a subflow's segments into the table of chunks. Returns how many segments
    /// were acknowledged and how many were lost.
    fn take_fates(&mut self, index: usize) -> (u32, u32) {
        let Some(subflow) = self.subflows.get_mut(index) else { return (0, 0) };
        let (mut acked, mut lost) = (0, 0);
        self.fates.clear();
        subflow.sender.swap_fates(&mut self.fates);
        for (offset, fate) in self.fates.drain(..) {
            let chunk = subflow.bindings.lookup(offset).map(|(chunk, _)| chunk.id);
            match fate {
                Fate::Delivered => acked += 1,
                Fate::Lost => lost += 1,
            }
            match (chunk, fate) {
                (Some(id), Fate::Delivered) => self.chunks.on_delivered(id, index as u8),
                (Some(id), Fate::Lost) => self.chunks.on_lost(id, index as u8),
                (None, _) => {}
            }
        }
        let chunks = &mut self.chunks;
        let acknowledged = subflow.sender.acknowledged();
        subflow.bindings.release(acknowledged, |chunk| chunks.on_unbound(chunk.id, index as u8));
        (acked, lost)
    }

    /// Tells the loss estimator of packets whose fate is known.
    pub(super) fn resolve(&mut self, now: Time, index: usize, acked: u32, lost: u32) {
        let Some(subflow) = self.subflows.get(index).filter(|_| acked + lost > 0) else { return };
        let rtt = subflow.sender.rtt();
        let path = PathId(index as u32);
        let (queue, srtt) = (rtt.queue, rtt.smoothed);
        if let Some(loss) = &mut self.loss {
            loss.on_resolved(&Resolved { now, path, block: None, acked, lost, queue, srtt });
        }
    }

    fn take_events(&mut self, now: Time, index: usize) {
        let path = PathId(index as u32);
        while let Some(event) =
            self.subflows.get_mut(index).and_then(|subflow| subflow.sender.poll_event())
        {
            match event {
                SenderEvent::Connected => {
                    self.admit();
                    self.path_up(now, path);
                }
                SenderEvent::Timeout(_) => self.on_timeout(now, index),
                SenderEvent::CwndReduced(cwnd) => {
                    let silent = self.is_silent(index);
                    self.recover(now, RecoveryEvent::CwndReduced { path, cwnd, silent });
                    self.tell(now, SchedulerEvent::CwndReduced(path, cwnd));
                }
                SenderEvent::GaveUp => self.remove(now, index),
                SenderEvent::Recovery(_) | SenderEvent::CutUndone(_) | SenderEvent::Drained => {}
            }
        }
    }

    /// Does everything that is due at `now`. It may be called when nothing is due.
    pub fn handle_timeout(&mut self, now: Time) {
        self.now = now;
        for index in 0..self.subflows.len() {
            let Some(subflow) = self.subflows.get_mut(index).filter(|s| s.is_joined()) else {
                continue;
            };
            if subflow.hold_until.is_some_and(|until| until <= now) {
                subflow.hold_until = None;
            }
            if subflow.sender.next_timeout().is_some_and(|at| at <= now) {
                subflow.sender.handle_timeout(now);
                self.changed();
                self.digest(now, index);
            }
        }
        self.persist.handle_timeout(now);
        self.wake_scheduler(now);
    }

    /// The next time at which [`handle_timeout`](Self::handle_timeout) has something to do.
    pub fn next_timeout(&self) -> Option<Time> {
        let subflows = self.subflows.iter().filter_map(|subflow| subflow.next_timeout(self.now));
        let others = [self.persist.at, self.wakeup()];
        subflows.chain(others.into_iter().flatten()).min()
    }

    /// Everything below this data sequence number is acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.shared.una
    }

    /// Present size of the send buffer: the most bytes that may be written and not yet
    /// acknowledged.
    pub fn send_buffer(&self) -> u64 {
        self.shared.send_buffer
    }

    /// Whether everything written has been acknowledged.
    pub fn is_drained(&self) -> bool {
        self.shared.una >= self.shared.written
    }

    /// The sender of one subflow.
    pub fn subflow(&self, index: usize) -> Option<&Sender> {
        self.subflows.get(index).map(|subflow| &subflow.sender)
    }

    /// Number of subflows, including those that are gone.
    pub fn subflows(&self) -> usize {
        self.subflows.len()
    }

    /// Whether a subflow takes part, that is, opens or is open.
    pub fn has_joined(&self, index: usize) -> bool {
        self.subflows.get(index).is_some_and(|own| own.membership == Membership::Joined)
    }

    /// Whether a subflow with room in its window has asked for data to send and waits until there is some.
    pub fn is_frozen(&self, index: usize) -> bool {
        let asked = self.subflows.get(index).filter(|own| own.is_joined());
        asked.is_some_and(|own| own.frozen_at == Some(self.changes))
    }

    /// Counters since the start.
    pub fn statistics(&self) -> &MetaSenderStatistics {
        &self.statistics
    }

    /// Sums of the counters of all subflows, including earlier subflows in their places.
    pub fn subflow_statistics(&self) -> SenderStatistics {
        let present: SenderStatistics =
            self.subflows.iter().map(|subflow| *subflow.sender.statistics()).sum();
        let mut all = self.past;
        all += present;
        all
    }
}
