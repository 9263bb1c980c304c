//! One bottleneck between a sender and a receiver, and what a run over it yields.

use anabranch_sim::endpoint::{TcpProtocol, TcpReceiver, TcpSender};
use anabranch_sim::engine::{Engine, Topology};
use anabranch_sim::link::LinkConfig;
use anabranch_sim::loss::LossConfig;
use anabranch_sim::queue::QueueLimit;
use anabranch_sim::traffic::Traffic;
use anabranch_types::{Bitrate, Time};
use core::time::Duration;

use crate::senders::Imitation;

/// Virtual seconds of every run.
pub const SECONDS: u64 = 200;

/// A bottleneck, with random loss behind it in the data direction only.
#[derive(Clone, Debug)]
pub struct Bottleneck {
    pub mbps: f64,
    pub one_way_ms: f64,
    pub queue_packets: f64,
    pub loss: LossConfig,
}

/// Results of one run.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    pub goodput_mbps: f64,
    pub timeouts: f64,
    pub retransmissions: f64,
    pub cuts: f64,
}

impl Bottleneck {
    /// One flow without end for [`SECONDS`].
    pub fn run(&self, sender: &Imitation, seed: u64) -> Result<Outcome, String> {
        let text = |error: &dyn core::fmt::Display| error.to_string();
        let delay = Duration::from_nanos((self.one_way_ms * 1e6) as u64);
        let plain = LinkConfig::new(Bitrate::from_mbps(self.mbps), delay);
        // ns-2's drop-tail counts the arriving packet too: a limit of n lets n − 1 wait.
        let waiting = (self.queue_packets as u32).saturating_sub(1).max(1);
        let forward =
            plain.clone().with_loss(self.loss.clone()).with_buffer(QueueLimit::Packets(waiting));
        let reverse = plain.with_buffer(QueueLimit::Packets(1_000_000));
        let mut topology = Topology::new();
        let (here, there) = (topology.add_node("sender"), topology.add_node("receiver"));
        topology.add_link(here, there, &forward, "bottleneck").map_err(|e| text(&e))?;
        topology.add_link(there, here, &reverse, "reverse").map_err(|e| text(&e))?;
        let out = topology.route(here, there).map_err(|e| text(&e))?;
        let back = topology.route(there, here).map_err(|e| text(&e))?;
        let mut engine = Engine::new(topology, seed).map_err(|e| text(&e))?;
        let control = sender.control.parse().map_err(|e| text(&e))?;
        let protocol = TcpProtocol::new(sender.config.clone(), control).into();
        let agent = TcpSender::new(&protocol, Traffic::Bulk, seed, "bulk").map_err(|e| text(&e))?;
        let agent = engine.add_agent(Box::new(agent), Time::ZERO);
        let receiver = engine.add_agent(Box::new(TcpReceiver::new(&protocol)), Time::ZERO);
        engine.connect(agent, receiver, out, back).map_err(|e| text(&e))?;
        engine.run_until(Time::from_secs(SECONDS));
        let agent = engine.agent_as::<TcpSender>(agent).ok_or("the sender is gone")?;
        let counters = agent.statistics();
        Ok(Outcome {
            goodput_mbps: agent.acknowledged() as f64 * 8e-6 / SECONDS as f64,
            timeouts: counters.timeouts as f64,
            retransmissions: counters.retransmissions as f64,
            cuts: counters.cwnd_reductions as f64,
        })
    }
}
