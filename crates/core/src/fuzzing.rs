//! Bodies of the fuzz targets for whole endpoints, and seeds for them. A body panics where the code
//! breaks a promise; the tests run them over the committed corpora.

mod pair;
mod rogue;

pub use pair::{endpoint, endpoint_seeds};
pub use rogue::{Rogue, peer, peer_seeds};

use crate::endpoint::{Endpoint, EndpointEvent};

/// Most datagrams that one endpoint may want to send at one moment.
const MOST_AT_ONCE: usize = 20_000;

/// Takes every event there is.
fn events(endpoint: &mut Endpoint) -> Vec<EndpointEvent> {
    core::iter::from_fn(|| endpoint.poll_event()).collect()
}
