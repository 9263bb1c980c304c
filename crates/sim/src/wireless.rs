//! A shared radio channel in virtual time.
//!
//! [`Air`] is the medium with a station's MAC (802.11's distributed coordination function) at every
//! place, [`Radio`] how far a signal carries, [`MacConfig`] the constants of the MAC. What the models
//! leave out is in `docs/wireless.md`. [`bianchi`] is the analysis that saturated cells are compared with.

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
