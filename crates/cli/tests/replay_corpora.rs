//! Runs the body of the fuzz target for configuration files over the committed corpus.

#[path = "../../../fuzz/replay.rs"]
mod replay;

use anabranch_cli::fuzzing::{config, config_seeds};

const TARGETS: [replay::Target; 1] = [("config", config, config_seeds)];
