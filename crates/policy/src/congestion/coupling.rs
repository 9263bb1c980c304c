//! The sums over all paths that the coupled controllers use.

use crate::congestion::AckEvent;
use crate::view::PathView;

/// The paths that the sums include: usable paths with a window.
pub(super) fn paths(siblings: &[PathView]) -> impl Iterator<Item = &PathView> {
    siblings.iter().filter(|path| path.usable() && path.cwnd > 0)
}

/// Window in bytes and round-trip time in seconds of each path.
fn cwnds(siblings: &[PathView]) -> impl Iterator<Item = (f64, f64)> + '_ {
    paths(siblings).map(|path| (path.cwnd as f64, path.rtt.smoothed.as_secs_f64().max(1e-6)))
}

/// Σ w/rtt, bytes per second.
pub(super) fn total_rate(siblings: &[PathView]) -> f64 {
    cwnds(siblings).map(|(cwnd, rtt)| cwnd / rtt).sum()
}

/// The largest w/rtt, bytes per second.
pub(super) fn largest_rate(siblings: &[PathView]) -> f64 {
    cwnds(siblings).map(|(cwnd, rtt)| cwnd / rtt).fold(0.0, f64::max)
}

/// LIA's growth per acknowledged packet, min(α/total, 1/w), of a window of `cwnd` bytes, in units of 1/w (RFC 6356
/// §3, eq. 1).
pub(super) fn linked_growth(cwnd: u64, siblings: &[PathView]) -> f64 {
    (linked_gain(siblings) * cwnd as f64).min(1.0)
}

/// α of LIA divided by the total window, per byte: max(w/rtt²)/(Σ w/rtt)² (RFC 6356 §3, eq. 2).
fn linked_gain(siblings: &[PathView]) -> f64 {
    let best = cwnds(siblings).map(|(cwnd, rtt)| cwnd / (rtt * rtt)).fold(0.0, f64::max);
    let total = total_rate(siblings);
    if total > 0.0 { best / (total * total) } else { f64::INFINITY }
}

/// The least window after a loss, packets: one if there are other paths, so that a congested path
/// is nearly unused, else two as in TCP.
pub(super) fn least_packets(siblings: &[PathView]) -> u64 {
    if paths(siblings).nth(1).is_some() { 1 } else { 2 }
}

/// The path's part of one flow's share: 1/n if n usable paths, itself included, share its bottleneck.
pub(super) fn flow_share(event: &AckEvent, siblings: &[PathView]) -> f64 {
    let own = paths(siblings).find(|path| Some(path.id) == event.path);
    let shares = own.map_or(0, |own| own.shares);
    let others = paths(siblings).filter(|path| shares >> path.slot & 1 == 1).count();
    1.0 / (1 + others) as f64
}
