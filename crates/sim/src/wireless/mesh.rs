//! Meshes: stations that route over several hops, with transport connections between them.
//!
//! All stations share one [`Air`](super::Air). Each station has address resolution and dynamic
//! source routing, DSR (RFC 4728). The ends of a transport connection are the same agents as in
//! wired networks, so TCP over several hops is the TCP of scenarios.
//!
//! A [`Mesh`] is made from a [`MeshConfig`] (radio, MAC and random loss; routing; flows), a
//! [`Motion`](super::Motion) with the positions of the stations, and a seed. For a series over
//! time, run it piece by piece and read its counters in between.
//!
//! ```
//! use anabranch_sim::wireless::mesh::{Mesh, MeshConfig, MeshFlow};
//! use anabranch_sim::wireless::Fixed;
//! use anabranch_types::Time;
//!
//! // A ring of 14 stations, 200 m from one to the next: seven hops either way from 0 to 7.
//! let ring = Fixed::circle(14, 449.4);
//! let config = MeshConfig { flows: vec![MeshFlow::tcp(0, 7)], ..MeshConfig::default() };
//! let mut mesh = Mesh::new(&config, Box::new(ring), 1)?;
//! mesh.run_until(Time::from_secs(5));
//! assert!(mesh.acknowledged(0) > 20_000);
//! assert!(mesh.counters().requests > 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod agent;
mod arp;
mod config;
mod counters;
mod dsr;
mod net;
mod packet;
mod route;
mod run;
mod selection;
mod watch;

pub use config::{AckRoute, Answers, Forwarding, Renewal, RouteUse, RoutingConfig};
pub use counters::{Drops, MeshCounters};
pub use route::{MAX_ROUTE, Route};
pub use run::{Mesh, MeshConfig, MeshError, MeshFlow, MeshTraffic};
pub use selection::Separation;
pub use watch::{HopCounters, Hops, hops, positions, watch_hops};
