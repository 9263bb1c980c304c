//! Processor time, measured alike for every transport.

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike};

/// Processor time that this process has used, seconds, that of its system calls included; `None` if it is not known.
pub fn cpu_seconds() -> Option<f64> {
    let usage = getrusage(UsageWho::RUSAGE_SELF).ok()?;
    let seconds = |time: TimeVal| time.num_microseconds() as f64 * 1e-6;
    Some(seconds(usage.user_time()) + seconds(usage.system_time()))
}
