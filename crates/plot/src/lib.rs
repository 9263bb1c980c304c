//! Figures fit for a paper, as SVG.
//!
//! A [`Figure`] is built from its data. It has a title, axes with units, a caption, and a key
//! beside the lines. The colours are those of Okabe and Ito (2008), which can be distinguished with
//! any colour vision. Every line also has its own dash pattern and marker, so that lines can be
//! distinguished in a grey print. The same data gives the same bytes.
//!
//! ```
//! use anabranch_plot::{Figure, Line};
//!
//! let figure = Figure::new("Goodput against loss", "loss (%)", "goodput (Mb/s)")
//!     .line(Line::new("coded", vec![(0.0, 9.4), (10.0, 8.3), (20.0, 7.4)]))
//!     .line(Line::new("resent", vec![(0.0, 9.5), (10.0, 0.6), (20.0, 0.2)]));
//! assert!(figure.to_svg().starts_with("<svg "));
//! ```

mod draw;
mod figure;
mod map;
mod palette;
mod scale;
mod svg;
mod text;

#[cfg(test)]
mod tests;

pub use figure::{Axis, BarSeries, Bars, Figure, Layer, Line, Style};
pub use map::{Hop, Map, Panel, Station};
pub use text::escape_html;
