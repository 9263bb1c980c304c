//! The table of paths, as text.

use std::time::Duration;

use crate::format;
use crate::rows::{BAR, bar};

/// A path's line.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) name: String,
    /// Rate at the far end, headers included, and the link's rate.
    pub(super) mbps: f64,
    pub(super) rate_mbps: f64,
    /// Smoothed round-trip time, once there is one.
    pub(super) rtt: Option<Duration>,
    /// Share of packets lost at random.
    pub(super) loss: f64,
    /// Packets dropped by the queue.
    pub(super) drops: u64,
    /// Share of all bytes that arrived.
    pub(super) share: f64,
    /// Congestion marks.
    pub(super) marks: u64,
}

/// The headings; `width` is that of the longest name.
pub(super) fn headings(width: usize) -> String {
    format!(
        "  {:width$}  {:<BAR$}  {:>14}  {:>8}  {:>7}  {:>7}  {:>6}  {:>6}",
        "path", "", "rate (Mb/s)", "RTT", "loss", "dropped", "share", "marks"
    )
}

/// A path's line; `width` is that of the longest name.
pub(super) fn line(row: &Row, width: usize) -> String {
    let rate = format!("{} of {}", format::mbps(row.mbps), format::mbps(row.rate_mbps));
    let rtt = row.rtt.map_or_else(|| "-".to_owned(), format::millis);
    format!(
        "  {:width$}  {}  {rate:>14}  {rtt:>8}  {:>7}  {:>7}  {:>6}  {:>6}",
        row.name,
        bar(row.mbps / row.rate_mbps.max(1e-9)),
        format::percent(row.loss),
        row.drops,
        format::percent(row.share),
        row.marks,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stand_under_their_headings() {
        let row = Row {
            name: "sat".to_owned(),
            mbps: 18.94,
            rate_mbps: 20.0,
            rtt: Some(Duration::from_micros(61_700)),
            loss: 0.0213,
            drops: 4,
            share: 0.371,
            marks: 12,
        };
        let heading = headings(4);
        let text = line(&row, 4);
        assert_eq!(heading.chars().count(), text.chars().count());
        assert_eq!(
            text,
            "  sat   ███████████▍    18.9 of 20.0     62 ms    2.1 %        4    37 %      12"
        );
        assert!(line(&Row { rtt: None, ..row }, 4).contains(" -  "));
    }
}
