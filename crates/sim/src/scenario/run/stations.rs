//! Records the positions of the stations of a mesh, and the arrivals and losses on each hop.

use core::time::Duration;
use std::collections::BTreeMap;

use anabranch_types::Time;

use super::build::Live;
use crate::probe::{About, Metric};
use crate::report::Series;
use crate::scenario::plan::ProbePlan;
use crate::wireless::mesh::{HopCounters, Hops, hops, positions, watch_hops};

/// The series of one probe. Each series begins when its station or hop first occurs.
#[derive(Debug)]
pub(super) struct Stations {
    metrics: Vec<&'static str>,
    interval: Duration,
    due: Time,
    /// The counters of the hops at the last point.
    before: Hops,
    /// The series by metric and by the two stations of a hop. For a single station, both are that
    /// station.
    series: BTreeMap<(&'static str, [u16; 2]), Series>,
}

impl Stations {
    /// Prepares the series of `probe`; `None` if it asks for no series of a mesh, or there is no
    /// mesh.
    pub(super) fn watch(probe: &ProbePlan, live: &mut Live) -> Option<Stations> {
        let (stations, _) = live.mesh?;
        let is_meshs = |metric: &&&str| {
            Metric::named(metric).is_some_and(|metric| metric.about == About::Mesh)
        };
        let metrics: Vec<&str> = probe.series.iter().filter(is_meshs).copied().collect();
        if metrics.is_empty() {
            return None;
        }
        watch_hops(&mut live.engine, stations);
        Some(Stations {
            metrics,
            interval: probe.interval,
            due: Time::ZERO,
            before: Hops::new(),
            series: BTreeMap::new(),
        })
    }

    /// When the next point is due. The first point is due at the beginning of the run.
    pub(super) fn due(&self) -> Time {
        self.due
    }

    /// Records a point of every series.
    pub(super) fn record(&mut self, now: Time, live: &Live) {
        let Some((stations, _)) = live.mesh else { return };
        self.due = now + self.interval;
        for (station, place) in positions(&live.engine, stations, now).into_iter().enumerate() {
            let station = [station as u16; 2];
            self.add("x_m", station, now, place.x);
            self.add("y_m", station, now, place.y);
        }
        let counted = hops(&live.engine, stations).cloned().unwrap_or_default();
        for (hop, counters) in &counted {
            let before = self.before.get(hop).copied().unwrap_or_default();
            let hop = [hop.0, hop.1];
            let since = |of: fn(&HopCounters) -> u64| (of(counters) - of(&before)) as f64;
            let (packets, losses) = (since(|c| c.packets), since(|c| c.losses));
            if packets > 0.0 {
                self.add("hop_packets", hop, now, packets);
            }
            if losses > 0.0 {
                self.add("hop_losses", hop, now, losses);
            }
        }
        self.before = counted;
    }

    /// Adds a point about the hop from one station to another, or about a station if both are the same.
    fn add(&mut self, metric: &'static str, stations: [u16; 2], now: Time, value: f64) {
        if !self.metrics.contains(&metric) {
            return;
        }
        let [from, to] = stations;
        let subject = || match from == to {
            true => format!("station.{from}"),
            false => format!("hop.{from}-{to}"),
        };
        let series = self.series.entry((metric, stations));
        series.or_insert_with(|| Series::new(subject(), metric)).push(now, value);
    }

    /// The series in the order of metrics and then of the stations' numbers.
    pub(super) fn series(self) -> impl Iterator<Item = Series> {
        self.series.into_values()
    }
}
