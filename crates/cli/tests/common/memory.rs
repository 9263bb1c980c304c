//! Directories of tests that a busy disk must not delay.

use std::path::Path;

/// Where Linux keeps files in memory, and how many bytes of room there have to be.
const MEMORY: &str = "/dev/shm";
const ROOM: u64 = 2 << 30;

/// A directory in memory where there is room, else on the disk. A receiver goes on only after what it has is safe on the
/// disk, and a disk that is busy with other work takes seconds for that.
pub fn directory() -> tempfile::TempDir {
    let directory = if room() >= ROOM { tempfile::tempdir_in(MEMORY) } else { tempfile::tempdir() };
    directory.expect("a directory can be made")
}

fn room() -> u64 {
    let facts = rustix::fs::statvfs(Path::new(MEMORY));
    facts.map_or(0, |facts| facts.f_bavail.saturating_mul(facts.f_frsize))
}
