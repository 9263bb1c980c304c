//! Records a connection's decisions in a file of JSON lines.
//!
//! The first line is a [`Header`]; every other line is one [`Line`]. The last one is
//! [`Entry::End`], unless the recording was cut off.

mod entry;
mod file;
mod writer;

#[cfg(test)]
pub(crate) use entry::tests::observations;
pub use entry::{Entry, FORMAT, Header, KIND, Line};
pub use writer::Recorder;
