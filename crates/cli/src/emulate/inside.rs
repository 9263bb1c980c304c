//! The first process of a side's process namespace. It runs the command; when it ends, the kernel ends every other
//! process in the namespace.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{Command, ExitCode};

use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use super::args::InsideArgs;
use crate::failure::Failure;

/// Exit codes of shells: a command that is not there, and one that cannot be run.
const NOT_FOUND: u8 = 127;
const NOT_RUN: u8 = 126;

/// Runs the command and returns its exit code.
///
/// # Errors
/// When the system does not do what a first process needs.
pub fn run(args: &InsideArgs) -> Result<ExitCode, Failure> {
    // The kernel kills this process when the emulator ends, and then all others of the namespace.
    prctl::set_pdeathsig(Signal::SIGKILL).map_err(cannot)?;
    if is_abandoned() {
        return Err(Failure::failed("the emulator is gone"));
    }
    show_namespaces();
    let Some((program, rest)) = args.command.split_first() else {
        return Err(Failure::usage("no command"));
    };
    let child = match Command::new(program).args(rest).spawn() {
        Ok(child) => Pid::from_raw(i32::try_from(child.id()).unwrap_or(i32::MAX)),
        Err(error) => return Ok(not_run(program, &error)),
    };
    // Signals are blocked only after the command has started, because it would inherit the mask.
    // Earlier ones are ignored, as for every first process of a namespace.
    let signals =
        [Signal::SIGCHLD, Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT];
    let signals: SigSet = signals.into_iter().collect();
    signals.thread_block().map_err(cannot)?;
    loop {
        if let Some(code) = reap(child) {
            return Ok(ExitCode::from(code));
        }
        match signals.wait().map_err(cannot)? {
            // A terminal sends SIGINT and SIGQUIT to the command as well.
            Signal::SIGCHLD | Signal::SIGINT | Signal::SIGQUIT => {}
            signal => drop(kill(child, signal)),
        }
    }
}

/// Whether the emulator ended before this process asked to be killed with it. In that case the
/// emulator's interfaces are gone.
fn is_abandoned() -> bool {
    nix::net::if_::if_nameindex().is_ok_and(|all| all.iter().count() < 2)
}

/// Lets /proc and /sys show this namespace's processes and interfaces, where that is allowed. Some
/// containers do not allow it: /proc then shows the processes outside, and /sys the interfaces
/// outside or nothing.
fn show_namespaces() {
    const NONE: Option<&str> = None;
    let private = || {
        unshare(CloneFlags::CLONE_NEWNS)?;
        mount(NONE, "/", NONE, MsFlags::MS_REC | MsFlags::MS_PRIVATE, NONE)
    };
    if private().is_err() {
        return;
    }
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    let _ = mount(Some("proc"), "/proc", Some("proc"), flags, NONE);
    if mount(Some("sysfs"), "/sys", Some("sysfs"), flags, NONE).is_err()
        && Path::new("/sys/class").exists()
    {
        // A stale /sys would list the interfaces of another namespace.
        let _ = umount2("/sys", MntFlags::MNT_DETACH);
    }
}

/// Reaps every process that has ended; returns the exit code of `child` if it is among them.
fn reap(child: Pid) -> Option<u8> {
    let mut code = None;
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(pid, status)) if pid == child => {
                code = Some(u8::try_from(status).unwrap_or(u8::MAX));
            }
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid == child => {
                code = Some(128 + u8::try_from(signal as i32).unwrap_or(0));
            }
            Ok(WaitStatus::StillAlive) | Err(_) => return code,
            Ok(_) => {}
        }
    }
}

fn not_run(program: &OsString, error: &io::Error) -> ExitCode {
    eprintln!(
        "anabranch: {}",
        Failure::failed(format!("cannot run {}: {error}", program.display()))
    );
    ExitCode::from(if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_RUN })
}

fn cannot(error: Errno) -> Failure {
    Failure::failed(format!("cannot prepare to run a command: {}", io::Error::from(error)))
}
