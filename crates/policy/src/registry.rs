//! The registry: the table of all policies by axis and name, with those that a program adds.

mod error;
mod options;
mod spec;

use core::any::Any;
use core::fmt;
use std::sync::Arc;

pub use error::PolicyError;
pub use options::{OptionEntry, Options, option};
pub use spec::PolicySpec;

use crate::axis::Axis;
use crate::{
    AckPolicy, CongestionController, ErasureCode, LossDetector, LossEstimator, RecoveryPolicy,
    RedundancyPolicy, Scheduler, ack, code, congestion, loss, recovery, redundancy, scheduler,
};

/// The size of a full packet if none is given, bytes.
const PACKET_SIZE: u64 = 1200;

/// One policy, as `anabranch policies` lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name on its axis.
    pub name: &'static str,
    /// One line on what it does.
    pub summary: &'static str,
    /// The paper and equation, or the RFC and section, that the policy follows.
    pub source: &'static str,
    /// The options that the policy takes.
    pub options: &'static [OptionEntry],
}

/// Makes a policy from its options.
pub type Build<P> = fn(&Options<'_>) -> Result<Box<P>, PolicyError>;

/// A row of an axis's table: what the policy is, and how it is made from its options.
pub type Row<P> = (&'static Entry, Build<P>);

/// The trait that the policies of an axis implement, as a type: `dyn Scheduler` and the like.
pub trait OnAxis: 'static {
    /// The axis.
    const AXIS: Axis;
    /// The built-in policies of the axis.
    const TABLE: &'static [Row<Self>];
}

macro_rules! axes {
    ($($axis:ident: $policy:ident in $table:path;)*) => {
        $(impl OnAxis for dyn $policy {
            const AXIS: Axis = Axis::$axis;
            const TABLE: &'static [Row<Self>] = $table;
        })*

        /// The operations of an axis, for callers that know the axis only at run time.
        fn erased(axis: Axis) -> Erased {
            match axis {
                $(Axis::$axis => Erased::of::<dyn $policy>(),)*
            }
        }
    };
}

axes! {
    Congestion: CongestionController in congestion::TABLE;
    LossDetector: LossDetector in loss::DETECTORS;
    LossEstimator: LossEstimator in loss::ESTIMATORS;
    Scheduler: Scheduler in scheduler::TABLE;
    Code: ErasureCode in code::TABLE;
    Redundancy: RedundancyPolicy in redundancy::TABLE;
    Recovery: RecoveryPolicy in recovery::TABLE;
    Ack: AckPolicy in ack::TABLE;
}

/// The operations of an axis that need no policy type.
struct Erased {
    built_in: fn() -> Vec<&'static Entry>,
    check: fn(&Registry, &PolicySpec) -> Result<(), PolicyError>,
}

impl Erased {
    fn of<P: OnAxis + ?Sized>() -> Self {
        Erased {
            built_in: || P::TABLE.iter().map(|row| row.0).collect(),
            check: |registry, spec| registry.build::<P>(spec).map(drop),
        }
    }
}

type Make<P> = dyn Fn(&Options<'_>) -> Result<Box<P>, PolicyError> + Send + Sync;

/// A policy that a program has registered.
#[derive(Clone)]
struct Own {
    axis: Axis,
    entry: &'static Entry,
    /// A `Box<Make<P>>` of the axis's P.
    make: Arc<dyn Any + Send + Sync>,
}

impl fmt::Debug for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.axis, self.entry.name)
    }
}

impl PartialEq for Own {
    fn eq(&self, other: &Self) -> bool {
        self.axis == other.axis && self.entry == other.entry && Arc::ptr_eq(&self.make, &other.make)
    }
}

impl Eq for Own {}

/// The policies that can be named: the built-in ones, and those that a program registers. A clone
/// shares the policies that were registered before it was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registry {
    own: Vec<Own>,
}

impl Registry {
    /// The built-in policies alone.
    pub const fn new() -> Self {
        Registry { own: Vec::new() }
    }

    /// Adds a policy to the axis of `P`, such as `dyn Scheduler`: from now on, its name stands for
    /// the policies that `make` makes. `make` is called for every connection or path that uses the
    /// policy, and whenever a choice of the policy is checked.
    ///
    /// # Errors
    /// When the axis has a policy of that name, or the entry's names are not of the form that users can
    /// write.
    pub fn register<P: OnAxis + ?Sized>(
        &mut self,
        entry: &'static Entry,
        make: impl Fn(&Options<'_>) -> Result<Box<P>, PolicyError> + Send + Sync + 'static,
    ) -> Result<(), PolicyError> {
        for name in [entry.name].into_iter().chain(entry.options.iter().map(|option| option.key)) {
            spec::check_name(name)?;
        }
        if self.entries(P::AXIS).iter().any(|known| known.name == entry.name) {
            return Err(PolicyError::Taken { axis: P::AXIS, name: entry.name.to_owned() });
        }
        let make: Box<Make<P>> = Box::new(make);
        self.own.push(Own { axis: P::AXIS, entry, make: Arc::new(make) });
        Ok(())
    }

    /// The policies that a program has registered, in the order of registration.
    pub fn own(&self) -> impl Iterator<Item = (Axis, &'static Entry)> + '_ {
        self.own.iter().map(|own| (own.axis, own.entry))
    }

    /// The policies of an axis, the built-in ones first.
    pub fn entries(&self, axis: Axis) -> Vec<&'static Entry> {
        let own = self.own.iter().filter(|own| own.axis == axis).map(|own| own.entry);
        (erased(axis).built_in)().into_iter().chain(own).collect()
    }

    /// The policy that `spec` names on the axis of `P`.
    ///
    /// # Errors
    /// When there is no such policy, or an option of it is wrong.
    pub fn build<P: OnAxis + ?Sized>(&self, spec: &PolicySpec) -> Result<Box<P>, PolicyError> {
        self.build_for(spec, PACKET_SIZE)
    }

    /// [`build`](Self::build) for a path whose full packets have `packet_size` bytes, IP and UDP headers included.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn build_for<P: OnAxis + ?Sized>(
        &self,
        spec: &PolicySpec,
        packet_size: u64,
    ) -> Result<Box<P>, PolicyError> {
        if let Some((entry, build)) = P::TABLE.iter().find(|(entry, _)| entry.name == spec.name) {
            return build(&Options::new(entry, spec, packet_size)?);
        }
        let own = self.own.iter().filter(|own| own.axis == P::AXIS && own.entry.name == spec.name);
        let made =
            own.filter_map(|own| Some((own.entry, own.make.downcast_ref::<Box<Make<P>>>()?)));
        match made.into_iter().next() {
            Some((entry, make)) => make(&Options::new(entry, spec, packet_size)?),
            None => Err(self.unknown(P::AXIS, &spec.name)),
        }
    }

    /// Checks that `spec` names a policy of the axis and that it can be built, by building it once.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn check(&self, axis: Axis, spec: &PolicySpec) -> Result<(), PolicyError> {
        (erased(axis).check)(self, spec)
    }

    fn unknown(&self, axis: Axis, name: &str) -> PolicyError {
        let known: Vec<&str> = self.entries(axis).iter().map(|entry| entry.name).collect();
        PolicyError::Unknown { axis, name: name.to_owned(), known: known.join(", ") }
    }
}

#[cfg(test)]
mod tests;
