//! Shows the progress of a transfer on standard error.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::plan::{Goal, Plan};
use super::table::{headings, line};
use super::watch::Reading;
use crate::format;
use crate::rows::{Rows, name_width};

/// Where progress is shown.
pub(super) struct Screen {
    goal: Goal,
    width: usize,
    kind: Kind,
}

enum Kind {
    /// A terminal: lines that are drawn again.
    Terminal { rows: Rows, bar: ProgressBar },
    /// Anything else: a line a second.
    Lines,
}

/// Steps of the bar.
const STEPS: u64 = 1000;

impl Screen {
    /// The screen for `plan`; a live table if standard error is a terminal.
    pub(super) fn open(plan: &Plan) -> Self {
        let width = name_width("path", plan.paths.iter().map(|path| path.forward.name.as_str()));
        eprintln!(
            "anabranch demo: profile {}, seed {}, {} on loopback UDP",
            plan.profile_name,
            plan.seed,
            format::counted(plan.paths.len() as u64, "emulated link")
        );
        let kind = if io::stderr().is_terminal() {
            terminal(&headings(width), plan.paths.len())
        } else {
            Kind::Lines
        };
        Screen { goal: plan.goal.clone(), width, kind }
    }

    /// How often to [show](Self::show) something.
    pub(super) fn interval(&self) -> Duration {
        match self.kind {
            Kind::Terminal { .. } => Duration::from_millis(150),
            Kind::Lines => Duration::from_secs(1),
        }
    }

    /// Shows the transfer as it is now.
    pub(super) fn show(&mut self, reading: &Reading) {
        match &self.kind {
            Kind::Terminal { rows, bar } => {
                rows.show(reading.rows.iter().map(|row| line(row, self.width)));
                bar.set_position((fraction(&self.goal, reading) * STEPS as f64) as u64);
                bar.set_message(progress(&self.goal, reading));
            }
            Kind::Lines => eprintln!("{}", plain(&self.goal, reading)),
        }
    }

    /// Removes the live table; the report follows in its place.
    pub(super) fn close(&self) {
        if let Kind::Terminal { rows, .. } = &self.kind {
            rows.clear();
        }
    }
}

fn terminal(headings: &str, paths: usize) -> Kind {
    let rows = Rows::open(headings, paths);
    let style = ProgressStyle::with_template("  [{bar:30}] {wide_msg}");
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> ");
    let bar = rows.add(ProgressBar::new(STEPS).with_style(style));
    Kind::Terminal { rows, bar }
}

/// How much is done, in `[0, 1]`.
fn fraction(goal: &Goal, reading: &Reading) -> f64 {
    let fraction = match (goal, reading.size) {
        (Goal::Time(time), _) => reading.elapsed.as_secs_f64() / time.as_secs_f64().max(1e-9),
        (_, Some(size)) => reading.arrived as f64 / size.max(1) as f64,
        (_, None) => 0.0,
    };
    fraction.clamp(0.0, 1.0)
}

fn progress(goal: &Goal, reading: &Reading) -> String {
    let seconds = reading.elapsed.as_secs_f64();
    let (arrived, rate) = (format::bytes(reading.arrived), format::mbps(reading.goodput_mbps));
    match (goal, reading.size) {
        (Goal::Time(time), _) if reading.elapsed <= *time => {
            format!("{seconds:.1} of {:.1} s, {arrived}, {rate} Mb/s", time.as_secs_f64())
        }
        (Goal::Time(time), _) => {
            let late = seconds - time.as_secs_f64();
            format!("sending finished; {late:.1} s draining, {arrived}, {rate} Mb/s")
        }
        (_, Some(size)) => {
            format!("{arrived} of {}, {seconds:.1} s, {rate} Mb/s", format::bytes(size))
        }
        (_, None) => format!("{arrived}, {seconds:.1} s, {rate} Mb/s"),
    }
}

/// A reading on one line.
fn plain(goal: &Goal, reading: &Reading) -> String {
    let mut text = progress(goal, reading);
    for row in &reading.rows {
        let rtt = row.rtt.map_or_else(|| "-".to_owned(), format::millis);
        let (rate, loss) = (format::mbps(row.mbps), format::percent(row.loss));
        text += &format!(" | {}: {rate} Mb/s, {rtt}, {loss} lost", row.name);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::table::Row;
    use super::*;

    fn reading() -> Reading {
        let row = Row {
            name: "lte".to_owned(),
            mbps: 11.0,
            rate_mbps: 12.0,
            rtt: None,
            loss: 0.05,
            drops: 0,
            share: 1.0,
            marks: 0,
        };
        Reading {
            elapsed: Duration::from_millis(2500),
            arrived: 3_000_000,
            size: None,
            goodput_mbps: 10.04,
            rows: vec![row],
        }
    }

    #[test]
    fn progress_is_measured_against_the_goal() {
        let timed = Goal::Time(Duration::from_secs(10));
        assert_eq!(fraction(&timed, &reading()), 0.25);
        assert_eq!(
            plain(&timed, &reading()),
            "2.5 of 10.0 s, 3.0 MB, 10.0 Mb/s | lte: 11.0 Mb/s, -, 5.0 % lost"
        );
        let sized = Reading { size: Some(6_000_000), ..reading() };
        assert_eq!(fraction(&Goal::Size(6_000_000), &sized), 0.5);
        assert_eq!(progress(&Goal::Size(6_000_000), &sized), "3.0 MB of 6.0 MB, 2.5 s, 10.0 Mb/s");
        let late = Reading { elapsed: Duration::from_secs(13), ..reading() };
        assert_eq!(progress(&timed, &late), "sending finished; 3.0 s draining, 3.0 MB, 10.0 Mb/s");
        let empty = Reading { size: Some(0), arrived: 0, ..reading() };
        assert_eq!(fraction(&Goal::Size(0), &empty), 0.0);
    }
}
