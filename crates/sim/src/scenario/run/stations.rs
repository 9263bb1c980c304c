//! Records where the stations of a mesh are, and what happens on each hop.

use core::time::Duration;
use std::collections::BTreeMap;

use anabranch_types::Time;

use super::build::Live;
use crate::report::Series;
use crate::scenario::plan::ProbePlan;
use crate::wireless::mesh::{HopCounters, Hops, hops, positions, watch_hops};

/// The series of one probe, which begin as stations and hops are seen.
#[derive(Debug)]
pub(super) struct Stations {
    metrics: Vec<&'static str>,
    interval: Duration,
    due: Time,
    /// What the hops had counted at the last point.
    before: Hops,
    series: Vec<Series>,
    /// Where the series of a metric and a subject is.
    places: BTreeMap<(&'static str, String), usize>,
}

impl Stations {
    /// Prepares what `probe` asks for; nothing if it asks for no series of a mesh, or there is none.
    pub(super) fn watch(probe: &ProbePlan, live: &mut Live) -> Option<Stations> {
        let (stations, _) = live.mesh?;
        let known = ["x_m", "y_m", "hop_packets", "hop_losses"];
        let asked = known.into_iter().filter(|metric| probe.series.contains(metric));
        let metrics: Vec<&str> = asked.collect();
        if metrics.is_empty() {
            return None;
        }
        watch_hops(&mut live.engine, stations);
        Some(Stations {
            metrics,
            interval: probe.interval,
            due: Time::ZERO,
            before: Hops::new(),
            series: Vec::new(),
            places: BTreeMap::new(),
        })
    }

    /// When the next point is due. The first is the beginning.
    pub(super) fn due(&self) -> Time {
        self.due
    }

    /// Takes a point.
    pub(super) fn record(&mut self, now: Time, live: &Live) {
        let Some((stations, _)) = live.mesh else { return };
        self.due = now + self.interval;
        for (station, place) in positions(&live.engine, stations, now).into_iter().enumerate() {
            self.add("x_m", || format!("station.{station}"), now, place.x);
            self.add("y_m", || format!("station.{station}"), now, place.y);
        }
        let counted = hops(&live.engine, stations).cloned().unwrap_or_default();
        for (hop, counters) in &counted {
            let before = self.before.get(hop).copied().unwrap_or_default();
            let name = || format!("hop.{}-{}", hop.0, hop.1);
            let since = |of: fn(&HopCounters) -> u64| (of(counters) - of(&before)) as f64;
            let (packets, losses) = (since(|c| c.packets), since(|c| c.losses));
            if packets > 0.0 {
                self.add("hop_packets", name, now, packets);
            }
            if losses > 0.0 {
                self.add("hop_losses", name, now, losses);
            }
        }
        self.before = counted;
    }

    fn add(&mut self, metric: &'static str, subject: impl Fn() -> String, now: Time, value: f64) {
        if !self.metrics.contains(&metric) {
            return;
        }
        let place = *self.places.entry((metric, subject())).or_insert(self.series.len());
        if place == self.series.len() {
            self.series.push(Series {
                subject: subject(),
                metric: metric.to_owned(),
                times: Vec::new(),
                values: Vec::new(),
            });
        }
        if let Some(series) = self.series.get_mut(place) {
            series.times.push(now.as_secs_f64());
            series.values.push(value);
        }
    }

    /// The series, in the order in which they began.
    pub(super) fn series(self) -> Vec<Series> {
        self.series
    }
}
