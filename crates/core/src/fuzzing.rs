//! Bodies and seeds of the fuzz targets for whole endpoints. A body panics if the code violates an
//! invariant; the tests run the bodies over the committed corpora.

mod endpoint;
mod peer;

pub use endpoint::{endpoint, endpoint_seeds};
pub use peer::{peer, peer_seeds};
