//! What a connection is made over: fixed paths, or paths as a person asks for them, kept in line with the
//! machine's interfaces.

mod connect;
mod destinations;
mod manager;
mod named;
mod request;

pub use connect::ConnectPaths;
pub use destinations::{are_neighbours, is_private};
pub(crate) use manager::Manager;
pub use named::{NamedPath, PathStatus};
pub(crate) use named::{Naming, PathNames};
pub use request::{LocalRequest, ParsePathError, PathRequest, PathUsage, parse_congestion};
