//! The built-in agents: ends of transport connections, and sources of load.

mod core;
mod tcp;
mod transfers;
mod udp;

pub use self::core::{CoreConfig, CoreFailure, CoreReceiver, CoreSender};
pub use tcp::{MetaTcpReceiver, MetaTcpSender, TcpReceiver, TcpSender};
pub(crate) use tcp::{Pause, send};
pub use transfers::{TcpTransfers, TcpTransfersReceiver};
pub use udp::{Sink, Udp, UdpConfig, UdpPattern};
