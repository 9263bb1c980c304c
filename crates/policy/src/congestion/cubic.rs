//! CUBIC: the window is a cubic function of the time since the last cut.

use anabranch_types::{Time, math};
use core::time::Duration;

use crate::congestion::cwnd::{LastCut, MAX_CWND};
use crate::congestion::hystart::HyStart;
use crate::congestion::{AckEvent, CongestionController, TimeoutEvent};
use crate::registry::{Entry, Options, PolicyError, option};
use crate::view::PathView;

/// The policy's entry in the registry.
pub const ENTRY: Entry = Entry {
    name: "cubic",
    summary: "window grows as a cubic of time around its last maximum, times 0.7 on loss or mark",
    source: "RFC 9438 §4",
    options: &[
        option("initial", "initial window, packets", "10"),
        option("collapse", "timeouts in a row before the window falls to one packet", "1"),
        option(
            "like",
            "rfc9438, or linux: windows in whole packets, and what Reno would have grows by 0.53 for good",
            "rfc9438",
        ),
        option(
            "slow-start",
            "ends by a loss, or by hystart too; as-like: by a loss in rfc9438, by hystart too in linux",
            "as-like",
        ),
    ],
};

/// C, packets per second cubed (RFC 9438 §4.2 and §5).
const SCALE: f64 = 0.4;
/// Factor by which a cut multiplies the window, β (RFC 9438 §4.6).
const BETA: f64 = 0.7;

/// CUBIC, with HyStart as an option. Internally, windows are in packets, as in the RFC.
#[derive(Clone, Debug)]
pub struct Cubic {
    packet: u64,
    cwnd: f64,
    ssthresh: f64,
    /// Window before the last cut, lowered by fast convergence: the plateau.
    w_max: f64,
    /// Window just before the last cut.
    prior: f64,
    /// Window that Reno would have.
    w_est: f64,
    /// Seconds from the start of the epoch to the plateau.
    k: f64,
    epoch: Option<Time>,
    last_ack: Time,
    last_cut: LastCut,
    /// Window and threshold before the last cut, packets.
    before: (f64, f64),
    collapse: u32,
    /// Whether to count as Linux does (tcp_cubic.c): in whole packets, and with no faster growth for `w_est`.
    linux: bool,
    /// Detector that ends slow start besides losses and marks.
    hystart: Option<HyStart>,
    /// C, and Reno's increase, packets per window.
    scale: f64,
    increase: f64,
}

/// Builds the policy from its options.
pub fn build(options: &Options<'_>) -> Result<Box<dyn CongestionController>, PolicyError> {
    let initial = options.integer("initial", 1..=1000)?;
    let collapse = options.integer("collapse", 1..=10)? as u32;
    let fresh = Cubic::at(0, options.packet_size());
    let linux = options.choice("like", &[("rfc9438", false), ("linux", true)])?;
    let ends = [("as-like", linux), ("loss", false), ("hystart", true)];
    let hystart = options.choice("slow-start", &ends)?.then(HyStart::default);
    let ssthresh = f64::INFINITY;
    Ok(Box::new(Cubic { cwnd: initial as f64, ssthresh, collapse, linux, hystart, ..fresh }))
}

impl Cubic {
    /// A controller with a window of `bytes` that has left slow start.
    pub(super) fn at(bytes: u64, packet: u64) -> Self {
        let packet = packet.clamp(1, MAX_CWND / 1024);
        let cwnd = (bytes.min(MAX_CWND) as f64 / packet as f64).max(2.0);
        Cubic {
            packet,
            cwnd,
            ssthresh: cwnd,
            w_max: 0.0,
            prior: 0.0,
            w_est: 0.0,
            k: 0.0,
            epoch: None,
            last_ack: Time::ZERO,
            last_cut: LastCut::default(),
            before: (0.0, 0.0),
            collapse: 1,
            linux: false,
            hystart: None,
            scale: SCALE,
            increase: 1.0,
        }
    }

    /// Scales the window to the given share of a whole flow's window at the same loss. CUBIC's
    /// window is proportional to C^¼ (RFC 9438 §5.1), and in the Reno-friendly region to the square
    /// root of Reno's increase, as in RFC 6356.
    pub(super) fn set_share(&mut self, share: f64) {
        let squared = share * share;
        (self.scale, self.increase) = (SCALE * squared * squared, squared);
    }

    fn to_bytes(&self, packets: f64) -> u64 {
        // The cast saturates for values beyond u64; infinity stands for "no threshold".
        (packets * self.packet as f64) as u64
    }

    /// Multiplicative decrease with fast convergence (RFC 9438 §4.6, §4.7).
    fn cut(&mut self, now: Time) {
        self.before = (self.cwnd, self.ssthresh);
        if self.linux {
            self.cwnd = self.cwnd.floor();
        }
        self.w_max =
            if self.cwnd < self.w_max { self.cwnd * (1.0 + BETA) / 2.0 } else { self.cwnd };
        self.prior = self.cwnd;
        let smaller = self.cwnd * BETA;
        self.cwnd = if self.linux { smaller.floor() } else { smaller }.max(2.0);
        self.ssthresh = self.cwnd;
        self.epoch = None;
        self.last_cut = LastCut::at(now);
    }

