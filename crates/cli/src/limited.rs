//! Limits the lines that are printed about a peer, which may cause any number of them, to 60 a minute.

use std::sync::{Arc, Mutex, PoisonError};

use anabranch_types::Time;
use anabranch_types::lines::{Lines, Verdict};
use tokio::time::Instant;

use crate::clock;
use crate::output::warn;

/// Prints lines about one peer, or about several together, within the limit. Clones share it.
#[derive(Clone, Debug)]
pub struct Limited {
    about: String,
    /// Says where all lines can be found; may be empty.
    elsewhere: &'static str,
    lines: Arc<Mutex<Lines>>,
    since: Instant,
}

impl Limited {
    /// `about` names the peer or peers. `elsewhere` is appended when lines are left out, and says where all of them can be
    /// found, as in "; --json has all".
    pub fn new(about: String, elsewhere: &'static str) -> Self {
        Limited { about, elsewhere, lines: Arc::default(), since: Instant::now() }
    }

    /// Calls `write`, which prints one line, unless there have been 60 within a minute: the first one beyond that is
    /// replaced by a line that says so.
    pub fn line(&self, write: impl FnOnce()) {
        let now = Time::ZERO + self.since.elapsed();
        let verdict = self.lines.lock().unwrap_or_else(PoisonError::into_inner).take(now);
        let (Limited { about, elsewhere, .. }, stamp) = (self, clock::stamp());
        match verdict {
            Verdict::Write { left_out } => {
                if left_out > 0 {
                    warn(&format!("{stamp}{left_out} lines about {about} were left out"));
                }
                write();
            }
            Verdict::FirstLeftOut => warn(&format!(
                "{stamp}further lines about {about} are left out for a while{elsewhere}"
            )),
            Verdict::LeftOut => {}
        }
    }
}
