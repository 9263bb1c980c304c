//! Styles of lines: colour, dash and marker together.

/// The colours of Okabe and Ito, "Color Universal Design" (2008), without the yellow, which is too
/// light for lines on white, and two greys.
const COLOURS: [&str; 8] =
    ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#333333", "#888888"];
/// Dash patterns in SVG's notation. The first is a solid line.
const DASHES: [&str; 5] = ["", "7 3", "2 2.5", "9 3 2 3", "4 2"];

/// The look of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    /// Colour in the form `#rrggbb`.
    pub(crate) colour: &'static str,
    /// Dash pattern, empty for a solid line.
    pub(crate) dash: &'static str,
    pub(crate) marker: Marker,
}

/// A marker's shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Marker {
    Disc,
    Square,
    Triangle,
    Diamond,
    Down,
    Cross,
}

impl Look {
    /// The look with this index; the first 40 are all different.
    pub(crate) fn of(index: usize) -> Self {
        use Marker::{Cross, Diamond, Disc, Down, Square, Triangle};
        let markers = [Disc, Square, Triangle, Diamond, Down, Cross];
        // The dash pattern changes with the colour. It is shifted when the colours repeat.
        let round = index / COLOURS.len();
        let pick = |n: usize, of: usize| (index + round + n) % of;
        Look {
            colour: COLOURS.get(index % COLOURS.len()).copied().unwrap_or("#000000"),
            dash: DASHES.get(pick(0, DASHES.len())).copied().unwrap_or(""),
            marker: markers.get(pick(0, markers.len())).copied().unwrap_or(Disc),
        }
    }
}
