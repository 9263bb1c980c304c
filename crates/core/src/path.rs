//! One path: its packet-number spaces, round-trip times, congestion control, pacing and validation.

pub mod acks;
pub mod candidates;
pub mod clock;
pub mod control;
pub mod ecn;
pub mod excess;
pub mod learnt;
pub mod liveness;
pub mod mtu;
pub mod names;
pub mod pacer;
pub(crate) mod queue;
pub mod rate;
pub mod received;
pub mod rtt;
pub mod sent;
pub mod skips;
pub(crate) mod swing;
pub mod turn;
pub mod validation;

use core::time::Duration;
use std::collections::VecDeque;
use std::net::SocketAddr;

use anabranch_policy::congestion::{CongestionController, SentEvent};
use anabranch_policy::loss::Late;
use anabranch_policy::view::{InterLoss, LossView, PathState, PathView};
use anabranch_policy::{LossDetector, PolicySpec};
use anabranch_types::{Bitrate, PathId, Time};

use crate::wire::ControlFrame;
use acks::AckSchedule;
use candidates::Candidates;
use clock::PeerClock;
use control::ControlInFlight;
use ecn::EcnValidation;
use excess::Excess;
use learnt::Learnt;
use liveness::Liveness;
use mtu::PathMtu;
use names::PathNames;
use pacer::Pacer;
use queue::PathQueue;
use rate::RateSampler;
use received::{Ecn, Received};
use rtt::RttEstimator;
use sent::{Fate, PacketSent, Probe, SentPacket, SentPackets};
use skips::Skips;
use swing::Swing;
use turn::Turn;
use validation::AddressValidation;

/// The driver's number for a local UDP socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SocketId(pub u32);

/// The local socket and the remote address of a path's datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathAddress {
    /// The local socket that sends the datagrams.
    pub socket: SocketId,
    /// The peer's address.
    pub remote: SocketAddr,
}

/// Length of the IPv4 and UDP headers, bytes. Congestion control, pacing and the limits of address
/// validation count them with every packet, over IPv6 too.
pub const UDP_OVERHEAD: u64 = 28;
/// Length of the IP and UDP headers of a packet to an address, bytes.
pub fn ip_udp_headers(address: &PathAddress) -> u16 {
    if address.remote.is_ipv4() { 28 } else { 48 }
}

/// Number of acknowledgements after which probation ends.
const PROBATION_ROUNDS: u32 = 3;

/// Counters of one path for statistics. Bytes include the IP and UDP headers of each packet: 28
/// bytes over IPv4 and 48 over IPv6.
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

/// The policies of which each path has its own instance.
#[derive(Debug)]
pub struct PathPolicies {
    /// Congestion control.
    pub congestion: Box<dyn CongestionController>,
    /// Loss detection.
    pub detector: Box<dyn LossDetector>,
}

