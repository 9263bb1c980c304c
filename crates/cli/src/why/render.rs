//! Prints the summary of a recording.

use std::fmt::Write;
use std::time::Duration;

use super::cause::LEAST;
use super::summary::{BlockCounts, CongestionReport, PathReport, Report, Tally};
use crate::format::{bytes, count, counted, duration, mbps, percent};

/// Rows of the table over time.
const ROWS: u64 = 10;
/// Changes of state that are listed.
const CHANGES: usize = 20;

/// The whole summary.
pub(super) fn text(report: &Report) -> String {
    let mut text = String::new();
    opening(&mut text, report);
    about_causes(&mut text, report);
    for path in &report.paths {
        about_path(&mut text, path);
    }
    about_states(&mut text, report);
    about_blocks(&mut text, report);
    text
}

fn opening(text: &mut String, report: &Report) {
    let what = match report.seed {
        Some(seed) => format!("profile {}, seed {seed}", report.profile),
        // The title of a qlog file.
        None => report.profile.clone(),
    };
    let _ = writeln!(
        text,
        "Recorded by anabranch {}: {what}, {}, {}.",
        report.version,
        spell(report.seconds),
        counted(report.events, "event")
    );
    if report.missed > 0 {
        let _ = writeln!(
            text,
            "{} could not be recorded, because the disk was too slow.",
            counted(report.missed, "event")
        );
    }
    if !report.complete {
        let _ = writeln!(text, "The recording was cut off: its end is missing.");
    }
}

/// Writes why the sender was no faster.
fn about_causes(text: &mut String, report: &Report) {
    if report.paths.iter().all(|path| path.symbols == 0) {
        let _ = writeln!(text, "\nThis side sent no data: see what the other side recorded.");
        return;
    }
    let Some((largest, others)) = report.causes.split_first() else {
        let _ = writeln!(
            text,
            "\nNothing recorded made it slower by {:.0} % or more: no pauses, no path down or held back, few repairs.",
            LEAST * 100.0
        );
        return;
    };
    let _ = writeln!(text, "\nWhy it was no faster: {}.", largest.sentence);
    for cause in others {
        let _ = writeln!(text, "  Also: {}.", cause.sentence);
    }
}

fn about_path(text: &mut String, path: &PathReport) {
    let symbols = counted(path.symbols, "symbol");
    let _ = writeln!(text, "\nPath {}: {symbols}, {} of all.", path.name, percent(path.share));
    for sent in &path.sent {
        let what = match sent.name.as_str() {
            "source" => "new data",
            "repair" => "repairs",
            "resend" => "sent again",
            other => other,
        };
        line(text, what, sent);
    }
    list(text, "Reasons for sending there:", &path.reasons);
    list(text, "Times held back:", &path.held);
    troubles(text, path);
    if let Some(congestion) = &path.congestion {
        about_congestion(text, congestion);
    }
}

fn troubles(text: &mut String, path: &PathReport) {
    let mut parts = Vec::new();
    if path.lost_packets > 0 {
        parts.push(format!("{} declared lost", counted(path.lost_packets, "packet")));
    }
    if path.timeouts > 0 {
        let row = match path.timeouts_in_a_row {
            0 | 1 => String::new(),
            n => format!(" (up to {n} in a row)"),
        };
        parts.push(format!("{}{row}", counted(path.timeouts, "probe timeout")));
    }
    if path.reinjected_packets > 0 {
        let packets = counted(path.reinjected_packets, "packet");
        parts.push(format!("{packets} taken over by other paths"));
    }
    if !parts.is_empty() {
        let _ = writeln!(text, "  Trouble: {}.", parts.join(", "));
    }
}

fn about_congestion(text: &mut String, congestion: &CongestionReport) {
    let pacing = match congestion.pacing_mbps_last {
        rate if rate > 0.0 => format!(", paced at {} Mb/s", mbps(rate)),
        _ => String::new(),
    };
    let _ = writeln!(
        text,
        "  Congestion window: {} to {}, at the end {}{pacing}.",
        bytes(congestion.window_min),
        bytes(congestion.window_max),
        bytes(congestion.window_last)
    );
    let phases = congestion.phases.iter();
    let phases: Vec<String> =
        phases.map(|phase| format!("{} {}", phase.name, spell(phase.seconds))).collect();
    if phases.len() > 1 {
        let _ = writeln!(text, "  Phases: {}.", phases.join(", "));
    }
}

/// A time of a report; in a damaged file, it can have any value.
fn spell(seconds: f64) -> String {
    duration(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}

fn about_states(text: &mut String, report: &Report) {
    if report.state_changes.is_empty() {
        let _ = writeln!(text, "\nNo path changed its state.");
        return;
    }
    let _ = writeln!(text, "\nPath states:");
    for change in report.state_changes.iter().take(CHANGES) {
        let _ = writeln!(
            text,
            "  {:>8.3} s  {} became {}: {}",
            change.seconds, change.path, change.state, change.reason
        );
    }
    let more = report.state_changes.len().saturating_sub(CHANGES);
    if more > 0 {
        let _ = writeln!(text, "  and {more} more changes; --events lists them all.");
    }
}

fn about_blocks(text: &mut String, report: &Report) {
    let all = &report.blocks;
    if all.closed > 0 {
        let _ = writeln!(
            text,
            "\nCoding: {} of {} symbols on average; {} repairs planned ahead ({} of the data) for an \
             expected loss of {}, {} more asked for when symbols were missing; {} sent.",
            counted(all.closed, "block"),
            count(all.sources / all.closed.max(1)),
            count(all.repairs_planned),
            percent(all.repairs_planned as f64 / all.sources.max(1) as f64),
            percent(all.mean_loss()),
            count(all.repairs_due),
            counted(all.repairs_sent, "repair"),
        );
    }
    let Some(last) = report.timeline.last() else { return };
    let step = (last.from + 1).div_ceil(ROWS).max(1);
    let _ = writeln!(
        text,
        "\n  seconds     blocks  planned      due  repairs   resent     lost  expected loss"
    );
    let mut row: Option<(u64, BlockCounts)> = None;
    for interval in &report.timeline {
        let from = interval.from / step * step;
        match &mut row {
            Some((start, sums)) if *start == from => sums.merge(&interval.blocks),
            _ => {
                table_row(text, row.take(), step);
                row = Some((from, interval.blocks));
            }
        }
    }
    table_row(text, row, step);
}

fn table_row(text: &mut String, row: Option<(u64, BlockCounts)>, step: u64) {
    let Some((from, sums)) = row else { return };
    let loss = if sums.closed > 0 { percent(sums.mean_loss()) } else { "-".to_owned() };
    let span = if step == 1 { from.to_string() } else { format!("{from}-{}", from + step - 1) };
    let _ = writeln!(
        text,
        "  {span:<9}{:>10}{:>9}{:>9}{:>9}{:>9}{:>9}{:>15}",
        count(sums.closed),
        count(sums.repairs_planned),
        count(sums.repairs_due),
        count(sums.repairs_sent),
        count(sums.resent),
        count(sums.lost_packets),
        loss,
    );
}

fn list(text: &mut String, title: &str, tallies: &[Tally]) {
    if tallies.is_empty() {
        return;
    }
    let _ = writeln!(text, "  {title}");
    for tally in tallies {
        line(text, &tally.name, tally);
    }
}

fn line(text: &mut String, name: &str, tally: &Tally) {
    let _ = writeln!(text, "  {:>11} {:>6}  {name}", count(tally.count), percent(tally.share));
}
