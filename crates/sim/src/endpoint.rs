//! The built-in agents: endpoints of transport connections, and sources of load.
//!
//! Every transport has one sending and one receiving end. Scenarios, tests and the comparison with
//! reference data all use the same endpoints. A [`Flow`] gives access to both ends of a connection
//! in the same way for every transport.

mod core;
mod flow;
mod gauge;
mod jitter;
mod ports;
mod table;
mod tcp;
#[cfg(test)]
mod testing;
mod udp;

pub use self::core::{CoreConfig, CoreFlow, CoreReceiver, CoreSender, Stripe};
pub use flow::{
    CodingCounters, Completion, Counters, Flow, FlowFailure, Instant, MessageLog, PathChange,
    ShutWindow,
};
pub use gauge::{Gauge, Log, Watch, Watched};
pub use jitter::SendJitter;
pub use tcp::{TcpFlow, TcpProtocol, TcpReceiver, TcpSender, ToldRates};
pub use udp::{Sink, Udp, UdpConfig, UdpPattern};
