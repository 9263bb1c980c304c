//! The key: names beside the ends of their lines, or below narrow figures.

use super::curves::{REFERENCE, stacked};
use super::{Canvas, EDGE, SMALL, bars};
use crate::figure::{Figure, Style};
use crate::palette::Look;
use crate::svg::{Anchor, Svg};
use crate::text;

/// Pixels from one name to the next.
const STEP: f64 = 17.0;
/// Length of the sample before a name, and the gap around it.
const SAMPLE: f64 = 26.0;
const GAP: f64 = 7.0;
/// Largest share of a figure's width that the key takes.
const SHARE: f64 = 0.34;

/// One name, with the sample drawn before it.
pub(super) struct Entry {
    name: String,
    sample: Sample,
    /// The value beside which the name stands, if there is room; `None` for names that are listed
    /// from the top.
    beside: Option<f64>,
}

enum Sample {
    Line(Look, Style),
    Patch(Look),
    Outline(Look),
    Reference,
}

/// The names that the key shows; none if there would be only one.
pub(super) fn entries(figure: &Figure) -> Vec<Entry> {
    let mut entries = Vec::new();
    let tops = stacked(figure);
    for (index, (layer, stacked)) in figure.layers.iter().zip(&tops).enumerate() {
        let beside = stacked.top.last().zip(stacked.bottom.last());
        let beside = beside.map(|(top, bottom)| (top.1 + bottom.1) / 2.0);
        entries.push(Entry {
            name: layer.name.clone(),
            sample: Sample::Patch(Look::of(index)),
            beside,
        });
    }
    for (index, line) in figure.lines.iter().enumerate() {
        let look = Look::of(figure.layers.len() + index);
        let last = line.points.iter().rev().find(|p| p.0.is_finite() && p.1.is_finite());
        // All distributions end at 1, so their ends give no position.
        let beside = last.map(|point| point.1).filter(|_| line.style != Style::Steps);
        entries.push(Entry {
            name: line.name.clone(),
            sample: Sample::Line(look, line.style),
            beside,
        });
    }
    for (series, look) in figure.bars.iter().flat_map(bars::looks) {
        let sample = if series.is_outlined { Sample::Outline(look) } else { Sample::Patch(look) };
        entries.push(Entry { name: series.name.clone(), sample, beside: None });
    }
    for (name, value) in &figure.references {
        entries.push(Entry { name: name.clone(), sample: Sample::Reference, beside: Some(*value) });
    }
    if entries.len() == 1 { Vec::new() } else { entries }
}

/// Width of the column that the key needs in a figure of width `figure`; a margin if there is no
/// key.
pub(super) fn width(entries: &[Entry], figure: f64) -> f64 {
    let widest = entries.iter().map(|entry| text::width(&entry.name, SMALL)).fold(0.0, f64::max);
    let names = widest.min(figure * SHARE - SAMPLE - 2.0 * GAP);
    if entries.is_empty() { 6.0 } else { names + SAMPLE + 2.0 * GAP }
}

/// Height that the key needs.
pub(super) fn height(entries: &[Entry]) -> f64 {
    entries.len() as f64 * STEP
}

/// Draws the names from left to right in as many rows as they need, from `top` on. Returns where
/// they end.
pub(super) fn draw_below(svg: &mut Svg, entries: &[Entry], width: f64, top: f64) -> f64 {
    let (mut left, mut y) = (EDGE, top + STEP);
    for entry in entries {
        let name = text::fit(&entry.name, SMALL, width - 2.0 * EDGE - SAMPLE - GAP);
        let needed = SAMPLE + GAP + text::width(&name, SMALL) + 2.0 * GAP;
        if left > EDGE && left + needed - 2.0 * GAP > width - EDGE {
            (left, y) = (EDGE, y + STEP);
        }
        sample(svg, &entry.sample, (left, y));
        let at = (left + SAMPLE + GAP, y + SMALL * 0.35);
        svg.text(at, SMALL, Anchor::Start, "", &name);
        left += needed;
    }
    if entries.is_empty() { top } else { y + STEP / 2.0 }
}

