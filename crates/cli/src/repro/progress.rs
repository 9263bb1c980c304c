//! Shows the progress of runs on standard error.

use std::io::{self, IsTerminal};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anabranch_repro::Progress;
use indicatif::{ProgressBar, ProgressStyle};

/// A bar on a terminal; elsewhere a line now and then.
pub(super) struct Bar {
    kind: Kind,
    started: Instant,
}

enum Kind {
    Terminal(ProgressBar),
    Lines(Mutex<Option<Instant>>),
}

/// Least time between two lines.
const QUIET: Duration = Duration::from_secs(5);

#[allow(clippy::disallowed_methods, reason = "the estimate is about real time")]
impl Bar {
    /// Nothing is shown before the first run is finished.
    pub(super) fn new() -> Self {
        let kind = if io::stderr().is_terminal() {
            let style = ProgressStyle::with_template("{bar:40} {pos} of {len} runs, {msg}");
            let bar = ProgressBar::new(0);
            Kind::Terminal(match style {
                Ok(style) => bar.with_style(style),
                Err(_) => bar,
            })
        } else {
            Kind::Lines(Mutex::new(None))
        };
        Bar { kind, started: Instant::now() }
    }

    /// Shows how far the work is.
    pub(super) fn show(&self, progress: Progress) {
        let left = self.left(progress);
        match &self.kind {
            Kind::Terminal(bar) => {
                bar.set_length(progress.total as u64);
                bar.set_position(progress.done as u64);
                bar.set_message(left);
            }
            Kind::Lines(last) => {
                let Ok(mut last) = last.lock() else { return };
                let due = last.is_none_or(|last| last.elapsed() >= QUIET);
                if due || progress.done == progress.total {
                    *last = Some(Instant::now());
                    eprintln!("{} of {} runs, {left}", progress.done, progress.total);
                }
            }
        }
    }

    /// Estimate of the time that is left, from the runs that were made now, without those kept from before.
    fn left(&self, progress: Progress) -> String {
        let made = progress.done.saturating_sub(progress.found);
        let open = progress.total.saturating_sub(progress.done);
        if made == 0 {
            return format!("{} kept from before", progress.found);
        }
        let seconds = self.started.elapsed().as_secs_f64() / made as f64 * open as f64;
        match seconds.round() as u64 {
            seconds if seconds >= 120 => format!("about {} min left", seconds.div_ceil(60)),
            seconds => format!("about {seconds} s left"),
        }
    }

    /// Removes the bar.
    pub(super) fn finish(&self) {
        if let Kind::Terminal(bar) = &self.kind {
            bar.finish_and_clear();
        }
    }
}
