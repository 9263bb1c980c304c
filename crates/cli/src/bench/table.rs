//! Prints the results as text.

use std::io;
use std::time::Duration;

use rustix::termios::tcgetwinsize;

use super::intervals::{Datagrams, Interval, PathSpan, Span};
use super::latency::RoundTrips;
use super::report::{Direction, Report};
use crate::format;

/// Columns of standard output; `usize::MAX` where it is not a terminal.
pub(super) fn columns() -> usize {
    tcgetwinsize(io::stdout()).map_or(usize::MAX, |size| match size.ws_col {
        0 => usize::MAX,
        columns => usize::from(columns),
    })
}

/// Text of one interval: a line, or more where `width` columns are too few.
pub(super) fn line(interval: &Interval, width: usize) -> String {
    let sum = &interval.sum;
    let mut parts = vec![format!("{:5.1}-{:<5.1} s", sum.start, sum.end)];
    for (verb, span) in [("sent", sum), ("received", &interval.sum_received)] {
        if span.bytes > 0 {
            parts.push(format!("{verb} {:>8} {:>9}", format::bytes(span.bytes), rate(span)));
            parts.extend(span.datagrams.iter().flat_map(datagrams));
        }
    }
    if sum.bytes + interval.sum_received.bytes == 0 {
        parts.push("nothing".to_owned());
    }
    parts.extend(sum.omitted.then(|| "(omitted)".to_owned()));
    // A single path carries the total, which the line shows already.
    let paths: &[PathSpan] = if interval.paths.len() > 1 { &interval.paths } else { &[] };
    parts.extend(paths.iter().map(in_short));
    fit(&parts, "  ", width)
}

/// `lost 3 of 850 (0.35 %)`, `jitter 0.12 ms`; at the sender only the number of datagrams.
fn datagrams(datagrams: &Datagrams) -> Vec<String> {
    let packets = datagrams.packets;
    let Some(seen) = &datagrams.seen else { return vec![format::counted(packets, "datagram")] };
    let share = format::percent(seen.lost_percent / 100.0);
    let (lost, packets) = (format::count(seen.lost_packets), format::count(packets));
    let mut parts = vec![format!("lost {lost} of {packets} ({share})")];
    if seen.out_of_order > 0 {
        parts.push(format!("{} out of order", format::count(seen.out_of_order)));
    }
    parts.push(format!("jitter {:.2} ms", seen.jitter_ms));
    parts
}

/// Joins the parts into lines of at most `width` columns; a longer part has a line of its own.
/// Lines after the first are indented.
fn fit(parts: &[String], between: &str, width: usize) -> String {
    const INDENT: usize = 4;
    let (mut text, mut column) = (String::new(), 0);
    for (index, part) in parts.iter().enumerate() {
        let more = if index + 1 < parts.len() { between.trim_end().len() } else { 0 };
        let length = part.chars().count();
        if index == 0 {
            column = length;
        } else if column + between.len() + length + more > width {
            text.push_str(between.trim_end());
            text.push('\n');
            text.push_str(&" ".repeat(INDENT));
            column = INDENT + length;
        } else {
            text.push_str(between);
            column += between.len() + length;
        }
        text.push_str(part);
    }
    text.push('\n');
    text
}

/// `wan0 18.9 (12 lost)`: the path's rate in Mb/s, and the packets that it lost.
fn in_short(path: &PathSpan) -> String {
    let rate = format::mbps(path.bits_per_second * 1e-6);
    let lost = match path.lost_packets {
        0 => String::new(),
        lost => format!(" ({} lost)", format::count(lost)),
    };
    format!("{} {rate}{lost}", path.path)
}

/// The summary at the end, in lines of at most `width` columns where possible.
pub(super) fn summary(report: &Report, width: usize) -> String {
    let end = &report.end;
    let mut text = String::new();
    let directions = [("this side to the other", end.upload), ("the other to this", end.download)];
    for (name, direction) in directions {
        if let Some(direction) = direction {
            text.push_str(&fit(&in_direction(name, &direction), ", ", width));
        }
    }
    for path in &end.paths {
        text.push_str(&fit(&path_figures(path), ", ", width));
    }
    if let Some(latency) = &end.latency {
        text.push_str(&in_latency("idle", &latency.idle, width));
        text.push_str(&in_latency("under load", &latency.loaded, width));
    }
    if let Some(cpu) = &end.cpu_seconds_per_gb {
        let (local, remote) = (cpu.local, cpu.remote);
        let parts =
            [format!("CPU {local:.3} s/GB on this side"), format!("{remote:.3} s/GB on the other")];
        text.push_str(&fit(&parts, ", ", width));
    }
    text
}

