//! A connection with a peer that sends whatever a case says.

use anabranch_core::config::TransportConfig;
use anabranch_core::testing::Rogue;
use anabranch_core::wire::TransportParameters;

pub use crate::frames::{
    LONGEST_SYMBOL, MOST_REPAIRS, Packet, Written, ack, control, datagrams, full, full_symbol,
    packed, pieces, ranks, recovering, repair, source, stream,
};
use crate::prepared::Prepared;

/// Most packets of a case.
const PACKETS: usize = 32;

/// The parameters that the peer announces: large limits, and the code of its repairs.
pub fn parameters(code: Option<&str>) -> TransportParameters {
    let mut ours = TransportConfig::default().parameters("anabranch");
    (ours.max_data, ours.max_stream_data) = (1 << 40, 1 << 40);
    (ours.max_streams, ours.max_symbols) = (1 << 20, 1 << 40);
    ours.codes = code.map(str::to_owned);
    ours
}

/// A victim with the default limits, and a peer with this code.
pub fn connect(code: Option<&str>) -> Rogue {
    Rogue::connect(TransportConfig::default(), "anabranch", &parameters(code))
}

/// Delivers the packets `before` on path 0 at once, and prepares those of `then`.
pub fn after(
    mut rogue: Rogue,
    before: impl IntoIterator<Item = Packet>,
    then: impl FnMut(usize) -> Packet,
) -> Prepared {
    for frames in before {
        rogue.send(0, &frames);
        rogue.listen();
        while rogue.take().is_some() {}
    }
    assert_eq!(rogue.closed(), None, "a mistake in the preparation");
    let frames = (0..PACKETS).map(then).filter(|frames| !frames.is_empty());
    let frames: Vec<Packet> = frames.collect();
    let packets = frames.iter().map(|frames| (0, rogue.prepare(0, frames))).collect();
    Prepared::new(rogue, packets)
}
