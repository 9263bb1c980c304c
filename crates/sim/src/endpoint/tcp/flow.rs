use anabranch_types::Time;

use super::{TcpReceiver, TcpSender};
use crate::endpoint::{
    Completion, Counters, Flow, FlowFailure, Gauge, Instant, Log, MessageLog, PathChange, Watch,
    Watched,
};
use crate::engine::{AgentId, Engine};
use crate::probe::mean;

/// A flow between a [`TcpSender`] and a [`TcpReceiver`].
#[derive(Clone, Copy, Debug)]
pub struct TcpFlow {
    /// The agent that sends.
    pub sender: AgentId,
    /// The agent that receives.
    pub receiver: AgentId,
}

impl TcpFlow {
    fn ends<'a>(&self, engine: &'a Engine) -> Option<(&'a TcpSender, &'a TcpReceiver)> {
        Some((engine.agent_as(self.sender)?, engine.agent_as(self.receiver)?))
    }
}

impl Flow for TcpFlow {
    fn counters(&self, engine: &mut Engine) -> Counters {
        let now = engine.now();
        let Some((sender, receiver)) = self.ends(engine) else { return Counters::default() };
        let sent = sender.statistics();
        Counters {
            delivered: receiver.delivered(),
            arrived: receiver.ports.arrived(),
            data_packets: sent.data_segments,
            retransmissions: sent.retransmissions,
            timeouts: sent.timeouts,
            recoveries: Some(sent.recoveries),
            out_of_order: receiver.out_of_order(),
            ecn_responses: Some(sent.ecn_responses),
            duplicate_bytes: receiver.duplicate_bytes(),
            shut: sender.shut_windows(now),
            coding: None,
        }
    }

    fn instant(&self, engine: &mut Engine, path: Option<usize>) -> Instant {
        let Some((sender, _)) = self.ends(engine) else { return Instant::default() };
        let rtts = sender.senders(path).filter_map(|sender| sender.smoothed_rtt());
        let rtts: Vec<f64> = rtts.map(|rtt| rtt.as_secs_f64()).collect();
        Instant {
            cwnd: sender.senders(path).map(|sender| sender.cwnd() as f64).sum(),
            sequence: Some(sender.senders(path).map(|sender| sender.sent() as f64).sum()),
            acknowledged: Some(
                sender.senders(path).map(|sender| sender.acknowledged() as f64).sum(),
            ),
            srtt: (!rtts.is_empty()).then(|| mean(&rtts)),
            loss: None,
        }
    }

    fn gauge<'a>(&self, engine: &'a Engine) -> Option<&'a Gauge> {
        self.ends(engine).map(|(_, receiver)| &receiver.gauge)
    }

    fn completions(&self, engine: &Engine) -> Vec<Completion> {
        let Some((sender, receiver)) = self.ends(engine) else { return Vec::new() };
        let completion = |&(number, ended): &(u32, _)| {
            let opened = *sender.opened().get(number as usize)?;
            Some(Completion { opened, ended })
        };
        receiver.completed().iter().filter_map(completion).collect()
    }

    fn completed(&self, engine: &Engine) -> u64 {
        self.ends(engine).map_or(0, |(_, receiver)| receiver.completed().len() as u64)
    }

    fn failure(&self, engine: &Engine) -> Option<FlowFailure> {
        let (sender, _) = self.ends(engine)?;
        sender.failure().map(|error| FlowFailure::Refused(error.to_string()))
    }

    fn messages(&self, engine: &Engine) -> Option<MessageLog> {
        let (sender, receiver) = self.ends(engine)?;
        let (messages, sent) = sender.messages()?;
        let opened = *sender.opened().first()?;
        let arrival = |(number, at): (u32, &Time)| {
            let sent = opened + messages.interval * number;
            (sent, at.since(sent))
        };
        let arrived = (0..).zip(receiver.message_times()).map(arrival).collect();
        Some(MessageLog { sent, arrived })
    }

    fn change_path(&self, engine: &mut Engine, path: usize, change: PathChange) {
        let now = engine.now();
        let strips = change == PathChange::StripOptions;
        if (strips || change == PathChange::PassOptions)
            && let Some(receiver) = engine.agent_as_mut::<TcpReceiver>(self.receiver)
        {
            receiver.set_stripped(path, strips);
        }
        if let Some(sender) = engine.agent_as_mut::<TcpSender>(self.sender) {
            match change {
                PathChange::Down => sender.set_down(now, path, true),
                PathChange::Up => sender.set_down(now, path, false),
                PathChange::Backup => sender.set_backup(path, true),
                PathChange::Regular => sender.set_backup(path, false),
                // A TCP connection is bound to its address, so the scenario format does not allow
                // these changes.
                PathChange::Move | PathChange::Rebind => {}
                PathChange::StripOptions | PathChange::PassOptions => {
                    sender.set_stripped(path, strips);
                }
            }
        }
        engine.wake(self.sender);
    }

    fn log(&self, engine: &mut Engine, watch: Watch) -> Watched {
        if let Some(receiver) = engine.agent_as_mut::<TcpReceiver>(self.receiver) {
            receiver.start_log(watch.slice);
        }
        let sender = engine.agent_as_mut::<TcpSender>(self.sender);
        let packet = sender.map_or(1, |sender| {
            sender.log = Some(Box::default());
            sender.mss()
        });
        Watched { packet, losses: true }
    }

    fn take_logs(&self, engine: &mut Engine) -> Option<(Log, Log)> {
        let sent = engine.agent_as_mut::<TcpSender>(self.sender)?.log.as_mut()?;
        let sent = core::mem::take(&mut **sent);
        Some((sent, engine.agent_as_mut::<TcpReceiver>(self.receiver)?.take_log()?))
    }
}
