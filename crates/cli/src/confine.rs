//! Least privilege: before a command that talks to peers starts a second thread, it gives up the privileges that it
//! does not need. Threads inherit these limits from the thread that starts them, so all threads have them.
//!
//! A confined command cannot gain privileges, keeps no capability but those in [`capabilities`], starts no program, sees
//! only the files that it was started for and those of the system, and leaves no core file with keys in it. Where the
//! kernel lacks one of these limits, the others hold. [`UNCONFINED`] turns all of them off.

#[cfg(target_os = "linux")]
mod calls;
#[cfg(target_os = "linux")]
mod capabilities;
#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod other;
#[cfg(all(test, target_os = "linux"))]
mod tests;

use std::path::{Path, PathBuf};

use serde::Serialize;

#[cfg(target_os = "linux")]
pub use linux::{confine, explain, forbid_core_files, kernel};
#[cfg(not(target_os = "linux"))]
pub use other::{confine, explain, kernel};

/// The environment variable that turns confinement off, if it is neither empty nor `0`.
pub const UNCONFINED: &str = "ANABRANCH_UNCONFINED";

/// Rights that a command needs after it has been confined.
#[derive(Clone, Debug, Default)]
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux confines commands"))]
pub struct Needs {
    /// Files and directories that it reads, beside those of the system. Root may read those of any
    /// owner.
    pub read: Vec<PathBuf>,
    /// Directories that it writes to. Root may write to those of any owner.
    pub write: Vec<PathBuf>,
    /// Directories in which it makes and removes Unix sockets. Root may use directories of any
    /// owner.
    pub sockets: Vec<PathBuf>,
    /// The command connects to or listens on TCP ports. Without this, it reaches only the TCP ports of name servers.
    pub tcp: bool,
    /// The command becomes another user.
    pub other_user: bool,
}

impl Needs {
    /// The needs of a command that reads these secrets and writes to this directory, as far as they
    /// are given.
    pub fn files<const N: usize>(secrets: [Option<&Path>; N], write: Option<&Path>) -> Self {
        let read = secrets.into_iter().flatten().map(Path::to_owned).collect();
        Needs { read, write: write.map(Path::to_owned).into_iter().collect(), ..Needs::default() }
    }
}

/// Kernel features that can confine a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Kernel {
    /// The version of Landlock, which limits files and ports; 0 without it, and never more than [`NEWEST`](Self::NEWEST).
    pub landlock: u8,
    /// System calls can be forbidden.
    pub seccomp: bool,
}

impl Kernel {
    /// The newest version of Landlock that is made use of, that of Linux 6.12.
    pub const NEWEST: u8 = 6;
}

/// Whether the user has turned confinement off.
pub fn is_turned_off() -> bool {
    std::env::var_os(UNCONFINED).is_some_and(|value| !value.is_empty() && value != "0")
}

/// Whether this process is root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
