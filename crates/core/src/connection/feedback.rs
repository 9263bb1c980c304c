//! Incoming acknowledgements and their consequences.

use anabranch_policy::congestion::{AckEvent, RateSample};
use anabranch_policy::loss::{DetectionView, InFlight, LossVerdict, Resolved};
use anabranch_policy::scheduler::SchedulerEvent;
use anabranch_policy::view::BlockId;
use anabranch_types::Time;

use super::Connection;
use super::allowance::Allowance;
use super::ingress::Broken;
use super::paths::PathIndex;
use crate::observe::Observation;
use crate::path::mtu::Narrowing;
use crate::path::rtt::Ages;
use crate::path::sent::{Carried, Fate, Probe, SentPacket};
use crate::path::{Path, UDP_OVERHEAD};
use crate::wire::{AckFrame, CloseCode, ControlFrame, RankFrame};

/// Lost packets are remembered for this many timeouts, so that their late acknowledgements are
/// recognised.
const REMEMBER_LOST: u32 = 3;

/// Effect of one acknowledgement on one path.
#[derive(Debug, Default)]
pub(super) struct AckOutcome {
    pub acked_bytes: u64,
    pub acked_packets: u32,
    pub lost_bytes: u64,
    pub lost_packets: u32,
    pub ce_packets: u32,
    pub largest_acked_sent: Time,
    pub largest_lost_sent: Time,
    pub narrowing: Option<Narrowing>,
    /// Bytes in flight before the acknowledgement.
    pub prior_in_flight: u64,
    /// The newest packet acknowledged for the first time.
    pub newest: Option<u64>,
    /// Whether the largest number in the acknowledgement was not acknowledged before.
    pub largest_is_news: bool,
    /// Ages of the packets acknowledged after one that was sent later.
    pub late: Ages,
    /// A sample of the path's delivery rate, if there is one.
    pub rate: Option<RateSample>,
}

/// Consecutive packets of one block with the same fate, which have not been reported to the
/// estimator yet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ResolvedRun {
    block: Option<BlockId>,
    received: bool,
    count: u32,
    /// When the last of them was sent.
    sent: Time,
}

impl ResolvedRun {
    /// Adds a packet, if it belongs to the run.
    #[inline]
    fn add(&mut self, packet: &SentPacket, received: bool) -> bool {
        let block = packet.block();
        let joins = self.count == 0 || (self.block, self.received) == (block, received);
        if joins {
            *self = ResolvedRun { block, received, count: self.count + 1, sent: packet.sent };
        }
        joins
    }
}

impl AckOutcome {
    /// An outcome to which nothing has been added yet.
    pub(super) fn of(path: &Path) -> Self {
        AckOutcome { prior_in_flight: path.sent.bytes_in_flight, ..AckOutcome::default() }
    }
}

impl Connection {
    pub(super) fn on_ack(
        &mut self,
        now: Time,
        ack: &AckFrame<'_>,
        allowance: &mut Allowance,
    ) -> Result<(), Broken> {
        let Some(slot) = self.paths.open(ack.path) else { return Ok(()) };
        let Some(highest) = ack.ranges().next().map(|range| *range.end()) else { return Ok(()) };
        allowance.take_ack(slot)?;
        if highest >= self.paths[slot].sent.next_number() {
            let what = "an acknowledgement of a packet that was never sent";
            return Err(Broken { code: CloseCode::PROTOCOL_VIOLATION, what });
        }
        if ack.ranges().any(|range| self.paths[slot].skips.cover(&range)) {
            let what = "an acknowledgement of a packet number that was left out";
            return Err(Broken { code: CloseCode::OPTIMISTIC_ACK, what });
        }
        let mut outcome = AckOutcome::of(&self.paths[slot]);
        self.take_acked(now, slot, ack, &mut outcome);
        outcome.rate = self.sample(now, slot, ack, &outcome);
        self.take_ecn(slot, ack, &mut outcome);
        self.detect_losses(now, slot, &mut outcome);
        if outcome.acked_packets > 0 || outcome.lost_packets > 0 {
            self.inform_congestion(now, slot, &outcome);
        }
        if outcome.acked_packets > 0 {
            self.watch_metrics(now, slot);
            self.look_for_bottlenecks(now, slot, outcome.largest_acked_sent);
            self.heard(now, slot, outcome.largest_acked_sent);
        }
        // Late acknowledgements of packets that counted as lost can shorten the timeout, so a probe
        // may be overdue.
        if self.paths[slot].timeout_at().is_some_and(|at| at <= now) {
            self.path_timeout(now, slot);
        }
        self.settle(now, slot, &outcome);
        Ok(())
    }

