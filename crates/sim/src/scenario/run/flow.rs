//! A flow that runs: what can be read off it.

use core::time::Duration;

use anabranch_types::Time;

use super::DecisionObservers;
use super::core_ends::{CoreSink, CoreSource};
use super::delays::Delays;
use super::gauge::{Gauge, Log};
use super::tcp_receiver::TcpSink;
use super::tcp_sender::TcpSource;
use crate::engine::{AgentId, Engine};

/// The agents of a flow.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ends {
    Tcp { sender: AgentId, receiver: AgentId },
    Core { sender: AgentId, receiver: AgentId },
}

/// A flow, what its counters were at the end of the warm-up, and its delays.
#[derive(Debug)]
pub(super) struct LiveFlow {
    ends: Ends,
    pub start: Time,
    /// How many transfers it makes; 0 for one without end.
    transfers: u64,
    remembered: Reading,
    pub delays: Option<Delays>,
}

/// Counters of a flow since its start.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Reading {
    /// Bytes delivered in order.
    pub delivered: u64,
    /// Bytes on the wire that arrived at the receiver, for each path.
    pub arrived: Vec<u64>,
    pub data_packets: u64,
    pub retransmissions: u64,
    pub timeouts: u64,
    pub out_of_order: u64,
    /// Of flows that count them.
    pub ecn_responses: u64,
    pub sources: u64,
    pub repairs: u64,
    /// Coding windows opened, and those whose repairs ran out.
    pub windows: u64,
    pub wraps: u64,
    /// Rounds of further repairs, and windows alive at each opening, added up.
    pub repair_rounds: u64,
    pub live_windows: u64,
}

/// A flow's or path's state at an instant.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Instant {
    pub window: f64,
    pub srtt: Option<f64>,
    pub loss: Option<f64>,
}

impl LiveFlow {
    pub(super) fn new(ends: Ends, start: Time, transfers: u64) -> Self {
        LiveFlow { ends, start, transfers, remembered: Reading::default(), delays: None }
    }

    /// Has what the sender decides taken down, if it is one that decides.
    pub(super) fn observe(
        &self,
        engine: &mut Engine,
        subject: &str,
        decisions: &mut DecisionObservers<'_>,
    ) {
        if let Ends::Core { sender, .. } = self.ends
            && let Some(source) = engine.agent_as_mut::<CoreSource>(sender)
            && let Some(observer) = decisions(subject)
        {
            source.sender.set_observer(observer);
        }
    }

    /// Measures delays from now on: of packets, and of slices of so many bytes.
    pub(super) fn watch_delays(&mut self, engine: &mut Engine, slice: u64, measured_from: Time) {
        let packet = match self.ends {
            Ends::Tcp { sender, receiver } => {
                if let Some(sink) = engine.agent_as_mut::<TcpSink>(receiver) {
                    sink.log = Some(Log::default());
                    sink.slice = slice;
                }
                let source = engine.agent_as_mut::<TcpSource>(sender);
                source.map_or(1, |source| {
                    source.log = Some(Log::default());
                    source.mss()
                })
            }
            Ends::Core { sender, receiver } => {
                if let Some(sink) = engine.agent_as_mut::<CoreSink>(receiver) {
                    sink.log = Some(Log::default());
                    sink.slice = slice;
                }
                let source = engine.agent_as_mut::<CoreSource>(sender);
                source.map_or(1, |source| {
                    source.log = Some(Log::default());
                    source.packet
                })
            }
        };
        self.delays = Some(Delays::new(packet, slice, measured_from));
    }

    /// Reckons the delays of what has happened since.
    pub(super) fn take_logs(&mut self, engine: &mut Engine) {
        let Some(delays) = &mut self.delays else { return };
        let sent = match self.ends {
            Ends::Tcp { sender, .. } => {
                engine.agent_as_mut::<TcpSource>(sender).and_then(|source| source.log.as_mut())
            }
            Ends::Core { sender, .. } => {
                engine.agent_as_mut::<CoreSource>(sender).and_then(|source| source.log.as_mut())
            }
        };
        let Some(sent) = sent else { return };
        let mut sent = core::mem::take(sent);
        let received = match self.ends {
            Ends::Tcp { receiver, .. } => {
                engine.agent_as_mut::<TcpSink>(receiver).and_then(|sink| sink.log.as_mut())
            }
            Ends::Core { receiver, .. } => {
                engine.agent_as_mut::<CoreSink>(receiver).and_then(|sink| sink.log.as_mut())
            }
        };
        if let Some(received) = received {
            delays.take(&mut sent, received);
        }
    }

    pub(super) fn remember(&mut self, engine: &mut Engine) {
        self.remembered = self.read(engine);
    }

