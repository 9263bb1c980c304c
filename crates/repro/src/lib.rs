//! What five papers show, reproduced: each figure, table and theorem is an *item* with a scenario or a
//! formula, a checker, bounds and a verdict.
//!
//! ```
//! use anabranch_repro::{catalogue, reproduce, Settings, Verdict};
//!
//! let item = catalogue::find("fmtcp-lstar").unwrap();
//! let report = reproduce(&[item], &Settings::default()).unwrap();
//! assert_eq!(report.items[0].verdict, Verdict::Reproduced);
//! ```
//!
//! The verdict is [`Verdict::Reproduced`] only if every bound holds for what was measured;
//! [`Verdict::Differs`] if one does not and an ablation shows the mechanism; otherwise
//! [`Verdict::NotYet`].

pub mod catalogue;
pub mod check;
pub mod figure;
mod formula;
pub mod html;
pub mod measure;
mod outcome;
mod pool;
mod report;
mod reproduce;
mod simulated;

pub use anabranch_results::{COMMIT, VERSION};
pub use catalogue::{Item, Unknown};
pub use measure::Measure;
pub use outcome::{Bound, Outcome, Verdict};
pub use report::{ItemReport, Report};
pub use reproduce::{Failure, Progress, Settings, reproduce};
