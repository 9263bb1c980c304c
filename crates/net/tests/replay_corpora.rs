//! Runs the bodies of the fuzz targets for transfers over the committed corpora.

use std::fs;
use std::path::PathBuf;

use anabranch::transfer::fuzzing;

/// A target's name, its body, and what makes its seeds.
type Target = (&'static str, fn(&[u8]), fn() -> Vec<Vec<u8>>);

const TARGETS: [Target; 2] = [
    ("transfer_frames", fuzzing::frames, fuzzing::frame_seeds),
    ("transfer_ticket", fuzzing::ticket, fuzzing::ticket_seeds),
];

fn corpus(target: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target)
}

#[test]
fn replay_corpora() {
    for (target, body, seeds) in TARGETS {
        let mut inputs = 0;
        for entry in fs::read_dir(corpus(target)).expect("every target has a corpus") {
            let path = entry.unwrap().path();
            // Printed with a failure, to say which input it was.
            println!("{}", path.display());
            body(&fs::read(path).unwrap());
            inputs += 1;
        }
        assert!(inputs >= seeds().len(), "{target} has {inputs} inputs: write the seeds again");
    }
}

/// Writes the seeds to the corpora: `cargo test -p anabranch --test replay_corpora -- --ignored bless`.
#[test]
#[ignore = "writes to the repository"]
fn bless_seeds() {
    for (target, _, seeds) in TARGETS {
        let corpus = corpus(target);
        fs::create_dir_all(&corpus).unwrap();
        for (number, seed) in seeds().into_iter().enumerate() {
            fs::write(corpus.join(format!("seed-{number:03}")), seed).unwrap();
        }
    }
}

/// Prints new texts for the seeds of tickets, whose secrets are random.
#[test]
#[ignore = "prints, and checks nothing"]
fn print_tickets() {
    for ticket in fuzzing::sample_tickets() {
        println!("{ticket}");
    }
}
