use core::time::Duration;

use anabranch_types::{Bitrate, Ecn, Rng, Time};

use crate::engine::{Agent, Arrival, Outbox, Payload, PortId};

/// Configuration of a [`Udp`] source.
#[derive(Clone, Debug, PartialEq)]
pub struct UdpConfig {
    /// Rate on the wire while sending; less than 1 b/s counts as 1 b/s.
    pub rate: Bitrate,
    /// Bytes of each packet on the wire, headers included; at least 1.
    pub size: u32,
    /// When the source sends.
    pub pattern: UdpPattern,
    /// The ECN codepoint that the packets carry.
    pub ecn: Ecn,
    /// When the source stops for good; `Time::MAX` for never.
    pub stop: Time,
}

/// When a [`Udp`] source sends.
#[derive(Clone, Debug, PartialEq)]
pub enum UdpPattern {
    /// Always, at equal intervals.
    Constant,
    /// In bursts with pauses between them. The lengths of both are exponentially distributed. The
    /// source starts with a burst.
    OnOff {
        /// Mean length of a burst.
        on: Duration,
        /// Mean length of a pause.
        off: Duration,
    },
}

impl UdpConfig {
    /// A constant rate of packets of `size` bytes on the wire, without end.
    pub fn constant(rate: Bitrate, size: u32) -> Self {
        let pattern = UdpPattern::Constant;
        UdpConfig { rate, size, pattern, ecn: Ecn::NotEct, stop: Time::MAX }
    }

    /// Bursts at `rate` of packets of `size` bytes on the wire. The lengths of bursts and pauses
    /// are exponentially distributed with means `on` and `off`.
    pub fn on_off(rate: Bitrate, size: u32, on: Duration, off: Duration) -> Self {
        let pattern = UdpPattern::OnOff { on, off };
        UdpConfig { pattern, ..UdpConfig::constant(rate, size) }
    }
}

/// An unresponsive source of load, which sends packets without content over its first port.
#[derive(Clone, Debug)]
pub struct Udp {
    config: UdpConfig,
    random: Rng,
    port: Option<PortId>,
    /// Time of the next packet, and the fraction of a nanosecond that is carried over, multiplied
    /// by the rate in bit/s.
    next: Time,
    carry: u64,
    /// When the burst ends; `Time::MAX` without bursts.
    burst_ends: Time,
    started: bool,
    packets: u64,
    bytes: u64,
}

/// Bits per byte times nanoseconds per second.
const UNITS_PER_BYTE: u64 = 8_000_000_000;

impl Udp {
    /// A source whose random draws are the substream of `seed` called `agent.<name>`.
    pub fn new(config: UdpConfig, seed: u64, name: &str) -> Self {
        Udp {
            random: Rng::substream(seed, &format!("agent.{name}")),
            config,
            port: None,
            next: Time::MAX,
            carry: 0,
            burst_ends: Time::MAX,
            started: false,
            packets: 0,
            bytes: 0,
        }
    }

    /// Packets sent.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Bytes sent, headers included.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn start_burst(&mut self, now: Time) {
        self.next = now;
        self.carry = 0;
        if let UdpPattern::OnOff { on, .. } = self.config.pattern {
            self.burst_ends = now + self.draw(on);
        }
    }

    fn draw(&mut self, mean: Duration) -> Duration {
        let nanos = self.random.exponential(mean.as_secs_f64()) * 1e9;
        Duration::from_nanos(nanos as u64)
    }

    /// Sets the time of the next packet, exact to the nanosecond and without drift.
    fn advance(&mut self) {
        let rate = self.config.rate.as_bps().max(1);
        let units = u64::from(self.config.size.max(1)).saturating_mul(UNITS_PER_BYTE);
        let units = units.saturating_add(self.carry);
        self.carry = units % rate;
        // Each step is at least a nanosecond, so that time advances at any rate.
        self.next += Duration::from_nanos((units / rate).max(1));
        if self.next >= self.burst_ends
            && let UdpPattern::OnOff { off, .. } = self.config.pattern
        {
            let pause = self.draw(off);
            self.start_burst((self.burst_ends + pause).max(self.next));
        }
    }
}

impl Agent for Udp {
    fn attach(&mut self, port: PortId) {
        self.port = self.port.or(Some(port));
    }

    fn handle_packet(&mut self, _arrival: Arrival<'_>, _out: &mut Outbox<'_>) {}

    fn handle_timer(&mut self, now: Time, out: &mut Outbox<'_>) {
        if !self.started {
            self.started = true;
            self.start_burst(now);
        }
        if now < self.next {
            return;
        }
        if now >= self.config.stop {
            self.next = Time::MAX;
            return;
        }
        if let Some(port) = self.port {
            out.send(port, self.config.size, self.config.ecn, Payload::Filler);
            self.packets += 1;
            self.bytes += u64::from(self.config.size);
        }
        self.advance();
    }

    fn next_timer(&self) -> Option<Time> {
        (self.next < Time::MAX).then_some(self.next)
    }
}

/// Counts what arrives and answers nothing.
#[derive(Clone, Debug, Default)]
pub struct Sink {
    packets: u64,
    bytes: u64,
    marked: u64,
    delay: Duration,
}

impl Sink {
    /// Packets that have arrived.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Bytes that have arrived, headers included.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Packets with a congestion mark.
    pub fn marked(&self) -> u64 {
        self.marked
    }

    /// Mean one-way delay of the packets; zero before the first.
    pub fn mean_delay(&self) -> Duration {
        u32::try_from(self.packets)
            .map_or(Duration::ZERO, |packets| self.delay.checked_div(packets).unwrap_or_default())
    }
}

impl Agent for Sink {
    fn attach(&mut self, _port: PortId) {}

    fn handle_packet(&mut self, arrival: Arrival<'_>, _out: &mut Outbox<'_>) {
        self.packets += 1;
        self.bytes += u64::from(arrival.size);
        self.marked += u64::from(arrival.ecn == Ecn::Ce);
        self.delay += arrival.now.since(arrival.sent);
    }

    fn handle_timer(&mut self, _now: Time, _out: &mut Outbox<'_>) {}

    fn next_timer(&self) -> Option<Time> {
        None
    }
}
