//! OLIA: coupled growth that shifts windows towards the best paths.

use crate::congestion::coupling::{least_packets, paths, total_rate};
use crate::congestion::cwnd::{AdditiveCwnd, CwndRule};
use crate::congestion::{AckEvent, CongestionController};
use crate::registry::{Entry, Options, PolicyError, option};
use crate::view::PathView;

/// The policy's entry in the registry.
pub const ENTRY: Entry = Entry {
    name: "olia",
    summary: "coupled: linked growth, moved from the largest windows to the paths that lose least",
    source: "Khalili et al. 2013, §IV, eq. 5 and 6",
    options: &[option("initial", "initial window, packets", "10")],
};

/// The opportunistic linked-increases algorithm. With one path it is Reno.
///
/// A path is among the best if it has the largest l/rtt², where l is the number of bytes between
/// losses ([`InterLoss::largest`](crate::view::InterLoss::largest)). If some of the best paths do
/// not have the largest window, the paths with the largest windows shrink a little and these best
/// paths grow by as much. With several paths, a window may fall to one packet instead of two
/// (draft-khalili-mptcp-congestion-control, §3).
#[derive(Clone, Debug)]
pub struct Olia {
    cwnd: AdditiveCwnd,
    /// Growth that has not been applied yet, in window bytes times packets; negative for shrinkage.
    owed: f64,
}

/// Builds the policy from its options.
pub fn build(options: &Options<'_>) -> Result<Box<dyn CongestionController>, PolicyError> {
    let initial = options.integer("initial", 1..=1000)?;
    Ok(Box::new(Olia { cwnd: AdditiveCwnd::new(initial, options.packet_size()), owed: 0.0 }))
}

/// l/rtt², which is largest on the best paths.
fn quality(path: &PathView) -> f64 {
    let rtt = path.rtt.smoothed.as_secs_f64().max(1e-6);
    path.inter_loss.largest() as f64 / (rtt * rtt)
}

/// α of eq. 6 for `own`, one of `siblings`.
fn alpha(own: &PathView, siblings: &[PathView]) -> f64 {
    let widest = paths(siblings).map(|path| path.cwnd).max().unwrap_or(0);
    let best = paths(siblings).map(quality).fold(0.0, f64::max);
    let is_widest = |path: &PathView| path.cwnd >= widest;
    let deserves_more = |path: &PathView| quality(path) >= best && !is_widest(path);
    let deserving = paths(siblings).filter(|path| deserves_more(path)).count() as f64;
    let all = paths(siblings).count() as f64;
    if deserving == 0.0 {
        0.0
    } else if deserves_more(own) {
        1.0 / (all * deserving)
    } else if is_widest(own) {
        -1.0 / (all * paths(siblings).filter(|path| is_widest(path)).count() as f64)
    } else {
        0.0
    }
}

impl Olia {
    /// Growth per acknowledged packet (eq. 5) in units of 1/w.
    fn factor(&self, event: &AckEvent, siblings: &[PathView]) -> f64 {
        let own = paths(siblings).find(|own| event.path == Some(own.id));
        let Some(own) = own else { return 1.0 };
        let x = self.cwnd.bytes() as f64 / event.rtt.smoothed.as_secs_f64().max(1e-6);
        let share = x / total_rate(siblings).max(x);
        share * share + alpha(own, siblings)
    }
}

impl CwndRule for Olia {
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
        let least = least_packets(siblings);
        self.cwnd.set_least(least);
        if self.cwnd.congested(event) {
            self.cwnd.cut(event.now, self.cwnd.bytes() / 2, least);
            self.owed = 0.0;
        } else if self.cwnd.may_grow(event) {
            if self.cwnd.in_slow_start() {
                self.cwnd.grow(event.acked_bytes);
                return;
            }
            self.owed += event.acked_bytes as f64 * self.factor(event, siblings);
            let (bytes, packet) = (self.cwnd.bytes(), self.cwnd.packet());
            // Rounded, so that a factor just below one counts as one.
            let packets = ((self.owed + 0.5) / bytes as f64).trunc();
            if packets != 0.0 {
                self.owed -= packets * bytes as f64;
                let step = (packets.abs() as u64).saturating_mul(packet);
                let target = if packets > 0.0 { bytes + step } else { bytes.saturating_sub(step) };
                self.cwnd.steer(target);
            }
        }
    }
}
