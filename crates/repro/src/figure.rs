//! What an item's figure shows, as data.

use anabranch_plot as plot;

use crate::measure::Measure;

/// One curve.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Line {
    /// What the legend calls it.
    pub name: String,
    /// Abscissae and values.
    pub points: Vec<(f64, Measure)>,
    /// From the paper, not measured here.
    pub from_paper: bool,
}

/// Curves over a common abscissa.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figure {
    /// What it shows.
    pub title: String,
    /// The abscissa, with its unit.
    pub x: String,
    /// The ordinate, with its unit.
    pub y: String,
    /// The curves.
    pub lines: Vec<Line>,
}

impl Figure {
    /// A figure without curves.
    pub fn new(title: impl Into<String>, x: impl Into<String>, y: impl Into<String>) -> Self {
        Figure { title: title.into(), x: x.into(), y: y.into(), lines: Vec::new() }
    }

    /// Adds a measured curve, unless it has no points.
    pub fn line(&mut self, name: impl Into<String>, points: Vec<(f64, Measure)>) {
        if !points.is_empty() {
            self.lines.push(Line { name: name.into(), points, from_paper: false });
        }
    }

    /// Adds what the paper states.
    pub fn paper(&mut self, name: impl Into<String>, points: &[(f64, f64)]) {
        let points = points.iter().map(|(x, y)| (*x, Measure::exact(*y))).collect();
        self.lines.push(Line { name: name.into(), points, from_paper: true });
    }

    /// Drawn: measured curves with their intervals, the paper's statements as points.
    pub fn to_svg(&self) -> String {
        let mut figure = plot::Figure::new(&self.title, &self.x, &self.y);
        for line in &self.lines {
            figure = figure.line(line.drawn());
        }
        figure.to_svg()
    }
}

/// More points than this are drawn without markers.
const MARKED: usize = 60;

impl Line {
    fn drawn(&self) -> plot::Line {
        let points = self.points.iter().map(|(x, y)| (*x, y.mean)).collect();
        let spread = self.points.iter().any(|(_, y)| y.hi > y.lo);
        let band = self.points.iter().map(|(_, y)| (y.lo, y.hi));
        let line = plot::Line::new(&self.name, points);
        let line = if spread { line.band(band.collect()) } else { line };
        line.style(match self.from_paper {
            true if self.points.len() < 3 => plot::Style::Scatter,
            _ if self.points.len() > MARKED => plot::Style::Plain,
            _ => plot::Style::Marked,
        })
    }
}
