//! Shows the progress of a transfer: as text on standard error, or as JSON.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::time::Duration;

use anabranch::Connection;
use anabranch::paths::PathStatus;
use anabranch_transfer::Role;
use indicatif::{ProgressBar, ProgressStyle};
use rustix::termios::tcgetwinsize;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use super::progress::{Asked, Counts, Progress};
use super::report::Report;
use super::shares::direction;
use crate::format;
use crate::watched::{Recent, Watched, inline, lines};

/// Time over which the rate is taken.
const SPAN: Duration = Duration::from_secs(4);
/// Silence of the other side, or of the disk, that is worth telling.
const SILENCE: Duration = Duration::from_secs(1);
/// Interval at which a line on a terminal is redrawn and paths are sampled.
pub(super) const REDRAW: Duration = Duration::from_millis(250);
/// Redraws for each line that stays, and for each event of progress.
const STAYS: u64 = 4;
/// Steps of the bar.
const STEPS: u64 = 1000;
/// Columns of the bar, with what is around it.
const BAR: usize = 29;
/// Columns that are assumed if the terminal does not tell.
const COLUMNS: usize = 80;

/// Shows a transfer for as long as it is kept.
#[derive(Debug)]
pub(super) struct Screen(Option<JoinHandle<()>>, Option<ProgressBar>);

/// A transfer to show, and how.
#[derive(Clone, Debug)]
pub(super) struct Shown {
    /// The connection whose paths are shown.
    pub(super) connection: Connection,
    pub(super) role: Role,
    pub(super) progress: Arc<Progress>,
    /// Show no text. Events are still printed as JSON if that was asked for.
    pub(super) quiet: bool,
    pub(super) report: Report,
}

