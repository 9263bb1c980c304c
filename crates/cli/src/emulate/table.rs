//! The links as a table, with a line for each and columns for both directions.

use std::collections::VecDeque;
use std::time::Duration;

use anabranch_emulate::LinkStats;
use anabranch_sim::link::LinkCounters;
use anabranch_types::Time;

use crate::format;
use crate::rows::{BAR, bar, name_width};

/// The screen shows rates and losses over this time.
const SPAN: Duration = Duration::from_secs(1);
/// Suffix of the name of a link's reverse direction.
const REVERSE: &str = ".reverse";

/// Looks at the links repeatedly.
#[derive(Clone)]
pub(super) struct Watch {
    rows: Vec<Pair>,
    width: usize,
    /// Readings of the last [`SPAN`], oldest first.
    past: VecDeque<(Time, Vec<LinkCounters>)>,
}

/// Numbers of a link's two directions.
#[derive(Clone)]
struct Pair {
    name: String,
    there: usize,
    back: Option<usize>,
}

/// A link over some time.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) name: String,
    pub(super) there: Way,
    pub(super) back: Option<Way>,
}

/// One direction of a link over some time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Way {
    /// Rate that arrived, and the link's rate now, Mb/s.
    pub(super) mbps: f64,
    pub(super) rate_mbps: f64,
    /// Time until what is queued now has left.
    pub(super) queue: Duration,
    /// Share of packets lost at random.
    pub(super) loss: f64,
    /// Packets dropped for any other reason, and congestion marks, since the start.
    pub(super) drops: u64,
    pub(super) marks: u64,
}

impl Watch {
    /// Looks at links of these names, in their order.
    pub(super) fn new(names: &[String]) -> Self {
        let find = |name: &str| names.iter().position(|other| other == name);
        let is_back = |name: &str| name.strip_suffix(REVERSE).and_then(find).is_some();
        let pair = |(there, name): (usize, &String)| {
            let back = find(&format!("{name}{REVERSE}"));
            (!is_back(name)).then(|| Pair { name: name.clone(), there, back })
        };
        let rows: Vec<Pair> = names.iter().enumerate().filter_map(pair).collect();
        let width = name_width("link", rows.iter().map(|pair| pair.name.as_str()));
        Watch { rows, width, past: VecDeque::new() }
    }

    /// How many lines the table has below its headings.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn headings(&self) -> String {
        format!(
            "  {:width$}  {:<BAR$}  {:>14}  {:>6}  {:>7}  {:>7}  {:>7}  {:>6}",
            "link",
            "",
            "there (Mb/s)",
            "back",
            "queue",
            "loss",
            "dropped",
            "marks",
            width = self.width
        )
    }

    /// The links over the last second.
    pub(super) fn latest(&mut self, now: Time, links: &[LinkStats]) -> Vec<Row> {
        // Of the readings that are at least a `SPAN` old only the newest is kept.
        while self.past.get(1).is_some_and(|(next, _)| now.since(*next) >= SPAN) {
            self.past.pop_front();
        }
        let start = (Time::ZERO, Vec::new());
        let (then, before) = self.past.front().unwrap_or(&start);
        let rows = self.rows(now.since(*then), before, links);
        self.past.push_back((now, links.iter().map(|link| link.link).collect()));
        rows
    }

    /// The links over all the time until `now`.
    pub(super) fn whole(&self, now: Time, links: &[LinkStats]) -> Vec<Row> {
        self.rows(now.since(Time::ZERO), &[], links)
    }

    fn rows(&self, time: Duration, before: &[LinkCounters], links: &[LinkStats]) -> Vec<Row> {
        let way = |link: usize| {
            let before = before.get(link).copied().unwrap_or_default();
            links.get(link).map(|stats| Way::new(time, &before, stats)).unwrap_or_default()
        };
        let row = |pair: &Pair| Row {
            name: pair.name.clone(),
            there: way(pair.there),
            back: pair.back.map(way),
        };
        self.rows.iter().map(row).collect()
    }

    /// A row's line in the table.
    pub(super) fn line(&self, row: &Row) -> String {
        let Row { there, back, .. } = row;
        let both = back.unwrap_or_default();
        format!(
            "  {:width$}  {}  {:>14}  {:>6}  {:>7}  {:>7}  {:>7}  {:>6}",
            row.name,
            bar(there.mbps / there.rate_mbps.max(1e-9)),
            format!("{} of {}", format::mbps(there.mbps), format::mbps(there.rate_mbps)),
            back.map_or_else(|| "-".to_owned(), |back| format::mbps(back.mbps)),
            format::millis(there.queue.max(both.queue)),
            format::percent(there.loss),
            there.drops + both.drops,
            there.marks + both.marks,
            width = self.width
        )
    }
}

impl Way {
    fn new(time: Duration, before: &LinkCounters, stats: &LinkStats) -> Self {
        let now = &stats.link;
        let seconds = time.as_secs_f64().max(1e-9);
        let lost = (now.lost_random - before.lost_random) as f64;
        let served = (now.packets_serialised - before.packets_serialised).max(1) as f64;
        Way {
            mbps: (now.bytes_delivered - before.bytes_delivered) as f64 * 8e-6 / seconds,
            rate_mbps: stats.rate.as_mbps(),
            queue: stats.rate.time_to_send(stats.queue_bytes),
            loss: lost / served,
            drops: now.dropped_by_queue()
                + now.dropped_blackout
                + now.dropped_too_long
                + now.dropped_policed,
            marks: now.ecn_marks,
        }
    }
}

/// The rows on one line.
pub(super) fn plain(now: Time, rows: &[Row]) -> String {
    let mut text = format!("{:.1} s", now.since(Time::ZERO).as_secs_f64());
    for Row { name, there, back } in rows {
        text += &format!(
            " | {name}: {} Mb/s there, {} back, {} lost",
            format::mbps(there.mbps),
            format::mbps(back.unwrap_or_default().mbps),
            format::percent(there.loss)
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn lines_stand_under_their_headings() {
        let watch = Watch::new(&names(&["lte", "lte.reverse", "x.reverse"]));
        assert_eq!(watch.len(), 2);
        let there = Way {
            mbps: 11.5,
            rate_mbps: 12.0,
            queue: Duration::from_micros(7_300),
            loss: 0.021,
            drops: 3,
            marks: 12,
        };
        let back = Way { mbps: 0.31, rate_mbps: 12.0, drops: 1, ..Way::default() };
        let row = Row { name: "lte".to_owned(), there, back: Some(back) };
        let text = watch.line(&row);
        assert_eq!(
            text,
            "  lte        ███████████▌    11.5 of 12.0    0.31   7.3 ms    2.1 %        4      12"
        );
        assert_eq!(watch.headings().chars().count(), text.chars().count());
        let one_way = Row { back: None, ..row.clone() };
        assert!(watch.line(&one_way).contains("  -  "));
        assert_eq!(
            plain(Time::from_millis(2_500), &[row]),
            "2.5 s | lte: 11.5 Mb/s there, 0.31 back, 2.1 % lost"
        );
    }
}
