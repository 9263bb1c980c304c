//! Bars in groups, with their intervals.

use super::{Canvas, INK};
use crate::figure::{BarSeries, Bars};
use crate::palette::Look;
use crate::svg::Svg;

/// Share of a group's width that its bars fill.
const FILLED: f64 = 0.76;

/// Each series with its look. An outlined series has the look of the series before it.
pub(super) fn looks(bars: &Bars) -> impl Iterator<Item = (&BarSeries, Look)> {
    let mut filled = 0_usize;
    bars.series.iter().map(move |series| {
        filled += usize::from(!series.is_outlined);
        (series, Look::of(filled.saturating_sub(1)))
    })
}

/// Draws the bars, if there are any.
pub(super) fn draw(svg: &mut Svg, canvas: &Canvas<'_>) {
    let Some(bars) = &canvas.figure.bars else { return };
    let (low, high) = canvas.y.ends();
    let base = if canvas.figure.y.log { low } else { 0.0f64.clamp(low, high) };
    let Some(base) = canvas.y.place(base) else { return };
    let each = FILLED / bars.series.len().max(1) as f64;
    for (index, (series, look)) in looks(bars).enumerate() {
        for (group, (value, lower, upper)) in series.values.iter().enumerate() {
            let from = group as f64 + (1.0 - FILLED) / 2.0 + each * index as f64;
            let ends = (canvas.x.place(from), canvas.x.place(from + each));
            let (Some(left), Some(right)) = ends else { continue };
            let Some(y) = canvas.y.place(*value) else { continue };
            let width = (right - left - 1.5).max(1.0);
            let (corner, size) = ((left, y.min(base)), (width, (y - base).abs()));
            if series.is_outlined {
                svg.outline(corner, size, look.colour);
            } else {
                svg.rect(corner, size, look.colour);
            }
            if let (Some(lower), Some(upper)) = (canvas.y.place(*lower), canvas.y.place(*upper))
                && lower != upper
            {
                let (x, cap) = (left + width / 2.0, (width / 4.0).min(5.0));
                svg.line((x, lower), (x, upper), INK, 1.2, "");
                for y in [lower, upper] {
                    svg.line((x - cap, y), (x + cap, y), INK, 1.2, "");
                }
            }
        }
    }
}
