//! The programs that `dist` needs besides cargo.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::process;
use crate::workspace::Workspace;

/// Checks that this machine has what it takes to build and pack for `target`.
///
/// # Errors
/// If anything is missing. The error names all of it in one line.
pub fn require(workspace: &Workspace, target: &str) -> Result<(), String> {
    let mut missing = Vec::new();
    let mut rustc = Command::new("rustc");
    rustc.current_dir(workspace.root()).args(["--print", "target-libdir", "--target", target]);
    if !process::capture(&mut rustc).is_ok_and(|path| Path::new(path.trim()).is_dir()) {
        missing.push(format!("Rust for the target (rustup target add {target})"));
    }
    // With this variable, another compiler can be chosen for cc, the crate that compiles ring's C
    // code.
    let chosen = std::env::var_os(format!("CC_{}", target.replace('-', "_")));
    if chosen.is_none() && !answers("musl-gcc") {
        missing.push("a C compiler for musl (on Debian: apt install musl-tools)".to_owned());
    }
    let others = ["tar", "gzip", "sha256sum"].into_iter().filter(|tool| !answers(tool));
    missing.extend(others.map(str::to_owned));
    if missing.is_empty() { Ok(()) } else { Err(format!("missing: {}", missing.join("; "))) }
}

/// Whether a program is installed.
pub fn answers(tool: &str) -> bool {
    let mut command = Command::new(tool);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// When the commit was made, seconds since 1970.
///
/// # Errors
/// If git does not tell.
pub fn commit_time(workspace: &Workspace) -> Result<String, String> {
    let time = process::capture(&mut workspace.git(&["log", "-1", "--format=%ct"]))?;
    Ok(time.trim().to_owned())
}

/// Packs the directory `name` of `out` into an archive beside it and returns the archive's name.
///
/// # Errors
/// If a program fails.
pub fn pack(out: &Path, name: &str, time: &str) -> Result<String, String> {
    tar(out, name, &out.join(format!("{name}.tar")), time)?;
    gzip(&out.join(format!("{name}.tar")))?;
    Ok(format!("{name}.tar.gz"))
}

/// Compresses `file` into one with `.gz` after its name: the same content gives the same bytes.
///
/// # Errors
/// If gzip fails.
pub fn gzip(file: &Path) -> Result<(), String> {
    // Without -n, gzip would write down a time.
    process::run(Command::new("gzip").args(["-9n", "--force"]).arg(file))
}

/// Packs `what` below the directory `from` into the file `to`: the same content gives the same bytes.
///
/// # Errors
/// If tar fails.
pub fn tar(from: &Path, what: &str, to: &Path, time: &str) -> Result<(), String> {
    let mut tar = Command::new("tar");
    tar.current_dir(from).args(["--create", "--format=ustar", "--sort=name", "--numeric-owner"]);
    tar.args(["--owner=0", "--group=0", "--mode=u=rwX,go=rX"]).arg(format!("--mtime=@{time}"));
    process::run(tar.arg("--file").arg(to).arg(what))
}

/// Writes the SHA-256 sum of `archive` beside it, as `sha256sum --check` reads it, and returns it.
///
/// # Errors
/// If it cannot be computed or written.
pub fn sum(out: &Path, archive: &str) -> Result<String, String> {
    let sum = process::capture(Command::new("sha256sum").current_dir(out).arg(archive))?;
    let file = out.join(format!("{archive}.sha256"));
    std::fs::write(&file, &sum).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(sum)
}
