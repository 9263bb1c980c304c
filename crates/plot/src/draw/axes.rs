//! Axes with their ticks and labels.

use super::{Canvas, EDGE, INK, LABEL, SMALL};
use crate::svg::{Anchor, Svg, n};
use crate::text;

const GRID: &str = "#e4e4e4";

/// Approximate number of ticks on the vertical axis of a figure of this height.
pub(super) fn y_count(height: f64) -> usize {
    (height / 55.0) as usize
}

/// Draws horizontal grid lines behind the data.
pub(super) fn grid(svg: &mut Svg, canvas: &Canvas<'_>) {
    let area = canvas.area;
    for tick in canvas.y.ticks(y_count(canvas.figure.size.1)) {
        if let Some(y) = canvas.y.place(tick) {
            svg.line((area.left, y), (area.right, y), GRID, 1.0, "");
        }
    }
}

/// Draws the axes in front of the data. Returns where the labels below the horizontal axis end.
pub(super) fn draw(svg: &mut Svg, canvas: &Canvas<'_>) -> f64 {
    let (area, figure) = (canvas.area, canvas.figure);
    svg.line((area.left, area.top), (area.left, area.bottom), INK, 1.0, "");
    svg.line((area.left, area.bottom), (area.right, area.bottom), INK, 1.0, "");
    let ticks = canvas.y.ticks(y_count(figure.size.1));
    for (tick, label) in ticks.iter().zip(canvas.y.labels(&ticks)) {
        if let Some(y) = canvas.y.place(*tick) {
            svg.line((area.left - 4.0, y), (area.left, y), INK, 1.0, "");
            svg.text((area.left - 7.0, y + SMALL * 0.35), SMALL, Anchor::End, "", &label);
        }
    }
    for tick in canvas.y.minor_ticks() {
        if let Some(y) = canvas.y.place(tick) {
            svg.line((area.left - 2.5, y), (area.left, y), INK, 0.7, "");
        }
    }
    let middle = (area.top + area.bottom) / 2.0;
    let turned = format!("transform=\"rotate(-90 {} {})\"", n(EDGE + LABEL * 0.8), n(middle));
    let label = text::fit(&figure.y.label, LABEL, area.bottom - area.top);
    svg.text((EDGE + LABEL * 0.8, middle), LABEL, Anchor::Middle, &turned, &label);
    let below = match &figure.bars {
        Some(bars) => categories(svg, canvas, &bars.categories),
        None => numbers(svg, canvas),
    };
    let at = ((area.left + area.right) / 2.0, below + LABEL * 1.25);
    let label = text::fit(&figure.x.label, LABEL, area.right - area.left + 60.0);
    svg.text(at, LABEL, Anchor::Middle, "", &label);
    let room = if figure.x.label.is_empty() { 0.0 } else { LABEL * 1.6 };
    below + room
}

/// Draws as many numbered ticks as there is room for. Returns where the numbers end.
fn numbers(svg: &mut Svg, canvas: &Canvas<'_>) -> f64 {
    let area = canvas.area;
    let room = area.right - area.left;
    let mut count = (room / 60.0) as usize;
    let (mut ticks, mut texts) = (Vec::new(), Vec::new());
    while count > 0 {
        ticks = canvas.x.ticks(count);
        texts = canvas.x.labels(&ticks);
        let widest = texts.iter().map(|label| text::width(label, SMALL)).fold(0.0, f64::max);
        if (widest + 10.0) * ticks.len() as f64 <= room {
            break;
        }
        count -= 1;
    }
    for (tick, label) in ticks.iter().zip(texts) {
        if let Some(x) = canvas.x.place(*tick) {
            svg.line((x, area.bottom), (x, area.bottom + 4.0), INK, 1.0, "");
            svg.text((x, area.bottom + 6.0 + SMALL), SMALL, Anchor::Middle, "", &label);
        }
    }
    for tick in canvas.x.minor_ticks() {
        if let Some(x) = canvas.x.place(tick) {
            svg.line((x, area.bottom), (x, area.bottom + 2.5), INK, 0.7, "");
        }
    }
    area.bottom + 8.0 + SMALL
}

/// Draws names under groups of bars, broken into lines or, if they still do not fit, turned by 90
/// degrees. Returns where the names end.
fn categories(svg: &mut Svg, canvas: &Canvas<'_>, names: &[String]) -> f64 {
    const LINES: usize = 3;
    let area = canvas.area;
    let room = (area.right - area.left) / names.len().max(1) as f64 - 4.0;
    let broken = || names.iter().map(|name| text::wrap(name, SMALL, room));
    let fits = |lines: Vec<String>| {
        lines.len() <= LINES && lines.iter().all(|line| text::width(line, SMALL) <= room)
    };
    if !broken().all(fits) {
        return upright(svg, canvas, names);
    }
    let mut most = 1;
    for (index, lines) in broken().enumerate() {
        let Some(x) = canvas.x.place(index as f64 + 0.5) else { continue };
        most = most.max(lines.len());
        for (line, part) in lines.iter().enumerate() {
            let y = area.bottom + 5.0 + SMALL * (1.0 + 1.2 * line as f64);
            svg.text((x, y), SMALL, Anchor::Middle, "", part);
        }
    }
    area.bottom + 8.0 + SMALL * (1.0 + 1.2 * (most - 1) as f64)
}

/// Draws names turned by 90 degrees. Returns where the names end.
fn upright(svg: &mut Svg, canvas: &Canvas<'_>, names: &[String]) -> f64 {
    /// Longest name, pixels.
    const MOST: f64 = 400.0;
    let top = canvas.area.bottom + 6.0;
    let mut longest = 0.0f64;
    for (index, name) in names.iter().enumerate() {
        let Some(x) = canvas.x.place(index as f64 + 0.5) else { continue };
        let name = text::fit(name, SMALL, MOST);
        longest = longest.max(text::width(&name, SMALL));
        let x = x + SMALL * 0.35;
        let turned = format!("transform=\"rotate(-90 {} {})\"", n(x), n(top));
        svg.text((x, top), SMALL, Anchor::End, &turned, &name);
    }
    top + longest + 4.0
}
