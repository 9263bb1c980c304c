//! If the paper can be read in several ways, each reading can be chosen by name.

use anabranch_policy::registry::{Entry, PolicySpec, Registry};
use anabranch_policy::{Axis, PolicyError};

const PAGE: &str = include_str!("../../../../docs/protocols/mplot.md");

/// Whether the policy can be made on the axis that has one of its name.
fn buildable(spec: &PolicySpec) -> Result<(), PolicyError> {
    let registry = Registry::new();
    let has = |axis: &Axis| registry.entries(*axis).iter().any(|entry| entry.name == spec.name);
    let axis = Axis::ALL.into_iter().find(has).unwrap_or_else(|| panic!("{spec} is not listed"));
    registry.check(axis, spec)
}

fn entry(name: &str) -> Option<&'static Entry> {
    let mut entries = Axis::ALL.into_iter().flat_map(|axis| Registry::new().entries(axis));
    entries.find(|entry| entry.name == name)
}

#[test]
fn the_papers_own_words_can_be_chosen() {
    for literal in [
        // The literal eq. 2, which counts packets in flight, and a step of eq. 3 at every packet.
        "literal",
        "per-ack",
        // Eq. 6 with Table II and one more repair.
        "mean-sigma:kmin=eq6",
        // Repairs only when a round is over (§II-A).
        "mean-sigma:round=lit",
        // The lost packets themselves are sent again (§II-A, the alternative).
        "resend",
        // Acknowledgements on the best path or on all (§VI).
        "best-path",
        "all-paths",
        // Packets of three sizes (§III-C), and windows that count packets (§IV-D).
        "mean-sigma:sizes=paper",
        "ecn-reno:growth=packets",
    ] {
        let spec: PolicySpec = literal.parse().unwrap();
        assert_eq!(buildable(&spec), Ok(()), "{literal}");
    }
}

/// The rows of the table in a section of the page.
fn rows(heading: &str) -> impl Iterator<Item = &'static str> {
    let section = PAGE.split("\n## ").find(|section| section.starts_with(heading));
    let section = section.unwrap_or_else(|| panic!("the page has no section {heading}"));
    section.lines().filter(|line| line.starts_with("| ")).skip(1)
}

/// Text in backquotes.
fn code(row: &'static str) -> impl Iterator<Item = &'static str> {
    row.split('`').skip(1).step_by(2)
}

#[test]
fn every_test_that_the_page_names_exists() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut lines = 0;
    for row in rows("The paper line by line") {
        let mut tests = 0;
        for name in code(row) {
            let (module, test) = name.split_once("::").unwrap_or_else(|| panic!("{row}"));
            let found = ["policy", "sim"].iter().any(|krate| {
                let file = root.join(krate).join("tests/mplot").join(module).with_extension("rs");
                let text = std::fs::read_to_string(file).unwrap_or_default();
                text.contains(&format!("#[test]\nfn {test}()"))
            });
            assert!(found, "there is no test {name}");
            tests += 1;
        }
        assert!(tests > 0, "no test: {row}");
        lines += 1;
    }
    assert!(lines >= 28, "only {lines} lines: has the table moved?");
}

#[test]
fn every_reading_that_the_page_names_exists() {
    let mut policies = 0;
    for row in rows("Readings") {
        let mut current: Option<&Entry> = None;
        for code in code(row) {
            let (name, options) = match code.split_once(':') {
                Some((name, options)) => (name, options),
                None if code.contains('=') => ("", code),
                None => (code, ""),
            };
            if !name.is_empty() {
                current = entry(name);
            }
            // The page also names profiles, which are not part of this crate.
            let Some(entry) = current else {
                assert!(options.is_empty(), "{code} in {row}");
                continue;
            };
            policies += 1;
            let mut spec = PolicySpec::new(entry.name);
            for option in options.split(',').filter(|option| !option.is_empty()) {
                let (key, value) = option.split_once('=').unwrap();
                let known = entry.options.iter().any(|option| option.key == key);
                assert!(known, "{} has no option {key}: {row}", entry.name);
                if value != "…" {
                    spec = spec.with(key, value);
                }
            }
            assert_eq!(buildable(&spec), Ok(()), "{code} in {row}");
        }
    }
    assert!(policies >= 12, "only {policies} found: has the table moved?");
}
