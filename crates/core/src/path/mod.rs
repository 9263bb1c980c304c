//! One path: its packet-number spaces, round-trip times, congestion control, pacing and validation.

pub mod control;
pub mod ecn;
pub mod mtu;
pub mod pacer;
pub(crate) mod queue;
pub mod rate;
pub mod received;
pub mod rtt;
pub mod sent;

use std::collections::VecDeque;
use std::net::SocketAddr;

use anabranch_policy::PolicySpec;
use anabranch_policy::congestion::{CongestionController, SentEvent};
use anabranch_policy::view::{InterLoss, LossView, PathState, PathView};
use anabranch_types::{Bitrate, PathId, Time};
use core::time::Duration;

use crate::wire::ControlFrame;
use control::ControlInFlight;
use ecn::EcnValidation;
use mtu::PathMtu;
use pacer::Pacer;
use queue::PathQueue;
use rate::RateSampler;
use received::{Ecn, Received};
use rtt::RttEstimator;
use sent::{Carried, Fate, SentPacket, SentPackets};

/// A local UDP socket, as the driver numbers them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketId(pub u32);

/// Where a path's datagrams go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathAddress {
    /// The local socket they leave through.
    pub socket: SocketId,
    /// The peer's address.
    pub remote: SocketAddr,
}

/// IPv4 and UDP headers, which count as wire bytes.
pub const UDP_OVERHEAD: u64 = 28;
/// Length of the IP and UDP headers on the way to an address.
pub fn ip_udp_headers(address: &PathAddress) -> u16 {
    if address.remote.is_ipv4() { 28 } else { 48 }
}

/// Longest probe interval of a path that does not answer: bounds how late its return is noticed.
const MAX_PROBE_INTERVAL: Duration = Duration::from_millis(500);
/// Acknowledgements that end probation.
const PROBATION_ROUNDS: u32 = 3;

/// A probe timeout as the loss detector sees it.
#[derive(Clone, Copy, Debug)]
pub struct ProbeTimeout {
    /// Before back-off.
    pub base: Duration,
    /// How often it may double.
    pub doublings: u32,
}

/// Counters for statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathCounters {
    /// Packets sent.
    pub sent_packets: u64,
    /// Bytes sent, IP and UDP headers included.
    pub sent_bytes: u64,
    /// Ack-eliciting packets acknowledged.
    pub acked_packets: u64,
    /// Packets declared lost.
    pub lost_packets: u64,
    /// Packets declared lost and acknowledged later.
    pub spurious_losses: u64,
    /// Congestion marks reported by the peer.
    pub ce_marks: u64,
    /// Packets received.
    pub received_packets: u64,
    /// Bytes received, IP and UDP headers included.
    pub received_bytes: u64,
    /// Probe timeouts.
    pub timeouts: u64,
}

/// State of one path of a connection.
#[derive(Debug)]
pub struct Path {
    /// Its identifier.
    pub id: PathId,
    /// Its addresses.
    pub address: PathAddress,
    /// What it can be used for.
    pub state: PathState,
    /// Used only when others cannot carry the load.
    pub backup: bool,
    /// Packets sent and their fates.
    pub sent: SentPackets,
    /// Symbols assigned to the path that have not left.
    pub(crate) queue: PathQueue,
    /// Control frames that have to leave on this path.
    pub(crate) control_queue: VecDeque<ControlFrame>,
    /// Control frames in those of them whose fate is open.
    pub control: ControlInFlight,
    /// Packets received.
    pub received: Received,
    /// Round-trip times.
    pub rtt: RttEstimator,
    /// Delivery-rate samples.
    pub rate: RateSampler,
    /// Congestion control.
    pub congestion: Box<dyn CongestionController>,
    /// What controls congestion on this path in place of the profile's choice.
    pub own_congestion: Option<PolicySpec>,
    /// Pacing.
    pub pacer: Pacer,
    /// How large its packets may be.
    pub mtu: PathMtu,
    /// Loss estimate, copied from the estimator after each update.
    pub loss: LossView,
    /// What was acknowledged around its losses.
    pub inter_loss: InterLoss,
    /// ECN validation.
    pub ecn: EcnValidation,
    /// Statistics.
    pub counters: PathCounters,
    /// Unanswered challenge, and when it is repeated.
    pub challenge: Option<([u8; 8], Time)>,
    /// Bytes received before the address was proven: thrice as many may be sent (RFC 9000 §8.1).
    pub unvalidated_received: u64,
    /// Bytes sent before the address was proven.
    pub unvalidated_sent: u64,
    /// Timeouts in a row.
    pub consecutive_timeouts: u32,
    /// Ack-eliciting packets sent since anything was heard.
    pub sent_in_silence: u32,
    /// Probe packets that may be sent beyond the window.
    pub probes: u8,
    /// When the loss detector wants to look again.
    pub loss_time: Option<Time>,
    /// Last time that anything was heard about the path.
    pub last_feedback: Time,
    /// Last time that the peer was asked for an answer only to measure the round trip.
    pub asked: Time,
    /// Last time that an ack-eliciting packet left.
    pub last_sent: Time,
    /// Acknowledgement rounds left in probation.
    pub probation_left: u32,
    /// Highest floor announced to the peer.
    pub floor_announced: u64,
    /// The reception clock of the peer, unwrapped, microseconds.
    peer_clock: u64,
    /// Scheduling was refused at this event count: no use asking again before it moves.
    pub idle_at: u64,
    /// The scheduler holds the path until this time.
    pub hold_until: Option<Time>,
    /// Size of a full packet, wire bytes.
    pub packet_size: u64,
    /// Reports due about these paths (bit by index) leave on this path.
    pub acks_due_about: u16,
    /// When the acknowledgement of what this path received is due.
    pub ack_due: Option<Time>,
    /// A report about this path was given to other paths, or to itself, at this time and has not left.
    pub ack_routed: Option<Time>,
}

