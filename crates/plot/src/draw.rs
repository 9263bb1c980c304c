//! Lays out and draws a figure.

mod axes;
mod bars;
mod curves;
mod key;

use crate::figure::{Figure, Style};
use crate::scale::Scale;
use crate::svg::{Anchor, INK, Svg};
use crate::text;

/// Text sizes in pixels.
const TITLE: f64 = 14.0;
pub(crate) const LABEL: f64 = 12.0;
pub(crate) const SMALL: f64 = 11.0;
/// Figures narrower than this, in pixels, have their key below.
const NARROW: f64 = 480.0;
/// Margin around the whole figure, pixels.
pub(crate) const EDGE: f64 = 12.0;

/// The area in which values are drawn, in pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Area {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

/// Everything that is needed to draw the data.
struct Canvas<'a> {
    figure: &'a Figure,
    area: Area,
    x: Scale,
    y: Scale,
}

/// The figure as a complete SVG document.
pub(crate) fn document(figure: &Figure) -> String {
    let mut svg = Svg::default();
    let (width, size) = (figure.size.0.max(200.0), figure.size.1.max(150.0));
    let top = title(&mut svg, &figure.title, width) + 10.0;
    let (x, y) = scales(figure);
    let entries = key::entries(figure);
    let is_narrow = width < NARROW;
    let key_width = if is_narrow { key::width(&[], width) } else { key::width(&entries, width) };
    let key_height = if is_narrow { 0.0 } else { key::height(&entries) };
    let y_ticks = y.labels(&y.ticks(axes::y_count(size)));
    let widest = y_ticks.iter().map(|label| text::width(label, SMALL)).fold(0.0, f64::max);
    let area = Area {
        left: EDGE + LABEL * 1.4 + widest + 8.0,
        right: width - EDGE - key_width,
        top,
        bottom: top + (size - 95.0).max(key_height),
    };
    let x = x.over(area.left, area.right);
    let y = y.over(area.bottom, area.top);
    let canvas = Canvas { figure, area, x, y };
    axes::grid(&mut svg, &canvas);
    // A separate viewport clips data outside a given range.
    let (w, h) = (area.right - area.left, area.bottom - area.top);
    let box_of = [area.left, area.top, w, h].map(crate::svg::n);
    let [left, up, wide, high] = &box_of;
    svg.raw(&format!(
        "<svg x=\"{left}\" y=\"{up}\" width=\"{wide}\" height=\"{high}\" \
         viewBox=\"{left} {up} {wide} {high}\">"
    ));
    curves::layers(&mut svg, &canvas);
    bars::draw(&mut svg, &canvas);
    curves::references(&mut svg, &canvas);
    curves::lines(&mut svg, &canvas);
    svg.raw("</svg>");
    let below = axes::draw(&mut svg, &canvas);
    curves::markers(&mut svg, &canvas);
    let mut end = below;
    if is_narrow {
        end = key::draw_below(&mut svg, &entries, width, below);
    } else {
        key::draw(&mut svg, &canvas, &entries, width);
    }
    end = caption(&mut svg, &figure.caption, width, end);
    svg.finish(width, end + EDGE, &figure.title)
}

/// Writes a title above everything, and returns where it ends.
pub(crate) fn title(svg: &mut Svg, title: &str, width: f64) -> f64 {
    let lines = text::wrap(title, TITLE * 1.06, width - 2.0 * EDGE);
    for (index, line) in lines.iter().enumerate() {
        let at = (EDGE, EDGE + TITLE * (0.85 + 1.3 * index as f64));
        svg.text(at, TITLE, Anchor::Start, "font-weight=\"bold\"", line);
    }
    EDGE + TITLE * 1.3 * lines.len() as f64
}

/// Writes a caption below `end`, and returns where the caption ends.
pub(crate) fn caption(svg: &mut Svg, caption: &str, width: f64, mut end: f64) -> f64 {
    for line in text::wrap(caption, SMALL, width - 2.0 * EDGE) {
        end += SMALL * 1.35;
        svg.text((EDGE, end), SMALL, Anchor::Start, "fill-opacity=\"0.8\"", &line);
    }
    end
}

/// The scales that hold all data.
fn scales(figure: &Figure) -> (Scale, Scale) {
    let points = || figure.lines.iter().flat_map(|line| line.points.iter().copied());
    let bounds = figure.lines.iter().flat_map(|line| line.band.iter().flat_map(|b| [b.0, b.1]));
    let layers = || figure.layers.iter().flat_map(|layer| layer.points.iter().copied());
    let stacked = curves::stacked(figure).into_iter().flat_map(|layer| layer.top);
    let bars = figure.bars.iter().flat_map(|bars| bars.series.iter());
    let bars = bars.flat_map(|series| series.values.iter().flat_map(|v| [v.0, v.1, v.2]));
    let zero = figure.bars.is_some() || !figure.layers.is_empty() || figure.y.zero;
    let zero = zero.then_some(0.0).filter(|_| !figure.y.log);
    let references = figure.references.iter().map(|(_, value)| *value);
    let values = points().map(|point| point.1).chain(bounds).chain(stacked.map(|p| p.1));
    let values = values.chain(bars).chain(references).chain(zero);
    let y = Scale::new(figure.y.log, figure.y.range, values, true);
    if let Some(bars) = &figure.bars {
        let ends = (0.0, bars.categories.len().max(1) as f64);
        return (Scale::new(false, Some(ends), core::iter::empty(), false), y);
    }
    let marked =
        figure.lines.iter().any(|line| matches!(line.style, Style::Marked | Style::Scatter));
    let places = points().chain(layers()).map(|point| point.0);
    let marked = marked && figure.layers.is_empty();
    (Scale::new(figure.x.log, figure.x.range, places, marked), y)
}
