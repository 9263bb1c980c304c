//! A shell script with the archive in it, for systems without packages, and for those who are not root.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::packages::Content;
use super::{failed, tools};
use crate::process;

/// Script that precedes the archive.
const SCRIPT: &str = include_str!("../../../packaging/installer.sh");

/// Makes the installer in `out`.
///
/// # Errors
/// If a program fails, or a file cannot be written.
pub fn make(content: Content<'_>, out: &Path) -> Result<PathBuf, String> {
    let Content { tree, version, time } = content;
    let archive = out.join("installer.tar");
    tools::tar(tree, ".", &archive, time)?;
    tools::gzip(&archive)?;
    let archive = archive.with_extension("tar.gz");
    let bytes = fs::read(&archive).map_err(|error| failed(&archive, &error))?;
    let sum = process::capture(Command::new("sha256sum").arg(&archive))?;
    let sum = sum.split_whitespace().next().unwrap_or_default();
    fs::remove_file(&archive).map_err(|error| failed(&archive, &error))?;
    let first = (SCRIPT.lines().count() + 1).to_string();
    let script = SCRIPT.replace("@VERSION@", version).replace("@SUM@", sum);
    let mut whole = script.replace("@FIRST@", &first).into_bytes();
    whole.extend(bytes);
    let installer = out.join(format!("anabranch-{version}-installer.sh"));
    fs::write(&installer, whole).map_err(|error| failed(&installer, &error))?;
    Ok(installer)
}
