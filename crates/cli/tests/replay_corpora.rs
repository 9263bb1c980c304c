//! Runs the body of the fuzz target for configuration files over the committed corpus.

#[path = "../../../fuzz/replay.rs"]
mod replay;

use anabranch_cli::fuzzing::{config, config_seeds};

const TARGETS: [replay::Target; 1] = [("config", config, config_seeds)];

#[test]
fn replay_corpora() {
    replay::replay(&TARGETS);
}

/// Writes the seeds to the corpus: `cargo test -p anabranch-cli --test replay_corpora -- --ignored bless`.
#[test]
#[ignore = "writes to the repository"]
fn bless_seeds() {
    replay::write_seeds(&TARGETS);
}
