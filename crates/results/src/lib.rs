//! Keeps the results of simulations so that they can be trusted later.
//!
//! A [`Sweep`] is a scenario with its seeds; every run has a [key](RunKey) of its own. A results directory
//! says whose results it holds ([`Manifest`]) and keeps every finished run ([`Journal`]); directories of one
//! sweep can be merged. Once runs are there, [`conclude`] writes three Parquet [tables] and `summary.json`
//! ([`Summary`]). All of them carry the scenario, the version and the commit that made them, and their bytes
//! depend on nothing else: neither on how many runs were made at once, nor on whether they were interrupted,
//! nor on the machines that made them. [`stats`] turns seeds into intervals; [`figures`] draws; [`trace`] writes what happened
//! packet by packet for Wireshark and qlog viewers.

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
