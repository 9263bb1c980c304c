//! Items that are simulated: a scenario file each, or one shared by several, and a checker.

mod evidence;

pub use evidence::Evidence;

use crate::outcome::Outcome;

/// A scenario file of `scenarios/papers`.
#[derive(Debug)]
pub struct Experiment {
    /// Its path below that directory, without the extension: `mplot/fig3`.
    pub name: &'static str,
    /// Its text.
    pub text: &'static str,
    /// What `--quick` changes, as `--set` of `sim run` takes it.
    pub quick: &'static [&'static str],
}

/// An item that is simulated.
#[derive(Debug)]
pub struct Simulated {
    /// The item's identifier.
    pub id: &'static str,
    /// The experiments it looks at, shared with other items where they are the same.
    pub experiments: &'static [&'static Experiment],
    /// Reads off what the runs show.
    pub check: fn(&Evidence) -> Outcome,
}

/// Every simulated item.
const ALL: [&[Simulated]; 0] = [];

/// The simulated item with this identifier.
pub fn find(id: &str) -> Option<&'static Simulated> {
    ALL.iter().flat_map(|items| items.iter()).find(|item| item.id == id)
}
