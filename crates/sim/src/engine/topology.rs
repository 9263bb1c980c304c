use core::fmt;
use std::collections::VecDeque;
use std::sync::Arc;

use crate::link::{LinkConfig, LinkConfigError};

/// Number of a node within a [`Topology`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// Number of a link within a [`Topology`]. A link has one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub u32);

/// Number of a route, a sequence of consecutive links, within a [`Topology`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteId(pub u32);

/// Nodes, directed links between them, and static routes over the links.
///
/// ```
/// use anabranch_sim::engine::Topology;
///
/// let mut topology = Topology::new();
/// let [home, exchange, server] = ["home", "exchange", "server"].map(|name| topology.add_node(name));
/// topology.add_link(home, exchange, &"rate=12mbit,delay=10ms".parse()?, "up")?;
/// topology.add_link(exchange, server, &"rate=1gbit,delay=2ms".parse()?, "core")?;
/// let route = topology.route(home, server)?;
/// assert_eq!(topology.links_of(route).len(), 2);
/// assert!(topology.route(server, home).is_err(), "links lead one way");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Topology {
    nodes: Vec<Node>,
    links: Vec<TopologyLink>,
    /// The links of all routes, each route followed by [`END`].
    hops: Vec<u32>,
    /// Where in `hops` each route starts.
    routes: Vec<u32>,
    /// The link configurations added most recently, kept because most links of a topology share one
    /// of a few.
    recent: Vec<Arc<LinkConfig>>,
}

/// Marks the end of a route in `hops`.
pub(super) const END: u32 = u32::MAX;
/// Maximum number of configurations that are kept to be shared with later links.
const RECENT: usize = 8;

#[derive(Clone, Debug)]
struct Node {
    name: Box<str>,
    /// Links that leave the node, by rising id.
    out: Vec<u32>,
}

#[derive(Clone, Debug)]
pub(super) struct TopologyLink {
    pub(super) name: Box<str>,
    pub(super) from: NodeId,
    pub(super) to: NodeId,
    pub(super) config: Arc<LinkConfig>,
}

impl Topology {
    /// An empty topology.
    pub fn new() -> Self {
        Topology::default()
    }

    /// Adds a node. Its name is used only in reports and errors.
    pub fn add_node(&mut self, name: impl Into<Box<str>>) -> NodeId {
        self.nodes.push(Node { name: name.into(), out: Vec::new() });
        NodeId(self.nodes.len() as u32 - 1)
    }

    /// Adds a link from one node to another.
    ///
    /// Random draws of the link are named after `name`, so each link needs a name of its own;
    /// [`Engine::new`](super::Engine::new) checks that.
    ///
    /// # Errors
    /// When a node does not exist or `config` is out of range.
    pub fn add_link(
        &mut self,
        from: NodeId,
        to: NodeId,
        config: &LinkConfig,
        name: impl Into<Box<str>>,
    ) -> Result<LinkId, TopologyError> {
        for node in [from, to] {
            if node.0 as usize >= self.nodes.len() {
                return Err(TopologyError::NoNode(node));
            }
        }
        let config = self.shared(config)?;
        let link = self.links.len() as u32;
        self.links.push(TopologyLink { name: name.into(), from, to, config });
        self.nodes[from.0 as usize].out.push(link);
        Ok(LinkId(link))
    }

    /// Adds the route with the fewest links between two nodes. Of several such routes, it is the
    /// one that has the link of lowest id where they first differ. Takes time in proportion to the
    /// size of the topology.
    ///
    /// # Errors
    /// When there is no such route, a node does not exist, or both are the same node.
    pub fn route(&mut self, from: NodeId, to: NodeId) -> Result<RouteId, NoRoute> {
        let unreachable = || NoRoute::Unreachable {
            from: self.node_name(from).to_owned(),
            to: self.node_name(to).to_owned(),
        };
        if from == to || self.nodes.len() <= from.0.max(to.0) as usize {
            return Err(unreachable());
        }
        let distances = self.distances_to(to);
        let mut at = from;
        let mut path = Vec::new();
        while at != to {
            let closer = |link: &&u32| {
                let next = self.links[**link as usize].to;
                distances[next.0 as usize] < distances[at.0 as usize]
            };
            let link = self.nodes[at.0 as usize].out.iter().find(closer);
            let link = *link.ok_or_else(unreachable)?;
            path.push(LinkId(link));
            at = self.links[link as usize].to;
        }
        Ok(self.add_route(&path))
    }

    /// Adds the route over exactly these links.
    ///
    /// # Errors
    /// When `links` is empty, a link does not exist, or a link does not start where the one before
    /// it ends.
    pub fn route_via(&mut self, links: &[LinkId]) -> Result<RouteId, NoRoute> {
        if links.is_empty() {
            return Err(NoRoute::Empty);
        }
        for link in links {
            if link.0 as usize >= self.links.len() {
                return Err(NoRoute::NoLink(*link));
            }
        }
        for pair in links.windows(2) {
            let [one, next] = [0, 1].map(|index| &self.links[pair[index].0 as usize]);
            if one.to != next.from {
                let (one, next) = (one.name.to_string(), next.name.to_string());
                return Err(NoRoute::Gap { one, next });
            }
        }
        Ok(self.add_route(links))
    }

