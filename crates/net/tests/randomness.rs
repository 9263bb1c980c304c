//! Secret random values come from the system: the library's endpoint has no other source.

use std::fs;
use std::path::{Path, PathBuf};

/// Files in which the reproducible generator is made, and from what. The seeds are drawn from `Crypto`, and
/// what the generator decides may be known to all: which path a report takes, when a message is repeated, which
/// path sends more for a moment.
const PERMITTED: [(&str, &str); 3] = [
    ("core/src/connection/setup.rs", "Rng::new(random.next_u64())"),
    ("core/src/connection/sharing.rs", "Rng::new(rng.next_u64())"),
    ("core/src/handshake/initiator.rs", "Rng::new(crypto.randomness().next_u64())"),
];

/// Source files that are compiled into endpoints, without tests and test support.
fn shipped(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap();
        if ["tests", "testing", "fuzzing", "fuzz", "null"].contains(&name) {
            continue;
        }
        if path.is_dir() {
            shipped(&path, found);
        } else {
            found.push(path);
        }
    }
}

#[test]
fn endpoints_draw_from_the_system_only() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    for of in ["core/src", "net/src"] {
        shipped(&crates.join(of), &mut files);
    }
    assert!(files.len() > 100, "the sources are elsewhere");
    let mut permitted = 0;
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for line in code.lines().filter(|line| {
            ["Rng::new", "Rng::substream", "Reproducible"].iter().any(|word| line.contains(word))
        }) {
            let known =
                PERMITTED.iter().any(|(path, made)| file.ends_with(path) && line.contains(made));
            assert!(known, "{}: {}", file.display(), line.trim());
            permitted += 1;
        }
    }
    assert_eq!(permitted, PERMITTED.len(), "the exceptions are made somewhere else");
}
