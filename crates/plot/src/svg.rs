//! SVG elements as text. All numbers have the same format.

use core::fmt::Write;

use crate::palette::Marker;
use crate::text::escape;

/// Colour of text and axes.
pub(crate) const INK: &str = "#222222";

/// A document that grows element by element.
#[derive(Debug, Default)]
pub(crate) struct Svg {
    body: String,
}

/// The part of a text that is placed at its coordinates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    /// The whole document. Screen readers read `title`.
    pub(crate) fn finish(self, width: f64, height: f64, title: &str) -> String {
        let size = format!("width=\"{}\" height=\"{}\"", n(width), n(height));
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" {size} viewBox=\"0 0 {} {}\" role=\"img\" \
             font-family=\"Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif\">\n\
             <title>{}</title>\n<rect {size} fill=\"#ffffff\"/>\n{}</svg>\n",
            n(width),
            n(height),
            escape(title),
            self.body
        )
    }

    /// Adds an element as it is.
    pub(crate) fn raw(&mut self, element: &str) {
        self.body.push_str(element);
        self.body.push('\n');
    }

    /// A text of `size` pixels. Its baseline begins, is centred or ends at `at`.
    #[expect(clippy::too_many_arguments, reason = "the attributes of one element")]
    pub(crate) fn text(
        &mut self,
        at: (f64, f64),
        size: f64,
        anchor: Anchor,
        more: &str,
        text: &str,
    ) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let more = if more.is_empty() { String::new() } else { format!(" {more}") };
        self.raw(&format!(
            "<text x=\"{}\" y=\"{}\" font-size=\"{}\" fill=\"{INK}\"{anchor}{more}>{}</text>",
            n(at.0),
            n(at.1),
            n(size),
            escape(text)
        ));
    }

    /// A straight line.
    #[expect(clippy::too_many_arguments, reason = "the attributes of one element")]
    pub(crate) fn line(
        &mut self,
        from: (f64, f64),
        to: (f64, f64),
        colour: &str,
        width: f64,
        more: &str,
    ) {
        let more = if more.is_empty() { String::new() } else { format!(" {more}") };
        self.raw(&format!(
            "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"{colour}\" stroke-width=\"{}\"{more}/>",
            n(from.0), n(from.1), n(to.0), n(to.1), n(width)
        ));
    }

    /// A rectangle without an outline.
    pub(crate) fn rect(&mut self, at: (f64, f64), size: (f64, f64), colour: &str) {
        self.raw(&format!(
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{colour}\"/>",
            n(at.0),
            n(at.1),
            n(size.0),
            n(size.1)
        ));
    }

    /// A rectangle with a light filling and an outline that lies within the rectangle.
    pub(crate) fn outline(&mut self, at: (f64, f64), size: (f64, f64), colour: &str) {
        self.raw(&format!(
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{colour}\" \
             fill-opacity=\"0.2\" stroke=\"{colour}\" stroke-width=\"1.5\"/>",
            n(at.0 + 0.75),
            n(at.1 + 0.75),
            n((size.0 - 1.5).max(0.0)),
            n((size.1 - 1.5).max(0.0))
        ));
    }

    /// Straight lines through the points.
    pub(crate) fn polyline(&mut self, points: &[(f64, f64)], colour: &str, width: f64, dash: &str) {
        let dash =
            if dash.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dash}\"") };
        self.raw(&format!(
            "<path d=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{}\" \
             stroke-linejoin=\"round\"{dash}/>",
            path(points),
            n(width)
        ));
    }

    /// The area enclosed by the points.
    pub(crate) fn area(&mut self, points: &[(f64, f64)], colour: &str, opacity: f64) {
        self.raw(&format!(
            "<path d=\"{}Z\" fill=\"{colour}\" fill-opacity=\"{}\"/>",
            path(points),
            n(opacity)
        ));
    }

    /// A marker with a white rim, which separates it from lines below it.
    pub(crate) fn marker(&mut self, (x, y): (f64, f64), marker: Marker, colour: &str) {
        let r = 3.4;
        let corners: &[(f64, f64)] = match marker {
            Marker::Disc => {
                let (x, y) = (n(x), n(y));
                self.raw(&format!(
                    "<circle cx=\"{x}\" cy=\"{y}\" r=\"{}\" fill=\"{colour}\" stroke=\"#ffffff\" stroke-width=\"0.8\"/>",
                    n(r)
                ));
                return;
            }
            Marker::Square => &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
            Marker::Triangle => &[(0.0, -1.2), (1.1, 0.8), (-1.1, 0.8)],
            Marker::Down => &[(0.0, 1.2), (1.1, -0.8), (-1.1, -0.8)],
            Marker::Diamond => &[(0.0, -1.25), (1.25, 0.0), (0.0, 1.25), (-1.25, 0.0)],
            Marker::Cross => &[
                (-1.2, -0.5),
                (-0.5, -0.5),
                (-0.5, -1.2),
                (0.5, -1.2),
                (0.5, -0.5),
                (1.2, -0.5),
                (1.2, 0.5),
                (0.5, 0.5),
                (0.5, 1.2),
                (-0.5, 1.2),
                (-0.5, 0.5),
                (-1.2, 0.5),
            ],
        };
        let points: Vec<(f64, f64)> =
            corners.iter().map(|(dx, dy)| (x + dx * r, y + dy * r)).collect();
        self.raw(&format!(
            "<path d=\"{}Z\" fill=\"{colour}\" stroke=\"#ffffff\" stroke-width=\"0.8\"/>",
            path(&points)
        ));
    }
}

fn path(points: &[(f64, f64)]) -> String {
    let mut text = String::with_capacity(points.len() * 14);
    for (index, (x, y)) in points.iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = write!(text, "{}{} {}", if index == 0 { "M" } else { "L" }, n(*x), n(*y));
    }
    text
}

/// A number with at most two decimals and without trailing zeros.
pub(crate) fn n(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}
