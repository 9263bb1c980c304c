//! Linux's own MPTCP scheduler: sends bursts on the subflow that will finish sending its queue first.

use anabranch_types::{PathId, Time};

use crate::registry::{Entry, Options, PolicyError};
use crate::scheduler::work::{NOTHING, carrier, carriers, oldest, send};
use crate::scheduler::{Pick, Pull, Scheduler, Work};
use crate::view::{BlockView, MAX_PATHS, PathView, SchedulerView};

/// The policy's entry in the registry.
pub const ENTRY: Entry = Entry {
    name: "linux",
    summary: "bursts of 64 KiB to the path that empties its queue first, even ahead of its window",
    source: "Linux 6.18, net/mptcp/protocol.c, mptcp_subflow_get_send and mptcp_subflow_get_retrans",
    options: &[],
};

/// Bytes of a burst (MPTCP_SEND_BURST_SIZE: 64 KiB minus the longest TCP header).
const BURST: u64 = 65_428;
/// Least congestion window, packets, by which Linux sizes the send buffer of a path. The buffer holds [`WINDOWS`]
/// windows of payload: Linux counts two windows, and every packet of 1448 bytes as 4352 (`tcp_sndbuf_expand`).
pub const LEAST_WINDOW: u64 = 10;
/// Congestion windows of payload that a send buffer holds; see [`LEAST_WINDOW`].
pub const WINDOWS: u64 = 6;

/// New data goes in bursts to the path with the least time until it has sent what it holds, at the
/// mean of its pacing rates weighted by bytes. If the send buffer of this path is full, no other
/// path gets the data. A symbol that is due again after a timeout although a usable path still
/// holds it goes only to a path that holds nothing; a symbol that no usable path holds is treated
/// like new data.
///
/// A path holds the data that is in flight and queued there; Linux also counts data that has
/// arrived after a gap.
#[derive(Clone, Debug)]
pub struct Linux {
    /// Mean pacing rate by slot, bytes per second; 0 before the first burst.
    rates: [f64; MAX_PATHS],
}

/// Builds the policy from its options.
pub fn build(_options: &Options<'_>) -> Result<Box<dyn Scheduler>, PolicyError> {
    Ok(Box::new(Linux { rates: [0.0; MAX_PATHS] }))
}

/// Bytes that a path holds.
fn held(path: &PathView) -> u64 {
    path.bytes_in_flight + path.bytes_queued
}

/// Bytes that still fit into a path's send buffer.
fn space(path: &PathView) -> u64 {
    let window = path.cwnd.max(LEAST_WINDOW * path.packet_size);
    (WINDOWS * window).saturating_sub(held(path))
}

/// The rate at which Linux paces a path, bytes per second: the controller's, or a window in each round trip times 2 in slow
/// start and 1.2 after it (`tcp_update_pacing_rate`).
fn pacing_rate(path: &PathView) -> f64 {
    if path.pacing_rate.as_bps() > 0 {
        return path.pacing_rate.as_bps() as f64 / 8.0;
    }
    let factor = if path.cwnd < path.ssthresh / 2 { 2.0 } else { 1.2 };
    let window = path.cwnd.max(path.bytes_in_flight) as f64;
    factor * window / path.rtt.smoothed.as_secs_f64().max(1e-6)
}

/// Whether a usable path has the only symbol of a block in flight or in its queue. False for blocks
/// of several symbols, for which this is not known.
fn has_a_carrier(block: &BlockView, view: &SchedulerView<'_>) -> bool {
    let mut usable = view.paths.iter().filter(|path| path.usable());
    block.planned == 1
        && usable.any(|path| block.in_flight_by(path) > 0 || block.queued_by(path) > 0)
}

impl Linux {
    fn rate(&mut self, path: &PathView) -> f64 {
        let Some(rate) = self.rates.get_mut(usize::from(path.slot)) else { return 1.0 };
        if *rate == 0.0 {
            *rate = pacing_rate(path);
        }
        rate.max(1.0)
    }

    /// Updates the mean rate of a path that gets a burst of this many bytes: the old mean is
    /// weighted by the bytes held, the current rate by the bytes of the burst.
    fn weigh(&mut self, path: &PathView, bytes: u64) {
        let (held, bytes) = (held(path) as f64, bytes as f64);
        let mean = (self.rate(path) * held + pacing_rate(path) * bytes) / (held + bytes).max(1.0);
        if let Some(rate) = self.rates.get_mut(usize::from(path.slot)) {
            *rate = mean;
        }
    }

    /// The path that will be the first to have sent what it holds; among equals, the first one.
    fn first_empty<'a>(&mut self, view: &SchedulerView<'a>) -> Option<&'a PathView> {
        let lingers = |path: &'a PathView| (held(path) as f64 / self.rate(path), path);
        let times = carriers(view).map(lingers);
        times.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, path)| path)
    }
}

impl Scheduler for Linux {
    fn pull(&mut self, path: PathId, view: &SchedulerView<'_>, picks: &mut Vec<Pick>) -> Pull {
        let own = match carrier(view, path) {
            Ok(own) => own,
            Err(idle) => return idle,
        };
        if let Some(due) = oldest(view.blocks).filter(|_| held(own) == 0) {
            return send(picks, path, due, "due again, and the path is idle");
        }
        let due = view.blocks.iter().find(|block| block.has_work() && !has_a_carrier(block, view));
        let (work, waiting) = match due {
            Some(block) => (Work::Block(block.id), u32::from(block.due.max(1))),
            None => (Work::Fresh, view.fresh.symbols),
        };
        if waiting == 0 {
            return NOTHING;
        }
        let Some(first) = self.first_empty(view) else { return NOTHING };
        let packet = first.packet_size.max(1);
        let most = BURST.min(space(first)).div_ceil(packet).min(u64::from(waiting));
        let count = u16::try_from(most).unwrap_or(u16::MAX);
        if count == 0 {
            return Pull::Idle("the buffer of the path that empties first is full");
        }
        self.weigh(first, u64::from(count) * packet);
        picks.push(Pick { work, count, path: first.id, not_before: Time::ZERO });
        Pull::Send(if first.id == path { "empties first" } else { "another path empties first" })
    }
}
