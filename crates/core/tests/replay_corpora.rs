//! Runs the bodies of the fuzz targets over the committed corpora.

#[path = "../../../fuzz/replay.rs"]
mod replay;

use anabranch_core::{coding, fuzzing, handshake, stream, wire};

use replay::Target;

const TARGETS: [Target; 10] = [
    ("header", wire::fuzzing::header, wire::fuzzing::header_seeds),
    ("frames", wire::fuzzing::frames, wire::fuzzing::frame_seeds),
    (
        "transport_parameters",
        wire::fuzzing::transport_parameters,
        wire::fuzzing::transport_parameter_seeds,
    ),
    ("symbol", stream::fuzzing::symbol, stream::fuzzing::symbol_seeds),
    ("decoder", coding::fuzzing::receive, coding::fuzzing::receive_seeds),
    ("block_receiver", coding::fuzzing::block, coding::fuzzing::block_seeds),
    ("sliding_receiver", coding::fuzzing::sliding, coding::fuzzing::sliding_seeds),
    ("handshake", handshake::fuzz_message, handshake::fuzz_seeds),
    ("endpoint", fuzzing::endpoint, fuzzing::endpoint_seeds),
    ("peer", fuzzing::peer, fuzzing::peer_seeds),
];
