//! Records the commit from which the crate is built, so that results can name it.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let commit = commit().unwrap_or_else(|| "unknown".to_owned());
    println!("cargo::rustc-env=ANABRANCH_COMMIT={commit}");
}

/// The checked-out commit, if the sources are a git checkout of their own and git can be run.
///
/// Source packages unpacked inside another project's repository do not count.
fn commit() -> Option<String> {
    let here = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR")?);
    let root = here.parent()?.parent()?.canonicalize().ok()?;
    let top = git(&root, &["rev-parse", "--show-toplevel"])?;
    if Path::new(&top).canonicalize().ok()? != root {
        return None;
    }
    // The log of HEAD grows with every commit; HEAD changes when another branch is checked out.
    for name in ["HEAD", "logs/HEAD"] {
        let path = root.join(git(&root, &["rev-parse", "--git-path", name])?);
        if path.exists() {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    git(&root, &["rev-parse", "HEAD"])
}

fn git(at: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(at).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
