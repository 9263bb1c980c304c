//! Bounds of each phase: the window and the pacing rate.

use anabranch_types::Bitrate;
use core::time::Duration;

use super::{Compensated, MIN_PACKETS, Phase};
use crate::congestion::AckEvent;
use crate::congestion::cwnd::MAX_CWND;

/// Gains while probing up, while draining our queue afterwards, and when the queue must be gone but
/// acknowledgements do not show it yet.
const UP_GAIN: f64 = 1.25;
pub(super) const DOWN_GAIN: f64 = 0.75;
const EMPTY_GAIN: f64 = 0.9;
/// Gain after startup, which leaves a longer queue.
pub(super) const DRAIN_GAIN: f64 = 0.5;
/// The least pacing rate sends the packets of the least window in this time or longer.
const SHORT_ROUND: Duration = Duration::from_millis(50);

impl Compensated {
    /// Sets the window that the phase allows, or the smaller one that marks or losses allow.
    pub(super) fn update_cwnd(&mut self) {
        if self.rate.bps() == 0.0 {
            return;
        }
        // Lost packets stay in flight until three later ones have arrived.
        let undetected = 3.0 / (1.0 - self.rival.random().share().min(0.9));
        let slack = (undetected as u64 + 2) * self.packet;
        let needed = self.product(self.delay.needed());
        let room = needed + self.product(self.target());
        let bytes = match self.phase {
            Phase::Startup => needed * self.startup.window(),
            Phase::Up => room * UP_GAIN,
            Phase::Compete => MAX_CWND as f64,
            Phase::Drain | Phase::Down | Phase::Cruise => room,
        };
        let least = match self.phase {
            Phase::Startup => self.initial.max(MIN_PACKETS) * self.packet,
            _ => MIN_PACKETS * self.packet,
        };
        let cwnd = (bytes as u64).saturating_add(slack).clamp(least, MAX_CWND);
        self.marks.release_above(2 * cwnd);
        let stretch = self.stretch();
        if self.phase != Phase::Compete && self.before != Phase::Compete {
            self.rival.release_above(((cwnd + cwnd / 4) as f64 / stretch) as u64);
        }
        let rival = self.rival.bytes().map(|bytes| (bytes as f64 * stretch) as u64);
        let bound = |bytes: Option<u64>| bytes.map_or(MAX_CWND, |bytes| bytes + slack);
        let bounds = bound(self.marks.bytes()).min(bound(rival));
        self.cwnd = cwnd.min(bounds).max(self.packet);
    }

    fn phase_gain(&self, event: &AckEvent) -> f64 {
        match self.phase {
            Phase::Startup => self.startup.gain(),
            Phase::Up => UP_GAIN,
            Phase::Drain | Phase::Down if self.is_empty(event) => EMPTY_GAIN,
            Phase::Drain => DRAIN_GAIN,
            Phase::Down => DOWN_GAIN,
            Phase::Compete => 1.0,
            // Where the rate varies, the window limits what we send, and the pacing rate leaves
            // room for the path's best moments. The gain is reduced so that the queue beyond half
            // the target drains within two round trips.
            Phase::Cruise => {
                let beyond = (self.delay.own() - self.target() / 2.0).max(0.0);
                let drain = 1.0 - beyond / (2.0 * self.delay.typical()).max(1e-3);
                (drain * self.variation.room()).max(DOWN_GAIN)
            }
        }
    }

    /// Sets the gain, and the pacing rate that the phase allows, or the lower one that marks allow.
    pub(super) fn update_pacing(&mut self, event: &AckEvent) {
        self.gain = self.phase_gain(event);
        let mut rate = Bitrate::from_bps(self.rate.bps() as u64);
        let smoothed = event.rtt.smoothed;
        if self.phase == Phase::Startup && event.rtt.samples > 0 && !self.startup.is_probe() {
            // The first samples come from single packets and say little, so the rate is at least
            // that of the window, as far as it is in use.
            let used = self.cwnd.min(self.startup.proven().max(self.initial * self.packet));
            rate = rate.max(Bitrate::from_transfer(used, smoothed));
        } else if self.phase == Phase::Compete {
            rate = Bitrate::from_transfer(self.cwnd, smoothed).mul_f64(1.2);
        }
        let least = self.least_pacing(smoothed);
        let modelled = (rate > Bitrate::ZERO).then(|| {
            let modelled = rate.mul_f64(self.gain).max(least);
            self.rival_rate().map_or(modelled, |rival| modelled.min(rival))
        });
        self.marked = self.marks.rate(smoothed);
        self.pacing = [modelled, self.marked].into_iter().flatten().min();
    }

    /// How many times the window that losses allow may be in flight. If the delay varies, the
    /// factor is above 1, since the bottleneck would run idle if we stopped sending while a slow
    /// packet holds up others; `rival_rate` then keeps the mean rate to the window. While we
    /// compete it is 1, since the delay is the rival's.
    fn stretch(&self) -> f64 {
        if self.phase == Phase::Compete { 1.0 } else { self.delay.stretch() }
    }

    /// The rate of the window that losses allow, over a typical round trip, if more than that
    /// window may be in flight.
    fn rival_rate(&self) -> Option<Bitrate> {
        let bytes = self.rival.bytes().filter(|_| self.stretch() > 1.0)?;
        let round = Duration::try_from_secs_f64(self.delay.typical()).ok()?;
        (!round.is_zero()).then(|| Bitrate::from_transfer(bytes, round))
    }

    /// Least pacing rate, without which nothing would be measured: [`MIN_PACKETS`] packets in a
    /// round trip or in [`SHORT_ROUND`], whichever is longer, or one packet in a round trip if that
    /// is more. In a short round trip, [`MIN_PACKETS`] packets could exceed what the path holds;
    /// the queue would not fall when we send less, and so look like another flow's.
    fn least_pacing(&self, smoothed: Duration) -> Bitrate {
        let few = Bitrate::from_transfer(MIN_PACKETS * self.packet, smoothed.max(SHORT_ROUND));
        few.max(Bitrate::from_transfer(self.packet, smoothed))
    }
}