/// State of one path of a connection.
#[derive(Debug)]
pub struct Path {
    /// Identifier of the path.
    pub id: PathId,
    /// Connection ids of the path.
    pub names: PathNames,
    /// Local socket and remote address of the path.
    pub address: PathAddress,
    state: PathState,
    /// Whether the path is a backup, which is used only if no ordinary path is usable.
    pub backup: bool,
    /// Packets sent and their fates.
    pub sent: SentPackets,
    /// The choice of packet numbers that are skipped.
    pub skips: Skips,
    /// Symbols assigned to the path that have not been sent yet.
    pub(crate) queue: PathQueue,
    /// Control frames that must be sent on this path.
    pub(crate) control_queue: VecDeque<ControlFrame>,
    /// Control frames in packets neither acknowledged nor lost.
    pub control: ControlInFlight,
    /// Packets received.
    pub received: Received,
    /// Round-trip times.
    pub rtt: RttEstimator,
    /// Delivery-rate samples.
    pub rate: RateSampler,
    /// Congestion control.
    pub congestion: Box<dyn CongestionController>,
    /// Loss detection.
    pub detector: Box<dyn LossDetector>,
    /// The congestion policy of this path if it replaces the profile's choice.
    pub own_congestion: Option<PolicySpec>,
    /// Pacing.
    pub pacer: Pacer,
    /// Permission to send one packet beyond the congestion window.
    pub excess: Excess,
    /// How large the path's packets may be.
    pub mtu: PathMtu,
    /// Loss estimate, copied from the estimator after each update.
    pub loss: LossView,
    /// Bytes acknowledged since the last loss, and between the last two losses.
    pub inter_loss: InterLoss,
    /// ECN validation.
    pub ecn: EcnValidation,
    /// Statistics.
    pub counters: PathCounters,
    /// Proof of the peer's address.
    pub validation: AddressValidation,
    /// The highest packet number received from the address in use.
    pub newest_here: Option<u64>,
    /// Addresses to which the peer may have moved.
    pub candidates: Candidates,
    /// The last proven address on another host, and the state learnt about the route to it.
    pub previous: Option<Box<Learnt>>,
    /// When the path last sent and last received feedback, and the probes to be sent on it.
    pub liveness: Liveness,
    /// When the loss detector has to check for losses again.
    pub loss_time: Option<Time>,
    /// When the scheduler has to be asked about the path.
    pub turn: Turn,
    /// When acknowledgements are due, and which of them this path carries.
    pub acks: AckSchedule,
    /// The peer's clock, in which it reports receive times.
    pub peer_clock: PeerClock,
    /// Size of a full packet, bytes on the wire.
    pub packet_size: u64,
    /// Bit mask of the slots of the paths that share a bottleneck with this one.
    pub(crate) shares: u16,
    /// The factor by which the path currently sends more or less than the controller allows.
    pub(crate) swing: Swing,
    /// Acknowledgement rounds left in probation.
    probation_left: u32,
}

impl Path {
    /// Creates a path that is not validated yet.
    pub fn new(
        id: PathId,
        address: PathAddress,
        policies: PathPolicies,
        mtu: PathMtu,
        now: Time,
    ) -> Self {
        let PathPolicies { congestion, detector } = policies;
        Path {
            id,
            names: PathNames::default(),
            address,
            state: PathState::Validating,
            backup: false,
            sent: SentPackets::default(),
            skips: Skips::default(),
            queue: PathQueue::default(),
            control_queue: VecDeque::new(),
            control: ControlInFlight::default(),
            received: Received::default(),
            rtt: RttEstimator::default(),
            rate: RateSampler::default(),
            congestion,
            detector,
            own_congestion: None,
            pacer: Pacer::default(),
            excess: Excess::default(),
            mtu,
            loss: LossView::default(),
            inter_loss: InterLoss::default(),
            ecn: EcnValidation::default(),
            counters: PathCounters::default(),
            validation: AddressValidation::default(),
            newest_here: None,
            candidates: Candidates::default(),
            previous: None,
            liveness: Liveness::new(now),
            loss_time: None,
            turn: Turn::default(),
            acks: AckSchedule::default(),
            peer_clock: PeerClock::default(),
            packet_size: u64::from(mtu.size()) + UDP_OVERHEAD,
            shares: 0,
            swing: Swing::default(),
            probation_left: 0,
        }
    }

    /// State of the path, which determines the packets that it may carry.
    pub fn state(&self) -> PathState {
        self.state
    }

    /// Notes that the peer's address is proven. Returns whether this makes the path usable.
    pub fn on_proven(&mut self) -> bool {
        self.validation.end();
        let first = self.state == PathState::Validating;
        if first {
            self.state = PathState::Active;
        }
        first
    }

    /// Notes that the path has a new address, which is not proven yet.
    pub fn on_moved(&mut self) {
        self.state = PathState::Validating;
        self.validation = AddressValidation::default();
    }

    /// Notes that the path has a new address, which is proven.
    pub fn on_reached(&mut self) {
        self.state = PathState::Active;
        self.validation = AddressValidation::default();
    }

    /// Whether this packet number is above all numbers received from the address in use.
    pub(crate) fn is_news(&self, number: u64) -> bool {
        self.newest_here.is_none_or(|newest| number > newest)
    }

    /// Whether the peer has proven that it receives at the path's address.
    pub fn is_proven(&self) -> bool {
        self.state != PathState::Validating
    }

