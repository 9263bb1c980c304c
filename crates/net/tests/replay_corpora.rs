//! Runs the bodies of the fuzz targets for keys, SOCKS clients and transfers over the committed corpora.

#[path = "../../../fuzz/replay.rs"]
mod replay;

use anabranch::crypto::fuzzing::{key_seeds, keys};
use anabranch::forward::socks::fuzzing::{socks, socks_seeds};
use anabranch::transfer::fuzzing;

use replay::Target;

const TARGETS: [Target; 4] = [
    ("keys", keys, key_seeds),
    ("socks", socks, socks_seeds),
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
