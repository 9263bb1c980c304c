//! The system's allocator with counts for each thread; tests run on threads of their own.

#![allow(
    unsafe_code,
    reason = "a global allocator cannot be written without; every call is passed on"
)]
#![allow(dead_code, reason = "each test that includes this reads some of the counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Allocations and growths by this thread.
    pub static COUNT: Cell<u64> = const { Cell::new(0) };
    /// Bytes in use by this thread.
    pub static LIVE: Cell<i64> = const { Cell::new(0) };
    /// The most there were since it was last set.
    pub static MOST: Cell<i64> = const { Cell::new(0) };
}

fn allocated(size: usize) {
    COUNT.set(COUNT.get() + 1);
    LIVE.set(LIVE.get() + size as i64);
    MOST.set(MOST.get().max(LIVE.get()));
}

fn freed(size: usize) {
    LIVE.set(LIVE.get() - size as i64);
}

struct Counting;

unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        allocated(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        freed(layout.size());
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both are there while one is copied into the other.
        allocated(size);
        freed(layout.size());
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;
