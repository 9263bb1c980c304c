//! Runs the bodies of fuzz targets over the committed corpora, and writes seeds to the corpora. The
//! tests of each crate with targets include this file below their list of targets, `TARGETS`.

use std::fs;
use std::path::PathBuf;

use super::TARGETS;

/// A target's name, its body, and the function that makes its seeds.
pub type Target = (&'static str, fn(&[u8]), fn() -> Vec<Vec<u8>>);

fn corpus(target: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target)
}

/// Runs each target's body over its whole corpus, which must hold at least as many inputs as there
/// are seeds.
#[test]
fn replay_corpora() {
    for (target, body, seeds) in TARGETS {
        let mut inputs = 0;
        for entry in fs::read_dir(corpus(target)).expect("every target has a corpus") {
            let path = entry.unwrap().path();
            // The test prints this only when it fails, and so names the input.
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
