//! Checks the types of the program for macOS. It is not linked, so this needs neither Apple's linker nor its SDK.

use crate::aarch64::missing_std;
use crate::process;
use crate::workspace::Workspace;

const TARGET: &str = "aarch64-apple-darwin";
/// Stands in for the C compiler and the archiver: it does nothing and succeeds, as C code is not checked.
const NOTHING: &str = "true";

/// Checks the types, or says what is missing.
///
/// # Errors
/// If there is a mistake, or a warning.
pub fn check(workspace: &Workspace) -> Result<String, String> {
    if cfg!(target_os = "macos") {
        return Ok("skipped: this machine is one, `cargo xtask test` builds for it".into());
    }
    if let Some(missing) = missing_std(workspace, TARGET) {
        return Ok(format!("skipped: {missing}"));
    }
    let mut check = workspace.cargo(&["check", "--locked", "--package=anabranch-cli"]);
    check.args(["--target", TARGET]);
    check.env("CC_aarch64_apple_darwin", NOTHING).env("AR_aarch64_apple_darwin", NOTHING);
    check.env("CARGO_TARGET_AARCH64_APPLE_DARWIN_RUSTFLAGS", "-D warnings");
    process::run(&mut check).map(|()| String::new())
}
