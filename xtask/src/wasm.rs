//! Checks that the I/O-free crates build for wasm and give the same digests everywhere.

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
    let count = modules(workspace)?;
    Ok(format!("{count} crates"))
}

/// Builds the I/O-free crates together with the module of the digests, which alone would ask for other features of
/// these crates and have all of them built a second time. Returns the number of crates.
fn modules(workspace: &Workspace) -> Result<usize, String> {
    let packages = workspace.packages()?;
    let present = |name: &&str| packages.iter().any(|package| package.name == *name);
    let names: Vec<&str> = IO_FREE.into_iter().filter(present).collect();
    let mut command = workspace.cargo(&["build", "--release", "--locked", "--lib", TARGET]);
    command.args(names.iter().map(|name| format!("--package={name}")));
    process::run(command.arg("--package=wasm-digest"))?;
    Ok(names.len())
}

/// Runs every digest case, optimised, natively and as wasm, and compares the results with the golden ones. The golden
/// test of `wasm-digest` compares those with what a build for development gives.
///
/// # Errors
/// If a build or run fails, or any result differs from the golden one.
pub fn digest(workspace: &Workspace) -> Result<String, String> {
    let golden = workspace.root().join("tools/wasm-digest/tests/golden/digests.txt");
    let golden = std::fs::read_to_string(&golden)
        .map_err(|error| format!("{}: {error}", golden.display()))?;
    let native = shown_capture(&mut process::optimised(workspace, "wasm-digest")?)?;
    modules(workspace)?;
    let path = "wasm32-unknown-unknown/release/wasm_digest.wasm";
    // The interpreter would overflow the stack if its code were not optimised.
    let mut interpreter = process::optimised(workspace, "wasm-run")?;
    let wasm = shown_capture(interpreter.arg(workspace.target_dir()?.join(path)))?;
    compare(&golden, &native, &wasm)
}

fn shown_capture(command: &mut Command) -> Result<String, String> {
    eprintln!("$ {}", process::show(command));
    process::capture(command)
}

/// Compares `name digest` lines with the bare digests of the wasm run.
fn compare(golden: &str, native: &str, wasm: &str) -> Result<String, String> {
    let cases: Vec<(&str, &str)> =
        golden.lines().filter_map(|line| line.rsplit_once(' ')).collect();
    let native: Vec<(&str, &str)> =
        native.lines().filter_map(|line| line.rsplit_once(' ')).collect();
    let wasm: Vec<&str> = wasm.lines().collect();
    if cases.is_empty() || cases.len() != native.len() || cases.len() != wasm.len() {
        let counts = (cases.len(), native.len(), wasm.len());
        return Err(format!("cases run (golden, native, wasm): {counts:?}"));
    }
    let mut different = Vec::new();
    for ((&(name, golden), &(_, native)), &wasm) in cases.iter().zip(&native).zip(&wasm) {
        if golden != native || golden != wasm {
            eprintln!("error: {name}: golden {golden}, native {native}, wasm {wasm}");
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
