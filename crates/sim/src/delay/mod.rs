//! How long packets propagate: the laws by which delays vary.

mod jitter;
mod law;
mod quantile;

#[cfg(test)]
mod tests;

pub(crate) use jitter::MAX_CORRELATION;
pub use jitter::{Jitter, JitterError, JitterProcess};
pub use law::JitterLaw;
