//! Processor time, which other programs on the machine disturb less than they do the wall clock.

use nix::sys::resource::{Usage, UsageWho, getrusage};

/// Processor time of this process since some moment.
#[derive(Clone, Copy, Debug)]
pub struct Clock(f64);

impl Clock {
    /// Starts the clock.
    pub fn start() -> Self {
        Clock(spent(UsageWho::RUSAGE_SELF))
    }

    /// Processor seconds since the start.
    pub fn seconds(self) -> f64 {
        spent(UsageWho::RUSAGE_SELF) - self.0
    }
}

/// Processor seconds of all child processes that have ended.
pub fn of_children() -> f64 {
    spent(UsageWho::RUSAGE_CHILDREN)
}

/// Resident memory of this process; 0 where it cannot be read.
pub fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = resident.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kibibytes.unwrap_or(0) * 1024
}

fn spent(who: UsageWho) -> f64 {
    let usage = getrusage(who).ok();
    let seconds =
        |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    let both = |usage: Usage| seconds(usage.user_time()) + seconds(usage.system_time());
    usage.map_or(0.0, both)
}
