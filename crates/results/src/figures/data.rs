//! The rows of a table, grouped by metric, subject and point.

use crate::tables::Row;

/// The contents of a table by metric, subject and point. Metrics and subjects are in the order of
/// their first rows.
#[derive(Debug, Default)]
pub struct Data {
    metrics: Vec<(String, Vec<Subject>)>,
    /// Indices of the last row's metric and subject, which the next row nearly always shares.
    last: (usize, usize),
}

#[derive(Debug)]
struct Subject {
    name: String,
    /// Values by the point's index.
    values: Vec<(usize, Vec<f64>)>,
    /// Series that each point's first seed recorded.
    first_seed: Vec<Recorded>,
}

#[derive(Debug)]
struct Recorded {
    point: usize,
    seed: u64,
    /// Times and values.
    line: Vec<(f64, f64)>,
}

impl Data {
    /// Adds a row.
    pub fn add(&mut self, row: &Row<'_>) {
        let subject = self.subject(row.metric, row.subject);
        let Some(subject) = subject else { return };
        match subject.values.last_mut() {
            Some((point, values)) if *point == row.point => values.push(row.value),
            _ => subject.values.push((row.point, vec![row.value])),
        }
        let at = (row.at, row.value);
        match subject.first_seed.last_mut() {
            Some(recorded) if recorded.point == row.point => {
                if recorded.seed == row.seed {
                    recorded.line.push(at);
                }
            }
            _ => {
                let Row { point, seed, .. } = *row;
                subject.first_seed.push(Recorded { point, seed, line: vec![at] });
            }
        }
    }

    fn subject(&mut self, metric: &str, subject: &str) -> Option<&mut Subject> {
        let (at_metric, at_subject) = self.last;
        let is_metric = |(name, _): &(String, Vec<Subject>)| name == metric;
        let is_subject = |s: &Subject| s.name == subject;
        let at_metric = match self.metrics.get(at_metric) {
            Some(last) if is_metric(last) => at_metric,
            _ => self.metrics.iter().position(is_metric).unwrap_or_else(|| {
                self.metrics.push((metric.to_owned(), Vec::new()));
                self.metrics.len() - 1
            }),
        };
        let subjects = &mut self.metrics.get_mut(at_metric)?.1;
        let at_subject = match subjects.get(at_subject) {
            Some(last) if is_subject(last) => at_subject,
            _ => subjects.iter().position(is_subject).unwrap_or_else(|| {
                let (values, first_seed) = (Vec::new(), Vec::new());
                subjects.push(Subject { name: subject.to_owned(), values, first_seed });
                subjects.len() - 1
            }),
        };
        self.last = (at_metric, at_subject);
        subjects.get_mut(at_subject)
    }

    /// Whether there are values of `metric`.
    pub fn has(&self, metric: &str) -> bool {
        self.metrics.iter().any(|(name, _)| name == metric)
    }

    /// The names of the metrics.
    pub(super) fn metrics(&self) -> impl Iterator<Item = &str> {
        self.metrics.iter().map(|(name, _)| name.as_str())
    }

    /// The subjects that have values of `metric`.
    pub(super) fn subjects(&self, metric: &str) -> Vec<&str> {
        let found = self.metrics.iter().find(|(name, _)| name == metric);
        found.into_iter().flat_map(|(_, subjects)| subjects).map(|s| s.name.as_str()).collect()
    }

    /// [`subjects`](Self::subjects) without those that are part of another (flows of a group, paths
    /// of a flow), and without `all` if there is only one other.
    pub(super) fn groups(&self, metric: &str) -> Vec<&str> {
        let subjects = self.subjects(metric);
        let whole = |subject: &str| {
            let parents = [subject.rsplit_once('/'), subject.rsplit_once('.')];
            !parents.into_iter().flatten().any(|(parent, _)| subjects.contains(&parent))
        };
        let mut groups: Vec<&str> = subjects.iter().copied().filter(|s| whole(s)).collect();
        if groups.len() == 2 {
            groups.retain(|subject| *subject != "all");
        }
        groups
    }

    /// All values at each point, one seed after the other.
    pub(super) fn values(&self, metric: &str, subject: &str) -> &[(usize, Vec<f64>)] {
        self.find(metric, subject).map_or(&[], |subject| &subject.values)
    }

    /// The first seed at `point`, and the series that it recorded.
    pub(super) fn line(
        &self,
        metric: &str,
        subject: &str,
        point: usize,
    ) -> Option<(u64, &[(f64, f64)])> {
        let lines = &self.find(metric, subject)?.first_seed;
        let recorded = lines.iter().find(|recorded| recorded.point == point)?;
        Some((recorded.seed, &recorded.line))
    }

    fn find(&self, metric: &str, subject: &str) -> Option<&Subject> {
        let (_, subjects) = self.metrics.iter().find(|(name, _)| name == metric)?;
        subjects.iter().find(|s| s.name == subject)
    }
}
