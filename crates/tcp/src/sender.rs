//! The sender of a connection.

mod ack;
mod control;
mod events;
mod rack;
mod rate;
mod statistics;
mod timers;
mod transmit;
mod undo;

use anabranch_policy::CongestionController;
use anabranch_policy::view::{InterLoss, PathState, PathView, RttView};
use anabranch_types::{Bitrate, PathId, Time};
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Arc;

use crate::config::{Config, LossRecovery};
use crate::prr::Prr;
use crate::rtt::RttEstimator;
use crate::scoreboard::{Fate, Scoreboard};
use crate::segment::Segment;

pub use events::SenderEvent;
use rack::Rack;
use rate::RateSampler;
pub use statistics::SenderStatistics;
use undo::Undo;

/// Consecutive timeouts that a closing connection survives if the configuration sets no limit: it
/// gives up at the next one (Linux, tcp_orphan_retries).
pub const CLOSING_TIMEOUTS: u32 = 8;

/// The state of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The SYN has not been answered; `true` while it waits to be sent.
    Opening(bool),
    Open,
    /// The connection was given up.
    Failed,
}

/// The state of loss recovery.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Nothing is known to be lost.
    Ordinary,
    /// Fast recovery, until everything below the recovery point is acknowledged.
    Recovery { first_sent: bool, prr: Option<Prr> },
    /// After a timeout, until everything below the recovery point is acknowledged.
    Timeout,
}

/// The sending half of a connection. The application only states how many bytes it writes. The
/// sender yields segments and takes in acknowledgements.
///
/// After each `handle_*`, `write` or `finish`, call [`poll_transmit`](Self::poll_transmit) until it
/// yields nothing, then ask [`next_timeout`](Self::next_timeout). Times must not go back from one
/// call to the next. Nothing is allocated once the rings have grown to the window.
#[derive(Debug)]
pub struct Sender {
    config: Arc<Config>,
    controller: Box<dyn CongestionController>,
    /// The path, if the connection is one of several subflows.
    path: Option<PathId>,
    state: State,
    phase: Phase,
    /// First offset not acknowledged, first not sent, first not written.
    una: u64,
    next: u64,
    written: u64,
    finished: bool,
    fin_sent: bool,
    /// Number of consecutive timeouts that the connection survives, if it is limited.
    give_up_after: Option<u32>,
    /// The end of the receiver's window.
    limit: u64,
    board: Scoreboard,
    rtt: RttEstimator,
    /// The segment being timed where timestamps are off: its end, and when it was sent.
    timed: Option<(u64, Time)>,
    /// Newest timestamp value of the peer, to be echoed.
    peer_timestamp: Time,
    /// Offset below which losses cause no further cut; `None` before the first cut.
    recovery_point: Option<u64>,
    duplicates: u32,
    /// Bytes that duplicate acknowledgements say have left the network (NewReno).
    credit: u64,
    /// The pipe during recovery as Fall and Floyd count it, and the end of the highest segment
    /// retransmitted.
    arrivals_pipe: u64,
    high_resent: u64,
    rto_at: Option<Time>,
    persist_at: Option<Time>,
    /// When the persist timer was started, if it runs.
    persist_since: Time,
    persist_backoff: u32,
    probe_due: bool,
    consecutive_timeouts: u32,
    /// Offset below which marks cause no further cut, and whether a CWR flag is due.
    mark_point: Option<u64>,
    cwr_due: bool,
    /// A mark came at a window of one segment: the next segment waits for the timer.
    held: bool,
    next_send: Time,
    cwnd_limited: bool,
    /// Factor on the window while shared bottlenecks are looked for.
    swing: f64,
    rate: Option<Box<RateSampler>>,
    rack: Rack,
    undo: Undo,
    inter_loss: InterLoss,
    events: VecDeque<SenderEvent>,
    statistics: SenderStatistics,
}

impl Sender {
    /// The sending half of a connection as `config` describes it. `controller` sets the window in
    /// bytes of payload, so build it with the MSS as its packet size.
    pub fn new(config: impl Into<Arc<Config>>, controller: Box<dyn CongestionController>) -> Self {
        let config = config.into();
        let mut board = Scoreboard::new(config.mss);
        if config.rack {
            board.track_copies();
        }
        let measures_rate = config.rate_samples || controller.needs_rate();
        Sender {
            controller,
            path: None,
            state: if config.handshake { State::Opening(true) } else { State::Open },
            phase: Phase::Ordinary,
            una: 0,
            next: 0,
            written: 0,
            finished: false,
            fin_sent: false,
            give_up_after: config.timers.give_up_after,
            limit: config.receive_buffer,
            board,
            rtt: RttEstimator::new(Arc::clone(&config)),
            timed: None,
            peer_timestamp: Time::MAX,
            recovery_point: None,
            duplicates: 0,
            credit: 0,
            arrivals_pipe: 0,
            high_resent: 0,
            rto_at: None,
            persist_at: None,
            persist_since: Time::ZERO,
            persist_backoff: 1,
            probe_due: false,
            consecutive_timeouts: 0,
            mark_point: None,
            cwr_due: false,
            held: false,
            next_send: Time::ZERO,
            cwnd_limited: false,
            swing: 1.0,
            rate: measures_rate.then(Box::default),
            rack: Rack::default(),
            undo: Undo::default(),
            inter_loss: InterLoss::default(),
            events: VecDeque::new(),
            statistics: SenderStatistics::default(),
            config,
        }
    }

