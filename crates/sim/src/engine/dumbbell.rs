use super::{LinkId, NodeId, RouteId, Topology, TopologyError};
use crate::link::LinkConfig;

/// Flows that share one link, the bottleneck. Each flow has its own sender and receiver, which are
/// connected to the two ends of the bottleneck by their own links in both directions.
#[derive(Clone, Debug)]
pub struct Dumbbell {
    /// Number of flows.
    pub flows: u32,
    /// Configuration of every link between a sender or receiver and its end of the bottleneck.
    pub access: LinkConfig,
    /// The shared link in the direction of the data.
    pub bottleneck: LinkConfig,
    /// The shared link in the direction of the acknowledgements.
    pub back: LinkConfig,
}

/// Forward and backward route of a flow.
pub type RoutePair = (RouteId, RouteId);

impl Dumbbell {
    /// The shared link, in the direction of the data: `bottleneck`.
    pub const BOTTLENECK: LinkId = LinkId(0);
    /// The shared link, in the other direction: `bottleneck.reverse`.
    pub const BACK: LinkId = LinkId(1);

    /// Builds the topology and the routes of each flow. The links of flow `n` are called `access.n`
    /// and `exit.n` in the direction of the data, and `access.n.reverse` and `exit.n.reverse` in
    /// the other.
    ///
    /// # Errors
    /// If a link's configuration is invalid.
    pub fn build(&self) -> Result<(Topology, Vec<RoutePair>), TopologyError> {
        let mut topology = Topology::new();
        let (left, right) = (topology.add_node("left"), topology.add_node("right"));
        topology.add_link(left, right, &self.bottleneck, "bottleneck")?;
        topology.add_link(right, left, &self.back, "bottleneck.reverse")?;
        let routes = (0..self.flows).map(|flow| self.add_flow(&mut topology, [left, right], flow));
        let routes = routes.collect::<Result<_, _>>()?;
        Ok((topology, routes))
    }

    fn add_flow(
        &self,
        topology: &mut Topology,
        [left, right]: [NodeId; 2],
        flow: u32,
    ) -> Result<RoutePair, TopologyError> {
        let sender = topology.add_node(format!("sender.{flow}"));
        let receiver = topology.add_node(format!("receiver.{flow}"));
        let mut link = |from, to, name: String| topology.add_link(from, to, &self.access, name);
        let there = [
            link(sender, left, format!("access.{flow}"))?,
            link(right, receiver, format!("exit.{flow}"))?,
        ];
        let back = [
            link(receiver, right, format!("exit.{flow}.reverse"))?,
            link(left, sender, format!("access.{flow}.reverse"))?,
        ];
        Ok((
            topology.route_via(&[there[0], Self::BOTTLENECK, there[1]])?,
            topology.route_via(&[back[0], Self::BACK, back[1]])?,
        ))
    }
}