    /// Counters since the end of the warm-up.
    pub(super) fn measured(&self, engine: &mut Engine) -> Reading {
        self.read(engine).since(&self.remembered)
    }

    /// Counters since the start.
    pub(super) fn read(&self, engine: &mut Engine) -> Reading {
        let Some(gauge) = self.gauge(engine) else { return Reading::default() };
        let seen = Reading {
            delivered: gauge.delivered,
            arrived: gauge.arrived.iter().map(|(_, bytes)| *bytes).collect(),
            ..Reading::default()
        };
        match self.ends {
            Ends::Tcp { sender, receiver } => read_tcp(engine, sender, receiver, seen),
            Ends::Core { sender, receiver } => read_core(engine, sender, receiver, seen),
        }
    }

    /// State of one path, or of all together: windows added up, times and losses averaged.
    pub(super) fn instant(&self, engine: &mut Engine, path: Option<usize>) -> Instant {
        match self.ends {
            Ends::Tcp { sender, .. } => {
                let Some(source) = engine.agent_as::<TcpSource>(sender) else {
                    return Instant::default();
                };
                let senders: Vec<_> =
                    source.speakers().flat_map(|speaker| speaker.senders(path)).collect();
                let rtts = senders.iter().filter_map(|sender| sender.smoothed_rtt());
                let rtts: Vec<f64> = rtts.map(|rtt| rtt.as_secs_f64()).collect();
                Instant {
                    window: senders.iter().map(|sender| sender.window() as f64).sum(),
                    srtt: (!rtts.is_empty()).then(|| crate::probe::mean(&rtts)),
                    loss: None,
                }
            }
            Ends::Core { sender, .. } => core_instant(engine, sender, path),
        }
    }

    /// Times from the opening of each completed transfer to its last byte's delivery, s.
    pub(super) fn completions(&self, engine: &Engine, measured_from: Time) -> Vec<f64> {
        let (opened, completed): (Vec<Time>, Vec<(u64, Time)>) = match self.ends {
            Ends::Tcp { sender, receiver } => {
                let source = engine.agent_as::<TcpSource>(sender);
                let sink = engine.agent_as::<TcpSink>(receiver);
                let (Some(source), Some(sink)) = (source, sink) else { return Vec::new() };
                (source.opened.clone(), sink.completed.clone())
            }
            Ends::Core { sender, receiver } => {
                let source = engine.agent_as::<CoreSource>(sender);
                let sink = engine.agent_as::<CoreSink>(receiver);
                let (Some(source), Some(sink)) = (source, sink) else { return Vec::new() };
                let finished = sink.receiver.finished().iter();
                (
                    source.sender.transfers().iter().map(|(_, transfer)| transfer.opened).collect(),
                    finished.map(|(stream, time)| (stream.ordinal(), *time)).collect(),
                )
            }
        };
        let time = |(number, completed): &(u64, Time)| {
            let opened = opened.get(usize::try_from(*number).ok()?)?;
            (*opened >= measured_from).then(|| completed.since(*opened).as_secs_f64())
        };
        completed.iter().filter_map(time).collect()
    }

    /// Whether it ends by itself.
    pub(super) fn is_finite(&self) -> bool {
        self.transfers > 0
    }

    /// Whether everything it will ever send has been delivered.
    pub(super) fn is_done(&self, engine: &Engine) -> bool {
        let completed = match self.ends {
            Ends::Tcp { receiver, .. } => {
                engine.agent_as::<TcpSink>(receiver).map_or(0, |sink| sink.completed.len())
            }
            Ends::Core { receiver, .. } => engine
                .agent_as::<CoreSink>(receiver)
                .map_or(0, |sink| sink.receiver.finished().len()),
        };
        self.is_finite() && completed as u64 >= self.transfers
    }

    pub(super) fn is_tcp(&self) -> bool {
        matches!(self.ends, Ends::Tcp { .. })
    }

    /// Why it does not go on, if it does not.
    pub(super) fn failure(&self, engine: &Engine) -> Option<String> {
        match self.ends {
            Ends::Tcp { sender, .. } => engine.agent_as::<TcpSource>(sender)?.failure.clone(),
            Ends::Core { sender, receiver } => {
                let sent = engine.agent_as::<CoreSource>(sender)?.sender.failure();
                let failure = sent.or(engine.agent_as::<CoreSink>(receiver)?.receiver.failure());
                failure.map(ToString::to_string)
            }
        }
    }

    /// From when to when its rates are taken.
    pub(super) fn span(&self, engine: &Engine, measured_from: Time) -> (Time, Time) {
        let from = self.start.max(measured_from);
        let end = match self.gauge(engine) {
            Some(gauge) if self.is_done(engine) => gauge.last_delivery,
            _ => engine.now(),
        };
        (from, end.max(from))
    }

