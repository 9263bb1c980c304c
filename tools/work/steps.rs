//! Counts the instructions of a process.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command};

use nix::sys::ptrace;
use nix::sys::signal::{Signal, raise};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::Failure;
use crate::cases::{CASES, Case};

/// The argument that makes this program deliver packets; the next one is the case's number.
pub const ROLE: &str = "--deliver";

/// Keeps glibc from using the processor's instructions that copy or fill any length: single-stepping stops at every
/// byte of these, so the count would depend on the processor.
const NO_REPEATS: &str = "glibc.cpu.x86_rep_movsb_threshold=0x7fffffffffff:\
    glibc.cpu.x86_rep_stosb_threshold=0x7fffffffffff";

/// Stops, delivers the packets of a case, and stops again: the parent process counts what happens in between.
pub fn deliver(case: Option<String>) -> Result<bool, Failure> {
    let case = case.and_then(|number| CASES.get(number.parse::<usize>().ok()?));
    let case = case.ok_or("no such case")?;
    let mut prepared = (case.prepare)();
    prepared.shorten(case.packets as usize);
    raise(Signal::SIGSTOP)?;
    raise(Signal::SIGSTOP)?;
    prepared.deliver();
    raise(Signal::SIGSTOP)?;
    Ok(true)
}

/// Instructions for each packet of a case; counting ends when there are `most` for each.
pub fn count(case: &Case, most: u64) -> Result<f64, Failure> {
    let number = CASES.iter().position(|other| other.name == case.name).ok_or("no such case")?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args([ROLE, &number.to_string()]).env("GLIBC_TUNABLES", NO_REPEATS);
    let mut child = command.spawn()?;
    let counted = trace(&child, most.saturating_mul(case.packets.into()));
    // The process has no more to do.
    let _ = child.kill();
    let status = child.wait()?;
    let count =
        counted.map_err(|error| format!("{}: {error} ({:?})", case.name, status.signal()))?;
    Ok(count as f64 / f64::from(case.packets))
}

fn trace(child: &Child, most: u64) -> Result<u64, Failure> {
    let pid = Pid::from_raw(i32::try_from(child.id())?);
    ptrace::attach(pid)?;
    // One stop comes from attaching, and two tell that the process is ready.
    let mut stops = 0;
    while stops < 3 {
        match waitpid(pid, None)? {
            WaitStatus::Stopped(_, Signal::SIGSTOP) => stops += 1,
            WaitStatus::Stopped(..) => {}
            other => return Err(format!("it ended early: {other:?}").into()),
        }
        if stops < 3 {
            ptrace::cont(pid, None)?;
        }
    }
    let mut count = 0;
    while count < most {
        ptrace::step(pid, None)?;
        match waitpid(pid, None)? {
            WaitStatus::Stopped(_, Signal::SIGSTOP) => break,
            WaitStatus::Stopped(..) => count += 1,
            other => return Err(format!("it ended early: {other:?}").into()),
        }
    }
    Ok(count)
}
