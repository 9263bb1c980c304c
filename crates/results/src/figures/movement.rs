//! Maps of moving stations and of the traffic between them.

use anabranch_plot::{Hop, Map, Panel, Station};

use super::{Data, Sweep, over_time};

/// The metrics that maps are drawn from.
pub const MOVEMENT: [&str; 4] = ["x_m", "y_m", "hop_packets", "hop_losses"];

/// Most panels of a map.
const MOST_PANELS: usize = 6;
const WIDTH: f64 = 760.0;
const HOW: &str = "Lines are hops over which data went, the thicker the more packets; crosses are hops on which \
                   packets were lost, with their number. Stations stand where they were in the middle of the time, \
                   with the way that they took.";

/// A station's name, and its positions to the east and to the north over time, m.
type Places<'a> = (&'a str, &'a [(f64, f64)], &'a [(f64, f64)]);

/// Arrivals and losses on one hop over time.
struct HopLines<'a> {
    /// Names of the hop's stations.
    from: &'a str,
    to: &'a str,
    /// Numbers of packets that arrived and of packets that were lost, over time.
    lines: [&'a [(f64, f64)]; 2],
}

/// A map, with the name of its file, for each point of the sweep at which positions of stations
/// were recorded.
pub fn movement(data: &Data, sweep: &Sweep) -> Vec<(String, Map)> {
    sweep.points().into_iter().filter_map(|point| map(data, sweep, point)).collect()
}

fn map(data: &Data, sweep: &Sweep, point: usize) -> Option<(String, Map)> {
    let mut seed = 0;
    let mut stations: Vec<Places<'_>> = Vec::new();
    for subject in data.subjects("x_m") {
        let (Some((of, x)), Some((_, y))) =
            (data.line("x_m", subject, point), data.line("y_m", subject, point))
        else {
            continue;
        };
        seed = of;
        stations.push((subject.strip_prefix("station.").unwrap_or(subject), x, y));
    }
    let times: Vec<f64> = stations.first()?.1.iter().map(|(time, _)| *time).collect();
    let hops = hops(data, point, seed);
    let panels = spans(&times).into_iter().map(|span| panel(&stations, &hops, span)).collect();
    let title = over_time::titled("Stations and routes".to_owned(), sweep, point);
    let caption = format!("{HOW} {}", over_time::of(seed));
    let map = Map { title, caption, panels, width: WIDTH };
    Some((over_time::file("map", "stations", sweep, point), map))
}

/// The spans of time that the panels show. If there is only one point in time, it is a span of
/// length zero.
fn spans(times: &[f64]) -> Vec<(f64, f64)> {
    let steps = times.len().saturating_sub(1);
    let count = steps.min(MOST_PANELS);
    let at = |panel: usize| times.get(panel * steps / count.max(1)).copied();
    let spans = (0..count).filter_map(|panel| at(panel).zip(at(panel + 1)));
    let spans: Vec<(f64, f64)> = spans.collect();
    match times.first() {
        Some(only) if spans.is_empty() => vec![(*only, *only)],
        _ => spans,
    }
}

/// Every hop on which a packet arrived or was lost in the run with this seed.
fn hops<'a>(data: &'a Data, point: usize, seed: u64) -> Vec<HopLines<'a>> {
    let mut subjects = data.subjects("hop_packets");
    subjects.extend(data.subjects("hop_losses"));
    subjects.sort_unstable();
    subjects.dedup();
    let line = |metric, subject| {
        let line = data.line(metric, subject, point).filter(|(of, _)| *of == seed);
        line.map_or(&[][..], |(_, line)| line)
    };
    let hop = |subject: &'a str| {
        let (from, to) = subject.strip_prefix("hop.")?.split_once('-')?;
        let lines = ["hop_packets", "hop_losses"].map(|metric| line(metric, subject));
        Some(HopLines { from, to, lines })
    };
    subjects.into_iter().filter_map(hop).collect()
}

fn panel(stations: &[Places<'_>], hops: &[HopLines<'_>], (from, to): (f64, f64)) -> Panel {
    let middle = f64::midpoint(from, to);
    let station = |(name, x, y): &Places<'_>| {
        let places = x.iter().zip(y.iter()).filter(|((time, _), _)| (from..=to).contains(time));
        let way: Vec<(f64, f64)> = places.map(|((_, x), (_, y))| (*x, *y)).collect();
        Station { name: (*name).to_owned(), at: (between(x, middle), between(y, middle)), way }
    };
    let named = |name: &str| stations.iter().position(|(known, ..)| *known == name);
    let sum = |line: &[(f64, f64)]| {
        let within = line.iter().filter(|(time, _)| *time > from && *time <= to);
        within.map(|(_, value)| value).sum::<f64>()
    };
    let hop = |hop: &HopLines<'_>| {
        let [packets, losses] = hop.lines.map(sum);
        Some(Hop { from: named(hop.from)?, to: named(hop.to)?, packets, losses })
    };
    let hops = hops.iter().filter_map(hop).filter(|hop| hop.packets + hop.losses > 0.0).collect();
    let title = format!("{from} to {to} s");
    Panel { title, stations: stations.iter().map(station).collect(), hops }
}

/// The value at a time, interpolated linearly between the points around it.
fn between(line: &[(f64, f64)], time: f64) -> f64 {
    let after = line.partition_point(|(at, _)| *at < time);
    match (after.checked_sub(1).and_then(|before| line.get(before)), line.get(after)) {
        (Some((t, a)), Some((u, b))) => a + (b - a) * (time - t) / (u - t),
        (Some((_, value)), None) | (None, Some((_, value))) => *value,
        (None, None) => f64::NAN,
    }
}
