//! The outcome of a scenario's runs: the findings on its claims, and its figures.

use std::collections::{BTreeMap, BTreeSet};

use super::Scenario;
use super::claims::{Claim, Finding, Runs};
use super::figures::Drawing;
use super::tree::{Table, Value};
use crate::probe::Metric;
use crate::report::RunReport;

impl Scenario {
    /// The published results that the text of a scenario names. Text that cannot be read is
    /// ignored.
    pub fn items(text: &str) -> BTreeSet<String> {
        let (root, _) = Table::parse(text);
        let mut items = BTreeSet::new();
        let mut add = |table: &Table| {
            if let Some(Value::Text(item)) = table.find("item").map(|entry| &entry.node.value) {
                items.insert(item.clone());
            }
        };
        add(&root);
        for key in ["result", "claim", "expect", "measure", "figure"] {
            let Some(Value::List(tables)) = root.find(key).map(|entry| &entry.node.value) else {
                continue;
            };
            for node in tables {
                if let Value::Table(table) = &node.value {
                    add(table);
                }
            }
        }
        items
    }

    /// The groups of flows that run at any point, each with its profile and the changes to the
    /// profile, such as `mplot: mplot-paper, policy { redundancy = … }`.
    pub fn flows(&self) -> Vec<String> {
        let mut flows = Vec::new();
        for point in &self.points {
            let mut root = self.root.clone();
            let Ok(plan) = self.plan(point) else { continue };
            if point.apply(&mut root).is_err() {
                continue;
            }
            let Some(Value::List(groups)) = root.find("flow").map(|entry| &entry.node.value) else {
                continue;
            };
            for node in groups {
                let (Some(name), Value::Table(table)) = (node.name(), &node.value) else {
                    continue;
                };
                let part = |key: &str| table.find(key).map(|entry| entry.node.show());
                let mut text = format!("{name}: {}", part("profile").unwrap_or_default());
                for key in ["policy", "tcp", "transport"] {
                    if let Some(part) = part(key) {
                        text.push_str(&format!(", {key} {part}"));
                    }
                }
                let runs = plan.flows.iter().any(|flow| flow.group == name);
                if runs && !flows.contains(&text) {
                    flows.push(text);
                }
            }
        }
        flows
    }

    /// The claims that results must satisfy, and the measures that are only reported.
    pub fn claims(&self) -> &[Claim] {
        &self.claims
    }

    /// The findings of every claim and measure. `runs` holds the runs of each point in the order of
    /// the seeds, and all points have the same seeds. Claims about points that do not exist,
    /// because an assignment or `[quick]` changed the sweep, are left out.
    pub fn judge(&self, runs: &[Vec<RunReport>]) -> Vec<Finding> {
        let runs = Runs { grid: &self.grid, runs };
        self.claims.iter().flat_map(|claim| claim.judge(&runs, &self.titles)).collect()
    }

    /// The scenario's figures with their data from `runs`, which have the same order as for
    /// [`judge`](Self::judge).
    pub fn draw(&self, runs: &[Vec<RunReport>]) -> Vec<Drawing> {
        let runs = Runs { grid: &self.grid, runs };
        self.figures.iter().map(|figure| figure.draw(&runs, &self.titles)).collect()
    }

    /// The series and single figures that claims and figures need.
    pub fn needed(&self) -> Needed {
        let mut needed = Needed::default();
        let claimed = self.claims.iter().flat_map(|claim| claim.series(&self.grid));
        let drawn = self.figures.iter().flat_map(|figure| figure.series(&self.grid));
        for (subject, metric) in claimed.chain(drawn) {
            needed.series.entry(subject).or_default().insert(metric);
        }
        for (subject, metric) in self.looked_at() {
            needed.scalars.entry(subject).or_default().insert(metric.to_owned());
        }
        needed
    }

    /// The single figures that claims and figures need.
    fn looked_at(&self) -> impl Iterator<Item = (String, &'static str)> + '_ {
        let claimed = self.claims.iter().flat_map(|claim| claim.figures(&self.grid));
        claimed.chain(self.figures.iter().flat_map(|figure| figure.figures(&self.grid)))
    }

    /// The figures that are measured only on request and that claims or figures need.
    pub(super) fn wanted(&self) -> Vec<(String, &'static str)> {
        let on_request =
            |(_, metric): &(String, &str)| Metric::named(metric).is_some_and(|m| m.on_request);
        let mut wanted: Vec<_> = self.looked_at().filter(on_request).collect();
        wanted.sort();
        wanted.dedup();
        wanted
    }
}

/// The parts of a run's report that claims and figures need. The other parts can be removed to save
/// memory.
#[derive(Clone, Debug, Default)]
pub struct Needed {
    /// Metrics over time, by subject.
    series: BTreeMap<String, BTreeSet<String>>,
    /// Metrics that are single figures, by subject.
    scalars: BTreeMap<String, BTreeSet<String>>,
}

impl Needed {
    /// Removes the samples from a report, and the series that are not needed.
    pub fn trim(&self, report: &mut RunReport) {
        report.samples = Vec::new();
        report.series.retain(|series| has(&self.series, &series.subject, &series.metric));
    }

    /// Like [`trim`](Self::trim), but also removes the point and the single figures that are not
    /// needed. The report can still be judged, but no longer gives table rows.
    pub fn reduce(&self, report: &mut RunReport) {
        self.trim(report);
        report.point = Vec::new();
        report.scalars.retain(|scalar| has(&self.scalars, &scalar.subject, &scalar.metric));
        report.scalars.shrink_to_fit();
    }
}

fn has(needed: &BTreeMap<String, BTreeSet<String>>, subject: &str, metric: &str) -> bool {
    needed.get(subject).is_some_and(|metrics| metrics.contains(metric))
}
