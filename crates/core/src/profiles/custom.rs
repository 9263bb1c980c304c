//! Policies of the application's own, in a profile.

use anabranch_policy::congestion::{self, CongestionController};
use anabranch_policy::recovery::{self, RecoveryPolicy};
use anabranch_policy::redundancy::{self, RedundancyPolicy};
use anabranch_policy::registry::{PolicyError, PolicySpec};
use anabranch_policy::scheduler::{self, Scheduler};
use anabranch_types::PathId;
use core::fmt;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::Profile;

/// Makes policies; called for every path or connection that needs one.
struct Factory<F: ?Sized>(Arc<F>);

impl<F: ?Sized> Clone for Factory<F> {
    fn clone(&self) -> Self {
        Factory(Arc::clone(&self.0))
    }
}

impl<F: ?Sized> fmt::Debug for Factory<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Factory")
    }
}

impl<F: ?Sized> PartialEq for Factory<F> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<F: ?Sized> Eq for Factory<F> {}

type MakeCongestion = dyn Fn(u64) -> Box<dyn CongestionController> + Send + Sync;
type MakeScheduler = dyn Fn() -> Box<dyn Scheduler> + Send + Sync;
type MakeRecovery = dyn Fn() -> Box<dyn RecoveryPolicy> + Send + Sync;
type MakeRedundancy = dyn Fn() -> Box<dyn RedundancyPolicy> + Send + Sync;

/// What stands in for the registry's policies, where anything does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Custom {
    congestion: Option<Factory<MakeCongestion>>,
    scheduler: Option<Factory<MakeScheduler>>,
    redundancy: Option<Factory<MakeRedundancy>>,
    recovery: Option<Factory<MakeRecovery>>,
    /// Congestion control of single paths.
    paths: BTreeMap<PathId, PolicySpec>,
}

impl Custom {
    /// The axis is the registry's again.
    pub(super) fn clear(&mut self, axis: &str) {
        match axis {
            "congestion" => self.congestion = None,
            "scheduler" => self.scheduler = None,
            "redundancy" => self.redundancy = None,
            "recovery" => self.recovery = None,
            _ => {}
        }
    }
}

impl Profile {
    /// Controls congestion by what `make` gives for each path, from the size in bytes of a full packet, IP
    /// and UDP headers included. `name` is what displays and records call it; the registry need not know it.
    /// [`set`](Self::set) on the axis undoes this.
    pub fn set_congestion(
        &mut self,
        name: &str,
        make: impl Fn(u64) -> Box<dyn CongestionController> + Send + Sync + 'static,
    ) {
        self.congestion = PolicySpec::new(name);
        self.custom.congestion = Some(Factory(Arc::new(make)));
    }

    /// Schedules by what `make` gives for each connection; `name` as for
    /// [`set_congestion`](Self::set_congestion).
    pub fn set_scheduler(
        &mut self,
        name: &str,
        make: impl Fn() -> Box<dyn Scheduler> + Send + Sync + 'static,
    ) {
        self.scheduler = PolicySpec::new(name);
        self.custom.scheduler = Some(Factory(Arc::new(make)));
    }

    /// Decides on redundancy by what `make` gives for each connection; `name` as for
    /// [`set_congestion`](Self::set_congestion).
    pub fn set_redundancy(
        &mut self,
        name: &str,
        make: impl Fn() -> Box<dyn RedundancyPolicy> + Send + Sync + 'static,
    ) {
        self.redundancy = PolicySpec::new(name);
        self.custom.redundancy = Some(Factory(Arc::new(make)));
    }

    /// Recovers from losses and dead paths by what `make` gives for each connection; `name` as for
    /// [`set_congestion`](Self::set_congestion).
    pub fn set_recovery(
        &mut self,
        name: &str,
        make: impl Fn() -> Box<dyn RecoveryPolicy> + Send + Sync + 'static,
    ) {
        self.recovery = PolicySpec::new(name);
        self.custom.recovery = Some(Factory(Arc::new(make)));
    }

    /// Controls congestion on one path by `policy`, whatever controls it on the others. Paths are
    /// numbered as they are opened, from 0.
    ///
    /// # Errors
    /// When there is no such policy, or an option of it is wrong.
    pub fn set_path_congestion(
        &mut self,
        path: PathId,
        policy: PolicySpec,
    ) -> Result<(), PolicyError> {
        congestion::build(&policy, 1200)?;
        self.custom.paths.insert(path, policy);
        Ok(())
    }

    /// What controls congestion on a path.
    pub fn congestion_of(&self, path: PathId) -> &PolicySpec {
        self.custom.paths.get(&path).unwrap_or(&self.congestion)
    }

    /// A controller for `path`, whose full packets have so many bytes.
    pub(crate) fn make_congestion(
        &self,
        path: PathId,
        packet_size: u64,
    ) -> Result<Box<dyn CongestionController>, PolicyError> {
        match &self.custom.congestion {
            Some(make) if !self.custom.paths.contains_key(&path) => Ok(make.0(packet_size)),
            _ => congestion::build(self.congestion_of(path), packet_size),
        }
    }

    pub(crate) fn make_scheduler(&self) -> Result<Box<dyn Scheduler>, PolicyError> {
        match &self.custom.scheduler {
            Some(make) => Ok(make.0()),
            None => scheduler::build(&self.scheduler),
        }
    }

    pub(crate) fn make_redundancy(&self) -> Result<Box<dyn RedundancyPolicy>, PolicyError> {
        match &self.custom.redundancy {
            Some(make) => Ok(make.0()),
            None => redundancy::build(&self.redundancy),
        }
    }

    pub(crate) fn make_recovery(&self) -> Result<Box<dyn RecoveryPolicy>, PolicyError> {
        match &self.custom.recovery {
            Some(make) => Ok(make.0()),
            None => recovery::build(&self.recovery),
        }
    }
}
