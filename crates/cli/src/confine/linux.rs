//! Confinement on Linux.

use std::fmt::Display;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::Access;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};

use super::{Kernel, Needs, UNCONFINED, calls, capabilities, files, is_turned_off};
use crate::failure::Failure;

/// This process is confined.
static CONFINED: AtomicBool = AtomicBool::new(false);

/// Drops all privileges except `needs`, unless the user has turned confinement off. No other thread may run yet: it
/// would keep its privileges.
///
/// # Errors
/// When the kernel refuses a limit that it supports.
pub fn confine(needs: &Needs) -> Result<(), Failure> {
    debug_assert_eq!(threads().ok(), Some(1), "threads run that would not be confined");
    if is_turned_off() {
        return Ok(());
    }
    CONFINED.store(true, Ordering::Relaxed);
    forbid_core_files()?;
    give_up(needs)
}

/// Drops all privileges except `needs` for this thread and the threads it spawns.
pub(super) fn give_up(needs: &Needs) -> Result<(), Failure> {
    rustix::thread::set_no_new_privs(true).map_err(|error| refused("new privileges", &error))?;
    capabilities::keep(needs).map_err(|error| refused("capabilities", &error))?;
    files::restrict(needs).map_err(|error| refused("files", &error))?;
    calls::forbid().map_err(|error| refused("system calls", &error))
}

/// Keeps the memory of this process, which holds keys, out of core files and from other processes of the same user. The
/// kernel forgets this when a process becomes another user.
///
/// # Errors
/// When the kernel refuses.
pub fn forbid_core_files() -> Result<(), Failure> {
    if is_turned_off() {
        return Ok(());
    }
    set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(|error| refused("core files", &error))
}

fn refused(what: &str, error: &dyn Display) -> Failure {
    Failure::failed(format!(
        "cannot confine this process ({what}): {error}; set {UNCONFINED}=1 to keep all privileges"
    ))
}

/// Advice about `error`, if `path` cannot be read because this process is confined, and not because of the
/// permissions of the file; else nothing.
pub fn explain(path: &Path, error: &io::Error) -> &'static str {
    // access(2) checks the file's permissions and ignores the confinement.
    let confined = CONFINED.load(Ordering::Relaxed)
        && error.kind() == ErrorKind::PermissionDenied
        && rustix::fs::access(path, Access::READ_OK).is_ok();
    if confined {
        "; this process can only read files that existed when it started: start it again, or set ANABRANCH_UNCONFINED=1"
    } else {
        ""
    }
}

/// Features of this kernel that can confine a command.
pub fn kernel() -> Option<Kernel> {
    let seccomp = Path::new("/proc/sys/kernel/seccomp").is_dir();
    Some(Kernel { landlock: files::version(), seccomp })
}

fn threads() -> io::Result<usize> {
    Ok(fs::read_dir("/proc/self/task")?.count())
}
