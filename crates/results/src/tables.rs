//! Parquet tables of what runs measured, one row for each figure.
//!
//! | file | columns after the common ones |
//! |---|---|
//! | `scalars.parquet` | `value` |
//! | `series.parquet` | `time_s`, `value` |
//! | `samples.parquet` | `index`, `value` |
//!
//! The common columns are `point` (index), one per sweep key, `seed`, `subject` and `metric`. A sweep
//! key whose values are all numbers is a number, any other a text; its name has an underscore wherever
//! the key has something other than a letter or digit.

mod columns;
mod keys;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub use keys::{SweepColumn, SweepColumns};
pub use read::{Points, Row, read};
pub use write::Tables;

/// Name of the table of single figures.
pub const SCALARS: &str = "scalars.parquet";
/// Name of the table of figures over virtual time.
pub const SERIES: &str = "series.parquet";
/// Name of the table of collections.
pub const SAMPLES: &str = "samples.parquet";
