//! Runs tasks on all cores and returns their results in order.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Runs `work(0..count)` on `jobs` threads and returns the results in order, or the first error in that order. Progress
/// goes to the standard error stream.
pub fn map<T: Send>(
    count: usize,
    jobs: usize,
    work: impl Fn(usize) -> Result<T, String> + Sync,
) -> Result<Vec<T>, String> {
    let next = AtomicUsize::new(0);
    let done = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<Result<T, String>>>> =
        Mutex::new((0..count).map(|_| None).collect());
    std::thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, count.max(1)) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= count {
                        return;
                    }
                    let result = work(index);
                    if let Some(slot) =
                        results.lock().unwrap_or_else(PoisonError::into_inner).get_mut(index)
                    {
                        *slot = Some(result);
                    }
                    let finished = done.fetch_add(1, Ordering::Relaxed) + 1;
                    eprint!("\r{finished} of {count} runs");
                }
            });
        }
    });
    if count > 0 {
        eprintln!();
    }
    let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.into_iter().map(|slot| slot.unwrap_or(Err("a run is missing".into()))).collect()
}
