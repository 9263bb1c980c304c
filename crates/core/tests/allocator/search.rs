//! Searches the memory that a thread frees for secrets, which should have been erased.

use super::LOOK;
use std::cell::RefCell;
use std::collections::BTreeSet;

/// Length of the searched parts, bytes: half a key.
const PART: usize = 16;
/// Most parts of secrets that can be searched for, and most hits whose names are stored.
const MOST: usize = 4096;
const MOST_FOUND: usize = 64;

/// State of a search. It has a fixed size because the hook must not allocate.
struct Search {
    parts: [(&'static str, [u8; PART]); MOST],
    count: usize,
    /// Whether a part starts with the byte of this index.
    begins: [bool; 256],
    found: [&'static str; MOST_FOUND],
    hits: usize,
}

thread_local! {
    static SEARCH: RefCell<Search> = const {
        RefCell::new(Search {
            parts: [("", [0; PART]); MOST],
            count: 0,
            begins: [false; 256],
            found: [""; MOST_FOUND],
            hits: 0,
        })
    };
}

fn look(block: &[u8]) {
    // Most blocks are too short to hold a part.
    if block.len() < PART {
        return;
    }
    SEARCH.with_borrow_mut(|search| {
        for window in block.windows(PART).filter(|window| search.begins[usize::from(window[0])]) {
            let parts = &search.parts[..search.count];
            if let Some((name, _)) = parts.iter().find(|(_, part)| part == window) {
                search.found[search.hits % MOST_FOUND] = name;
                search.hits += 1;
            }
        }
    });
}

/// Adds a secret to the search of this thread. Does nothing if no search is running.
pub fn learn(name: &'static str, secret: &[u8]) {
    if LOOK.get().is_none() {
        return;
    }
    SEARCH.with_borrow_mut(|search| {
        for part in secret.chunks_exact(PART) {
            // An erased secret is all zeros.
            if part.iter().any(|byte| *byte != 0) {
                search.begins[usize::from(part[0])] = true;
                let (named, place) = &mut search.parts[search.count];
                *named = name;
                // Copied directly, because a copy on the stack would not be erased.
                place.copy_from_slice(part);
                search.count += 1;
            }
        }
    });
}

/// Runs `work` and searches all memory that it frees for `secrets` and for the secrets that
/// [`learn`] adds meanwhile. Returns the names of the secrets found, and the number of parts
/// searched for.
pub fn left_by(
    secrets: &[(&'static str, &[u8])],
    work: impl FnOnce(),
) -> (Vec<&'static str>, usize) {
    SEARCH.with_borrow(|search| assert_eq!(search.count, 0, "one search in each test"));
    LOOK.set(Some(look));
    secrets.iter().for_each(|(name, secret)| learn(name, secret));
    work();
    LOOK.set(None);
    SEARCH.with_borrow(|search| {
        let found: BTreeSet<_> = search.found[..search.hits.min(MOST_FOUND)].iter().collect();
        println!("{} parts of secrets, found {} times: {found:?}", search.count, search.hits);
        (found.into_iter().copied().collect(), search.count)
    })
}
