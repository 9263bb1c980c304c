use anabranch_core::connection::ConnectionStats;
use anabranch_core::observe::Observer;

use super::progress::{Received, Sent};
use super::{CoreReceiver, CoreSender};
use crate::endpoint::{
    CodingCounters, Completion, Counters, Flow, FlowFailure, Gauge, Instant, Log, MessageLog,
    PathChange,
};
use crate::engine::{AgentId, Engine};
use crate::probe::mean;

/// A flow between a [`CoreSender`] and a [`CoreReceiver`].
#[derive(Clone, Copy, Debug)]
pub struct CoreFlow {
    /// The agent that sends.
    pub sender: AgentId,
    /// The agent that receives.
    pub receiver: AgentId,
}

impl CoreFlow {
    fn ends<'a>(&self, engine: &'a Engine) -> Option<(&'a CoreSender, &'a CoreReceiver)> {
        Some((engine.agent_as(self.sender)?, engine.agent_as(self.receiver)?))
    }

    /// The connection's figures at the sender.
    pub fn sent(&self, engine: &mut Engine) -> Option<ConnectionStats> {
        Some(engine.agent_as_mut::<CoreSender>(self.sender)?.connection()?.stats())
    }

    /// The connection's figures at the receiver.
    pub fn received(&self, engine: &mut Engine) -> Option<ConnectionStats> {
        Some(engine.agent_as_mut::<CoreReceiver>(self.receiver)?.connection()?.stats())
    }
}

impl Flow for CoreFlow {
    fn counters(&self, engine: &mut Engine) -> Counters {
        let (sent, received) = (self.sent(engine), self.received(engine));
        let Some((_, receiver)) = self.ends(engine) else { return Counters::default() };
        let seen = Counters {
            delivered: receiver.delivered(),
            arrived: receiver.ports.arrived(),
            out_of_order: received.map_or(0, |stats| stats.out_of_order),
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
                windows: sent.windows,
                wraps: sent.wraps,
                repair_rounds: sent.repair_rounds,
                live_windows: sent.live_at_openings,
            }),
            ..seen
        }
    }

    fn instant(&self, engine: &mut Engine, path: Option<usize>) -> Instant {
        let Some(stats) = self.sent(engine) else { return Instant::default() };
        let is_chosen = |id: u32| path.is_none_or(|path| id as usize == path);
        let chosen: Vec<_> = stats.paths.iter().filter(|path| is_chosen(path.id.0)).collect();
        if chosen.is_empty() {
            return Instant::default();
        }
        let rtts: Vec<f64> = chosen.iter().map(|path| path.rtt.smoothed.as_secs_f64()).collect();
        let losses: Vec<f64> = chosen.iter().map(|path| path.loss.mean).collect();
        Instant {
            window: chosen.iter().map(|path| path.window as f64).sum(),
            srtt: Some(mean(&rtts)),
            loss: Some(mean(&losses)),
        }
    }

    fn gauge<'a>(&self, engine: &'a Engine) -> Option<&'a Gauge> {
        self.ends(engine).map(|(_, receiver)| &receiver.gauge)
    }

    fn completions(&self, engine: &Engine) -> Vec<Completion> {
        let Some((sender, receiver)) = self.ends(engine) else { return Vec::new() };
        let completion = |(stream, ended): &(anabranch_core::wire::StreamId, _)| {
            let number = usize::try_from(stream.ordinal()).ok()?;
            let opened = sender.transfers().get(number)?.1.opened;
            Some(Completion { opened, ended: *ended })
        };
        receiver.finished().iter().filter_map(completion).collect()
    }

    fn completed(&self, engine: &Engine) -> u64 {
        self.ends(engine).map_or(0, |(_, receiver)| receiver.finished().len() as u64)
    }

    fn failure(&self, engine: &Engine) -> Option<FlowFailure> {
        let (sender, receiver) = self.ends(engine)?;
        if let Some(failure) = sender.failure().or(receiver.failure()) {
            return Some(failure.clone());
        }
        let (written, read) = (sender.written(), receiver.delivered());
        let differ = sender.finished().is_some() && written != read;
        differ.then(|| FlowFailure::Corrupt(format!("{read} bytes of {written}")))
    }

    fn messages(&self, engine: &Engine) -> Option<MessageLog> {
        let (sender, receiver) = self.ends(engine)?;
        let sent = sender.messages.as_ref()?.sent;
        Some(MessageLog { sent, arrived: receiver.messages.arrived.clone() })
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

    fn log(&self, engine: &mut Engine, slice: u64) -> u64 {
        if let Some(receiver) = engine.agent_as_mut::<CoreReceiver>(self.receiver) {
            receiver.progress = Some(Box::new(Received::new(slice)));
        }
        let Some(sender) = engine.agent_as_mut::<CoreSender>(self.sender) else { return 1 };
        sender.progress = Some(Box::default());
        sender.packet()
    }

    fn take_logs(&self, engine: &mut Engine) -> Option<(Log, Log)> {
        let sent: &mut Sent = engine.agent_as_mut::<CoreSender>(self.sender)?.progress.as_mut()?;
        let sent = core::mem::take(&mut sent.log);
        let receiver = engine.agent_as_mut::<CoreReceiver>(self.receiver)?;
        Some((sent, core::mem::take(&mut receiver.progress.as_mut()?.log)))
    }

    fn observe(&self, engine: &mut Engine, make: &mut dyn FnMut() -> Option<Box<dyn Observer>>) {
        if let Some(sender) = engine.agent_as_mut::<CoreSender>(self.sender)
            && let Some(observer) = make()
        {
            sender.set_observer(observer);
        }
    }
}
