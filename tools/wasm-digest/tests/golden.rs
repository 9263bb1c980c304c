//! The digests as they were when last blessed: the same on every machine and in every build.

use std::fmt::Write as _;
use std::path::Path;

#[test]
fn digests_are_golden() {
    let mut actual = String::new();
    for case in wasm_digest::CASES {
        writeln!(actual, "{} {:016x}", case.name, (case.run)()).expect("a string takes all");
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/digests.txt");
    if std::env::var("BLESS").is_ok_and(|value| value == "1") {
        std::fs::write(&path, &actual).expect("the golden file can be written");
    }
    let golden = std::fs::read_to_string(&path).expect("the golden file can be read");
    assert_eq!(actual, golden, "if this change is meant: cargo xtask bless");
}

#[test]
fn case_names_are_single_words_and_unique() {
    for (at, case) in wasm_digest::CASES.iter().enumerate() {
        assert!(!case.name.is_empty() && !case.name.contains(char::is_whitespace));
        assert!(wasm_digest::CASES[..at].iter().all(|earlier| earlier.name != case.name));
    }
}