    /// Congestion avoidance for `acked` packets (RFC 9438 §4.2 to §4.5).
    fn avoid(&mut self, now: Time, rtt: Duration, mut acked: f64) {
        if self.cwnd < self.ssthresh {
            let step = acked.min(self.ssthresh - self.cwnd);
            self.cwnd += step;
            acked -= step;
            if acked <= 0.0 {
                return;
            }
        }
        let epoch = match self.epoch {
            Some(epoch) => epoch,
            None => self.start_epoch(now),
        };
        let t = now.since(epoch).as_secs_f64() + rtt.as_secs_f64();
        let x = t - self.k;
        let cubic = self.scale * x * x * x + self.w_max;
        let target = cubic.clamp(self.cwnd, 1.5 * self.cwnd);
        let fair = 3.0 * (1.0 - BETA) / (1.0 + BETA);
        let alpha = if self.w_est >= self.prior && !self.linux { 1.0 } else { fair };
        self.w_est += self.increase * alpha * acked / self.cwnd;
        if self.linux {
            return self.approach(target.max(self.w_est).floor(), acked);
        }
        self.cwnd += (target - self.cwnd) * (acked / self.cwnd).min(1.0);
        self.cwnd = self.cwnd.max(self.w_est);
    }

    /// Grows a window of w packets towards `target`, whole packets, as Linux does
    /// (`bictcp_update`): by one packet for every w ÷ (`target` − w) acknowledged packets, but at
    /// least 2, or for every 100 w if the target is reached.
    fn approach(&mut self, target: f64, acked: f64) {
        let window = self.cwnd.floor().max(1.0);
        let missing = target - window;
        let count = if missing > 0.0 { window / missing } else { 100.0 * window };
        self.cwnd += acked / count.max(2.0);
    }

    fn start_epoch(&mut self, now: Time) -> Time {
        if self.cwnd < self.w_max {
            self.k = math::cbrt((self.w_max - self.cwnd) / self.scale);
        } else {
            self.k = 0.0;
            self.w_max = self.cwnd;
        }
        self.w_est = self.cwnd;
        self.epoch = Some(now);
        now
    }
}

impl CongestionController for Cubic {
    fn on_ack(&mut self, event: &AckEvent, _siblings: &[PathView]) {
        if self.cwnd < self.ssthresh
            && let Some(hystart) = &mut self.hystart
            && hystart.on_ack(event, self.cwnd)
        {
            self.ssthresh = self.cwnd;
        }
        if self.last_cut.congested(event) {
            self.cut(event.now);
        } else if event.app_limited {
            // Time during which the window was not used must not count towards the cubic (§5.8).
            let idle = event.now.since(self.last_ack);
            self.epoch = self.epoch.map(|epoch| (epoch + idle).min(event.now));
        } else if self.last_cut.may_grow(event) {
            let acked = event.acked_bytes.min(MAX_CWND) as f64 / self.packet as f64;
            self.avoid(event.now, event.rtt.smoothed, acked);
            self.cwnd = self.cwnd.min((MAX_CWND / self.packet) as f64);
        }
        self.last_ack = event.now;
    }

    fn on_timeout(&mut self, event: &TimeoutEvent) {
        if event.consecutive < self.collapse {
            return;
        }
        if event.consecutive == self.collapse {
            self.before = (self.cwnd, self.ssthresh);
            let flight = event.bytes_in_flight.min(MAX_CWND) as f64 / self.packet as f64;
            self.ssthresh = (flight * BETA).max(2.0);
            self.prior = self.cwnd;
        }
        // The plateau is discarded: the next epoch starts at its own window with K = 0 (§4.8).
        self.w_max = 0.0;
        self.cwnd = 1.0;
        self.epoch = None;
        self.last_cut = LastCut::at(event.now);
    }

    fn undo(&mut self) {
        let (cwnd, ssthresh) = self.before;
        (self.cwnd, self.ssthresh) = (self.cwnd.max(cwnd), self.ssthresh.max(ssthresh));
    }

    fn penalise(&mut self) {
        if self.cwnd >= self.ssthresh {
            self.ssthresh = (self.ssthresh / 2.0).max(2.0);
        }
        self.cwnd = (self.cwnd / 2.0).max(1.0);
        self.epoch = None;
    }

    fn set_packet_size(&mut self, bytes: u64) {
        let bytes = bytes.clamp(1, MAX_CWND / 1024);
        let scale = self.packet as f64 / bytes as f64;
        self.cwnd = (self.cwnd * scale).max(1.0);
        self.ssthresh *= scale;
        self.w_max *= scale;
        self.prior *= scale;
        self.w_est *= scale;
        self.epoch = None;
        self.packet = bytes;
    }

    fn cwnd(&self) -> u64 {
        self.to_bytes(self.cwnd).max(self.packet)
    }

    fn ssthresh(&self) -> u64 {
        if self.ssthresh.is_finite() { self.to_bytes(self.ssthresh) } else { u64::MAX }
    }

    fn phase(&self) -> &'static str {
        if self.cwnd < self.ssthresh { "slow-start" } else { "congestion-avoidance" }
    }
}
