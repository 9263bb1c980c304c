//! A model of TCP without I/O, clocks and payload bytes, for simulations that compare against it.
//!
//! One [`Sender`] and one [`Receiver`] make one direction of a connection; two pairs make a
//! full-duplex one. They exchange [`Segment`]s, small values that carry offsets instead of bytes
//! and know their size on the wire. [`Config`] says which mechanisms are on; the congestion
//! controller is any of `anabranch_policy::congestion`.
//!
//! ```
//! use anabranch_policy::congestion;
//! use anabranch_tcp::{Config, Receiver, Sender};
//! use anabranch_types::Time;
//!
//! let config = Config { handshake: false, ..Config::default() };
//! let controller = congestion::build(&"reno:initial=2".parse()?, u64::from(config.mss))?;
//! let (mut sender, mut receiver) = (Sender::new(&config, controller), Receiver::new(&config));
//! sender.write(4 * 1460);
//! sender.finish();
//! let mut now = Time::ZERO;
//! while !sender.is_drained() {
//!     // The network of this example is perfect: 10 ms each way, nothing lost.
//!     while let Some(segment) = sender.poll_transmit(now) {
//!         receiver.handle_segment(now, &segment, false);
//!     }
//!     now += core::time::Duration::from_millis(20);
//!     while let Some(ack) = receiver.poll_transmit(now) {
//!         sender.handle_segment(now, &ack);
//!     }
//! }
//! assert_eq!(receiver.delivered(), 4 * 1460);
//! # Ok::<(), anabranch_policy::PolicyError>(())
//! ```

pub mod config;
pub mod meta;
mod prr;
pub mod ranges;
pub mod receiver;
pub mod rtt;
mod scoreboard;
pub mod segment;
pub mod sender;
pub mod striping;
#[cfg(test)]
mod testing;

pub use config::{Config, DelayedAck, LossRecovery, PersistTimer, TimerConfig, WindowUpdates};
pub use receiver::{Receiver, ReceiverStatistics};
pub use segment::{BareSegment, Flags, Segment, SegmentRest, WireFormat};
pub use sender::{Sender, SenderEvent, SenderStatistics};