    /// One of several subflows, over `path`. Its stream begins at `offset`, above the stream of any
    /// earlier connection in its place. The sender keeps the fate of each segment.
    pub(crate) fn subflow(
        config: &Config,
        controller: Box<dyn CongestionController>,
        path: PathId,
        offset: u64,
    ) -> Self {
        let mut sender = Sender::new(config, controller);
        sender.board.track_fates();
        let path = Some(path);
        Sender { path, una: offset, next: offset, written: offset, ..sender }
    }

    /// Exchanges the fates of segments since the last call for an empty list.
    pub(crate) fn swap_fates(&mut self, taken: &mut Vec<(u64, Fate)>) {
        self.board.swap_fates(taken);
    }

    /// Retransmission timeouts since anything new was acknowledged.
    pub(crate) fn consecutive_timeouts(&self) -> u32 {
        self.consecutive_timeouts
    }

    /// The application has `bytes` more to send. Returns how many of them the send buffer took.
    pub fn write(&mut self, bytes: u64) -> u64 {
        if self.finished || self.state == State::Failed {
            return 0;
        }
        let taken = bytes.min(self.writable());
        self.written += taken;
        taken
    }

    /// Bytes that the send buffer has room for.
    pub fn writable(&self) -> u64 {
        self.config.send_buffer.saturating_sub(self.written - self.una.min(self.written))
    }

    /// Declares that nothing more will be written. The last segment carries a FIN and is not held
    /// back even if it is short.
    pub fn finish(&mut self) {
        self.finished = true;
    }

    /// Ends the stream as [`finish`](Self::finish) does. The sender survives the configured number
    /// of consecutive timeouts, or [`CLOSING_TIMEOUTS`] more if none is configured, and gives up the
    /// peer at the next one.
    pub(crate) fn close(&mut self) {
        self.finish();
        self.give_up_after.get_or_insert(self.consecutive_timeouts + CLOSING_TIMEOUTS);
    }

    /// Whether the end of the stream and everything before it has been acknowledged.
    pub fn is_closed(&self) -> bool {
        self.finished && self.una > self.written
    }

    /// The earliest time at which [`handle_timeout`](Self::handle_timeout) has something to do.
    pub fn next_timeout(&self) -> Option<Time> {
        if self.state == State::Failed {
            return None;
        }
        let mut next = self.rto_at.unwrap_or(Time::MAX).min(self.persist_at.unwrap_or(Time::MAX));
        if self.config.rack {
            next = next.min(self.rack.timer().unwrap_or(Time::MAX));
        }
        if self.cwnd_limited && self.next_send > Time::ZERO && self.can_use_cwnd() {
            next = next.min(self.next_send);
        }
        (next < Time::MAX).then_some(next)
    }

    /// The next event that has not been reported, oldest first.
    pub fn poll_event(&mut self) -> Option<SenderEvent> {
        self.events.pop_front()
    }

    /// Counters since the start.
    pub fn statistics(&self) -> &SenderStatistics {
        &self.statistics
    }

    /// The configuration that the sender was made with.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The congestion controller.
    pub fn controller(&self) -> &dyn CongestionController {
        &*self.controller
    }