/// Draws the sample that stands before a name.
fn sample(svg: &mut Svg, sample: &Sample, (left, y): (f64, f64)) {
    let (corner, size) = ((left + 8.0, y - 5.0), (SAMPLE - 8.0, 10.0));
    match sample {
        Sample::Line(look, style) => {
            if *style != Style::Scatter {
                svg.polyline(&[(left, y), (left + SAMPLE, y)], look.colour, 1.7, look.dash);
            }
            if matches!(style, Style::Marked | Style::Scatter) {
                svg.marker((left + SAMPLE / 2.0, y), look.marker, look.colour);
            }
        }
        Sample::Patch(look) => svg.rect(corner, size, look.colour),
        Sample::Outline(look) => svg.outline(corner, size, look.colour),
        Sample::Reference => {
            svg.polyline(&[(left, y), (left + SAMPLE, y)], REFERENCE, 1.3, "5 4");
        }
    }
}

/// Draws the names, each as near to the end of its line as the others allow.
pub(super) fn draw(svg: &mut Svg, canvas: &Canvas<'_>, entries: &[Entry], width: f64) {
    let area = canvas.area;
    let wish = |(index, entry): (usize, &Entry)| {
        let from_top = area.top + 8.0 + STEP * index as f64;
        entry.beside.and_then(|value| canvas.y.place(value)).unwrap_or(from_top)
    };
    let wishes: Vec<f64> = entries.iter().enumerate().map(wish).collect();
    let places = spread(&wishes, area.top + 6.0, area.bottom - 6.0);
    let left = area.right + GAP;
    for (entry, y) in entries.iter().zip(places) {
        sample(svg, &entry.sample, (left, y));
        let at = left + SAMPLE + GAP;
        let name = text::fit(&entry.name, SMALL, width - EDGE / 2.0 - at);
        svg.text((at, y + SMALL * 0.35), SMALL, Anchor::Start, "", &name);
    }
}

/// Places for the names between `top` and `bottom`: in the order of the wanted places, near to
/// them, and at least a step apart.
fn spread(wishes: &[f64], top: f64, bottom: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wishes.len()).collect();
    let wish = |index: &usize| wishes.get(*index).copied().unwrap_or(top);
    order.sort_by(|a, b| wish(a).total_cmp(&wish(b)).then(a.cmp(b)));
    // Neighbours that would overlap become a group around the mean of their wanted places.
    let mut groups: Vec<(f64, Vec<usize>)> = Vec::new();
    let centred = |members: &[usize]| {
        let mean = members.iter().map(wish).sum::<f64>() / members.len().max(1) as f64;
        let half = STEP * (members.len().max(1) - 1) as f64 / 2.0;
        (mean - half).min(bottom - 2.0 * half).max(top)
    };
    for index in order {
        let mut start = centred(&[index]);
        let mut members = vec![index];
        while let Some((above, others)) = groups.last() {
            if above + STEP * others.len() as f64 <= start {
                break;
            }
            let mut joined = groups.pop().map(|group| group.1).unwrap_or_default();
            joined.append(&mut members);
            members = joined;
            start = centred(&members);
        }
        groups.push((start, members));
    }
    let mut places = vec![top; wishes.len()];
    for (start, members) in groups {
        for (offset, index) in members.into_iter().enumerate() {
            if let Some(place) = places.get_mut(index) {
                *place = start + STEP * offset as f64;
            }
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_distance() {
        assert_eq!(spread(&[50.0, 100.0], 0.0, 200.0), [50.0, 100.0]);
        assert_eq!(spread(&[100.0, 100.0], 0.0, 200.0), [91.5, 108.5]);
        assert_eq!(spread(&[200.0, 195.0, 10.0], 0.0, 200.0), [200.0, 183.0, 10.0]);
        assert_eq!(spread(&[0.0, 0.0, 1.0], 0.0, 200.0), [0.0, 17.0, 34.0]);
    }
}