    /// The longest time without a byte delivered, the wait at the end included unless it is done.
    pub(super) fn longest_gap(&self, engine: &Engine) -> Duration {
        let Some(gauge) = self.gauge(engine) else { return Duration::ZERO };
        if self.is_done(engine) {
            return gauge.longest_gap;
        }
        let since = gauge.last_delivery.max(gauge.gap_from);
        gauge.longest_gap.max(engine.now().since(since))
    }

    fn gauge<'a>(&self, engine: &'a Engine) -> Option<&'a Gauge> {
        match self.ends {
            Ends::Tcp { receiver, .. } => {
                engine.agent_as(receiver).map(|sink: &TcpSink| &sink.gauge)
            }
            Ends::Core { receiver, .. } => {
                engine.agent_as(receiver).map(|sink: &CoreSink| &sink.gauge)
            }
        }
    }
}

fn read_tcp(engine: &Engine, sender: AgentId, receiver: AgentId, seen: Reading) -> Reading {
    let source = engine.agent_as::<TcpSource>(sender);
    let sent = source.map(TcpSource::statistics).unwrap_or_default();
    Reading {
        data_packets: sent.data_segments,
        retransmissions: sent.retransmissions,
        timeouts: sent.timeouts,
        out_of_order: engine.agent_as::<TcpSink>(receiver).map_or(0, TcpSink::out_of_order),
        ecn_responses: sent.ecn_responses,
        ..seen
    }
}

fn read_core(engine: &mut Engine, sender: AgentId, receiver: AgentId, seen: Reading) -> Reading {
    let sink = engine.agent_as_mut::<CoreSink>(receiver);
    let received = sink.and_then(|sink| Some(sink.receiver.connection()?.stats()));
    let out_of_order = received.map_or(0, |stats| stats.out_of_order);
    let source = engine.agent_as_mut::<CoreSource>(sender);
    let Some(sent) = source.and_then(|source| Some(source.sender.connection()?.stats())) else {
        return Reading { out_of_order, ..seen };
    };
    let totals = sent.sent;
    Reading {
        data_packets: totals.sources + totals.repairs + totals.resends,
        retransmissions: totals.resends,
        timeouts: sent.paths.iter().map(|path| path.counters.timeouts).sum(),
        out_of_order,
        sources: totals.sources,
        repairs: totals.repairs,
        windows: totals.windows,
        wraps: totals.wraps,
        repair_rounds: totals.repair_rounds,
        live_windows: totals.live_at_openings,
        ..seen
    }
}

fn core_instant(engine: &mut Engine, sender: AgentId, path: Option<usize>) -> Instant {
    let source = engine.agent_as_mut::<CoreSource>(sender);
    let Some(stats) = source.and_then(|source| Some(source.sender.connection()?.stats())) else {
        return Instant::default();
    };
    let chosen: Vec<_> = stats
        .paths
        .iter()
        .filter(|stats| path.is_none_or(|path| stats.id.0 as usize == path))
        .collect();
    if chosen.is_empty() {
        return Instant::default();
    }
    let rtts: Vec<f64> = chosen.iter().map(|path| path.rtt.smoothed.as_secs_f64()).collect();
    let losses: Vec<f64> = chosen.iter().map(|path| path.loss.mean).collect();
    Instant {
        window: chosen.iter().map(|path| path.window as f64).sum(),
        srtt: Some(crate::probe::mean(&rtts)),
        loss: Some(crate::probe::mean(&losses)),
    }
}

impl Reading {
    fn since(&self, before: &Reading) -> Reading {
        let arrived = self.arrived.iter().enumerate().map(|(index, bytes)| {
            bytes.saturating_sub(before.arrived.get(index).copied().unwrap_or(0))
        });
        Reading {
            delivered: self.delivered.saturating_sub(before.delivered),
            arrived: arrived.collect(),
            data_packets: self.data_packets.saturating_sub(before.data_packets),
            retransmissions: self.retransmissions.saturating_sub(before.retransmissions),
            timeouts: self.timeouts.saturating_sub(before.timeouts),
            out_of_order: self.out_of_order.saturating_sub(before.out_of_order),
            ecn_responses: self.ecn_responses.saturating_sub(before.ecn_responses),
            sources: self.sources.saturating_sub(before.sources),
            repairs: self.repairs.saturating_sub(before.repairs),
            windows: self.windows.saturating_sub(before.windows),
            wraps: self.wraps.saturating_sub(before.wraps),
            repair_rounds: self.repair_rounds.saturating_sub(before.repair_rounds),
            live_windows: self.live_windows.saturating_sub(before.live_windows),
        }
    }
}
