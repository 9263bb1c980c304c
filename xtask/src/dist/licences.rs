//! The notices that the licences of what is linked in ask for.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::process;
use crate::workspace::Workspace;

const HEADING: &str = "\
anabranch is built from the packages below, besides its own under the licences beside this file.
The Rust standard library is part of the program too (MIT OR Apache-2.0, The Rust Project Developers),
and so is musl (MIT, Rich Felker and others).
";

/// Every package of others that the program for `target` contains, with its licence and the notices
/// it brings. Sorted, so that equal dependencies give equal text.
///
/// # Errors
/// If cargo cannot tell, or a package's files cannot be read.
pub fn of_dependencies(workspace: &Workspace, target: &str) -> Result<String, String> {
    let tree = ["tree", "--locked", "--package=anabranch-cli", "--edges=normal", "--prefix=none"];
    let mut tree = workspace.cargo(&tree);
    let linked = process::capture(tree.args(["--target", target, "--format={p}"]))?;
    let linked: BTreeSet<String> = linked.lines().filter_map(name_and_version).collect();
    let mut metadata = workspace.cargo(&["metadata", "--locked", "--format-version=1"]);
    let metadata = process::capture(metadata.args(["--filter-platform", target]))?;
    let metadata = serde_json::from_str(&metadata).map_err(|error| error.to_string())?;
    let mut text = HEADING.to_owned();
    for (package, (licence, directory)) in packages(&metadata) {
        if linked.contains(&package) {
            text += &format!("\n{:=<100}\n{package}: {licence}\n", "");
            for notice in notices(Path::new(&directory))? {
                text += &format!("\n{}\n", notice.trim_end());
            }
        }
    }
    Ok(text)
}

/// `name 1.2.3` from a line of `cargo tree`: `name v1.2.3 (…)`.
fn name_and_version(line: &str) -> Option<String> {
    let mut words = line.split_whitespace();
    let (name, version) = (words.next()?, words.next()?);
    Some(format!("{name} {}", version.strip_prefix('v')?))
}

/// The packages that come from a registry: licence and directory by name and version.
fn packages(metadata: &Value) -> BTreeMap<String, (String, String)> {
    let list = metadata.get("packages").and_then(Value::as_array).into_iter().flatten();
    let of_others = list.filter(|package| package.get("source").is_some_and(Value::is_string));
    let named = of_others.filter_map(|package| {
        let text = |key: &str| package.get(key).and_then(Value::as_str);
        let licence = text("license").or(text("license_file")).unwrap_or("see below");
        let directory = Path::new(text("manifest_path")?).parent()?.to_str()?;
        let name = format!("{} {}", text("name")?, text("version")?);
        Some((name, (licence.to_owned(), directory.to_owned())))
    });
    named.collect()
}

/// The texts of the licence files in a package's directory.
fn notices(directory: &Path) -> Result<Vec<String>, String> {
    let failed = |error| format!("{}: {error}", directory.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().to_ascii_uppercase();
        let is_notice = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];
        if is_notice.iter().any(|start| name.starts_with(start)) && entry.path().is_file() {
            files.push(entry.path());
        }
    }
    files.sort_unstable();
    let read = |path| fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    files.into_iter().map(|path| read(path).map_err(failed)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_tree_name_packages() {
        let line = "anabranch-sim v0.1.0 (/home/someone/anabranch/crates/sim) (*)";
        assert_eq!(name_and_version(line).as_deref(), Some("anabranch-sim 0.1.0"));
        assert_eq!(name_and_version("libm v0.2.16").as_deref(), Some("libm 0.2.16"));
        assert_eq!(name_and_version(""), None);
    }

    #[test]
    fn packages_of_others_come_from_a_registry() {
        let metadata = serde_json::json!({ "packages": [
            { "name": "own", "version": "1.0.0", "source": null, "license": "MIT",
              "manifest_path": "/own/Cargo.toml" },
            { "name": "libm", "version": "0.2.16", "source": "registry", "license": "MIT",
              "manifest_path": "/r/libm/Cargo.toml" },
        ]});
        let expected = ("libm 0.2.16".to_owned(), ("MIT".to_owned(), "/r/libm".to_owned()));
        assert_eq!(packages(&metadata), BTreeMap::from([expected]));
    }
}
