//! The policy axes: the independent decisions that make up a protocol.

use core::fmt;
use core::str::FromStr;

use crate::registry::PolicyError;

/// One of the independent decisions of which a protocol consists. A policy makes one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Axis {
    /// How much may be in flight on a path, and how fast it is sent.
    Congestion,
    /// Detection of lost packets.
    LossDetector,
    /// How likely losses are.
    LossEstimator,
    /// Choice of a path for each symbol.
    Scheduler,
    /// How repairs are made from source symbols.
    Code,
    /// How many symbols a block has, and how many repairs.
    Redundancy,
    /// Reaction to losses and dead paths.
    Recovery,
    /// When and on which path to acknowledge.
    Ack,
}

impl Axis {
    /// Every axis, in the order in which tables list them.
    pub const ALL: [Axis; 8] = [
        Axis::Congestion,
        Axis::LossDetector,
        Axis::LossEstimator,
        Axis::Scheduler,
        Axis::Code,
        Axis::Redundancy,
        Axis::Recovery,
        Axis::Ack,
    ];

    /// The axis's name, as users write it.
    pub const fn name(self) -> &'static str {
        match self {
            Axis::Congestion => "congestion",
            Axis::LossDetector => "loss-detector",
            Axis::LossEstimator => "loss-estimator",
            Axis::Scheduler => "scheduler",
            Axis::Code => "code",
            Axis::Redundancy => "redundancy",
            Axis::Recovery => "recovery",
            Axis::Ack => "ack",
        }
    }

    /// One line on what the axis's policies decide.
    pub const fn summary(self) -> &'static str {
        match self {
            Axis::Congestion => "how much may be in flight on a path, and how fast it is sent",
            Axis::LossDetector => "which packets are lost",
            Axis::LossEstimator => "how likely losses are",
            Axis::Scheduler => "which symbol goes on which path",
            Axis::Code => "how repairs are made of source symbols",
            Axis::Redundancy => "how many symbols a block has, and how many repairs",
            Axis::Recovery => "what to do about losses and dead paths",
            Axis::Ack => "when and on which path to acknowledge",
        }
    }
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Axis {
    type Err = PolicyError;

    /// Reads an axis by its name.
    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let axis = Axis::ALL.into_iter().find(|axis| axis.name() == text);
        axis.ok_or_else(|| PolicyError::Axis(text.to_owned()))
    }
}
