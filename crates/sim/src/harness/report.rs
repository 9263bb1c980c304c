use core::time::Duration;

use anabranch_core::connection::ConnectionStats;
use anabranch_types::Time;

use crate::link::LinkCounters;

/// What a run measured.
#[derive(Clone, Debug)]
pub struct Report {
    /// From the first handshake datagram to the last byte delivered.
    pub elapsed: Duration,
    /// Bits that the links could have delivered in that time: ∫ Σ rate·(1 − loss state) dt.
    pub capacity_bits: f64,
    /// The flows, in their order.
    pub flows: Vec<FlowReport>,
    /// The links, in their order.
    pub links: Vec<LinkReport>,
    /// Digest of every datagram sent (time, link, direction, length, mark): equal runs, equal digests.
    pub digest: u64,
    /// Datagrams sent by both endpoints.
    pub datagrams: u64,
}

impl Report {
    /// Application bytes delivered by all flows.
    pub fn bytes(&self) -> u64 {
        self.flows.iter().map(|flow| flow.bytes).sum()
    }

    /// Application bits delivered over what the links could have delivered.
    pub fn efficiency(&self) -> f64 {
        if self.capacity_bits > 0.0 { self.bytes() as f64 * 8.0 / self.capacity_bits } else { 0.0 }
    }

    /// Application rate over all flows, Mb/s.
    pub fn goodput_mbps(&self) -> f64 {
        self.bytes() as f64 * 8e-6 / self.elapsed.as_secs_f64().max(1e-9)
    }
}

/// What one flow measured.
#[derive(Clone, Debug)]
pub struct FlowReport {
    /// Bytes that the receiving application read.
    pub bytes: u64,
    /// When the last of them was read.
    pub last: Time,
    /// Bytes read from the end of the warm-up on.
    pub bytes_after_warm_up: u64,
    /// Bytes read in each 100 ms from the epoch on.
    pub bins: Vec<u64>,
    /// Longest time without a byte read, from the end of the warm-up to the last byte.
    pub longest_gap: Duration,
    /// Delays of the probes.
    pub probes: ProbeReport,
    /// The sender's figures at the end.
    pub sender: Option<ConnectionStats>,
    /// The receiver's figures at the end.
    pub receiver: Option<ConnectionStats>,
}

impl FlowReport {
    /// Application rate between the end of the warm-up and the last byte, Mb/s.
    pub fn goodput_after(&self, warm_up: Duration) -> f64 {
        let time = self.last.since(Time::ZERO + warm_up).as_secs_f64();
        self.bytes_after_warm_up as f64 * 8e-6 / time.max(1e-9)
    }
}

/// One-way delays of probes, from the write to the read.
#[derive(Clone, Debug, Default)]
pub struct ProbeReport {
    /// Probes sent.
    pub sent: u64,
    /// Delays of those that arrived, ascending.
    pub delays: Vec<Duration>,
}

impl ProbeReport {
    /// The delay that a share `quantile` of the probes sent does not exceed; those that never arrived
    /// count as infinite.
    pub fn quantile(&self, quantile: f64) -> Duration {
        let rank = (self.sent as f64 * quantile).ceil().max(1.0) as usize;
        self.delays.get(rank - 1).copied().unwrap_or(Duration::MAX)
    }
}

/// What happened on a link.
#[derive(Clone, Debug)]
pub struct LinkReport {
    /// In the data direction.
    pub forward: LinkCounters,
    /// In the opposite direction.
    pub reverse: LinkCounters,
    /// Bytes sent in the data direction in each 100 ms from the epoch on, IP and UDP headers included;
    /// what the link then dropped counts too.
    pub sent: Vec<u64>,
}
