//! Acknowledgement: when to acknowledge and on which reverse path.

pub mod routed;
mod timing;

use anabranch_types::{PathId, Rng, Time};
use core::fmt::Debug;

use crate::registry::{PolicyError, PolicySpec, Registry, Row};
use crate::view::PathView;

/// The arrival of a packet.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedEvent {
    /// The current time.
    pub now: Time,
    /// The path that carried the packet.
    pub path: PathId,
    /// Whether the packet asks for an acknowledgement.
    pub ack_eliciting: bool,
    /// Whether packets before this one are missing, or this one fills such a gap.
    pub out_of_order: bool,
    /// Whether the packet carried a Congestion Experienced mark.
    pub ce: bool,
    /// Ack-eliciting packets of this path not acknowledged yet, this one included.
    pub pending: u32,
}

/// When an acknowledgement is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckTiming {
    /// No acknowledgement is needed.
    None,
    /// The acknowledgement leaves with the next packet that can be sent.
    Now,
    /// The acknowledgement leaves at this time at the latest.
    By(Time),
}

/// Decides when and where acknowledgements go.
pub trait AckPolicy: Debug + Send {
    /// When the acknowledgement of this packet is due.
    fn on_received(&mut self, event: &ReceivedEvent) -> AckTiming;

    /// Whether each acknowledgement reports on every path (MPLOT §II-C: "the latest aggregate feedback"), not only on the
    /// one whose report is due.
    fn reports_every_path(&self) -> bool {
        false
    }

    /// Chooses the paths on which an acknowledgement of packets of the path `about` leaves, and
    /// pushes them onto `out`, which is empty at entry.
    fn route(&mut self, about: PathId, paths: &[PathView], rng: &mut Rng, out: &mut Vec<PathId>);
}

/// The built-in policies of this axis.
pub const TABLE: &[Row<dyn AckPolicy>] = &[
    (&routed::SAME, routed::build_same),
    (&routed::QUICKER, routed::build_quicker),
    (&routed::RANDOM, routed::build_random),
    (&routed::BEST, routed::build_best),
    (&routed::ALL, routed::build_all),
];

/// Makes the built-in ack policy that `spec` names.
pub fn build(spec: &PolicySpec) -> Result<Box<dyn AckPolicy>, PolicyError> {
    Registry::new().build(spec)
}

#[cfg(test)]
mod tests;
