//! The system's allocator with counts for each thread, and with a hook for the memory that a thread
//! frees. Each test runs on its own thread.

#![allow(
    unsafe_code,
    reason = "a global allocator cannot be written without; every call is passed on"
)]
#![allow(dead_code, reason = "each test that includes this reads some of the counts")]

pub mod search;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;

/// Inspects a block of memory.
pub type Look = fn(&[u8]);

thread_local! {
    /// Number of allocations and reallocations by this thread.
    pub static COUNT: Cell<u64> = const { Cell::new(0) };
    /// Bytes currently allocated by this thread.
    pub static LIVE: Cell<i64> = const { Cell::new(0) };
    /// Largest value of `LIVE` since this maximum was last reset.
    pub static MOST: Cell<i64> = const { Cell::new(0) };
    /// Called with each block that this thread is about to free. Must not allocate.
    pub static LOOK: Cell<Option<Look>> = const { Cell::new(None) };
}

fn allocated(size: usize) {
    COUNT.set(COUNT.get() + 1);
    LIVE.set(LIVE.get() + size as i64);
    MOST.set(MOST.get().max(LIVE.get()));
}

fn freed(size: usize) {
    LIVE.set(LIVE.get() - size as i64);
}

/// Passes a block that is about to be freed to [`LOOK`].
unsafe fn look(pointer: *mut u8, size: usize) {
    if let Some(look) = LOOK.get() {
        // `black_box` keeps the compiler from assuming that bytes of the block were never written.
        look(unsafe { std::slice::from_raw_parts(black_box(pointer), size) });
    }
}

struct Counting;

unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        allocated(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        freed(layout.size());
        unsafe {
            look(pointer, layout.size());
            System.dealloc(pointer, layout);
        }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both blocks exist during the copy.
        allocated(size);
        freed(layout.size());
        if LOOK.get().is_none() {
            return unsafe { System.realloc(pointer, layout, size) };
        }
        // The system may extend the old block in place. Here the old block is always freed, so that
        // the hook sees it.
        unsafe {
            let new = System.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !new.is_null() {
                pointer.copy_to_nonoverlapping(new, size.min(layout.size()));
                look(pointer, layout.size());
                System.dealloc(pointer, layout);
            }
            new
        }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;
