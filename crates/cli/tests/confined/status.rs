//! Reads a process's status from `/proc`.

use std::fs;
use std::time::Duration;

/// Bits of the capabilities that every command keeps: CAP_NET_BIND_SERVICE and CAP_NET_RAW.
pub const NET: u64 = 1 << 10 | 1 << 13;
/// Bits of the capabilities for other users' files: CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH,
/// CAP_FOWNER.
pub const FILES: u64 = 1 << 1 | 1 << 2 | 1 << 3;

/// The status of one thread.
pub struct Thread(String);

impl Thread {
    /// The value of a line.
    pub fn value(&self, key: &str) -> &str {
        let line = self.0.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
        line.unwrap_or_else(|| panic!("no {key} in {}", self.0)).trim()
    }

    /// A set of capabilities.
    pub fn capabilities(&self, key: &str) -> u64 {
        u64::from_str_radix(self.value(key), 16).unwrap()
    }
}

/// Every thread of a process, once it has at least `least`.
pub fn threads(pid: u32, least: usize) -> Vec<Thread> {
    for _ in 0..500 {
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
        let status = tasks.map(|task| fs::read_to_string(task.unwrap().path().join("status")));
        // A thread may end before its status is read.
        let threads: Vec<_> = status.filter_map(Result::ok).map(Thread).collect();
        if threads.len() >= least {
            return threads;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("process {pid} has fewer than {least} threads");
}

/// Checks that every thread of a process, of which there are at least `least`, is confined and has no capability but
/// those `kept`.
pub fn assert_confined(pid: u32, least: usize, kept: u64) {
    for thread in threads(pid, least) {
        let name = thread.value("Name");
        assert_eq!(thread.value("NoNewPrivs"), "1", "{name}");
        assert_eq!(thread.value("Seccomp"), "2", "{name}");
        for set in ["CapEff", "CapPrm"] {
            let has = thread.capabilities(set);
            assert_eq!(has & !kept, 0, "{name}: {set} {has:x}");
        }
        assert_eq!(thread.capabilities("CapInh") | thread.capabilities("CapAmb"), 0, "{name}");
    }
}