    /// Marks the path as suspect: it carries no data until feedback about it arrives.
    pub fn suspect(&mut self) {
        self.state = PathState::Suspect;
    }

    /// Bytes that may still be sent before the peer's address is proven; `u64::MAX` once it is
    /// proven.
    pub fn amplification_room(&self) -> u64 {
        match self.state {
            PathState::Validating => self.validation.room(),
            _ => u64::MAX,
        }
    }

    /// Ends the path. Only its identifier, addresses and counters are kept.
    pub fn close(&mut self, now: Time) {
        self.rtt.reset();
        self.pacer = Pacer::default();
        self.ecn.start_over(self.sent.next_number());
        self.liveness.start_over(now);
        self.loss = LossView::default();
        self.inter_loss = InterLoss::default();
        self.update_pacing(now);
        self.candidates.clear();
        self.previous = None;
        self.state = PathState::Closed;
        self.rate = RateSampler::default();
        self.sent = SentPackets::default();
        self.control = ControlInFlight::default();
        self.received = Received::default();
        self.validation.end();
        self.liveness.close();
        self.loss_time = None;
        self.turn.release_all();
        self.acks.close();
    }

    /// Whether the amplification limit allows a packet of `bytes` now.
    pub fn may_amplify(&self, bytes: u64) -> bool {
        bytes <= self.amplification_room()
    }

    /// Whether the congestion window admits a full packet. A path in probation may send while less
    /// than a full packet is in flight, so that small probes do not block a window of one packet.
    pub fn cwnd_open(&self) -> bool {
        let in_flight = self.sent.bytes_in_flight;
        in_flight + self.packet_size <= self.swing.window(self.congestion.cwnd())
            || in_flight == 0
            || self.excess.is_allowed()
            || (self.state == PathState::Probation && in_flight < self.packet_size)
    }

    /// Whether window and pacer admit a full packet now.
    pub fn ready(&self, now: Time) -> bool {
        self.cwnd_open() && self.pacer.next_send(self.packet_size) <= now
    }

    /// How many more full packets the window and the pacer admit, at most `most`. The pacer's
    /// credit is the one at its last packet. If the result is 0, a shorter packet may still be
    /// admitted, or the credit may be short by a fraction of a byte; the caller has to ask again
    /// for that packet.
    pub fn admits(&self, most: usize) -> usize {
        let window = self.swing.window(self.congestion.cwnd());
        let room = window.saturating_sub(self.sent.bytes_in_flight);
        let bytes = room.min(self.pacer.credit());
        usize::try_from(bytes / self.packet_size.max(1)).map_or(most, |packets| packets.min(most))
    }

    /// Counts an authenticated packet with a UDP payload of this many bytes.
    pub(crate) fn count_received(&mut self, payload: u64) {
        self.counters.received_packets += 1;
        self.counters.received_bytes += payload + u64::from(ip_udp_headers(&self.address));
    }

    fn count_sent(&mut self, payload: usize) {
        self.counters.sent_packets += 1;
        self.counters.sent_bytes += payload as u64 + u64::from(ip_udp_headers(&self.address));
    }

    /// Estimate of the number of packets that the peer has sent on the path.
    pub(crate) fn peer_sent_packets(&self) -> u64 {
        let (numbers, received) = (self.received.expected(), self.counters.received_packets);
        let missing = numbers.saturating_sub(received);
        numbers - missing.min(skips::likely(numbers))
    }

    /// Records a packet sent to an address other than the path's. No feedback about it is expected.
    pub(crate) fn on_sent_aside(&mut self, now: Time, payload: usize) -> u64 {
        let number = self.sent.next_number();
        let bytes = payload as u64 + UDP_OVERHEAD;
        self.count_sent(payload);
        self.sent.push(SentPacket::unwatched(now, bytes as u32));
        number
    }

    /// Skips the next packet number. `draw` returns an unpredictable number below its argument.
    pub(crate) fn skip_number(&mut self, now: Time, draw: impl FnOnce(u64) -> u64) {
        self.skips.skip(self.sent.next_number(), draw);
        self.sent.push(SentPacket::unwatched(now, 0));
    }

