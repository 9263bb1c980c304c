use anabranch_core::connection::{ConnectionStats, PathStats};
use anabranch_core::observe::Observer;
use anabranch_policy::view::PathState;

use super::application::Application;
use super::progress::Sent;
use super::receiver::Incoming;
use super::{CoreReceiver, CoreSender};
use crate::endpoint::{
    CodingCounters, Completion, Counters, Flow, FlowFailure, Gauge, Instant, Log, MessageLog,
    PathChange, Watch, Watched,
};
use crate::engine::{AgentId, Engine};
use crate::probe::mean;

/// One connection between a [`CoreSender`] and a [`CoreReceiver`].
#[derive(Clone, Copy, Debug)]
pub struct CoreFlow {
    /// The agent that sends.
    pub sender: AgentId,
    /// The agent that receives.
    pub receiver: AgentId,
    /// Index of the sender's application.
    pub application: usize,
}

impl CoreFlow {
    fn ends<'a>(&self, engine: &'a Engine) -> Option<(&'a CoreSender, &'a CoreReceiver)> {
        Some((engine.agent_as(self.sender)?, engine.agent_as(self.receiver)?))
    }

    fn application<'a>(&self, engine: &'a Engine) -> Option<&'a Application> {
        self.ends(engine)?.0.applications.get(self.application)
    }

    /// The receiver's end of the connection; `None` until the receiver accepts it.
    fn incoming<'a>(&self, engine: &'a Engine) -> Option<&'a Incoming> {
        let (sender, receiver) = self.ends(engine)?;
        receiver.incoming(sender.handle(self.application)?)
    }

    fn incoming_mut<'a>(&self, engine: &'a mut Engine) -> Option<&'a mut Incoming> {
        let handle = self.application(engine)?.handle?;
        engine.agent_as_mut::<CoreReceiver>(self.receiver)?.incoming_mut(handle)
    }

    /// The connection's statistics at the sender.
    pub fn sent(&self, engine: &mut Engine) -> Option<ConnectionStats> {
        let sender = engine.agent_as_mut::<CoreSender>(self.sender)?;
        Some(sender.connection(self.application)?.stats())
    }

    /// The connection's statistics at the receiver.
    pub fn received(&self, engine: &mut Engine) -> Option<ConnectionStats> {
        let handle = self.application(engine)?.handle?;
        Some(engine.agent_as_mut::<CoreReceiver>(self.receiver)?.connection(handle)?.stats())
    }
}

impl Flow for CoreFlow {
    fn counters(&self, engine: &mut Engine) -> Counters {
        let (sent, received) = (self.sent(engine), self.received(engine));
        let (Some((_, receiver)), Some(application)) =
            (self.ends(engine), self.application(engine))
        else {
            return Counters::default();
        };
        let arrived = receiver.ports.arrived().into_iter().enumerate();
        let arrived = arrived.map(|(path, bytes)| if application.uses(path) { bytes } else { 0 });
        let seen = Counters {
            delivered: self.incoming(engine).map_or(0, |incoming| incoming.gauge.delivered),
            arrived: arrived.collect(),
            out_of_order: received.as_ref().map_or(0, |stats| stats.out_of_order),
            duplicate_bytes: received.map_or(0, |stats| stats.repeated_bytes),
            coding: Some(CodingCounters::default()),
            ..Counters::default()
        };
        let Some(stats) = sent else { return seen };
        let sent = stats.sent;
        Counters {
            data_packets: sent.sources + sent.repairs + sent.resends,
            retransmissions: sent.resends,
            timeouts: stats.paths.iter().map(|path| path.counters.timeouts).sum(),
            coding: Some(CodingCounters {
                sources: sent.sources,
                repairs: sent.repairs,
                blocks: sent.blocks,
                wraps: sent.wraps,
                repair_rounds: sent.repair_rounds,
                settled: sent.settled,
                lost_early: sent.lost_early,
                live_blocks: sent.live_at_openings,
            }),
            ..seen
        }
    }

    fn instant(&self, engine: &mut Engine, path: Option<usize>) -> Instant {
        let Some(stats) = self.sent(engine) else { return Instant::default() };
        // A path that went down and came up again has a new identifier but the same socket.
        let is_chosen = |known: &PathStats| {
            known.state != PathState::Closed
                && path.is_none_or(|path| known.address.socket.0 as usize == path)
        };
        let chosen: Vec<_> = stats.paths.iter().filter(|known| is_chosen(known)).collect();
        if chosen.is_empty() {
            return Instant::default();
        }
        let rtts: Vec<f64> = chosen.iter().map(|path| path.rtt.smoothed.as_secs_f64()).collect();
        let losses: Vec<f64> = chosen.iter().map(|path| path.loss.mean).collect();
        Instant {
            cwnd: chosen.iter().map(|path| path.cwnd as f64).sum(),
            srtt: Some(mean(&rtts)),
            loss: Some(mean(&losses)),
            ..Instant::default()
        }
    }

