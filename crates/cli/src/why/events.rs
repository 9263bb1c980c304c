//! Describes one event in one sentence.

use std::time::Duration;

use anabranch_core::observe::waits;
use anabranch_results::trace::Symbol;

use super::summary::path_name;
use crate::format;
use crate::record::{Entry, Header, Line};

/// The event with its time, as `--events` prints it.
pub(super) fn describe(header: &Header, line: &Line) -> String {
    let seconds = Duration::from_nanos(line.t).as_secs_f64();
    format!("{seconds:>11.6} s  {}", sentence(header, line))
}

/// Describes what the scheduler sent.
fn scheduled(what: &str, symbol: Symbol) -> String {
    match what {
        "source" => symbol.to_string(),
        "repair" => format!("a repair of the block from {symbol}"),
        "resend" => format!("{symbol} again"),
        other => format!("{other} {symbol}"),
    }
}

/// How long nothing was sent, and why.
fn awaited(nanos: u64, what: &str) -> String {
    let why = match what {
        waits::APPLICATION => "the application gave nothing to send".to_owned(),
        waits::READER => "the receiver's application had not read what it has".to_owned(),
        waits::CREDIT => "data in flight had used up the receiver's credit".to_owned(),
        waits::ACKNOWLEDGEMENTS => {
            "the congestion windows were full, and acknowledgements were due".to_owned()
        }
        other => format!("waiting for {other}"),
    };
    format!("nothing was sent for {}: {why}", format::millis(Duration::from_nanos(nanos)))
}

fn sentence(header: &Header, line: &Line) -> String {
    let name = |path: &u32| path_name(header, *path);
    match &line.entry {
        Entry::Scheduled { path, what, symbol, reason } => {
            format!("{}: sent {} ({reason})", name(path), scheduled(what, *symbol))
        }
        Entry::Held { path, until, reason } => {
            let wait = Duration::from_nanos(until.saturating_sub(line.t));
            format!("{}: held back for {} ({reason})", name(path), format::millis(wait))
        }
        Entry::BlockClosed { first, sources, repairs, loss_permille } => format!(
            "block from {first} closed with {}, {} planned for an expected loss of {}",
            format::counted(u64::from(*sources), "symbol"),
            format::counted(u64::from(*repairs), "repair"),
            format::percent(f64::from(*loss_permille) / 1e3),
        ),
        Entry::RepairsDue { first, count } => format!(
            "block from {first} lacks symbols: {} more due",
            format::counted(u64::from(*count), "repair")
        ),
        Entry::Lost { path, packets } => {
            format!("{}: {} lost", name(path), format::counted(u64::from(*packets), "packet"))
        }
        Entry::Timeout { path, consecutive: 0 | 1 } => {
            format!("{}: the probe timer fired", name(path))
        }
        Entry::Timeout { path, consecutive } => {
            format!("{}: the probe timer fired, {consecutive} times in a row", name(path))
        }
        Entry::Reinjected { path, packets } => format!(
            "{}: other paths may carry the content of {} now",
            name(path),
            format::counted(u64::from(*packets), "packet")
        ),
        Entry::PathMtu { path, bytes, reason } => {
            format!("{}: packets of up to {bytes} bytes from now on ({reason})", name(path))
        }
        Entry::SharedBottleneck { path, with, shared } => {
            let verb = if *shared { "shares" } else { "no longer shares" };
            format!("{}: {verb} a bottleneck with {}", name(path), name(with))
        }
        Entry::PathState { path, state, reason } => {
            format!("{}: became {state} ({reason})", name(path))
        }
        Entry::Congestion { path, cwnd, pacing_bps, phase } => {
            let pacing = match pacing_bps {
                0 => String::new(),
                bps => format!(", paced at {} Mb/s", format::mbps(*bps as f64 / 1e6)),
            };
            format!("{}: window {}{pacing} ({phase})", name(path), format::bytes(*cwnd))
        }
        Entry::Waited { since, what } => awaited(line.t.saturating_sub(*since), what),
        Entry::End { missed: 0 } => "the recording ends".to_owned(),
        Entry::End { missed } => format!(
            "the recording ends; {} came too fast to be recorded",
            format::counted(*missed, "event")
        ),
    }
}
