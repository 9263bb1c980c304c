//! File transfers as bytes: what the two ends of a transfer say to each other, the names and limits that either side
//! enforces, and the tickets that let two machines without keys of each other connect once.
//!
//! Nothing here reads a file or a socket; the `anabranch` command does. The protocol is specified in
//! `docs/spec/transfer-0.md`.

pub mod frame;
#[cfg(any(test, feature = "testing"))]
pub mod fuzzing;
pub mod link;
pub mod manifest;
pub mod name;
mod order;
pub mod ticket;
mod wire;

#[cfg(test)]
mod tests;

pub use frame::{Code, Frame, FrameError, Header, Preface, Role};
pub use link::Target;
pub use manifest::{Entry, Kind, Manifest, ManifestError, Modified};
pub use name::{Name, NameError};
pub use ticket::{Ticket, TicketError};
