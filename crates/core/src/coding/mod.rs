//! Coding windows on both sides, and the codes that fill their holes.

pub mod code;
#[cfg(any(test, feature = "testing"))]
pub mod fuzzing;
pub mod pool;
pub mod receive;
pub mod send;

#[cfg(test)]
mod tests;
