//! Tools shared by tests, benchmarks and fuzz targets of endpoints: an honest [`Pair`] over a
//! network that the test defines, and a [`Rogue`] that holds the keys of a connection and sends
//! arbitrary frames. Compiled only with the feature `testing`.
//!
//! ```
//! use anabranch_core::profiles::Profile;
//! use anabranch_core::testing::{Pair, Sent};
//! use core::time::Duration;
//!
//! // Two paths of 10 ms; of the first, every seventh datagram is lost.
//! let mut count = 0;
//! let network = move |sent: &Sent<'_>| {
//!     count += 1;
//!     let lost = sent.path == 0 && count % 7 == 0;
//!     (!lost).then(|| (sent.now + Duration::from_millis(10), sent.ecn))
//! };
//! let mut pair = Pair::new(&Profile::named("anabranch").unwrap(), 2, network);
//! pair.ends[0].unwritten = 100_000;
//! while pair.ends[1].read < 100_000 {
//!     pair.round(Duration::from_millis(1));
//! }
//! ```

mod audit;
mod network;
mod pair;
mod rogue;

use anabranch_types::Time;

pub use network::{Flying, Network, Sent, address};
pub use pair::{End, Pair, Tally};
pub use rogue::{Heard, Rogue, Traffic, Volume, address as rogue_address, sealed};

use crate::crypto::null::NullCrypto;
use crate::endpoint::{Endpoint, EndpointConfig, EndpointEvent};
use crate::wire::Writer;

/// Most datagrams that one endpoint may send at one time.
const MOST_AT_ONCE: usize = 20_000;

/// Creates an endpoint whose key and random numbers come from this seed.
pub fn endpoint(seed: u8, config: EndpointConfig) -> Endpoint {
    let crypto = Box::new(NullCrypto::new([seed; 32]));
    Endpoint::new(config, crypto, Time::ZERO)
}

/// Returns the bytes that `encode` writes.
pub fn written(encode: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
    let mut buffer = [0; 1400];
    let mut writer = Writer::new(&mut buffer);
    encode(&mut writer);
    writer.written().to_vec()
}

/// Takes all waiting events.
fn events(endpoint: &mut Endpoint) -> impl Iterator<Item = EndpointEvent> {
    core::iter::from_fn(|| endpoint.poll_event())
}
