//! Bodies and seeds of the fuzz targets for whole endpoints. A body panics where the code breaks a
//! promise; the tests run them over the committed corpora.

mod endpoint;
mod peer;

pub use endpoint::{endpoint, endpoint_seeds};
pub use peer::{peer, peer_seeds};
