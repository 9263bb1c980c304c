//! Parquet tables of the measured values, with one row for each value.
//!
//! | file | columns after the common ones |
//! |---|---|
//! | `scalars.parquet` | `value` |
//! | `series.parquet` | `time_s`, `value` |
//! | `samples.parquet` | `index`, `value` |
//!
//! The common columns are `point` (index), one per sweep key, `seed`, `subject` and `metric`. The
//! column of a sweep key holds numbers if all its values are numbers, and text otherwise. Its name
//! has an underscore in place of every character of the key that is not a letter or digit.

mod columns;
mod keys;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub use keys::{SweepColumn, SweepColumns};
pub use read::{Points, Row, read};
pub use write::Tables;

/// Name of the table of single values.
pub const SCALARS: &str = "scalars.parquet";
/// Name of the table of values over virtual time.
pub const SERIES: &str = "series.parquet";
/// Name of the table of samples.
pub const SAMPLES: &str = "samples.parquet";
