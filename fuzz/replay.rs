//! Runs the bodies of fuzz targets over the committed corpora, and writes their seeds. The tests of the
//! crates that have targets include this file below their list of them, `TARGETS`.

use std::fs;
use std::path::PathBuf;

use super::TARGETS;

/// A target's name, its body, and what makes its seeds.
pub type Target = (&'static str, fn(&[u8]), fn() -> Vec<Vec<u8>>);

fn corpus(target: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target)
}

/// Gives each target's body its whole corpus, which holds its seeds at least.
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

/// Writes each target's seeds to its corpus: `cargo test --test replay_corpora -- --ignored bless`.
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