    fn gauge<'a>(&self, engine: &'a Engine) -> Option<&'a Gauge> {
        let empty = || Some(&self.ends(engine)?.1.empty);
        self.incoming(engine).map(|incoming| &incoming.gauge).or_else(empty)
    }

    fn completions(&self, engine: &Engine) -> Vec<Completion> {
        let Some(application) = self.application(engine) else { return Vec::new() };
        let Some(incoming) = self.incoming(engine) else { return Vec::new() };
        let completion = |(stream, ended): &(anabranch_core::wire::StreamId, _)| {
            let number = usize::try_from(stream.ordinal()).ok()?;
            let opened = application.transfers.get(number)?.1.opened;
            Some(Completion { opened, ended: *ended })
        };
        incoming.finished.iter().filter_map(completion).collect()
    }

    fn completed(&self, engine: &Engine) -> u64 {
        self.incoming(engine).map_or(0, |incoming| incoming.finished.len() as u64)
    }

    fn failure(&self, engine: &Engine) -> Option<FlowFailure> {
        let (sender, receiver) = self.ends(engine)?;
        let incoming = self.incoming(engine).and_then(|incoming| incoming.failure.as_ref());
        let failure = sender.failure(self.application).or(receiver.failure()).or(incoming);
        if let Some(failure) = failure {
            return Some(failure.clone());
        }
        let application = self.application(engine)?;
        let read = self.incoming(engine).map_or(0, |incoming| incoming.gauge.delivered);
        let written = application.written;
        let differ = application.finished().is_some() && written != read;
        differ.then(|| FlowFailure::Corrupt(format!("{read} bytes of {written}")))
    }

    fn messages(&self, engine: &Engine) -> Option<MessageLog> {
        let sent = self.application(engine)?.messages.as_ref()?.sent;
        let arrived = self.incoming(engine).map(|incoming| incoming.messages.arrived.clone());
        Some(MessageLog { sent, arrived: arrived.unwrap_or_default() })
    }

    fn connections(&self, engine: &mut Engine) -> [Option<ConnectionStats>; 2] {
        [self.sent(engine), self.received(engine)]
    }

    fn change_path(&self, engine: &mut Engine, path: usize, change: PathChange) {
        let now = engine.now();
        if let Some(sender) = engine.agent_as_mut::<CoreSender>(self.sender) {
            sender.change_path(now, path, change);
        }
        engine.wake(self.sender);
    }

    fn log(&self, engine: &mut Engine, watch: Watch) -> Watched {
        let codes = self.application(engine).is_some_and(Application::codes);
        let watch = Watch { coding_blocks: watch.coding_blocks && codes, ..watch };
        if let Some(receiver) = engine.agent_as_mut::<CoreReceiver>(self.receiver) {
            receiver.log(watch);
        }
        let sender = engine.agent_as_mut::<CoreSender>(self.sender);
        let Some(application) =
            sender.and_then(|sender| sender.applications.get_mut(self.application))
        else {
            return Watched { packet: 1, losses: false };
        };
        application.progress = Some(Box::new(Sent::new(watch.coding_blocks)));
        Watched { packet: application.packet(), losses: watch.coding_blocks }
    }

    fn take_logs(&self, engine: &mut Engine) -> Option<(Log, Log)> {
        let sender = engine.agent_as_mut::<CoreSender>(self.sender)?;
        let progress = sender.applications.get_mut(self.application)?.progress.as_mut()?;
        let sent = core::mem::take(&mut progress.log);
        let received = self.incoming_mut(engine).and_then(|incoming| incoming.progress.as_mut());
        let received = received.map(|progress| core::mem::take(&mut progress.log));
        Some((sent, received.unwrap_or_default()))
    }

    fn observe(&self, engine: &mut Engine, make: &mut dyn FnMut() -> Option<Box<dyn Observer>>) {
        if let Some(sender) = engine.agent_as_mut::<CoreSender>(self.sender)
            && let Some(observer) = make()
        {
            sender.set_observer(self.application, observer);
        }
    }
}
