//! Runs tasks on several threads and returns their results in order.

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::ThreadPoolBuilder;
use rayon::prelude::*;

/// Runs `work(0..count)` on `jobs` threads, begun in that order, and returns the results in order, or the first error.
/// Progress goes to the standard error stream.
pub fn map<T: Send>(
    count: usize,
    jobs: usize,
    work: impl Fn(usize) -> Result<T, String> + Sync,
) -> Result<Vec<T>, String> {
    let threads = ThreadPoolBuilder::new().num_threads(jobs.clamp(1, count.max(1))).build();
    let threads = threads.map_err(|error| error.to_string())?;
    let done = AtomicUsize::new(0);
    let one = |index| {
        let result = work(index)?;
        let finished = done.fetch_add(1, Ordering::Relaxed) + 1;
        eprint!("\r{finished} of {count} runs");
        Ok((index, result))
    };
    // A bridge hands out the tasks in their order.
    let results: Result<Vec<(usize, T)>, String> =
        threads.install(|| (0..count).par_bridge().map(one).collect());
    if count > 0 {
        eprintln!();
    }
    let mut results = results?;
    results.sort_unstable_by_key(|(index, _)| *index);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}
