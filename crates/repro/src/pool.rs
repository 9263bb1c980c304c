//! Independent tasks on several threads.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Does every task, `jobs` at a time and in the given order of starting, and returns the results in
/// the order of the tasks. A task that was not begun when `cancel` was raised has none.
pub fn work<T: Sync, R: Send>(
    tasks: &[T],
    jobs: usize,
    cancel: &AtomicBool,
    act: impl Fn(&T) -> R + Sync,
) -> Vec<Option<R>> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<R>>> = Mutex::new(tasks.iter().map(|_| None).collect());
    std::thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, tasks.len().max(1)) {
            scope.spawn(|| {
                while !cancel.load(Ordering::Relaxed) {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(task) = tasks.get(index) else { break };
                    let result = act(task);
                    let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                    if let Some(slot) = results.get_mut(index) {
                        *slot = Some(result);
                    }
                }
            });
        }
    });
    results.into_inner().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_the_order_of_tasks() {
        let tasks: Vec<usize> = (0..100).collect();
        for jobs in [0, 1, 3, 200] {
            let done = work(&tasks, jobs, &AtomicBool::new(false), |n| n * n);
            assert!(done.iter().enumerate().all(|(n, square)| *square == Some(n * n)), "{jobs}");
        }
        assert!(work(&[] as &[u8], 4, &AtomicBool::new(false), |n| *n).is_empty());
    }

    #[test]
    fn nothing_more_begins_once_cancelled() {
        let cancel = AtomicBool::new(false);
        let done = work(&[1, 2, 3, 4], 1, &cancel, |n| {
            cancel.store(*n == 2, Ordering::Relaxed);
            *n
        });
        assert_eq!(done, [Some(1), Some(2), None, None]);
    }
}
