//! Reproduces the results of five papers. Each figure, table and theorem is an *item* with a
//! scenario or a formula, claims with bounds, and a verdict.
//!
//! ```
//! use anabranch_repro::{catalogue, reproduce, Settings, Verdict};
//!
//! let item = catalogue::find("fmtcp-lstar").unwrap();
//! let report = reproduce(&[item], &Settings::default()).unwrap();
//! assert_eq!(report.items[0].verdict, Verdict::Reproduced);
//! ```
//!
//! The verdict is [`Verdict::Reproduced`] if every claim holds with its whole interval. It is
//! [`Verdict::Open`] if no claim fails but an interval reaches beyond the bounds,
//! [`Verdict::Differs`] if a claim fails and ablations whose own claims hold show why, and
//! otherwise [`Verdict::NotYet`].

pub mod catalogue;
pub mod check;
pub mod experiments;
pub mod figure;
mod formula;
pub mod html;
mod outcome;
mod report;
mod reproduce;

pub use anabranch_results::{COMMIT, VERSION};
pub use catalogue::{Item, Unknown};
pub use outcome::{Outcome, Setting, Verdict};
pub use report::{Bound, ItemReport, Measure, Report};
pub use reproduce::{Failure, PlannedRun, Progress, Settings, make, planned, reproduce};