impl Path {
    /// A new path, not validated.
    pub fn new(
        id: PathId,
        address: PathAddress,
        congestion: Box<dyn CongestionController>,
        mtu: PathMtu,
        now: Time,
    ) -> Self {
        Path {
            id,
            address,
            state: PathState::Validating,
            backup: false,
            sent: SentPackets::default(),
            queue: PathQueue::default(),
            control_queue: VecDeque::new(),
            control: ControlInFlight::default(),
            received: Received::default(),
            rtt: RttEstimator::default(),
            rate: RateSampler::default(),
            congestion,
            own_congestion: None,
            pacer: Pacer::default(),
            mtu,
            loss: LossView::default(),
            inter_loss: InterLoss::default(),
            ecn: EcnValidation::default(),
            counters: PathCounters::default(),
            challenge: None,
            unvalidated_received: 0,
            unvalidated_sent: 0,
            consecutive_timeouts: 0,
            sent_in_silence: 0,
            probes: 0,
            loss_time: None,
            last_feedback: now,
            asked: now,
            last_sent: now,
            probation_left: 0,
            floor_announced: 0,
            peer_clock: 0,
            idle_at: 0,
            hold_until: None,
            packet_size: u64::from(mtu.size()) + UDP_OVERHEAD,
            acks_due_about: 0,
            ack_due: None,
            ack_routed: None,
        }
    }

    /// Bytes that may leave before the peer's address is proven; no limit once it is.
    pub fn amplification_room(&self) -> u64 {
        match self.state {
            PathState::Validating => {
                (3 * self.unvalidated_received).saturating_sub(self.unvalidated_sent)
            }
            _ => u64::MAX,
        }
    }

    /// Forgets what was learnt about the way to the peer: it is another one now. Packet numbers go on.
    pub fn start_over(&mut self, now: Time) {
        self.rtt.reset();
        self.pacer = Pacer::default();
        self.ecn.start_over(self.sent.next_number());
        self.consecutive_timeouts = 0;
        self.sent_in_silence = 0;
        self.last_feedback = now;
        self.loss = LossView::default();
        self.inter_loss = InterLoss::default();
        self.update_pacing(now);
    }

    /// Ends the path. Only its identifier, addresses and counters are kept.
    pub fn close(&mut self, now: Time) {
        self.start_over(now);
        self.state = PathState::Closed;
        self.rate = RateSampler::default();
        self.sent = SentPackets::default();
        self.control = ControlInFlight::default();
        self.received = Received::default();
        self.challenge = None;
        self.probes = 0;
        self.loss_time = None;
        self.hold_until = None;
        self.acks_due_about = 0;
        self.ack_due = None;
    }

    /// Whether a packet of `bytes` may leave before the peer's address is proven.
    pub fn may_amplify(&self, bytes: u64) -> bool {
        bytes <= self.amplification_room()
    }

    /// Whether the congestion window admits a full packet.
    pub fn window_open(&self) -> bool {
        self.sent.bytes_in_flight + self.packet_size <= self.congestion.window()
            || self.sent.bytes_in_flight == 0
    }

    /// Whether window and pacer admit a full packet now.
    pub fn ready(&self, now: Time) -> bool {
        self.window_open() && self.pacer.next_send(self.packet_size) <= now
    }

    /// Probe timeout with back-off.
    pub fn timeout(&self, base: ProbeTimeout) -> Duration {
        let doublings = self.consecutive_timeouts.min(base.doublings).min(16);
        let doubled = base.base.saturating_mul(1 << doublings);
        doubled.min(MAX_PROBE_INTERVAL.max(base.base))
    }

    /// When the probe timer fires: no feedback for a timeout while something is in flight.
    pub fn timeout_at(&self, base: ProbeTimeout) -> Option<Time> {
        let oldest = self.sent.oldest_open()?;
        let from = match self.consecutive_timeouts {
            0 => oldest.max(self.last_feedback),
            _ => self.last_sent.max(self.last_feedback),
        };
        Some(from + self.timeout(base))
    }

