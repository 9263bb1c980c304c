//! A shared radio channel in virtual time.
//!
//! [`Air`] is the medium together with the MAC of every station (802.11's distributed coordination
//! function). [`Radio`] describes the range of signals, and [`MacConfig`] has the constants of the
//! MAC. The limits of the models are described in `docs/wireless.md`. [`bianchi`] is the analysis
//! with which saturated cells are compared.

pub mod bianchi;

mod air;
mod cell;
mod mac;
pub mod mesh;
mod motion;
mod queue;
mod radio;
mod receiver;
mod waypoints;

pub use air::{Air, AirConfig, AirCounters, AirError, FrameLoss, Report};
pub use cell::Cell;
pub use mac::{Destination, EifsRule, IdleAccess, MacConfig, MacConfigError, MacCounters, Message};
pub use motion::{Fixed, Motion, Position};
pub use queue::Priority;
pub use radio::Radio;
pub use waypoints::{RandomWaypoint, RandomWaypointError, Waypoints, WaypointsError};
