//! The data of an item's figure.

use anabranch_plot as plot;
use anabranch_sim::scenario::{Drawing, DrawnCurve};
use anabranch_sim::stats::Estimate;

/// Curves over a common horizontal axis, or bars.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figure(Drawing);

impl Figure {
    /// A figure without curves.
    pub fn new(title: impl Into<String>, x: impl Into<String>, y: impl Into<String>) -> Self {
        let (title, x_label, y_label) = (title.into(), x.into(), y.into());
        Figure(Drawing { title, x_label, y_label, ..Drawing::default() })
    }

    /// Adds a measured curve, unless it has no points.
    pub fn line(&mut self, name: impl Into<String>, points: Vec<(f64, Estimate)>) {
        if !points.is_empty() {
            self.0.curves.push(DrawnCurve { name: name.into(), points, is_published: false });
        }
    }

    /// Adds a curve with the values that the paper states.
    pub fn paper(&mut self, name: impl Into<String>, points: &[(f64, f64)]) {
        let points = points.iter().map(|(x, y)| (*x, Estimate::exact(*y))).collect();
        self.0.curves.push(DrawnCurve { name: name.into(), points, is_published: true });
    }

    /// The figure as SVG: measured values with their intervals beside the paper's.
    pub fn to_svg(&self) -> String {
        self.plotted().to_svg()
    }

    /// Version of [`to_svg`](Self::to_svg) for narrow screens.
    pub fn to_narrow_svg(&self) -> String {
        plot::Figure { size: NARROW, ..self.plotted() }.to_svg()
    }

    /// The figure in the form that is drawn.
    pub fn plotted(&self) -> plot::Figure {
        let Drawing { title, x_label, y_label, categories, curves, .. } = &self.0;
        let mut figure = plot::Figure::new(title, x_label, y_label);
        let least = least(&self.0);
        if !categories.is_empty() {
            let categories = categories.clone();
            let series = curves.iter().map(|curve| bars(curve, categories.len(), least)).collect();
            return figure.bars(plot::Bars { categories, series });
        }
        figure.y.zero = least == 0.0 && y_label.contains("Mb/s");
        curves.iter().fold(figure, |figure, curve| figure.line(drawn(curve, least)))
    }
}

/// Lower limit of intervals: zero for quantities that cannot be negative, which the axis label and
/// the means show.
fn least(drawing: &Drawing) -> f64 {
    const NEVER_BELOW: [&str; 6] = ["Mb/s", "bytes", "packets", "(s)", "ms", "share"];
    let known = NEVER_BELOW.iter().any(|unit| drawing.y_label.contains(unit));
    let points = || drawing.curves.iter().flat_map(|curve| &curve.points);
    let below = points().any(|(_, y)| y.mean < 0.0);
    if known && !below { 0.0 } else { f64::NEG_INFINITY }
}

impl From<Drawing> for Figure {
    fn from(drawing: Drawing) -> Self {
        Figure(drawing)
    }
}

/// Width and height for narrow screens.
const NARROW: (f64, f64) = (380.0, 340.0);
/// Curves with more points than this are drawn without markers.
const MARKED: usize = 60;

fn drawn(curve: &DrawnCurve, least: f64) -> plot::Line {
    let points = curve.points.iter().map(|(x, y)| (*x, y.mean)).collect();
    let spread = curve.points.iter().any(|(_, y)| y.hi() > y.lo());
    let band = curve.points.iter().map(|(_, y)| (y.lo().max(least), y.hi()));
    let line = plot::Line::new(&curve.name, points);
    let line = if spread { line.band(band.collect()) } else { line };
    line.style(match curve.is_published {
        true if curve.points.len() < 3 => plot::Style::Scatter,
        _ if curve.points.len() > MARKED => plot::Style::Plain,
        _ => plot::Style::Marked,
    })
}

fn bars(curve: &DrawnCurve, categories: usize, least: f64) -> plot::BarSeries {
    let value = |place: usize| {
        let found = curve.points.iter().find(|(x, _)| *x == place as f64);
        found.map_or((f64::NAN, f64::NAN, f64::NAN), |(_, y)| (y.mean, y.lo().max(least), y.hi()))
    };
    plot::BarSeries {
        name: curve.name.clone(),
        values: (0..categories).map(value).collect(),
        is_outlined: curve.is_published,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawing(label: &str, means: [f64; 2]) -> plot::Figure {
        let estimate = |mean| Estimate { n: 2, mean, std: 5.0, interval: Some((-32.0, 50.0)) };
        let points = vec![(0.0, estimate(means[0])), (1.0, estimate(means[1]))];
        let curve = DrawnCurve { name: "a".into(), points, is_published: false };
        let drawing = Drawing { y_label: label.into(), curves: vec![curve], ..Drawing::default() };
        Figure::from(drawing).plotted()
    }

    #[test]
    fn a_rate_has_no_interval_below_zero() {
        for (label, means, low) in [
            ("goodput (Mb/s)", [9.0, 8.0], 0.0),
            ("goodput (Mb/s)", [9.0, -8.0], -32.0),
            ("gain", [9.0, 8.0], -32.0),
        ] {
            let figure = drawing(label, means);
            assert_eq!(figure.lines[0].band, [(low, 50.0), (low, 50.0)], "{label}");
            assert_eq!(figure.y.zero, low == 0.0);
        }
    }
}