    /// Declares packets lost as the detector decides.
    pub(super) fn detect_losses(&mut self, now: Time, slot: PathIndex, outcome: &mut AckOutcome) {
        let path = &mut self.paths[slot];
        path.loss_time = None;
        let Some(largest_acked) = path.sent.largest_acked() else { return };
        let rtt = path.rtt.view();
        let mut lost = core::mem::take(&mut self.scratch.numbers);
        lost.clear();
        for (number, packet, acked_above) in path.sent.open_up_to(largest_acked) {
            // Skipped packet numbers do not count as packets after this one.
            let skipped = path.skips.between(number, largest_acked);
            let largest_acked = largest_acked - skipped;
            let view = DetectionView { now, largest_acked, acked_above, rtt };
            let overtaken = packet.overtaken.unwrap_or(now);
            match path.detector.judge(&InFlight { number, sent: packet.sent, overtaken }, &view) {
                LossVerdict::Lost => lost.push(number),
                LossVerdict::At(time) => {
                    path.loss_time = Some(path.loss_time.map_or(time, |t| t.min(time)));
                }
                LossVerdict::Waiting => {}
            }
        }
        // The oldest packets come first, so that the first losses are repaired first.
        for number in lost.iter().rev() {
            self.declare_lost(now, slot, *number, outcome);
        }
        if outcome.lost_packets > 0 {
            let path = self.paths[slot].id;
            self.observe(now, Observation::Lost { path, packets: outcome.lost_packets });
        }
        self.scratch.numbers = lost;
    }

    pub(super) fn declare_lost(
        &mut self,
        now: Time,
        slot: PathIndex,
        number: u64,
        outcome: &mut AckOutcome,
    ) {
        let path = &mut self.paths[slot];
        let Some(packet) = path.sent.resolve(number, Fate::Lost) else { return };
        self.watch_lost(now, slot, number, &packet);
        let path = &mut self.paths[slot];
        let payload = (u64::from(packet.bytes) - UDP_OVERHEAD) as u16;
        match packet.probe {
            Some(Probe::Mtu) => return path.mtu.on_probe_lost(now, payload, path.loss.mean),
            Some(Probe::Life) => return,
            None => {}
        }
        outcome.narrowing = path.mtu.on_lost(now, payload, packet.sent).or(outcome.narrowing);
        path.counters.lost_packets += 1;
        if packet.fate != Fate::WrittenOff {
            outcome.lost_bytes += u64::from(packet.bytes);
            outcome.lost_packets += 1;
            outcome.largest_lost_sent = outcome.largest_lost_sent.max(packet.sent);
        }
        self.packet_resolved(now, slot, (number, &packet), false);
        self.tell_estimator(now, slot);
        if packet.has_control {
            self.control_written_off(slot, number);
        }
    }

    /// Treats the control frames of a packet as lost, because its acknowledgement is no longer
    /// expected.
    pub(super) fn control_written_off(&mut self, slot: PathIndex, number: u64) {
        while let Some(frame) = self.paths[slot].control.take(number) {
            self.control_lost(frame);
        }
    }

    /// Sends a lost control frame again, or its replacement. Lost answers are not sent again, since
    /// the other side asks again.
    fn control_lost(&mut self, frame: ControlFrame) {
        match frame {
            ControlFrame::NewConnectionId { path, .. } if self.paths.is_over(path) => {}
            ControlFrame::Ping
            | ControlFrame::AckFloor { .. }
            | ControlFrame::PathChallenge { .. }
            | ControlFrame::PathResponse { .. } => {}
            ControlFrame::MaxSymbols { space, .. } => {
                if let Some(blocks) = self.receive.get_mut(space) {
                    let limit = blocks.limit();
                    self.control.push_back(ControlFrame::MaxSymbols { space, limit });
                }
            }
            ControlFrame::PathStatus { .. }
            | ControlFrame::PathAbandon { .. }
            | ControlFrame::AddAddress { .. }
            | ControlFrame::Rekey { .. }
            | ControlFrame::NewConnectionId { .. }
            | ControlFrame::Abandon { .. } => self.control.push_back(frame),
            ControlFrame::MaxData { .. }
            | ControlFrame::MaxStreamData { .. }
            | ControlFrame::MaxStreams { .. }
            | ControlFrame::ResetStream { .. }
            | ControlFrame::StopSending { .. } => self.streams.on_control_lost(&frame),
        }
    }

