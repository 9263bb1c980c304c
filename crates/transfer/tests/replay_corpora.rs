//! Runs the bodies of the fuzz targets for transfers over the committed corpora.

#[path = "../../../fuzz/replay.rs"]
mod replay;

use anabranch_transfer::fuzzing;

use replay::Target;

const TARGETS: [Target; 2] = [
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
