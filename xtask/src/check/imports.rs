//! Imports allowed between crates: the arrows of the architecture, followed transitively.

use std::collections::{BTreeMap, BTreeSet};

use crate::workspace::Package;

/// The arrows, by package name. What an imported crate imports may be imported too.
const ARROWS: &[(&str, &[&str])] = &[
    ("anabranch-types", &[]),
    ("anabranch-fec", &["anabranch-types"]),
    ("anabranch-policy", &["anabranch-types", "anabranch-fec"]),
    ("anabranch-core", &["anabranch-policy"]),
    ("anabranch-tcp", &["anabranch-policy"]),
    ("anabranch-sim", &["anabranch-core", "anabranch-tcp"]),
    ("anabranch-files", &[]),
    ("anabranch", &["anabranch-core", "anabranch-files"]),
    ("anabranch-forward", &["anabranch"]),
    ("anabranch-transfer", &["anabranch"]),
    ("anabranch-emulate", &["anabranch-sim"]),
    ("anabranch-results", &["anabranch-sim", "anabranch-files", "anabranch-plot"]),
    ("anabranch-plot", &[]),
    ("anabranch-repro", &["anabranch-results"]),
    (
        "anabranch-cli",
        &["anabranch-forward", "anabranch-transfer", "anabranch-emulate", "anabranch-repro"],
    ),
    ("anabranch-py", &["anabranch-results"]),
    ("wasm-digest", &["anabranch-sim"]),
    // Each program imports what it measures, behind a feature.
    ("anabranch-tools", &["anabranch-results", "anabranch-transfer"]),
    ("xtask", &[]),
];

/// Every import that no arrow allows, every package without a row, and every cycle. Development dependencies may go
/// beyond the arrows but must not close a cycle; a package may depend on itself, to turn on its own features for its
/// tests.
pub fn check(packages: &[Package]) -> Vec<String> {
    let mut findings = Vec::new();
    for package in packages {
        let Some(allowed) = allowed_for(&package.name) else {
            findings.push(format!("{}: not in the table of arrows", package.name));
            continue;
        };
        for import in &package.imports {
            if !import.dev && !allowed.contains(import.name.as_str()) {
                findings.push(format!("{} must not import {}", package.name, import.name));
            }
        }
    }
    findings.extend(cycle(packages).map(|path| format!("a cycle: {}", path.join(" → "))));
    findings
}

/// Everything `name` may import, or `None` if the table has no such package.
fn allowed_for(name: &str) -> Option<BTreeSet<&'static str>> {
    let arrows = |name: &str| ARROWS.iter().find(|(from, _)| *from == name).map(|(_, to)| *to);
    let mut pending = arrows(name)?.to_vec();
    let mut allowed = BTreeSet::new();
    while let Some(next) = pending.pop() {
        if allowed.insert(next) {
            pending.extend(arrows(next).unwrap_or_default());
        }
    }
    Some(allowed)
}

/// A cycle over imports of all kinds, its first package repeated at the end.
fn cycle(packages: &[Package]) -> Option<Vec<&str>> {
    let imports: BTreeMap<&str, &Package> =
        packages.iter().map(|package| (package.name.as_str(), package)).collect();
    let mut done = BTreeSet::new();
    let mut path = Vec::new();
    packages.iter().find_map(|package| descend(&package.name, &imports, &mut path, &mut done))
}

fn descend<'a>(
    name: &'a str,
    imports: &BTreeMap<&'a str, &'a Package>,
    path: &mut Vec<&'a str>,
    done: &mut BTreeSet<&'a str>,
) -> Option<Vec<&'a str>> {
    if let Some(start) = path.iter().position(|earlier| *earlier == name) {
        path.push(name);
        return Some(path.split_off(start));
    }
    if !done.insert(name) {
        return None;
    }
    path.push(name);
    for import in imports.get(name).map_or(&[][..], |package| &package.imports) {
        if import.dev && import.name == name {
            continue;
        }
        if let Some(found) = descend(&import.name, imports, path, done) {
            return Some(found);
        }
    }
    path.pop();
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Import;

    fn package(name: &str, normal: &[&str], dev: &[&str]) -> Package {
        let import = |dev| move |name: &&str| Import { name: name.to_string(), dev };
        let imports = normal.iter().map(import(false)).chain(dev.iter().map(import(true)));
        Package { name: name.into(), imports: imports.collect() }
    }

    #[test]
    fn arrows_and_what_they_bring_are_allowed() {
        let packages = [
            package("anabranch-types", &[], &[]),
            package("anabranch-core", &["anabranch-types"], &[]),
            package("anabranch-sim", &["anabranch-core", "anabranch-types"], &[]),
            package("anabranch-emulate", &["anabranch-sim", "anabranch-types"], &[]),
            package("anabranch-cli", &["anabranch-emulate", "anabranch-core"], &[]),
        ];
        assert_eq!(check(&packages), Vec::<String>::new());
    }

    #[test]
    fn other_imports_are_not() {
        assert_eq!(
            check(&[package("anabranch-fec", &["anabranch-policy"], &[])]),
            ["anabranch-fec must not import anabranch-policy"]
        );
        assert_eq!(
            check(&[package("anabranch", &["anabranch-sim"], &[])]),
            ["anabranch must not import anabranch-sim"]
        );
        assert_eq!(check(&[package("new", &[], &[])]), ["new: not in the table of arrows"]);
    }

    #[test]
    fn tests_may_go_further_but_not_in_circles() {
        let core = package("anabranch-core", &["anabranch-types"], &["anabranch-sim"]);
        let sim = package("anabranch-sim", &["anabranch-types"], &[]);
        let types = package("anabranch-types", &[], &[]);
        assert!(check(&[types.clone(), core.clone(), sim]).is_empty());
        let sim = package("anabranch-sim", &["anabranch-core"], &[]);
        assert_eq!(
            check(&[types, core, sim]),
            ["a cycle: anabranch-core → anabranch-sim → anabranch-core"]
        );
        let tested = package("anabranch-types", &[], &["anabranch-types"]);
        assert!(check(&[tested]).is_empty());
        let selfish = package("anabranch-types", &["anabranch-types"], &[]);
        assert!(check(&[selfish]).contains(&"a cycle: anabranch-types → anabranch-types".into()));
    }
}
