//! The simulator as a Python module: scenarios, their runs, and the measurements of these as Arrow tables.
//!
//! The package `anabranch` (in `python/`) brings its classes and functions to Python under the names that
//! its documentation uses.

mod bytes;
mod catalog;
mod dataset;
mod errors;
mod execute;
mod plot;
mod policies;
mod report;
mod run;
mod scenario;
mod settings;
mod sweep;
mod table;

use pyo3::prelude::*;

#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::catalog::{Policy, PolicyOption, Profile, policies, profiles};
    #[pymodule_export]
    use crate::dataset::Dataset;
    #[pymodule_export]
    use crate::errors::{IncompleteError, Mistake, ResultsError, RunError, ScenarioError};
    #[pymodule_export]
    use crate::plot::{Figure, plot};
    #[pymodule_export]
    use crate::policies::_stop_policies;
    #[pymodule_export]
    use crate::policies::answers::{Assign, Hold, Idle, Penalise, Pick, Send, TakeBack, Work};
    #[pymodule_export]
    use crate::policies::blocks::{BlockView, FreshView, SchedulerView};
    #[pymodule_export]
    use crate::policies::events::{AckEvent, RateSample, SchedulerEvent, SentEvent, TimeoutEvent};
    #[pymodule_export]
    use crate::policies::view::{LossView, PathView, RttView};
    #[pymodule_export]
    use crate::report::Report;
    #[pymodule_export]
    use crate::run::Run;
    #[pymodule_export]
    use crate::scenario::Scenario;
    #[pymodule_export]
    use crate::sweep::Results;
    #[pymodule_export]
    use crate::table::Table;

    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", anabranch_results::VERSION)?;
        module.add("commit", anabranch_results::COMMIT)
    }
}
