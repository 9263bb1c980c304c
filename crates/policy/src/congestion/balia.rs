//! BALIA: coupled growth balanced between friendliness and responsiveness.

use core::time::Duration;

use crate::congestion::coupling::{largest_rate, least_packets, total_rate};
use crate::congestion::cwnd::{AdditiveCwnd, CwndRule};
use crate::congestion::{AckEvent, CongestionController};
use crate::registry::{Entry, Options, PolicyError, option};
use crate::view::PathView;

/// The policy's entry in the registry.
pub const ENTRY: Entry = Entry {
    name: "balia",
    summary: "coupled: balanced linked adaptation, in growth and in cuts",
    source: "Peng, Walid, Hwang and Low 2016, §V",
    options: &[option("initial", "initial window, packets", "10")],
};

/// Balanced linked adaptation. With one path it is Reno. The ratio of rates is a real number here;
/// a well-known implementation truncates it. With several paths, a window may fall to one packet
/// instead of two (draft-walid-mptcp-congestion-control, §3).
#[derive(Clone, Debug)]
pub struct Balia {
    cwnd: AdditiveCwnd,
}

/// Builds the policy from its options.
pub fn build(options: &Options<'_>) -> Result<Box<dyn CongestionController>, PolicyError> {
    let initial = options.integer("initial", 1..=1000)?;
    Ok(Box::new(Balia { cwnd: AdditiveCwnd::new(initial, options.packet_size()) }))
}

impl Balia {
    /// x = w/rtt of this path and a = max x/x, at least 1.
    fn rate(&self, rtt: Duration, siblings: &[PathView]) -> (f64, f64) {
        let x = self.cwnd.bytes() as f64 / rtt.as_secs_f64().max(1e-6);
        (x, (largest_rate(siblings) / x).max(1.0))
    }
}

impl CwndRule for Balia {
    fn additive(&self) -> &AdditiveCwnd {
        &self.cwnd
    }

    fn additive_mut(&mut self) -> &mut AdditiveCwnd {
        &mut self.cwnd
    }

    fn is_coupled(&self) -> bool {
        true
    }

    fn acked(&mut self, event: &AckEvent, siblings: &[PathView]) {
        let (x, a) = self.rate(event.rtt.smoothed, siblings);
        let (cwnd, least) = (&mut self.cwnd, least_packets(siblings));
        cwnd.set_least(least);
        if cwnd.congested(event) {
            let cut = cwnd.bytes() as f64 / 2.0 * a.min(1.5);
            let target = cwnd.bytes().saturating_sub(cut as u64);
            cwnd.cut(event.now, target, least);
        } else if cwnd.may_grow(event) {
            // x/(rtt·(Σx)²) per acknowledged packet is (x/Σx)² in units of 1/w.
            let share = x / total_rate(siblings).max(x);
            let factor = share * share * (1.0 + a) / 2.0 * (4.0 + a) / 5.0;
            cwnd.grow_by(event.acked_bytes, factor);
        }
    }
}
