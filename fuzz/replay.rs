//! Runs the bodies of fuzz targets over the committed corpora, and writes their seeds. The tests of the
//! crates that have targets include this file.

use std::fs;
use std::path::PathBuf;

/// A target's name, its body, and what makes its seeds.
pub type Target = (&'static str, fn(&[u8]), fn() -> Vec<Vec<u8>>);

fn corpus(target: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target)
}

/// Gives each target's body its whole corpus, which holds its seeds at least.
pub fn replay(targets: &[Target]) {
    for (target, body, seeds) in targets {
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

/// Writes each target's seeds to its corpus.
pub fn write_seeds(targets: &[Target]) {
    for (target, _, seeds) in targets {
        let corpus = corpus(target);
        fs::create_dir_all(&corpus).unwrap();
        for (number, seed) in seeds().into_iter().enumerate() {
            fs::write(corpus.join(format!("seed-{number:03}")), seed).unwrap();
        }
    }
}
