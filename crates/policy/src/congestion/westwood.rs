//! Westwood+: after a loss the window is set to the bandwidth-delay product of the measured
//! bandwidth and the least round-trip time.

use anabranch_types::{Bitrate, Time};

use crate::congestion::cwnd::{AdditiveCwnd, CwndRule};
use crate::congestion::delay::Rounds;
use crate::congestion::{AckEvent, CongestionController, TimeoutEvent};
use crate::registry::{Entry, Options, PolicyError, option};
use crate::view::PathView;

/// The policy's entry in the registry.
pub const ENTRY: Entry = Entry {
    name: "westwood",
    summary: "Reno's growth; on loss or mark the window falls to bandwidth estimate times least RTT",
    source: "Grieco and Mascolo 2004, §2 (Westwood+)",
    options: &[option("initial", "initial window, packets", "10")],
};

/// Westwood+: one bandwidth sample per round trip, smoothed twice with gain 1/8.
#[derive(Clone, Debug)]
pub struct Westwood {
    cwnd: AdditiveCwnd,
    rounds: Rounds,
    /// Bytes acknowledged in this round, and when it began.
    acked: u64,
    began: Option<Time>,
    /// Bytes per second, smoothed once and twice.
    once: f64,
    twice: f64,
}

/// Builds the policy from its options.
pub fn build(options: &Options<'_>) -> Result<Box<dyn CongestionController>, PolicyError> {
    let initial = options.integer("initial", 1..=1000)?;
    Ok(Box::new(Westwood {
        cwnd: AdditiveCwnd::new(initial, options.packet_size()),
        rounds: Rounds::default(),
        acked: 0,
        began: None,
        once: 0.0,
        twice: 0.0,
    }))
}

impl Westwood {
    /// The product of the bandwidth estimate and the least round-trip time, bytes.
    fn pipe(&self) -> u64 {
        (self.twice * self.rounds.base().as_secs_f64()) as u64
    }

    fn measure(&mut self, event: &AckEvent) {
        let ended = self.rounds.take(event).is_some();
        let Some(began) = self.began else {
            // The bytes of the first acknowledgement are in no sample, since their sending time is
            // unknown.
            self.began = Some(event.now);
            return;
        };
        self.acked = self.acked.saturating_add(event.acked_bytes);
        if !ended {
            return;
        }
        let elapsed = event.now.since(began).as_secs_f64();
        if elapsed > 0.0 {
            let sample = self.acked as f64 / elapsed;
            if self.twice > 0.0 {
                self.once = (7.0 * self.once + sample) / 8.0;
                self.twice = (7.0 * self.twice + self.once) / 8.0;
            } else {
                (self.once, self.twice) = (sample, sample);
            }
        }
        (self.acked, self.began) = (0, Some(event.now));
    }
}

impl CwndRule for Westwood {
    fn additive(&self) -> &AdditiveCwnd {
        &self.cwnd
    }

    fn additive_mut(&mut self) -> &mut AdditiveCwnd {
        &mut self.cwnd
    }

    fn acked(&mut self, event: &AckEvent, _siblings: &[PathView]) {
        self.measure(event);
        let pipe = self.pipe();
        if self.cwnd.congested(event) {
            // Without a measurement, the window is halved as in Reno.
            let target = if self.twice > 0.0 { pipe } else { self.cwnd.bytes() / 2 };
            self.cwnd.cut(event.now, target, 2);
        } else if self.cwnd.may_grow(event) {
            self.cwnd.grow(event.acked_bytes);
        }
    }

    fn timed_out(&mut self, event: &TimeoutEvent) {
        if event.consecutive <= 1 && self.twice > 0.0 {
            self.cwnd.collapse_below(event.now, self.pipe());
        } else {
            let first = event.consecutive <= 1;
            self.cwnd.collapse(event.now, event.bytes_in_flight, 1, first);
        }
    }

    fn measured(&self) -> Option<Bitrate> {
        (self.twice > 0.0).then(|| Bitrate::from_bps((self.twice * 8.0) as u64))
    }
}