    /// The links of a route, in order; empty if the route does not exist.
    pub fn links_of(&self, route: RouteId) -> Vec<LinkId> {
        let start = self.routes.get(route.0 as usize).map_or(self.hops.len(), |at| *at as usize);
        self.hops[start..]
            .iter()
            .take_while(|link| **link != END)
            .map(|link| LinkId(*link))
            .collect()
    }

    /// The name of a node; empty if the node does not exist.
    pub fn node_name(&self, node: NodeId) -> &str {
        self.nodes.get(node.0 as usize).map_or("", |node| &node.name)
    }

    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Number of links; the two directions of a connection count as two links.
    pub fn links(&self) -> usize {
        self.links.len()
    }

    pub(super) fn all_links(&self) -> &[TopologyLink] {
        &self.links
    }

    pub(super) fn hops(&self) -> &[u32] {
        &self.hops
    }

    pub(super) fn route_start(&self, route: RouteId) -> Option<u32> {
        self.routes.get(route.0 as usize).copied()
    }

    /// A name that two links have, if there is one.
    pub(super) fn repeated_name(&self) -> Option<&str> {
        let mut names: Vec<&str> = self.links.iter().map(|link| &*link.name).collect();
        names.sort_unstable();
        names.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
    }

    fn add_route(&mut self, links: &[LinkId]) -> RouteId {
        self.routes.push(self.hops.len() as u32);
        self.hops.extend(links.iter().map(|link| link.0));
        self.hops.push(END);
        RouteId(self.routes.len() as u32 - 1)
    }

    /// Number of links from each node to `to`, found by a breadth-first search against the
    /// direction of the links; `u32::MAX` if no route leads there.
    fn distances_to(&self, to: NodeId) -> Vec<u32> {
        let mut into = vec![Vec::new(); self.nodes.len()];
        for link in &self.links {
            into[link.to.0 as usize].push(link.from);
        }
        let mut distances = vec![u32::MAX; self.nodes.len()];
        distances[to.0 as usize] = 0;
        let mut queue = VecDeque::from([to]);
        while let Some(node) = queue.pop_front() {
            let next = distances[node.0 as usize] + 1;
            for before in &into[node.0 as usize] {
                let distance = &mut distances[before.0 as usize];
                if *distance == u32::MAX {
                    *distance = next;
                    queue.push_back(*before);
                }
            }
        }
        distances
    }

    fn shared(&mut self, config: &LinkConfig) -> Result<Arc<LinkConfig>, TopologyError> {
        if let Some(known) = self.recent.iter().find(|known| known.as_ref() == config) {
            return Ok(Arc::clone(known));
        }
        config.validate().map_err(TopologyError::Link)?;
        let config = Arc::new(config.clone());
        self.recent.truncate(RECENT - 1);
        self.recent.insert(0, Arc::clone(&config));
        Ok(config)
    }
}

/// An error in the description of a topology.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopologyError {
    /// A link starts or ends at a node that does not exist.
    NoNode(NodeId),
    /// A link's configuration is invalid.
    Link(LinkConfigError),
    /// Two links have this name, so both would draw the same losses.
    RepeatedName(String),
    /// A route is not possible.
    Route(NoRoute),
    /// The engine has no agent or route (first field) with this number (second field).
    NoSuch(&'static str, u32),
}

/// Why a route is not possible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoRoute {
    /// No sequence of links leads from the first node to the last.
    Unreachable {
        /// The name of the first node.
        from: String,
        /// The name of the last node.
        to: String,
    },
    /// The route has no link.
    Empty,
    /// A link does not exist.
    NoLink(LinkId),
    /// A link does not start where the one before it ends.
    Gap {
        /// The name of the first link.
        one: String,
        /// The name of the next link.
        next: String,
    },
}

impl fmt::Display for TopologyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TopologyError::NoNode(node) => write!(f, "there is no node {}", node.0),
            TopologyError::Link(error) => error.fmt(f),
            TopologyError::Route(error) => error.fmt(f),
            TopologyError::RepeatedName(name) => write!(f, "two links are called '{name}'"),
            TopologyError::NoSuch(what, id) => write!(f, "there is no {what} {id}"),
        }
    }
}

impl core::error::Error for TopologyError {}

impl From<NoRoute> for TopologyError {
    fn from(error: NoRoute) -> Self {
        TopologyError::Route(error)
    }
}

impl fmt::Display for NoRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoRoute::Unreachable { from, to } => write!(f, "no route from '{from}' to '{to}'"),
            NoRoute::Empty => f.write_str("a route needs a link"),
            NoRoute::NoLink(link) => write!(f, "there is no link {}", link.0),
            NoRoute::Gap { one, next } => {
                write!(f, "link '{next}' does not start where '{one}' ends")
            }
        }
    }
}

impl core::error::Error for NoRoute {}
