//! CPU time. Each side of a measurement runs on a thread of its own, so the thread's CPU time is
//! that side's.

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn seconds() -> Option<f64> {
    use nix::sys::resource::{UsageWho, getrusage};
    use nix::sys::time::{TimeVal, TimeValLike};
    let usage = getrusage(UsageWho::RUSAGE_THREAD).ok()?;
    let seconds = |time: TimeVal| time.num_microseconds() as f64 * 1e-6;
    Some(seconds(usage.user_time()) + seconds(usage.system_time()))
}

/// Other systems do not report the CPU time of a thread.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn seconds() -> Option<f64> {
    None
}