    /// Everything below this stream offset is acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.una.min(self.written)
    }

    /// First stream offset that has never been sent.
    pub fn sent(&self) -> u64 {
        self.next.min(self.written)
    }

    /// Stream bytes that the application has written.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Whether everything written has been acknowledged, and the end of the stream too if there is one.
    pub fn is_drained(&self) -> bool {
        self.una >= self.written && (!self.finished || self.una > self.written)
    }

    /// Whether the connection is open: no SYN exchange is under way and it has not been given up.
    pub fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// Whether the connection was given up after too many timeouts in a row.
    pub fn has_failed(&self) -> bool {
        self.state == State::Failed
    }

    /// Whether fast recovery is under way.
    pub fn in_recovery(&self) -> bool {
        matches!(self.phase, Phase::Recovery { .. })
    }

    /// Whether the losses of a timeout are still being repaired.
    pub fn in_timeout_recovery(&self) -> bool {
        matches!(self.phase, Phase::Timeout)
    }

    /// The congestion window in force, bytes of payload.
    pub fn cwnd(&self) -> u64 {
        match self.phase {
            Phase::Recovery { prr: Some(prr), .. } => prr.cwnd(),
            _ if self.swing == 1.0 => self.controller.cwnd(),
            _ => (self.controller.cwnd() as f64 * self.swing) as u64,
        }
    }

    /// From now on the window is the controller's window times `swing`.
    pub(crate) fn set_swing(&mut self, swing: f64) {
        self.swing = swing;
    }

    /// The slow-start threshold, bytes of payload; `u64::MAX` where there is none.
    pub fn ssthresh(&self) -> u64 {
        self.controller.ssthresh()
    }

    /// Bytes that the sender takes to be in the network.
    pub fn in_flight(&self) -> u64 {
        match (self.config.recovery, self.phase) {
            (_, Phase::Timeout) | (LossRecovery::Sack, _) => self.board.pipe(),
            (LossRecovery::FallFloyd, Phase::Recovery { .. }) => self.arrivals_pipe,
            (LossRecovery::NewReno | LossRecovery::FallFloyd, _) => {
                (self.next - self.una).saturating_sub(self.credit)
            }
        }
    }

    /// Bytes sent and not acknowledged, SACKed ones included.
    pub fn outstanding(&self) -> u64 {
        self.next - self.una
    }

    /// Round-trip times as policies read them.
    pub(crate) fn rtt(&self) -> RttView {
        self.rtt.view()
    }

    /// Smoothed round-trip time, or `None` before the first sample.
    pub fn smoothed_rtt(&self) -> Option<Duration> {
        self.rtt.smoothed()
    }

    /// The retransmission timeout in force, back-off included.
    pub fn rto(&self) -> Duration {
        self.rtt.rto()
    }

    /// When the oldest outstanding segment was last sent.
    pub fn oldest_sent(&self) -> Option<Time> {
        self.board.front().map(|slot| slot.sent)
    }

    /// Whether both windows admit a new full segment now and nothing older waits. This is the
    /// moment to bind bytes to a subflow.
    pub fn wants_data(&self, now: Time) -> bool {
        self.is_open()
            && !self.finished
            && !self.held
            && self.next >= self.written
            && !self.board.any_waiting()
            && self.next_send <= now
            && self.next + u64::from(self.config.mss) <= self.limit
            && self.in_flight() + u64::from(self.config.mss) <= self.cwnd()
    }

    /// The connection as one of several paths, for schedulers and coupled controllers.
    pub fn view(&self, id: PathId, slot: u8, now: Time) -> PathView {
        PathView {
            id,
            slot,
            state: if self.is_open() { PathState::Active } else { PathState::Validating },
            cwnd: self.cwnd(),
            ssthresh: self.ssthresh(),
            bytes_in_flight: self.in_flight(),
            bytes_queued: self.written.saturating_sub(self.next),
            packet_size: u64::from(self.config.mss),
            ready: self.wants_data(now),
            next_send: self.next_send,
            pacing_rate: self.controller.pacing_rate().unwrap_or(Bitrate::ZERO),
            rate: self.controller.bandwidth().unwrap_or_else(|| {
                // Before the first sample the round trip is a guess, and nothing is known of the rate.
                match self.rtt.view().samples {
                    0 => Bitrate::ZERO,
                    _ => Bitrate::from_transfer(self.cwnd(), self.rtt.view().smoothed),
                }
            }),
            rtt: self.rtt.view(),
            rto: self.rtt.rto(),
            oldest_unacked: self.oldest_sent(),
            inter_loss: self.inter_loss,
            shares: 0,
            ..PathView::unknown(id)
        }
    }

    /// Asks the controller to reduce the window, by half at most (MPTCP's penalty on a path that
    /// holds others up).
    pub fn penalise(&mut self) {
        self.controller.penalise();
    }

    fn mss(&self) -> u64 {
        u64::from(self.config.mss)
    }

    /// Whether the window is below one segment and so stops the sender until the timer fires, as in
    /// ns-2.
    fn is_starved(&self) -> bool {
        self.config.recovery == LossRecovery::FallFloyd && self.cwnd() < self.mss()
    }

    fn can_use_cwnd(&self) -> bool {
        self.in_flight() + self.mss() <= self.cwnd()
    }
}

/// An empty segment with the timestamps that a sender puts on it.
fn blank(now: Time, echo: Time, timestamps: bool) -> Segment {
    let timestamps = timestamps.then_some(crate::segment::Timestamps { value: now, echo });
    Segment { timestamps, ..Segment::EMPTY }
}

#[cfg(test)]
mod tests;
