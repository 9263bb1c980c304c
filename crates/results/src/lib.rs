//! Keeps the results of simulations so that they can be trusted later.
//!
//! A [`Sweep`] is a scenario with its seeds; every run has a [key](RunKey) of its own. A results
//! directory names the scenario and build of its results ([`Manifest`]) and keeps every finished
//! run ([`Journal`]); directories of one sweep can be merged. When runs are kept, [`conclude`]
//! writes three Parquet [tables] and `summary.json` ([`Summary`]). All of these files carry the
//! scenario, the version and the commit that made them. Their bytes do not depend on how many runs
//! were made at the same time, on interruptions or on the machines. [`stats`] computes intervals
//! from the values of the seeds, [`figures`] draws, and [`trace`] writes the events of each packet
//! for Wireshark and qlog viewers.

pub mod figures;
pub mod tables;
pub mod trace;

mod conclude;
mod error;
mod file;
mod journal;
mod manifest;
mod partition;
mod provenance;
mod shard;
mod summary;
mod sweep;
#[cfg(test)]
mod testing;
mod text;

pub use anabranch_sim::stats;
pub use conclude::conclude;
pub use error::ResultsError;
pub use journal::{Journal, decode, decode_any, encode, load};
pub use manifest::Manifest;
pub use partition::{PARTITIONS, partition};
pub use provenance::{COMMIT, Provenance, VERSION};
pub use shard::{Shard, divide};
pub use summary::{ClaimSummary, MetricSummary, MissingRuns, PointSummary, RunSummary, Summary};
pub use sweep::{RunId, RunKey, Sweep};
pub use text::{MAX_TEXT, Unread, read_text};