    /// Records that a packet was sent. Returns its number.
    pub fn on_sent(&mut self, now: Time, packet: PacketSent) -> u64 {
        let number = self.sent.next_number();
        let bytes = packet.payload as u64 + UDP_OVERHEAD;
        self.count_sent(packet.payload);
        if packet.ecn == Ecn::Ect0 {
            self.ecn.on_sent();
        }
        if self.state == PathState::Validating {
            self.validation.on_sent(bytes);
        }
        let idle = self.sent.packets_in_flight == 0;
        let snapshot = if packet.ack_eliciting {
            self.rate.on_sent(now, bytes, idle)
        } else {
            Default::default()
        };
        self.sent.push(SentPacket {
            fate: if packet.ack_eliciting { Fate::InFlight } else { Fate::Acked },
            ack_eliciting: packet.ack_eliciting,
            has_control: packet.has_control,
            probe: packet.probe,
            early: packet.early,
            carried: packet.carried,
            snapshot,
            ..SentPacket::unwatched(now, bytes as u32)
        });
        if packet.carried.is_some() {
            self.excess.on_sent();
        }
        if packet.ack_eliciting {
            if packet.probe != Some(Probe::Mtu) {
                self.liveness.on_sent(now);
            }
            let bytes_in_flight = self.sent.bytes_in_flight;
            self.congestion.on_sent(&SentEvent { now, bytes, bytes_in_flight });
            self.pacer.on_sent(now, bytes, self.packet_size);
        }
        number
    }

    /// Applies the controller's pacing rate.
    pub fn update_pacing(&mut self, now: Time) {
        let rate = self.congestion.pacing_rate().map(|rate| self.swing.rate(rate));
        self.pacer.set_rate(now, rate, self.packet_size);
    }

    /// Tells the loss detector how late an acknowledged packet is, if later packets were
    /// acknowledged before it. Returns whether this was so.
    pub fn note_lateness(&mut self, now: Time, number: u64, packet: &SentPacket) -> bool {
        let (Some(overtaken), Some(largest)) = (packet.overtaken, self.sent.largest_acked()) else {
            return false;
        };
        if overtaken < now {
            let skipped = self.skips.between(number, largest);
            let (late, gap) = (now.since(overtaken), largest.saturating_sub(number + skipped));
            self.detector.on_late(&Late { now, late, gap, rtt: self.rtt.view() });
        }
        overtaken < now
    }

    /// Processes the acknowledgement of packets of this path; the newest of them was sent at
    /// `sent`. The path is therefore alive.
    pub fn on_feedback(&mut self, now: Time, sent: Time) {
        let later = self.sent.oldest_open().map(|oldest| oldest.since(sent)).unwrap_or_default();
        self.liveness.on_feedback(now, later, self.base_timeout());
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

    /// Whether the state of the path allows data, regardless of window and pacer.
    pub fn is_usable(&self) -> bool {
        matches!(self.state, PathState::Active | PathState::Probation)
    }

    /// The snapshot of the path for policies.
    pub fn view(&self, now: Time, slot: u8) -> PathView {
        let idle = self.sent.packets_in_flight == 0;
        let idle = if idle { now.since(self.liveness.last_active()) } else { Duration::ZERO };
        PathView {
            id: self.id,
            slot,
            state: self.state,
            backup: self.backup,
            cwnd: self.congestion.cwnd(),
            ssthresh: self.congestion.ssthresh(),
            bytes_in_flight: self.sent.bytes_in_flight,
            bytes_queued: self.queue.bytes(),
            packet_size: self.packet_size,
            ready: self.ready(now),
            next_send: self.pacer.next_send(self.packet_size),
            pacing_rate: self.congestion.pacing_rate().unwrap_or(Bitrate::ZERO),
            rate: self.congestion.bandwidth().unwrap_or_else(|| {
                let rtt = self.rtt.view().smoothed;
                Bitrate::from_transfer(self.congestion.cwnd(), rtt)
            }),
            rtt: self.rtt.view_after(idle),
            rto: self.liveness.timeout(self.base_timeout()),
            oldest_unacked: self.sent.oldest_open(),
            loss: self.loss,
            inter_loss: self.inter_loss,
            shares: self.shares,
        }
    }
}

#[cfg(test)]
mod tests;