fn in_direction(name: &str, direction: &Direction) -> Vec<String> {
    let received = &direction.received;
    let (bytes, seconds) = (format::bytes(received.bytes), received.seconds);
    let mut parts = vec![format!("{name}: {bytes} in {seconds:.2} s"), rate(received)];
    parts.extend(received.datagrams.iter().flat_map(datagrams));
    parts.push(format!("repairs {} of what was sent", format::percent(direction.repair_share)));
    parts.push(format!("{} lost", format::counted(direction.lost_packets, "packet")));
    parts
}

fn path_figures(path: &PathSpan) -> Vec<String> {
    let (rate, wire) = (bits(path.bits_per_second), bits(path.wire_bits_per_second));
    vec![
        format!("{}: {rate} ({wire} on the wire)", path.path),
        format!("{} lost", format::counted(path.lost_packets, "packet")),
        format!("RTT {}", format::millis(Duration::from_micros(path.rtt_us))),
    ]
}

/// Round-trip times of small messages, in words.
fn in_latency(when: &str, round_trips: &Option<RoundTrips>, width: usize) -> String {
    let Some(seen) = round_trips else {
        return fit(&[format!("round trip {when}: no message came back")], ", ", width);
    };
    let ms = |ms: f64| format::millis(Duration::from_secs_f64(ms * 1e-3));
    let rpm = format::count(seen.round_trips_per_minute as u64);
    let parts = [
        format!("round trip {when}: median {}", ms(seen.median_ms)),
        format!("95 % {}", ms(seen.p95_ms)),
        format!("max {}", ms(seen.max_ms)),
        format!("{rpm} per minute"),
    ];
    fit(&parts, ", ", width)
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
    use super::super::inbox::Seen;
    use super::super::intervals::Totals;
    use super::*;

    #[test]
    fn rates_have_a_fitting_unit() {
        assert_eq!(bits(6_180_000_000.0), "6.18 Gb/s");
        assert_eq!(bits(47_300_000.0), "47.3 Mb/s");
    }

    fn totals(sent: u64) -> Totals {
        Totals { streams: vec![(sent, 0)], datagrams: None }
    }

    #[test]
    fn a_line_says_nothing_of_a_direction_without_bytes() {
        let start = Interval::start(totals(0), &[]);
        let line = super::line(&start.next(1.0, totals(1_000_000), &[]), usize::MAX);
        assert_eq!(line, "  0.0-1.0   s  sent   1.0 MB  8.0 Mb/s\n");
        let nothing = super::line(&start.next(1.0, totals(0), &[]).omitted(), usize::MAX);
        assert!(nothing.ends_with("nothing  (omitted)\n"), "{nothing}");
    }

    #[test]
    fn datagrams_have_their_figures() {
        let seen = Seen { received: 840, lost: 10, out_of_order: 2, jitter: 0.000_123 };
        let parts = datagrams(&Datagrams::seen(&seen));
        assert_eq!(parts.join(", "), "lost 10 of 850 (1.2 %), 2 out of order, jitter 0.12 ms");
        assert_eq!(datagrams(&Datagrams::sent(1000)), ["1,000 datagrams"]);
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let parts = ["the first part", "second", "third", "a fourth that is long"];
        let parts = parts.map(str::to_owned);
        let whole = "the first part, second, third, a fourth that is long\n";
        assert_eq!(fit(&parts, ", ", usize::MAX), whole);
        assert_eq!(fit(&parts, ", ", whole.len() - 1), whole);
        for width in 22..whole.len() {
            let text = fit(&parts, ", ", width);
            let widest = text.lines().map(|line| line.trim_end().len()).max();
            assert!(widest <= Some(width.max(25)), "{width}: {text}");
            let words: Vec<&str> = text.split_whitespace().collect();
            assert_eq!(words.join(" "), whole.trim_end());
        }
    }
}