    /// Tells the estimator the fate of a packet, and the block and recovery the fate of each of its symbols.
    #[inline(always)] // once for each packet
    pub(super) fn packet_resolved(
        &mut self,
        now: Time,
        slot: PathIndex,
        (number, packet): (u64, &SentPacket),
        received: bool,
    ) {
        if matches!(packet.fate, Fate::InFlight)
            && packet.probe.is_none()
            && !self.scratch.resolved.add(packet, received)
        {
            self.tell_estimator(now, slot);
            self.scratch.resolved.add(packet, received);
        }
        let Some(first) = packet.carried else { return };
        self.symbol_resolved(now, (slot, packet), first, received);
        if self.paths[slot].sent.has_shared() {
            self.others_resolved(now, slot, (number, packet), received);
        }
    }

    /// Reports the packets of the path whose fates became known to the estimator.
    pub(super) fn tell_estimator(&mut self, now: Time, slot: PathIndex) {
        let run = core::mem::take(&mut self.scratch.resolved);
        let ResolvedRun { block, received, count, sent } = run;
        if count == 0 {
            return;
        }
        let fates = (u32::from(received), u32::from(!received));
        let mut event = self.resolution(now, slot, block, fates);
        let path = &self.paths[slot];
        if !received && path.congestion.own_queue().is_none() {
            event.queue = path.rtt.queue_met(sent);
        }
        self.policies.estimator.on_resolved_run(&event, count);
    }

    /// The estimator's input about packets of the path.
    pub(super) fn resolution(
        &self,
        now: Time,
        slot: PathIndex,
        block: Option<BlockId>,
        (acked, lost): (u32, u32),
    ) -> Resolved {
        let path = &self.paths[slot];
        let rtt = path.rtt.view();
        let queue = path.congestion.own_queue().unwrap_or(rtt.queue);
        Resolved { now, path: path.id, block, acked, lost, queue, srtt: rtt.smoothed }
    }

    /// Processes the fate of a packet's symbols except the first.
    #[cold]
    fn others_resolved(
        &mut self,
        now: Time,
        slot: PathIndex,
        (number, packet): (u64, &SentPacket),
        received: bool,
    ) {
        let mut nth = 1;
        while let Some(carried) = self.paths[slot].sent.symbol(number, packet, nth) {
            self.symbol_resolved(now, (slot, packet), carried, received);
            nth += 1;
        }
    }

    /// Processes the fate of a symbol's packet; `packet` is its record from before the fate was
    /// known.
    #[inline(always)] // once for each packet
    fn symbol_resolved(
        &mut self,
        now: Time,
        (slot, packet): (PathIndex, &SentPacket),
        carried: Carried,
        received: bool,
    ) {
        let block = carried.block();
        if packet.early && packet.fate != Fate::Lost {
            self.send[carried.space()].on_fate(carried, slot.0, received);
        }
        if packet.fate != Fate::InFlight {
            // The symbol already counts as missing, so only its arrival changes anything.
            if received {
                self.send[carried.space()].on_late(carried);
            }
            return;
        }
        let change = self.send[carried.space()].on_resolved(carried, slot.0, received);
        if !received {
            self.symbol_lost(now, slot, carried);
        }
        if change.first_resolved {
            self.tell_estimator(now, slot);
            self.policies.estimator.on_block_resolved(block);
        }
        self.touch(block);
    }

    pub(super) fn inform_congestion(&mut self, now: Time, slot: PathIndex, outcome: &AckOutcome) {
        let path = &mut self.paths[slot];
        path.loss = self.policies.estimator.path(path.id);
        path.inter_loss.on_acked(outcome.acked_bytes);
        if outcome.lost_packets > 0 {
            self.note_losses(now, slot, outcome.largest_lost_sent);
        }
        self.refresh_views(now);
        let (path, views) = self.paths.with_views(slot);
        let before = path.congestion.cwnd();
        let event = AckEvent {
            now,
            acked_bytes: outcome.acked_bytes,
            acked_packets: outcome.acked_packets,
            lost_bytes: outcome.lost_bytes,
            lost_packets: outcome.lost_packets,
            ce_packets: outcome.ce_packets,
            bytes_in_flight: path.sent.bytes_in_flight,
            prior_in_flight: outcome.prior_in_flight,
            largest_acked_sent: outcome.largest_acked_sent,
            largest_lost_sent: outcome.largest_lost_sent,
            total_delivered: path.rate.delivered,
            rate: outcome.rate,
            rtt: path.rtt.view(),
            loss: path.loss,
            app_limited: path.rate.is_app_limited(),
            path: Some(path.id),
        };
        path.congestion.on_ack(&event, views);
        path.update_pacing(now);
        let cwnd = path.congestion.cwnd();
        let (id, phase) = (path.id, path.congestion.phase());
        let pacing_bps = path.congestion.pacing_rate().map_or(0, |rate| rate.as_bps());
        if cwnd < before {
            self.on_cwnd_reduced(now, slot, cwnd, false);
        }
        if cwnd != before {
            self.observe(now, Observation::Congestion { path: id, cwnd, pacing_bps, phase });
        }
    }

