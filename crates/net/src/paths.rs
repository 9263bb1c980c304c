//! Paths as a person asks for them, kept in line with the machine's interfaces.
//!
//! [`connect_managed`] connects over whatever of the requested paths exists at the moment, waits for the first
//! one if there is none, and from then on adds, moves and removes paths as interfaces come, change their
//! address and go.

mod destinations;
mod manager;
mod request;

pub use destinations::{are_neighbours, is_private};
pub use manager::{PathManager, connect_managed};
pub use request::{LocalRequest, ParsePathError, PathRequest, PathUsage, parse_congestion};
