//! The paths of a connection: fixed ones, or interfaces that a person names, which are followed as they come and go.

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