    /// Records that a packet left.
    pub fn on_sent(&mut self, now: Time, packet: PacketSent) -> u64 {
        let number = self.sent.next_number();
        let bytes = packet.payload as u64 + UDP_OVERHEAD;
        self.counters.sent_packets += 1;
        self.counters.sent_bytes += bytes;
        if packet.ecn == Ecn::Ect0 {
            self.ecn.on_sent();
        }
        if self.state == PathState::Validating {
            self.unvalidated_sent += bytes;
        }
        let idle = self.sent.packets_in_flight == 0;
        let snapshot = if packet.ack_eliciting {
            self.rate.on_sent(now, bytes, idle)
        } else {
            Default::default()
        };
        self.sent.push(SentPacket {
            sent: now,
            bytes: bytes as u32,
            fate: if packet.ack_eliciting { Fate::InFlight } else { Fate::Acked },
            ack_eliciting: packet.ack_eliciting,
            has_control: packet.has_control,
            mtu_probe: packet.mtu_probe,
            carried: packet.carried,
            snapshot,
        });
        if packet.ack_eliciting {
            if !packet.mtu_probe {
                self.last_sent = now;
                self.sent_in_silence = self.sent_in_silence.saturating_add(1);
            }
            let bytes_in_flight = self.sent.bytes_in_flight;
            self.congestion.on_sent(&SentEvent { now, bytes, bytes_in_flight });
            self.pacer.on_sent(now, bytes, self.packet_size);
        }
        number
    }

    /// Unwraps the peer's 32-bit microsecond clock.
    pub fn unwrap_clock(&mut self, received_at: u32) -> u64 {
        if self.peer_clock == 0 {
            // Start high enough that a step back does not underflow, and never at 0 (which means unknown).
            self.peer_clock = (1 << 32) + u64::from(received_at);
        } else {
            let step = received_at.wrapping_sub(self.peer_clock as u32) as i32;
            let moved = self.peer_clock.wrapping_add_signed(i64::from(step));
            if step < 0 {
                return moved;
            }
            self.peer_clock = moved;
        }
        self.peer_clock
    }

    /// Takes the size that full packets have by now into force.
    pub fn take_packet_size(&mut self) {
        self.packet_size = u64::from(self.mtu.size()) + UDP_OVERHEAD;
        self.congestion.set_packet_size(self.packet_size);
    }

    /// The longest IP packet that the path is supposed to carry, bytes.
    pub fn ip_mtu(&self) -> u32 {
        u32::from(self.mtu.size()) + u32::from(ip_udp_headers(&self.address))
    }

    /// Takes the controller's pacing rate into force.
    pub fn update_pacing(&mut self, now: Time) {
        self.pacer.set_rate(now, self.congestion.pacing_rate(), self.packet_size);
    }

    /// Something of this path was acknowledged: it is alive.
    pub fn on_feedback(&mut self, now: Time) {
        self.last_feedback = now;
        self.consecutive_timeouts = 0;
        self.sent_in_silence = 0;
        match self.state {
            PathState::Suspect => {
                self.state = PathState::Probation;
                self.probation_left = PROBATION_ROUNDS;
            }
            PathState::Probation if self.probation_left == 0 => self.state = PathState::Active,
            PathState::Probation => self.probation_left -= 1,
            _ => {}
        }
    }

    /// Whether data may be sent on the path, if it is not too long for it.
    pub fn is_usable(&self) -> bool {
        matches!(self.state, PathState::Active | PathState::Probation)
    }

    /// The snapshot that policies see; `timeout` is the probe timeout before back-off.
    pub fn view(&self, now: Time, slot: u8, timeout: ProbeTimeout) -> PathView {
        PathView {
            id: self.id,
            slot,
            state: self.state,
            backup: self.backup,
            cwnd: self.congestion.window(),
            ssthresh: self.congestion.ssthresh(),
            bytes_in_flight: self.sent.bytes_in_flight,
            bytes_queued: self.queue.len() as u64 * self.packet_size,
            packet_size: self.packet_size,
            ready: self.ready(now),
            next_send: self.pacer.next_send(self.packet_size),
            pacing_rate: self.congestion.pacing_rate().unwrap_or(Bitrate::ZERO),
            rate: self.congestion.bandwidth().unwrap_or_else(|| {
                let rtt = self.rtt.view().smoothed;
                Bitrate::from_transfer(self.congestion.window(), rtt)
            }),
            rtt: self.rtt.view(),
            rto: self.timeout(timeout),
            oldest_unacked: self.sent.oldest_open(),
            loss: self.loss,
            inter_loss: self.inter_loss,
        }
    }
}

/// A packet that just left.
#[derive(Clone, Copy, Debug)]
pub struct PacketSent {
    /// UDP payload bytes.
    pub payload: usize,
    /// Its mark.
    pub ecn: Ecn,
    /// It asks for an acknowledgement.
    pub ack_eliciting: bool,
    /// It carried control frames.
    pub has_control: bool,
    /// It probes the path's MTU.
    pub mtu_probe: bool,
    /// The first symbol it carried.
    pub carried: Option<Carried>,
}
