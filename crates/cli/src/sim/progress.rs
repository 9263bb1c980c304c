//! Shows the progress of runs on standard error.

use std::io::{self, IsTerminal};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::pool::Done;

/// Steps of the bar.
const STEPS: u64 = 1000;
/// Time between two lines where there is no terminal.
const BETWEEN_LINES: Duration = Duration::from_secs(5);

/// Where progress is shown.
pub(super) struct Progress {
    total: usize,
    started: Instant,
    /// A bar on a terminal; elsewhere `None`, and a line is printed now and then, the last one at `last`.
    bar: Option<ProgressBar>,
    last: Instant,
}

impl Progress {
    /// Shows `total` runs, a bar if standard error is a terminal.
    pub(super) fn open(total: usize) -> Self {
        let bar = io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(Some(STEPS), ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("  [{bar:30}] {wide_msg}");
            let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
            bar.with_style(style.progress_chars("=> "))
        });
        let now = now();
        Progress { total, started: now, bar, last: now }
    }

    /// Shows the progress.
    pub(super) fn show(&mut self, done: Done) {
        let now = now();
        let text = line(done, self.total, now.duration_since(self.started));
        match &self.bar {
            Some(bar) => {
                let share = done.work / self.total.max(1) as f64;
                bar.set_position((share.clamp(0.0, 1.0) * STEPS as f64) as u64);
                bar.set_message(text);
            }
            None if now.duration_since(self.last) >= BETWEEN_LINES => {
                self.last = now;
                eprintln!("{text}");
            }
            None => {}
        }
    }

    /// Removes the bar.
    pub(super) fn close(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "the estimate is about real time")]
fn now() -> Instant {
    Instant::now()
}

/// `3 of 20 runs, 17 %, 12 s left`.
fn line(done: Done, total: usize, elapsed: Duration) -> String {
    let share = (done.work / total.max(1) as f64).clamp(0.0, 1.0);
    let mut text = format!("{} of {total} runs, {:.0} %", done.runs, share * 100.0);
    // An earlier estimate would fluctuate too much.
    if share >= 0.01 && elapsed >= Duration::from_millis(500) && done.runs < total {
        text += &format!(", {} left", rounded(elapsed.as_secs_f64() * (1.0 - share) / share));
    }
    text
}

/// `12 s`, `4 min`, `2 h 5 min`.
fn rounded(seconds: f64) -> String {
    let seconds = seconds.clamp(0.0, 1e9) as u64;
    match seconds {
        0..100 => format!("{} s", seconds.max(1)),
        100..5400 => format!("{} min", (seconds + 30) / 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_are_short() {
        let done = Done { runs: 3, work: 5.0 };
        assert_eq!(line(done, 20, Duration::from_secs(10)), "3 of 20 runs, 25 %, 30 s left");
        assert_eq!(line(done, 20, Duration::ZERO), "3 of 20 runs, 25 %");
        assert_eq!(
            line(Done { runs: 0, work: 0.0 }, 20, Duration::from_secs(9)),
            "0 of 20 runs, 0 %"
        );
        let all = Done { runs: 20, work: 20.0 };
        assert_eq!(line(all, 20, Duration::from_secs(9)), "20 of 20 runs, 100 %");
        assert_eq!([0.2, 99.0, 130.0, 7500.0].map(rounded), ["1 s", "99 s", "2 min", "2 h 5 min"]);
    }
}
