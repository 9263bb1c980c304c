//! The I/O-free crates run anywhere, and give the same numbers everywhere.

use std::process::Command;

use crate::process;
use crate::workspace::Workspace;

const TARGET: &str = "--target=wasm32-unknown-unknown";
/// The crates that do no I/O. Members that do not exist are left out.
const IO_FREE: [&str; 6] = [
    "anabranch-types",
    "anabranch-fec",
    "anabranch-policy",
    "anabranch-core",
    "anabranch-tcp",
    "anabranch-sim",
];

/// Builds the I/O-free crates for wasm32-unknown-unknown.
///
/// # Errors
/// If one of them does not build.
pub fn build(workspace: &Workspace) -> Result<String, String> {
    let packages = workspace.packages()?;
    let present = |name: &&str| packages.iter().any(|package| package.name == *name);
    let names: Vec<&str> = IO_FREE.into_iter().filter(present).collect();
    let mut command = workspace.cargo(&["build", "--release", "--locked", "--lib", TARGET]);
    command.args(names.iter().map(|name| format!("--package={name}")));
    process::run(&mut command)?;
    Ok(format!("{} crates", names.len()))
}

/// Runs every digest case as wasm and natively, unoptimised and optimised, and compares.
///
/// # Errors
/// If a build or run fails, or any two results differ.
pub fn digest(workspace: &Workspace) -> Result<String, String> {
    let native = |profile: &str| {
        let mut command = workspace.cargo(&["run", "--quiet", "--locked", "--package=wasm-digest"]);
        shown_capture(command.arg(profile).arg("--bin=wasm-digest"))
    };
    let debug = native("--profile=dev")?;
    let release = native("--profile=release")?;
    let module = ["build", "--release", "--locked", "--lib", "--package=wasm-digest", TARGET];
    process::run(&mut workspace.cargo(&module))?;
    let path = "wasm32-unknown-unknown/release/wasm_digest.wasm";
    // Optimised throughout: the interpreter's dispatch relies on tail calls, and overflows the stack
    // where its generic code is compiled for a development build.
    let mut interpreter = workspace.cargo(&["run", "--quiet", "--locked", "--package=xtask"]);
    interpreter.args(["--release", "--bin=wasm-run", "--features=wasm", "--"]);
    let wasm = shown_capture(interpreter.arg(workspace.target_dir()?.join(path)))?;
    compare(&debug, &release, &wasm)
}

fn shown_capture(command: &mut Command) -> Result<String, String> {
    eprintln!("$ {}", process::show(command));
    process::capture(command)
}

/// Compares `name digest` lines of the native runs with the bare digests of the wasm run.
fn compare(debug: &str, release: &str, wasm: &str) -> Result<String, String> {
    let cases: Vec<(&str, &str)> = debug.lines().filter_map(|line| line.rsplit_once(' ')).collect();
    let release: Vec<(&str, &str)> =
        release.lines().filter_map(|line| line.rsplit_once(' ')).collect();
    let wasm: Vec<&str> = wasm.lines().collect();
    if cases.is_empty() || cases.len() != release.len() || cases.len() != wasm.len() {
        let counts = (cases.len(), release.len(), wasm.len());
        return Err(format!("cases run (debug, release, wasm): {counts:?}"));
    }
    let mut different = Vec::new();
    for ((&(name, debug), &(_, release)), &wasm) in cases.iter().zip(&release).zip(&wasm) {
        if debug != release || debug != wasm {
            eprintln!("error: {name}: debug {debug}, release {release}, wasm {wasm}");
            different.push(name);
        }
    }
    if different.is_empty() {
        Ok(format!("{} cases", cases.len()))
    } else {
        Err(format!("different results: {}", different.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_digests_pass() {
        assert_eq!(compare("a 1\nb 2\n", "a 1\nb 2\n", "1\n2\n"), Ok("2 cases".into()));
    }

    #[test]
    fn any_difference_fails() {
        let differs = |message: Result<String, String>, what: &str| {
            assert!(message.as_ref().is_err_and(|text| text.contains(what)), "{message:?}");
        };
        differs(compare("a 1\nb 2\n", "a 1\nb 2\n", "1\n3\n"), "different results: b");
        differs(compare("a 1\nb 2\n", "a 9\nb 2\n", "1\n2\n"), "different results: a");
        differs(compare("a 1\nb 2\n", "a 1\nb 2\n", "1\n"), "(2, 2, 1)");
        differs(compare("", "", ""), "(0, 0, 0)");
    }
}
