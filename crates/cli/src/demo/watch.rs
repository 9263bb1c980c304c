//! Statistics of a transfer while it runs.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anabranch::{Connection, ConnectionStats, PathSpec};
use anabranch_emulate::{Relay, RelayStats};
use anabranch_sim::link::LinkCounters;
use anabranch_types::Time;

use super::table::Row;

/// The screen shows rates and losses over this time.
const SPAN: Duration = Duration::from_secs(1);

/// Reads the counters of the relay, the connection and the receiver.
#[derive(Debug)]
pub(super) struct Watch {
    relay: Arc<Relay>,
    remotes: Vec<SocketAddr>,
    connection: Connection,
    arrived: Arc<AtomicU64>,
    size: Option<u64>,
    /// Readings of the last [`SPAN`], oldest first.
    past: VecDeque<Glance>,
}

#[derive(Clone, Debug)]
struct Glance {
    at: Time,
    arrived: u64,
    links: Vec<LinkCounters>,
}

/// A transfer at a moment.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    /// Time since the first datagram.
    pub(super) elapsed: Duration,
    /// Bytes that the receiving application has read, and the number to be sent, if it is known.
    pub(super) arrived: u64,
    pub(super) size: Option<u64>,
    /// Goodput of the last second, Mb/s.
    pub(super) goodput_mbps: f64,
    /// The paths: rate and loss of the last second, else totals.
    pub(super) rows: Vec<Row>,
}

impl Watch {
    pub(super) fn new(
        relay: &Arc<Relay>,
        paths: &[PathSpec],
        connection: &Connection,
        arrived: &Arc<AtomicU64>,
        size: Option<u64>,
    ) -> Self {
        Watch {
            relay: Arc::clone(relay),
            remotes: paths.iter().map(|path| path.remote).collect(),
            connection: connection.clone(),
            arrived: Arc::clone(arrived),
            size,
            past: VecDeque::new(),
        }
    }

    /// Whether the emulated links still work.
    pub(super) fn links_are_up(&self) -> bool {
        self.relay.is_running()
    }

    /// The transfer now.
    pub(super) fn reading(&mut self) -> Reading {
        let relay = self.relay.stats();
        let now = Glance {
            at: relay.now,
            arrived: self.arrived.load(Ordering::Relaxed),
            links: relay.paths.iter().map(|path| path.forward.link).collect(),
        };
        // Of the glances that are at least a `SPAN` old, only the newest is kept.
        while self.past.get(1).is_some_and(|next| now.at.since(next.at) >= SPAN) {
            self.past.pop_front();
        }
        let start = Glance {
            at: relay.first_datagram.unwrap_or(now.at),
            arrived: 0,
            links: vec![LinkCounters::default(); now.links.len()],
        };
        let then = self.past.front().unwrap_or(&start);
        let time = now.at.since(then.at);
        let mut rows = rows(&relay, self.connection.stats().as_ref(), &self.remotes, time);
        for (row, (then, now)) in rows.iter_mut().zip(then.links.iter().zip(&now.links)) {
            row.mbps = mbps(now.bytes_delivered - then.bytes_delivered, time);
            let lost = now.lost_random - then.lost_random;
            row.loss =
                lost as f64 / (now.packets_serialised - then.packets_serialised).max(1) as f64;
        }
        let reading = Reading {
            elapsed: relay.first_datagram.map_or(Duration::ZERO, |first| now.at.since(first)),
            arrived: now.arrived,
            size: self.size,
            goodput_mbps: mbps(now.arrived - then.arrived, time),
            rows,
        };
        self.past.push_back(now);
        reading
    }
}

/// The paths over `time`, which is all the time since the first datagram.
pub(super) fn rows(
    relay: &RelayStats,
    stats: Option<&ConnectionStats>,
    remotes: &[SocketAddr],
    time: Duration,
) -> Vec<Row> {
    let all: u64 = relay.paths.iter().map(|path| path.forward.link.bytes_delivered).sum();
    let rtt = |remote: &SocketAddr| {
        let path = stats?.paths.iter().find(|path| path.address.remote == *remote)?;
        (path.rtt.samples > 0).then_some(path.rtt.smoothed)
    };
    let row = |(path, remote): (&anabranch_emulate::PathStats, &SocketAddr)| {
        let link = &path.forward.link;
        Row {
            name: path.name.clone(),
            mbps: mbps(link.bytes_delivered, time),
            rate_mbps: path.forward.rate.as_mbps(),
            rtt: rtt(remote),
            loss: link.realised_loss().get(),
            drops: link.dropped_by_queue(),
            share: link.bytes_delivered as f64 / all.max(1) as f64,
            marks: link.ecn_marks,
        }
    };
    relay.paths.iter().zip(remotes).map(row).collect()
}

/// Megabits per second.
pub(super) fn mbps(bytes: u64, time: Duration) -> f64 {
    let seconds = time.as_secs_f64();
    if seconds > 0.0 { bytes as f64 * 8e-6 / seconds } else { 0.0 }
}
