//! Runs the body of the fuzz target for keys over the committed corpus.

#[path = "../../../fuzz/replay.rs"]
mod replay;

use anabranch::crypto::fuzzing::{key_seeds, keys};

use replay::Target;

const TARGETS: [Target; 1] = [("keys", keys, key_seeds)];
