//! What simulations measured, kept so that it can be trusted later.
//!
//! A results directory holds every finished run ([`Journal`]), three Parquet [tables] and
//! `summary.json` ([`Summary`]). All of them carry the scenario, the version and the commit that made
//! them, and their bytes depend on nothing else: neither on how many runs were made at once nor on
//! whether they were interrupted. [`stats`] turns seeds into intervals; [`trace`] writes what
//! happened packet by packet for Wireshark and qlog viewers.

pub mod tables;
pub mod trace;

mod error;
mod file;
mod journal;
mod provenance;
mod summary;

pub use anabranch_sim::stats;
pub use error::ResultsError;
pub use journal::{Journal, RunId, load};
pub use provenance::{COMMIT, Provenance, VERSION};
pub use summary::{ClaimSummary, MetricSummary, PointSummary, RunSummary, Summary};
