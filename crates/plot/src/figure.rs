//! The contents of a figure.

use crate::draw;

/// A figure: lines, stacked layers or bars over two axes.
///
/// Values that are not finite are left out; a line has a gap there.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Title of the figure, in bold above it.
    pub title: String,
    /// Explanation below the figure; may be empty.
    pub caption: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// Lines, each with its name.
    pub lines: Vec<Line>,
    /// Layers, stacked from bottom to top and drawn behind the lines.
    pub layers: Vec<Layer>,
    /// Bars side by side, with a group for each category. With bars the horizontal axis shows the
    /// names of the categories.
    pub bars: Option<Bars>,
    /// Reference values with their names, each drawn as a horizontal line across the figure.
    pub references: Vec<(String, f64)>,
    /// Width and height in pixels. Captions and long titles increase the height.
    pub size: (f64, f64),
}

/// Label, scale and range of an axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axis {
    /// Quantity on the axis, with its unit.
    pub label: String,
    /// Whether the axis is logarithmic. Only values above zero can be shown then.
    pub log: bool,
    /// Ends of the axis; `None`: they are chosen to fit the data.
    pub range: Option<(f64, f64)>,
    /// Whether the axis includes zero whatever the data are. A logarithmic axis never does.
    pub zero: bool,
}

/// How a line is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// Straight lines between the points, with a marker at each point.
    #[default]
    Marked,
    /// Straight lines between the points without markers, for many points.
    Plain,
    /// Horizontal until the next point, for distributions.
    Steps,
    /// Markers only.
    Scatter,
}

/// A line with its name and style.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Name of the line in the key.
    pub name: String,
    /// Points of the line, from left to right.
    pub points: Vec<(f64, f64)>,
    /// Lower and upper bound at each point; empty if there are none.
    pub band: Vec<(f64, f64)>,
    /// How the line is drawn.
    pub style: Style,
}

impl Line {
    /// A line with markers.
    pub fn new(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Line { name: name.into(), points, band: Vec::new(), style: Style::Marked }
    }

    /// Returns the line with a band between a lower and an upper bound at each point.
    pub fn band(self, band: Vec<(f64, f64)>) -> Self {
        Line { band, ..self }
    }

    /// Returns the line with another style.
    pub fn style(self, style: Style) -> Self {
        Line { style, ..self }
    }

    /// The empirical distribution of `values`: for every x, the share of values that are at most x.
    /// Of more than a thousand values, a thousand evenly spaced ranks are drawn.
    pub fn distribution(name: impl Into<String>, values: &[f64]) -> Self {
        const RANKS: usize = 1000;
        let mut sorted: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let count = sorted.len();
        let drawn = count.min(RANKS);
        let rank = |index: usize| ((index + 1) * count).div_ceil(drawn.max(1));
        let point = |rank: usize| {
            let value = sorted.get(rank.saturating_sub(1))?;
            Some((*value, rank as f64 / count as f64))
        };
        let mut points: Vec<(f64, f64)> =
            sorted.first().map(|first| (*first, 0.0)).into_iter().collect();
        points.extend((0..drawn).map(rank).filter_map(point));
        Line::new(name, points).style(Style::Steps)
    }
}

/// A layer of a stack.
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    /// Name of the layer in the key.
    pub name: String,
    /// Positions on the horizontal axis, and the amount added there to the layers below. All layers
    /// need the same positions.
    pub points: Vec<(f64, f64)>,
}

/// Bars in groups.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bars {
    /// The groups' names, from left to right.
    pub categories: Vec<String>,
    /// The bars of each group, from left to right.
    pub series: Vec<BarSeries>,
}

/// The bars of one colour, one in each group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BarSeries {
    /// Name of the bars in the key.
    pub name: String,
    /// For every category the value with its lower and upper bound. Unknown bounds equal the value.
    pub values: Vec<(f64, f64, f64)>,
    /// Whether the bars are outlines in the colour of the series before, for comparison with that
    /// series.
    pub is_outlined: bool,
}

impl Figure {
    /// A figure without data. Labels should include units.
    pub fn new(
        title: impl Into<String>,
        x_label: impl Into<String>,
        y_label: impl Into<String>,
    ) -> Self {
        Figure {
            title: title.into(),
            caption: String::new(),
            x: Axis { label: x_label.into(), ..Axis::default() },
            y: Axis { label: y_label.into(), ..Axis::default() },
            lines: Vec::new(),
            layers: Vec::new(),
            bars: None,
            references: Vec::new(),
            size: (640.0, 400.0),
        }
    }

    /// The distributions of several collections; the vertical axis is the share of values.
    pub fn distributions<'a>(
        title: impl Into<String>,
        x_label: impl Into<String>,
        collections: impl IntoIterator<Item = (&'a str, &'a [f64])>,
    ) -> Self {
        let mut figure = Figure::new(title, x_label, "share of values at most x");
        let lines = collections.into_iter().map(|(name, values)| Line::distribution(name, values));
        figure.lines = lines.collect();
        figure.y.range = Some((0.0, 1.0));
        figure
    }

    /// Returns the figure with a caption.
    pub fn caption(mut self, caption: impl Into<String>) -> Self {
        self.caption = caption.into();
        self
    }

    /// Returns the figure with one more line.
    pub fn line(mut self, line: Line) -> Self {
        self.lines.push(line);
        self
    }

    /// Returns the figure with one more layer on top of the stack.
    pub fn layer(mut self, name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        self.layers.push(Layer { name: name.into(), points });
        self
    }

    /// Returns the figure with bars.
    pub fn bars(mut self, bars: Bars) -> Self {
        self.bars = Some(bars);
        self
    }

    /// Returns the figure with a reference value.
    pub fn reference(mut self, name: impl Into<String>, value: f64) -> Self {
        self.references.push((name.into(), value));
        self
    }

    /// The figure as a complete SVG document.
    pub fn to_svg(&self) -> String {
        draw::document(self)
    }
}
