//! Figures of series over time and of samples.

use anabranch_plot::{Figure, Line, Style};

use super::{Data, MOVEMENT, Named, Sweep, label, title, unit};

/// Most lines in a figure; more cannot be distinguished.
const MOST_LINES: usize = 12;

/// Figures over time, one for each metric and point; the metrics of maps are left out.
pub fn series(data: &Data, sweep: &Sweep) -> Vec<Named> {
    let mut figures = Vec::new();
    for metric in data.metrics().filter(|metric| !MOVEMENT.contains(metric)) {
        let mut subjects = data.subjects(metric);
        if subjects.len() > MOST_LINES {
            subjects = data.groups(metric);
        }
        for point in sweep.points() {
            let mut figure = Figure::new(title_at(metric, sweep, point), "time (s)", label(metric));
            let mut of_seed = None;
            let mut positive = unit(metric).is_some();
            for subject in subjects.iter().take(MOST_LINES) {
                if let Some((seed, line)) = data.line(metric, subject, point) {
                    of_seed = Some(seed);
                    positive &= !line.iter().any(|(_, value)| *value < 0.0);
                    // A single point makes no line.
                    let style = if line.len() > 1 { Style::Plain } else { Style::Marked };
                    figure = figure.line(Line::new(*subject, line.to_vec()).style(style));
                }
            }
            figure.y.zero = positive;
            if let Some(seed) = of_seed {
                figures.push((file("over-time", metric, sweep, point), figure.caption(of(seed))));
            }
        }
    }
    figures
}

/// The stacked rates of the paths of each flow that has several.
pub fn shares(data: &Data, sweep: &Sweep) -> Vec<Named> {
    let mut figures = Vec::new();
    for metric in data.metrics().filter(|metric| metric.ends_with("_mbps")) {
        let subjects = data.subjects(metric);
        let mut flows: Vec<&str> =
            subjects.iter().filter_map(|s| s.split_once('/')).map(|(flow, _)| flow).collect();
        flows.dedup();
        for (flow, point) in
            flows.iter().flat_map(|f| sweep.points().into_iter().map(move |p| (f, p)))
        {
            let title = format!("{}: paths of {flow}", title_at(metric, sweep, point));
            let mut figure = Figure::new(title, "time (s)", label(metric));
            let mut of_seed = 0;
            let paths = subjects.iter().filter_map(|s| Some((*s, s.split_once('/')?)));
            for (subject, (_, path)) in paths.filter(|(_, (of, _))| of == flow) {
                if let Some((seed, line)) = data.line(metric, subject, point) {
                    of_seed = seed;
                    figure = figure.layer(path, line.to_vec());
                }
            }
            if figure.layers.len() > 1 {
                let kind = format!("shares-{flow}");
                figures.push((file(&kind, metric, sweep, point), figure.caption(of(of_seed))));
            }
        }
    }
    figures
}

/// Distributions of samples over all seeds.
pub fn distributions(data: &Data, sweep: &Sweep) -> Vec<Named> {
    let mut figures = Vec::new();
    for metric in data.metrics() {
        let groups = data.groups(metric);
        let together = groups.len() * sweep.len() <= 8;
        let points = sweep.points();
        let batches: Vec<Vec<usize>> =
            if together { vec![points] } else { points.iter().map(|point| vec![*point]).collect() };
        for batch in batches {
            let mut lines: Vec<Line> = Vec::new();
            for (subject, point) in
                groups.iter().flat_map(|s| batch.iter().map(move |point| (*s, *point)))
            {
                let values = data.values(metric, subject).iter().find(|(index, _)| *index == point);
                let Some((_, values)) = values else { continue };
                let name = match (batch.len() > 1, groups.len() > 1) {
                    (true, true) => format!("{subject}, {}", sweep.name(point)),
                    (true, false) => sweep.name(point),
                    (false, _) => subject.to_owned(),
                };
                lines.push(Line::distribution(name, values));
            }
            let point = batch.first().copied().unwrap_or(0);
            let (head, name) = if together {
                (title(metric), format!("{metric}-distribution"))
            } else {
                (title_at(metric, sweep, point), file("distribution", metric, sweep, point))
            };
            let mut figure = Figure::distributions(head, label(metric), []);
            figure.lines = lines;
            if !figure.lines.is_empty() {
                figures.push((name, figure.caption("All seeds together.")));
            }
        }
    }
    figures
}

fn title_at(metric: &str, sweep: &Sweep, point: usize) -> String {
    titled(title(metric), sweep, point)
}

/// A figure's title, with the name of the point that it shows.
pub(super) fn titled(title: String, sweep: &Sweep, point: usize) -> String {
    match sweep.name(point) {
        name if name.is_empty() => title,
        name => format!("{title}, {name}"),
    }
}

/// The name of a figure's file.
pub(super) fn file(kind: &str, metric: &str, sweep: &Sweep, point: usize) -> String {
    if sweep.len() > 1 {
        format!("{metric}-{kind}-point{point}")
    } else {
        format!("{metric}-{kind}")
    }
}

/// A sentence that names the seed of the run shown.
pub(super) fn of(seed: u64) -> String {
    format!("The run with seed {seed}.")
}
