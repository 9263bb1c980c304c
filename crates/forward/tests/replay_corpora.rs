//! Runs the body of the fuzz target for SOCKS clients over the committed corpus.

#[path = "../../../fuzz/replay.rs"]
mod replay;

use anabranch_forward::socks::fuzzing::{socks, socks_seeds};

use replay::Target;

const TARGETS: [Target; 1] = [("socks", socks, socks_seeds)];
