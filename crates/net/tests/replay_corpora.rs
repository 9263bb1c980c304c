//! Runs the bodies of the fuzz targets for keys and transfers over the committed corpora.

#[path = "../../../fuzz/replay.rs"]
mod replay;

use anabranch::crypto::fuzzing::{key_seeds, keys};
use anabranch::transfer::fuzzing;

use replay::Target;

const TARGETS: [Target; 3] = [
    ("keys", keys, key_seeds),
    ("transfer_frames", fuzzing::frames, fuzzing::frame_seeds),
    ("transfer_ticket", fuzzing::ticket, fuzzing::ticket_seeds),
];

/// Prints new texts for the seeds of tickets, whose secrets are random.
#[test]
#[ignore = "prints, and checks nothing"]
fn print_tickets() {
    for ticket in fuzzing::sample_tickets() {
        println!("{ticket}");
    }
}
