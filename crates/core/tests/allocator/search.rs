//! Searches what a thread frees for secrets, which ought to have been erased before.

use super::LOOK;
use std::cell::RefCell;
use std::collections::BTreeSet;

/// Length of what is searched for, bytes: half a key.
const PART: usize = 16;
/// Most parts of secrets that can be searched for, and most hits whose names are kept.
const MOST: usize = 4096;
const MOST_FOUND: usize = 64;

/// Of fixed size, since a look must not allocate.
struct Search {
    parts: [(&'static str, [u8; PART]); MOST],
    count: usize,
    /// Whether a part begins with this byte.
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

/// Adds a secret to those that this thread searches for. Does nothing unless a search is under way.
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
                // Copied directly: a copy by way of the stack would stay there.
                place.copy_from_slice(part);
                search.count += 1;
            }
        }
    });
}

/// Runs `work`, and searches all that it frees for `secrets` and for those that [`learn`] adds meanwhile. Returns the
/// names of the secrets found, and how many parts were searched for.
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
