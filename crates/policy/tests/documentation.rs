//! Checks that the files named in the documentation exist.
//!
//! In the architecture and the pages in `docs`, inline code that looks like a path must name a
//! file, relative to the root of the repository or as `crate/file.rs` for
//! `crates/crate/src/file.rs`. `cargo xtask ci --only links` checks links.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn markdown(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            markdown(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

fn pages() -> Vec<PathBuf> {
    let mut pages = vec![root().join("ARCHITECTURE.md")];
    markdown(&root().join("docs"), &mut pages);
    pages
}

/// The text without fenced blocks, whose code is tested elsewhere or is only an example.
fn prose(text: &str) -> String {
    text.split("```").step_by(2).collect()
}

/// Text in backquotes.
fn inline_code(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| line.split('`').skip(1).step_by(2))
}

/// Whether inline code looks like a file or folder of the repository.
fn is_path(code: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
    let folder_or_source = code.ends_with('/') || code.ends_with(".rs") || code.ends_with(".md");
    code.contains('/') && folder_or_source && code.chars().all(plain)
}

fn exists(code: &str) -> bool {
    let in_crate = code.split_once('/').map(|(name, rest)| format!("crates/{name}/src/{rest}"));
    root().join(code).exists() || in_crate.is_some_and(|path| root().join(path).exists())
}

#[test]
fn named_files_exist() {
    let mut named = 0;
    let mut missing = Vec::new();
    for page in pages() {
        let text = prose(&fs::read_to_string(&page).unwrap());
        for code in inline_code(&text).filter(|code| is_path(code)) {
            named += 1;
            if !exists(code) && !to_be_written(code) {
                missing.push(format!("{} names `{code}`, which is not there", page.display()));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
    assert!(named > 50, "only {named} files were recognised: the page format has changed");
}

/// The files that readers of the how-to pages are told to write.
fn to_be_written(code: &str) -> bool {
    ["/least_loss.rs", "/aimd.rs", "/repetition.rs"].iter().any(|file| code.ends_with(file))
}

#[test]
fn every_page_is_in_the_index() {
    let index = fs::read_to_string(root().join("docs/README.md")).unwrap();
    for page in pages().into_iter().skip(1) {
        let name = page.file_name().unwrap().to_string_lossy().into_owned();
        let moved = fs::read_to_string(&page).unwrap().starts_with("# Moved");
        assert!(
            moved || name == "README.md" || index.contains(&name),
            "{name} is not in the index"
        );
    }
}
