//! Puts every scenario of `scenarios/papers` into the program, so that a new item needs no Rust
//! code.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    // The variable is read at run time: if two checkouts share a build directory, this program may
    // have been compiled in the other one.
    let package = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let papers = package.join("../../scenarios/papers");
    println!("cargo::rerun-if-changed={}", papers.display());
    let mut table = String::from("&[\n");
    for path in scenarios(&papers)? {
        println!("cargo::rerun-if-changed={}", path.display());
        let name = path.strip_prefix(&papers).unwrap_or(&path).with_extension("");
        let name = name.to_string_lossy().replace('\\', "/");
        // Writing to a string cannot fail.
        let _ = writeln!(table, "    ({name:?}, include_str!({:?})),", path.display().to_string());
    }
    table.push_str("]\n");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(out.join("scenarios.rs"), table)
}

/// Every scenario below `directory`, in the order of names.
fn scenarios(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(scenarios(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "toml") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
