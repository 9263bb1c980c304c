//! Lines about somebody who may cause as many as he likes: 60 a minute are printed at most.

use std::sync::{Arc, Mutex, PoisonError};

use anabranch_types::Time;
use anabranch_types::lines::{Lines, Verdict};
use tokio::time::Instant;

use crate::clock;

/// The lines about one peer, or about several together. Clones count the same.
#[derive(Clone, Debug)]
pub struct Limited {
    about: String,
    /// Where all of them are, if anywhere.
    elsewhere: &'static str,
    lines: Arc<Mutex<Lines>>,
    since: Instant,
}

impl Limited {
    /// `about` says whom the lines are about, and `elsewhere` where all of them are to be had, such as "; --json has all".
    pub fn new(about: String, elsewhere: &'static str) -> Self {
        Limited { about, elsewhere, lines: Arc::default(), since: Instant::now() }
    }

    /// Calls `write`, which prints a line, unless there have been too many this minute; that is said instead, once.
    pub fn line(&self, write: impl FnOnce()) {
        let now = Time::ZERO + self.since.elapsed();
        let verdict = self.lines.lock().unwrap_or_else(PoisonError::into_inner).take(now);
        let Limited { about, elsewhere, .. } = self;
        match verdict {
            Verdict::Write { left_out } => {
                if left_out > 0 {
                    warn(&format!("{left_out} lines about {about} were left out"));
                }
                write();
            }
            Verdict::FirstLeftOut => {
                warn(&format!("further lines about {about} are left out for a while{elsewhere}"));
            }
            Verdict::LeftOut => {}
        }
    }
}

fn warn(text: &str) {
    eprintln!("anabranch: {}{text}", clock::stamp());
}