    /// Notes losses on a path; the newest of the lost packets left at `sent`.
    fn note_losses(&mut self, now: Time, slot: PathIndex, sent: Time) {
        // Data lost on a slower path arrives sooner if it waits for room on a faster one.
        let resends_here = self.resends() && !self.has_faster(slot);
        let path = &mut self.paths[slot];
        path.inter_loss.on_lost(now, sent);
        if resends_here {
            path.excess.on_lost(now, sent);
        }
    }

    /// Whether another path can be used that has shorter round trips.
    fn has_faster(&self, slot: PathIndex) -> bool {
        let own = self.paths[slot].rtt.view().smoothed;
        self.paths.iter().any(|path| path.is_usable() && path.rtt.view().smoothed < own)
    }

    /// Performs the steps that must wait until the whole frame has been processed.
    pub(super) fn settle(&mut self, now: Time, slot: PathIndex, outcome: &AckOutcome) {
        let path = &mut self.paths[slot];
        path.sent.prune(now - path.base_timeout().base * REMEMBER_LOST);
        self.provision_all(now);
        self.retire(now);
        let path = self.paths[slot].id;
        let lost = (outcome.lost_packets > 0).then_some(SchedulerEvent::Lost(path));
        let acked = (outcome.acked_packets > 0).then_some(SchedulerEvent::Acked(path));
        self.tell_scheduler(now, lost.into_iter().chain(acked));
        if let Some(narrowing) = outcome.narrowing {
            self.on_mtu_decreased(now, slot, narrowing);
        }
        self.changed();
    }

    /// Releases blocks that the receiver has recovered.
    fn retire(&mut self, now: Time) {
        let mut recovered = core::mem::take(&mut self.scratch.recovered);
        recovered.clear();
        for send in self.send.iter_mut() {
            let floor = send.floor();
            send.retire(|view| recovered.push(view.id));
            if send.floor() != floor {
                self.streams.on_floor(send.floor());
            }
        }
        self.tell_scheduler(now, recovered.drain(..).map(SchedulerEvent::Recovered));
        self.scratch.recovered = recovered;
    }

    pub(super) fn on_rank(&mut self, now: Time, rank: &RankFrame<'_>) {
        let space = rank.first.space();
        if !self.send.names().any(|name| name == space) {
            return;
        }
        let send = &mut self.send[space];
        send.on_all_received(rank.first);
        if send.slides() {
            let missing = rank.entries().next().map_or(1, |entry| entry.missing);
            send.on_unfinished(rank.first, missing);
        } else {
            for entry in rank.entries() {
                self.unprovisioned.extend(send.on_rank(entry.first, entry.missing));
            }
        }
        self.retire(now);
    }

    /// Notes that a block may need more symbols because the state of one of its symbols has
    /// changed.
    pub(super) fn touch(&mut self, block: BlockId) {
        let touched = &mut self.scratch.touched;
        if touched.last() != Some(&block) && !touched.contains(&block) {
            touched.push(block);
        }
    }

    /// Asks the policy what the touched blocks still need: at once if acknowledgements show what
    /// the receiver lacks, else after the receiver's reports in the same packet have been read.
    pub(super) fn provision_all(&mut self, now: Time) {
        let mut at = 0;
        while let Some(block) = self.scratch.touched.get(at).copied() {
            if self.send[block.space()].any_symbols_suffice() {
                self.provision(now, block);
            } else {
                self.unprovisioned.push(block);
            }
            at += 1;
        }
        self.scratch.touched.clear();
    }

    /// Asks the policy what the blocks need that had to wait for the receiver's reports.
    pub(super) fn provision_rest(&mut self, now: Time) {
        let mut blocks = core::mem::take(&mut self.unprovisioned);
        self.send.iter_mut().for_each(|send| send.match_repairs(|block| blocks.push(block)));
        blocks.sort_unstable();
        blocks.dedup();
        blocks.drain(..).for_each(|block| self.provision(now, block));
        self.unprovisioned = blocks;
    }
}
