//! The figures for people.

use std::fmt::Write;
use std::time::Duration;

use super::report::{Direction, Interval, PathSpan, Report, Span};
use crate::format;

/// One interval, a line.
pub(super) fn line(interval: &Interval) -> String {
    let sum = &interval.sum;
    let mut text = format!("{:5.1}-{:<5.1} s", sum.start, sum.end);
    for (arrow, span) in [("sent", sum), ("received", &interval.sum_received)] {
        if span.bytes > 0 {
            let _ = write!(text, "  {arrow} {:>8} {:>9}", format::bytes(span.bytes), rate(span));
        }
    }
    if sum.bytes + interval.sum_received.bytes == 0 {
        text.push_str("   nothing");
    }
    // A single path carries the total, which stands beside.
    let paths: &[PathSpan] = if interval.paths.len() > 1 { &interval.paths } else { &[] };
    let paths: Vec<String> = paths.iter().map(in_short).collect();
    let _ = writeln!(text, "   {}", paths.join("  "));
    text.trim_end().to_owned() + "\n"
}

/// `wan0 18.9`, and what was lost.
fn in_short(path: &PathSpan) -> String {
    let rate = format::mbps(path.bits_per_second * 1e-6);
    let lost = match path.lost_packets {
        0 => String::new(),
        lost => format!(" ({} lost)", format::count(lost)),
    };
    format!("{} {rate}{lost}", path.path)
}

/// The end of the report.
pub(super) fn summary(report: &Report) -> String {
    let end = &report.end;
    let mut text = String::new();
    let directions = [("this side to the other", end.upload), ("the other to this", end.download)];
    for (name, direction) in directions {
        if let Some(direction) = direction {
            text.push_str(&in_direction(name, &direction));
        }
    }
    for path in &end.paths {
        let _ = writeln!(text, "{}", path_figures(path));
    }
    if let Some(cpu) = &end.cpu_seconds_per_gb {
        let (local, remote) = (cpu.local, cpu.remote);
        let _ = writeln!(text, "CPU {local:.3} s/GB on this side, {remote:.3} s/GB on the other");
    }
    text
}

fn in_direction(name: &str, direction: &Direction) -> String {
    let received = &direction.received;
    format!(
        "{name}: {} in {:.2} s, {}; repairs {} of what was sent, {} lost\n",
        format::bytes(received.bytes),
        received.seconds,
        rate(received),
        format::percent(direction.repair_share),
        format::counted(direction.lost_packets, "packet"),
    )
}

fn path_figures(path: &PathSpan) -> String {
    format!(
        "{}: {} ({} on the wire), {} lost, RTT {}",
        path.path,
        bits(path.bits_per_second),
        bits(path.wire_bits_per_second),
        format::counted(path.lost_packets, "packet"),
        format::millis(Duration::from_micros(path.rtt_us)),
    )
}

fn rate(span: &Span) -> String {
    bits(span.bits_per_second)
}

/// `6.18 Gb/s`, or megabits below one gigabit.
fn bits(rate: f64) -> String {
    if rate >= 1e9 {
        format!("{:.2} Gb/s", rate * 1e-9)
    } else {
        format!("{} Mb/s", format::mbps(rate * 1e-6))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_a_fitting_unit() {
        assert_eq!(bits(6_180_000_000.0), "6.18 Gb/s");
        assert_eq!(bits(47_300_000.0), "47.3 Mb/s");
    }

    #[test]
    fn a_line_says_nothing_of_a_direction_without_bytes() {
        let start = Interval::start(vec![(0, 0)], &[]);
        let line = super::line(&start.next(1.0, vec![(1_000_000, 0)], &[]));
        assert_eq!(line, "  0.0-1.0   s  sent   1.0 MB  8.0 Mb/s\n");
        let nothing = super::line(&start.next(1.0, vec![(0, 0)], &[]));
        assert!(nothing.contains("nothing"), "{nothing}");
    }
}