impl Screen {
    /// Shows what `shown` counts and what its paths carry.
    pub(super) fn open(shown: Shown) -> Self {
        if shown.quiet && !shown.report.json {
            return Screen(None, None);
        }
        let bar = (!shown.quiet && io::stderr().is_terminal()).then(|| ProgressBar::new(STEPS));
        Screen(Some(tokio::spawn(show(shown, bar.clone()))), bar)
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

async fn show(shown: Shown, bar: Option<ProgressBar>) {
    let Shown { connection, role, progress, quiet, report } = shown;
    let mut ticks = interval_at(Instant::now() + REDRAW, REDRAW);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut rate, mut recent) = (Rate::default(), Recent::new(direction(role)));
    let mut states = BTreeMap::new();
    for tick in 1.. {
        let now = ticks.tick().await;
        let paths = recent.at(now, &connection.named_paths());
        let counts = progress.counts();
        let rate = rate.at(now, counts.moved);
        tell_states(report, &paths, &mut states);
        if tick % STAYS == 0 {
            report.progress(counts, rate, &paths);
        }
        if progress.asked() == Asked::Here {
            // The question takes the line's place.
            bar.iter().for_each(ProgressBar::finish_and_clear);
            continue;
        }
        let waiting = waiting(&progress, connection.silence());
        match &bar {
            Some(bar) => draw(bar, (counts, rate), waiting, &paths),
            None if tick % STAYS == 0 && !quiet => {
                let rest = waiting.unwrap_or_else(|| inline(&paths));
                eprintln!("{}; {rest}", parts(counts, rate).join(", "));
            }
            None => {}
        }
    }
}

/// Reason for a long wait, if there is one. `silence`: for how long the other side has been silent.
fn waiting(progress: &Progress, silence: Option<Duration>) -> Option<String> {
    if progress.asked() == Asked::There {
        return Some("waiting for the other side to accept the files".to_owned());
    }
    // Data of a lost connection must be safe on disk before another is made.
    if let Some(time) = progress.waits_for_disk().filter(|time| *time >= SILENCE) {
        return Some(format!("waiting for this machine's disk for {} s", time.as_secs()));
    }
    let silence = silence.filter(|silence| *silence >= SILENCE)?.as_secs();
    Some(format!("nothing heard for {silence} s, waiting for the other side"))
}

/// Reports the states of paths that have changed.
fn tell_states(report: Report, paths: &[Watched], states: &mut BTreeMap<String, PathStatus>) {
    for path in paths {
        if states.insert(path.name.clone(), path.state) != Some(path.state) {
            report.path(&path.name, path.state);
        }
    }
}

/// A line with the bar, where there is room for it, and one for each path.
fn draw(
    bar: &ProgressBar,
    (counts, rate): (Counts, f64),
    waiting: Option<String>,
    paths: &[Watched],
) {
    let columns = tcgetwinsize(io::stderr()).map_or(COLUMNS, |size| usize::from(size.ws_col));
    let (text, has_bar) = head(counts, rate, columns);
    let template = if has_bar { "  [{bar:24}] {msg}" } else { "  {msg}" };
    let style = ProgressStyle::with_template(template);
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> ");
    if bar.is_finished() {
        bar.reset();
    }
    let mut all = vec![text];
    all.extend(waiting.map(|waiting| format!("  {waiting}")));
    all.extend(lines(paths));
    bar.set_style(style);
    bar.set_position((fraction(counts) * STEPS as f64) as u64);
    bar.set_message(all.join("\n"));
}

/// The text beside the bar, and whether there is room for the bar.
fn head(counts: Counts, rate: f64, columns: usize) -> (String, bool) {
    let mut parts = parts(counts, rate);
    let fits =
        |parts: &[String], besides: usize| parts.join(", ").chars().count() + besides <= columns;
    if fits(&parts, BAR) {
        return (parts.join(", "), true);
    }
    // If there are too few columns, the middle parts are dropped first.
    while parts.len() > 2 && !fits(&parts, 2) {
        parts.remove(parts.len() / 2);
    }
    (parts.join(", "), false)
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
    let done = counts.there();
    (done as f64 / counts.total.max(1) as f64).clamp(0.0, 1.0)
}

/// Seconds until all is there, at this rate.
pub(super) fn seconds_left(counts: Counts, bytes_per_second: f64) -> Option<f64> {
    let left = counts.total.saturating_sub(counts.there());
    (left > 0 && bytes_per_second > 0.0).then(|| left as f64 / bytes_per_second)
}

/// `43 %, 12.1 MB of 28.0 MB, 3 of 7 files, 9.3 Mb/s, 12 s left`.
fn parts(counts: Counts, bytes_per_second: f64) -> Vec<String> {
    let done = counts.there();
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
    if let Some(seconds) = seconds_left(counts, bytes_per_second) {
        parts.push(format!("{} left", duration(seconds)));
    }
    parts
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

    const COUNTS: Counts = Counts {
        total: 28_000_000,
        kept: 2_000_000,
        moved: 10_040_000,
        files: 7,
        stored: 3,
        moved_before: 0,
    };

    #[test]
    fn a_line_says_what_matters() {
        assert_eq!(
            parts(COUNTS, 1_163_000.0).join(", "),
            "43 %, 12.0 MB of 28.0 MB, 3 of 7 files, 9.3 Mb/s, 14 s left"
        );
        let stream = Counts { moved: 5_000, files: 1, ..Counts::default() };
        assert_eq!(parts(stream, 0.0).join(", "), "5.0 kB, 0.0 Mb/s");
        assert_eq!([90.0, 600.0, 90_000.0].map(duration), ["90 s", "10 min", "25 h"]);
    }

    #[test]
    fn a_line_fits_the_terminal() {
        let (wide, bar) = head(COUNTS, 1_163_000.0, 100);
        assert!(bar && wide.chars().count() + BAR <= 100, "{wide}");
        let (text, bar) = head(COUNTS, 1_163_000.0, 80);
        assert!(!bar && text.ends_with("14 s left") && text.contains("files"), "{text}");
        let (text, bar) = head(COUNTS, 1_163_000.0, 50);
        assert!(!bar && text == "43 %, 12.0 MB of 28.0 MB, 9.3 Mb/s, 14 s left", "{text}");
        assert_eq!(head(COUNTS, 1_163_000.0, 9).0, "43 %, 14 s left");
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
