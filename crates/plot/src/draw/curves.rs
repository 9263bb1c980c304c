//! Lines with their bands and markers, and stacked layers.

use super::Canvas;
use crate::figure::{Figure, Line, Style};
use crate::palette::Look;
use crate::svg::Svg;

/// Colour of reference values.
pub(super) const REFERENCE: &str = "#666666";
const REFERENCE_DASH: &str = "5 4";
/// Lines with more points than this per pixel of width are thinned, without visible change.
const POINTS_PER_PIXEL: usize = 4;

/// A layer: the area between the top of the layer below and its own top.
pub(super) struct Stacked {
    pub(super) bottom: Vec<(f64, f64)>,
    pub(super) top: Vec<(f64, f64)>,
}

/// The layers, stacked. Values that are not finite count as 0.
pub(super) fn stacked(figure: &Figure) -> Vec<Stacked> {
    let mut bottom: Vec<(f64, f64)> = Vec::new();
    let mut stack = Vec::new();
    for layer in &figure.layers {
        if bottom.is_empty() {
            bottom = layer.points.iter().map(|point| (point.0, 0.0)).collect();
        }
        let amounts = layer.points.iter().map(|p| if p.1.is_finite() { p.1 } else { 0.0 });
        let amounts = amounts.chain(core::iter::repeat(0.0));
        let top: Vec<(f64, f64)> =
            bottom.iter().zip(amounts).map(|(below, amount)| (below.0, below.1 + amount)).collect();
        stack.push(Stacked { bottom: core::mem::replace(&mut bottom, top.clone()), top });
    }
    stack
}

/// Draws the stacked layers.
pub(super) fn layers(svg: &mut Svg, canvas: &Canvas<'_>) {
    for (index, layer) in stacked(canvas.figure).iter().enumerate() {
        let top = pixels(canvas, &layer.top);
        let outline: Vec<(f64, f64)> =
            top.iter().copied().chain(pixels(canvas, &layer.bottom).into_iter().rev()).collect();
        if outline.len() > 2 {
            svg.area(&outline, Look::of(index).colour, 0.85);
            svg.polyline(&top, "#ffffff", 0.8, "");
        }
    }
}

/// Draws the reference values.
pub(super) fn references(svg: &mut Svg, canvas: &Canvas<'_>) {
    for (_, value) in &canvas.figure.references {
        if let Some(y) = canvas.y.place(*value) {
            let ends = [(canvas.area.left, y), (canvas.area.right, y)];
            svg.polyline(&ends, REFERENCE, 1.3, REFERENCE_DASH);
        }
    }
}

/// Draws bands, then lines over all bands.
pub(super) fn lines(svg: &mut Svg, canvas: &Canvas<'_>) {
    let first = canvas.figure.layers.len();
    for (index, line) in canvas.figure.lines.iter().enumerate() {
        let bounds = line.points.iter().zip(&line.band);
        let bounds = bounds.filter(|(p, b)| p.0.is_finite() && b.0.is_finite() && b.1.is_finite());
        let (upper, mut lower): (Vec<_>, Vec<_>) =
            bounds.map(|(point, bound)| ((point.0, bound.1), (point.0, bound.0))).unzip();
        lower.reverse();
        let outline: Vec<(f64, f64)> = upper.into_iter().chain(lower).collect();
        if outline.len() > 2 {
            svg.area(&pixels(canvas, &outline), Look::of(first + index).colour, 0.18);
        }
    }
    for (index, line) in canvas.figure.lines.iter().enumerate() {
        let look = Look::of(first + index);
        if line.style == Style::Scatter {
            continue;
        }
        for part in line.points.split(|point| !(point.0.is_finite() && point.1.is_finite())) {
            let points = thin(canvas, pixels(canvas, &outlined(line, part)));
            if points.len() > 1 {
                svg.polyline(&points, look.colour, 1.7, look.dash);
            }
        }
    }
}

/// Draws the markers of lines that have them, and the intervals of bands with only one point.
pub(super) fn markers(svg: &mut Svg, canvas: &Canvas<'_>) {
    let (area, first) = (canvas.area, canvas.figure.layers.len());
    for (index, line) in canvas.figure.lines.iter().enumerate() {
        let look = Look::of(first + index);
        if let ([point], [bound]) = (line.points.as_slice(), line.band.as_slice()) {
            svg_interval(svg, canvas, point.0, *bound, look.colour);
        }
        if !matches!(line.style, Style::Marked | Style::Scatter) {
            continue;
        }
        for (x, y) in pixels(canvas, &line.points) {
            if (area.left - 0.5..=area.right + 0.5).contains(&x)
                && (area.top - 0.5..=area.bottom + 0.5).contains(&y)
            {
                svg.marker((x, y), look.marker, look.colour);
            }
        }
    }
}

fn svg_interval(svg: &mut Svg, canvas: &Canvas<'_>, x: f64, bound: (f64, f64), colour: &str) {
    let ends = (canvas.x.place(x), canvas.y.place(bound.0), canvas.y.place(bound.1));
    if let (Some(x), Some(low), Some(high)) = ends {
        svg.line((x, low), (x, high), colour, 1.5, "");
    }
}

/// The corners of a line, in data coordinates.
fn outlined(line: &Line, part: &[(f64, f64)]) -> Vec<(f64, f64)> {
    if line.style != Style::Steps {
        return part.to_vec();
    }
    let mut corners: Vec<(f64, f64)> = Vec::with_capacity(part.len() * 2);
    for (x, y) in part {
        if let Some((_, level)) = corners.last() {
            corners.push((*x, *level));
        }
        corners.push((*x, *y));
    }
    corners
}

fn pixels(canvas: &Canvas<'_>, points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let place = |(x, y): &(f64, f64)| Some((canvas.x.place(*x)?, canvas.y.place(*y)?));
    points.iter().filter_map(place).collect()
}

/// Keeps the first, lowest, highest and last point of each column of pixels.
fn thin(canvas: &Canvas<'_>, points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let columns = (canvas.area.right - canvas.area.left).max(1.0) as usize;
    if points.len() <= columns * POINTS_PER_PIXEL {
        return points;
    }
    let mut kept = Vec::new();
    for column in points.chunk_by(|a, b| libm::floor(a.0) == libm::floor(b.0)) {
        let by_height = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        let extremes = [column.iter().min_by(by_height), column.iter().max_by(by_height)];
        kept.extend(column.first());
        kept.extend(extremes.into_iter().flatten());
        kept.extend(column.last());
    }
    kept.dedup();
    kept
}
