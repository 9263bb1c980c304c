//! Reports events to the congestion controller.

use anabranch_policy::congestion::{AckEvent, SentEvent, TimeoutEvent};
use anabranch_policy::view::PathView;
use anabranch_types::Time;
use core::time::Duration;

use super::{Phase, Sender, SenderEvent};
use crate::config::LossRecovery;
use crate::scoreboard::Delivered;

/// The reason for which an acknowledgement asks for a smaller window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    None,
    Loss,
    Mark,
}

/// Summary of an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Digest {
    pub(super) delivered: Delivered,
    /// The cumulative acknowledgement moved.
    pub(super) progress: bool,
    pub(super) newly_lost: u32,
    pub(super) prior_in_flight: u64,
    pub(super) signal: Signal,
    /// The window must not grow: fast recovery was under way when the acknowledgement came, even if that
    /// ended it, or the acknowledgement echoes a mark.
    pub(super) no_growth: bool,
}

impl Sender {
    /// Hands the acknowledgement to the controller. The sender itself limits cuts to one per
    /// window: for a loss that is to cut the window, the controller is told a send time that no
    /// earlier cut covers. During fast recovery, and unless new data was acknowledged cumulatively,
    /// the window must not grow (RFC 5681 §3.2).
    pub(super) fn tell_ack(&mut self, now: Time, digest: &Digest, siblings: &[PathView]) {
        let before = self.controller.cwnd();
        let delivered = &digest.delivered;
        let recovering = matches!(self.phase, Phase::Recovery { .. });
        let cut = digest.signal == Signal::Loss;
        let lost = digest.newly_lost.max(u32::from(cut));
        let reported = if recovering && !cut && self.rate.is_none() { 0 } else { lost };
        let rate = self.rate.as_mut().and_then(|rate| {
            rate.on_lost(u64::from(digest.newly_lost) * u64::from(self.config.mss));
            (delivered.segments > 0).then(|| {
                let first = self.board.first_absolute();
                rate.on_delivered(now, delivered.bytes, delivered.newest_index, first)
            })?
        });
        let real_sent = delivered.newest_sent.map_or(now, |(sent, _)| sent);
        let answered = if cut { now } else { self.cut_reference(now) };
        let event = AckEvent {
            now,
            acked_bytes: delivered.bytes,
            acked_packets: delivered.segments,
            lost_bytes: u64::from(reported) * self.mss(),
            lost_packets: reported,
            ce_packets: u32::from(digest.signal == Signal::Mark),
            bytes_in_flight: self.in_flight(),
            prior_in_flight: digest.prior_in_flight,
            largest_acked_sent: if recovering && !cut { real_sent } else { now },
            largest_lost_sent: answered,
            total_delivered: self.rate.as_ref().map_or(self.una, |rate| rate.delivered()),
            rate,
            rtt: self.rtt.view(),
            path: self.path,
            app_limited: recovering || digest.no_growth || !digest.progress || !self.cwnd_limited,
            ..AckEvent::default()
        };
        self.inter_loss.on_acked(delivered.bytes);
        if cut {
            self.inter_loss.on_lost(now, now);
        }
        self.controller.on_ack(&event, siblings);
        self.note_cut(before, digest.signal);
    }

    /// During recovery, a send time that the controller takes as covered by an earlier cut; otherwise `now`.
    fn cut_reference(&self, now: Time) -> Time {
        if matches!(self.phase, Phase::Recovery { .. }) { Time::ZERO } else { now }
    }

    fn note_cut(&mut self, before: u64, signal: Signal) {
        let after = self.controller.cwnd();
        if signal == Signal::Mark {
            self.statistics.ecn_responses += 1;
        }
        if signal != Signal::None {
            self.statistics.cwnd_reductions += 1;
        }
        if after < before {
            self.events.push_back(SenderEvent::CwndReduced(after));
        }
    }

    pub(super) fn tell_timeout(&mut self, now: Time, bytes_in_flight: u64) {
        self.inter_loss.on_lost(now, now);
        let before = self.controller.cwnd();
        // At repeated timeouts RFC 5681 §3.1 keeps the threshold; ns-2 halves it again.
        let consecutive = match self.config.recovery {
            LossRecovery::FallFloyd => 1,
            _ => self.consecutive_timeouts,
        };
        self.controller.on_timeout(&TimeoutEvent { now, bytes_in_flight, consecutive });
        self.note_cut(before, Signal::Loss);
    }

    /// `bytes` of payload left: tells the controller, and sets when the pacer admits the next
    /// segment.
    pub(super) fn tell_sent(&mut self, now: Time, bytes: u64) {
        let bytes_in_flight = self.in_flight();
        self.controller.on_sent(&SentEvent { now, bytes, bytes_in_flight });
        if let Some(rate) = self.controller.pacing_rate()
            && rate.as_bps() > 0
        {
            let nanos = u128::from(bytes) * 8_000_000_000 / u128::from(rate.as_bps());
            let gap = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
            self.next_send = self.next_send.max(now) + gap;
        }
    }
}
