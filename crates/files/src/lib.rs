//! Writes files that appear whole or not at all, without following or trusting what other users
//! have planted.
//!
//! A [`Directory`] is held open, and names in it are looked up relative to it (`openat(2)` and its
//! like) without following symbolic links; so a path cannot be made to lead elsewhere between two
//! steps. An [`Atomic`] is a file under another name until it is complete.

mod atomic;
mod directory;
mod facts;
mod lock;
#[cfg(test)]
mod tests;

pub use atomic::{Atomic, write};
pub use directory::{Directory, open};
pub use facts::Facts;
pub use lock::Locked;
