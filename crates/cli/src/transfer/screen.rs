//! Showing a transfer while it runs, on standard error.

use std::collections::VecDeque;
use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::time::Duration;

use anabranch::Connection;
use anabranch::transfer::Role;
use indicatif::{ProgressBar, ProgressStyle};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::progress::{Asked, Counts, Progress};
use super::shares::{line, shares};
use crate::format;

/// Time over which the rate is taken.
const SPAN: Duration = Duration::from_secs(4);
/// Silence of the other side that is worth telling.
const SILENCE: Duration = Duration::from_secs(1);
/// How often a line on a terminal is brought up to date.
pub(super) const REDRAW: Duration = Duration::from_millis(250);
/// Steps of the bar.
const STEPS: u64 = 1000;

/// Shows a transfer for as long as it is kept.
#[derive(Debug)]
pub(super) struct Screen(Option<JoinHandle<()>>, Option<ProgressBar>);

impl Screen {
    /// Shows what `progress` counts and what the paths of `connection` carry.
    pub(super) fn open(
        connection: &Connection,
        role: Role,
        progress: &Arc<Progress>,
        quiet: bool,
    ) -> Self {
        if quiet {
            return Screen(None, None);
        }
        let bar = io::stderr().is_terminal().then(bar);
        let task = show(connection.clone(), role, Arc::clone(progress), bar.clone());
        Screen(Some(tokio::spawn(task)), bar)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
        if let Some(bar) = &self.1 {
            bar.finish_and_clear();
        }
    }
}

fn bar() -> ProgressBar {
    let style = ProgressStyle::with_template("  [{bar:24}] {wide_msg}");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> ");
    ProgressBar::new(STEPS).with_style(style)
}

async fn show(
    connection: Connection,
    role: Role,
    progress: Arc<Progress>,
    bar: Option<ProgressBar>,
) {
    let period = if bar.is_some() { REDRAW } else { Duration::from_secs(1) };
    let mut ticks = interval_at(Instant::now() + period, period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut rate = Rate::default();
    loop {
        let now = ticks.tick().await;
        if progress.asked() == Asked::Here {
            // The line belongs to the question.
            bar.iter().for_each(ProgressBar::finish_and_clear);
            continue;
        }
        let counts = progress.counts();
        let mut text = text(counts, rate.at(now, counts.moved));
        match connection.silence() {
            _ if progress.asked() == Asked::There => {
                text = "waiting for the other side to say yes to the files".to_owned();
            }
            Some(silence) if silence >= SILENCE => {
                let seconds = silence.as_secs();
                text = format!("{text}; nothing heard for {seconds} s, waiting for the other side");
            }
            _ => text = format!("{text}; {}", line(&shares(&connection, role))),
        }
        match &bar {
            Some(bar) => {
                if bar.is_finished() {
                    bar.reset();
                }
                bar.set_position((fraction(counts) * STEPS as f64) as u64);
                bar.set_message(text);
            }
            None => eprintln!("{text}"),
        }
    }
}

/// Bytes a second over the last [`SPAN`].
#[derive(Debug, Default)]
struct Rate(VecDeque<(Instant, u64)>);

impl Rate {
    fn at(&mut self, now: Instant, moved: u64) -> f64 {
        self.0.push_back((now, moved));
        while self.0.get(1).is_some_and(|(time, _)| now.duration_since(*time) >= SPAN) {
            self.0.pop_front();
        }
        let Some((then, before)) = self.0.front() else { return 0.0 };
        let time = now.duration_since(*then).as_secs_f64();
        if time > 0.0 { moved.saturating_sub(*before) as f64 / time } else { 0.0 }
    }
}

fn fraction(counts: Counts) -> f64 {
    let done = counts.kept + counts.moved;
    (done as f64 / counts.total.max(1) as f64).clamp(0.0, 1.0)
}

/// `43 %, 12.1 MB of 28.0 MB, 3 of 7 files, 9.3 Mb/s, 12 s left`.
fn text(counts: Counts, bytes_per_second: f64) -> String {
    let done = counts.kept + counts.moved;
    let mut parts = Vec::new();
    if counts.total > 0 {
        parts.push(format::percent(fraction(counts)));
        parts.push(format!("{} of {}", format::bytes(done), format::bytes(counts.total)));
    } else {
        parts.push(format::bytes(done));
    }
    if counts.files > 1 {
        parts.push(format!("{} of {} files", counts.stored, format::count(counts.files)));
    }
    parts.push(format!("{} Mb/s", format::mbps(bytes_per_second * 8e-6)));
    let left = counts.total.saturating_sub(done);
    if left > 0 && bytes_per_second > 0.0 {
        parts.push(format!("{} left", duration(left as f64 / bytes_per_second)));
    }
    parts.join(", ")
}

/// `12 s`, `3 min`, `5 h`.
fn duration(seconds: f64) -> String {
    match seconds {
        ..100.0 => format!("{seconds:.0} s"),
        ..6000.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.0} h", seconds / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_matters() {
        let (total, kept, moved) = (28_000_000, 2_000_000, 10_040_000);
        let counts = Counts { total, kept, moved, files: 7, stored: 3, ..Counts::default() };
        assert_eq!(
            text(counts, 1_163_000.0),
            "43 %, 12.0 MB of 28.0 MB, 3 of 7 files, 9.3 Mb/s, 14 s left"
        );
        let stream = Counts { moved: 5_000, files: 1, ..Counts::default() };
        assert_eq!(text(stream, 0.0), "5.0 kB, 0.0 Mb/s");
        assert_eq!([90.0, 600.0, 90_000.0].map(duration), ["90 s", "10 min", "25 h"]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_rate_is_that_of_the_last_seconds() {
        let (start, mut rate) = (Instant::now(), Rate::default());
        assert_eq!(rate.at(start, 0), 0.0);
        for second in 1..=10 {
            assert_eq!(rate.at(start + Duration::from_secs(second), second * 100), 100.0);
        }
        assert_eq!(rate.at(start + Duration::from_secs(14), 1000), 0.0);
    }
}
