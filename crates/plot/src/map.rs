//! Maps of stations and the traffic between them, with one panel for each span of time.

use crate::draw::{EDGE, LABEL, SMALL, caption, title};
use crate::palette::{Look, Marker};
use crate::scale::round_step;
use crate::svg::{Anchor, INK, Svg, n};

/// Size of the texts beside stations and hops, pixels.
const TINY: f64 = 9.0;
/// Space between panels.
const GAP: f64 = 14.0;
/// Space within a panel between its frame and the outermost places.
const MARGIN: f64 = 10.0;
/// Greatest ratio of a panel's height to its width.
const TALLEST: f64 = 1.2;
/// Ratios of width to height above which panels stand in one column, and in two.
const WIDE: [f64; 2] = [3.0, 1.5];
/// Widths of the thinnest and of the thickest line, pixels.
const WIDTHS: (f64, f64) = (0.8, 5.0);
/// How far the line of each direction is shifted off the straight line between two stations,
/// pixels.
const APART: f64 = 2.5;
const GREY: &str = "#999999";
const GREY_LIGHT: &str = "#cccccc";

/// White outline that makes small texts legible on lines.
const HALO: &str = "stroke=\"#ffffff\" stroke-width=\"2\" paint-order=\"stroke\"";

/// A map: one picture with several panels of the same scale.
#[derive(Clone, Debug, PartialEq)]
pub struct Map {
    /// Title of the map, in bold above it.
    pub title: String,
    /// Explanation below the map; may be empty.
    pub caption: String,
    /// The panels, in the order of reading.
    pub panels: Vec<Panel>,
    /// Width in pixels. The height follows from the contents.
    pub width: f64,
}

/// One part of a map.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Panel {
    /// Title of the panel, such as its span of time.
    pub title: String,
    /// The stations. Hops refer to them by their indices in this list.
    pub stations: Vec<Station>,
    /// The traffic between the stations.
    pub hops: Vec<Hop>,
}

/// A station with its place and movement.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Station {
    /// The station's name, written beside it if a hop begins or ends there.
    pub name: String,
    /// Position, metres to the east and to the north.
    pub at: (f64, f64),
    /// Positions of the station during the panel's time; empty if it stays.
    pub way: Vec<(f64, f64)>,
}

/// Traffic from one station to another.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Hop {
    /// Index of the station that sends.
    pub from: usize,
    /// Index of the station that receives.
    pub to: usize,
    /// How many packets arrived.
    pub packets: f64,
    /// How many packets were lost.
    pub losses: f64,
}

/// Mapping from metres to pixels: scale, origin, and size of a panel.
struct Projection {
    pixels: f64,
    west: f64,
    north: f64,
    size: (f64, f64),
}

impl Map {
    /// The map as a complete SVG document.
    pub fn to_svg(&self) -> String {
        let mut svg = Svg::default();
        let width = self.width.max(200.0);
        let top = title(&mut svg, &self.title, width);
        let (projection, columns) = self.projection(width);
        let step = (projection.size.0 + GAP, projection.size.1 + LABEL * 1.5 + GAP);
        let most = self.most();
        for (index, panel) in self.panels.iter().enumerate() {
            let (column, row) = (index % columns, index / columns);
            let at = (EDGE + column as f64 * step.0, top + row as f64 * step.1);
            svg.text((at.0, at.1 + LABEL), LABEL, Anchor::Start, "", &panel.title);
            let corner = (at.0, at.1 + LABEL * 1.5);
            svg.outline(corner, projection.size, GREY_LIGHT);
            panel.draw(&mut svg, corner, &projection, most);
            if index == 0 {
                ruler(&mut svg, corner, &projection);
            }
        }
        let end = top + self.panels.len().div_ceil(columns) as f64 * step.1 - GAP;
        let end = caption(&mut svg, &self.caption, width, end);
        svg.finish(width, end + EDGE, &self.title)
    }

    /// A projection that fits all panels, and the number of panels side by side.
    fn projection(&self, width: f64) -> (Projection, usize) {
        let stations = self.panels.iter().flat_map(|panel| &panel.stations);
        let places = stations.flat_map(|station| station.way.iter().copied().chain([station.at]));
        let places = places.filter(is_drawable);
        let infinite = (f64::INFINITY, f64::NEG_INFINITY);
        let wider = |ends: (f64, f64), at: f64| (ends.0.min(at), ends.1.max(at));
        let ends = places.fold((infinite, infinite), |(x, y), at| (wider(x, at.0), wider(y, at.1)));
        let length = |ends: (f64, f64)| if ends.1 > ends.0 { ends.1 - ends.0 } else { 1.0 };
        let (wide, high) = (length(ends.0), length(ends.1));
        let columns = match wide / high {
            shape if shape > WIDE[0] => 1,
            shape if shape > WIDE[1] => 2,
            _ => 3,
        };
        let columns = columns.min(self.panels.len().max(1));
        let panel = (width - 2.0 * EDGE - GAP * (columns - 1) as f64) / columns as f64;
        let room = panel - 2.0 * MARGIN;
        let pixels = (room / wide).min((panel * TALLEST - 2.0 * MARGIN) / high);
        let start = |ends: (f64, f64)| if ends.0.is_finite() { ends } else { (0.0, 0.0) };
        let projection = Projection {
            pixels,
            west: start(ends.0).0 - (room / pixels - wide) / 2.0,
            north: start(ends.1).1,
            size: (panel, high * pixels + 2.0 * MARGIN),
        };
        (projection, columns)
    }

    /// Most packets that go over a hop in any panel.
    fn most(&self) -> f64 {
        let hops = self.panels.iter().flat_map(|panel| &panel.hops);
        hops.map(|hop| hop.packets).filter(|packets| packets.is_finite()).fold(1.0, f64::max)
    }
}

impl Projection {
    /// The pixels of the place `at` in a panel whose upper left corner is `corner`.
    fn place(&self, corner: (f64, f64), at: (f64, f64)) -> (f64, f64) {
        let x = corner.0 + MARGIN + (at.0 - self.west) * self.pixels;
        (x, corner.1 + MARGIN + (self.north - at.1) * self.pixels)
    }
}

impl Panel {
    fn draw(&self, svg: &mut Svg, corner: (f64, f64), projection: &Projection, most: f64) {
        let place = |at: (f64, f64)| projection.place(corner, at);
        for station in &self.stations {
            let way = station.way.iter().copied().filter(is_drawable);
            let way: Vec<(f64, f64)> = way.map(place).collect();
            if way.len() > 1 {
                svg.polyline(&way, GREY_LIGHT, 0.8, "");
            }
        }
        let ends = |hop: &Hop| {
            let end = |station: usize| {
                Some(self.stations.get(station)?.at).filter(is_drawable).map(place)
            };
            end(hop.from).zip(end(hop.to))
        };
        for hop in self.hops.iter().filter(|hop| hop.packets > 0.0) {
            if let Some((from, to)) = ends(hop) {
                let share = (hop.packets / most).min(1.0).sqrt();
                arrow(svg, from, to, WIDTHS.0 + share * (WIDTHS.1 - WIDTHS.0));
            }
        }
        for hop in self.hops.iter().filter(|hop| hop.losses > 0.0) {
            if let Some((from, to)) = ends(hop) {
                let ((ax, ay), (bx, by)) = beside(from, to);
                let middle = ((ax + bx) / 2.0, (ay + by) / 2.0);
                svg.marker(middle, Marker::Cross, Look::of(1).colour);
                let at = (middle.0 + 5.0, middle.1 + 3.5);
                svg.text(at, TINY, Anchor::Start, HALO, &n(hop.losses));
            }
        }
        let stations = self.stations.iter().enumerate();
        for (index, station) in stations.filter(|(_, station)| is_drawable(&station.at)) {
            let is_used = self.hops.iter().any(|hop| [hop.from, hop.to].contains(&index));
            let (x, y) = place(station.at);
            let (radius, colour) = if is_used { (3.0, INK) } else { (1.6, GREY) };
            svg.raw(&format!(
                "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" fill=\"{colour}\"/>",
                n(x),
                n(y),
                n(radius)
            ));
            if is_used {
                svg.text((x + 4.0, y - 4.0), TINY, Anchor::Start, HALO, &station.name);
            }
        }
    }
}

/// Whether a place can be drawn: both coordinates are within 1e8 m.
fn is_drawable((x, y): &(f64, f64)) -> bool {
    x.abs() < 1e8 && y.abs() < 1e8
}

/// Both ends of a line, shifted to the right of the direction from the first to the second.
fn beside(from: (f64, f64), to: (f64, f64)) -> ((f64, f64), (f64, f64)) {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let length = (dx * dx + dy * dy).sqrt().max(1e-9);
    let (x, y) = (-dy / length * APART, dx / length * APART);
    ((from.0 + x, from.1 + y), (to.0 + x, to.1 + y))
}

/// An arrow whose head is between its middle and its end, where neither a cross nor a station hides
/// it.
fn arrow(svg: &mut Svg, from: (f64, f64), to: (f64, f64), width: f64) {
    let colour = Look::of(0).colour;
    let (from, to) = beside(from, to);
    svg.line(from, to, colour, width, "stroke-opacity=\"0.75\"");
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let length = (dx * dx + dy * dy).sqrt();
    if length < 1.0 {
        return;
    }
    let ahead = (dx / length, dy / length);
    let (long, half) = (4.0 + width, 2.0 + width);
    let tip = (from.0 + 0.75 * dx, from.1 + 0.75 * dy);
    let back = (tip.0 - ahead.0 * long, tip.1 - ahead.1 * long);
    let corners = [
        tip,
        (back.0 - ahead.1 * half, back.1 + ahead.0 * half),
        (back.0 + ahead.1 * half, back.1 - ahead.0 * half),
    ];
    svg.area(&corners, colour, 1.0);
}

/// Draws a scale bar of a round length, at least a fifth of the panel's width, above the panel's
/// right end.
fn ruler(svg: &mut Svg, corner: (f64, f64), projection: &Projection) {
    let least = projection.size.0 / projection.pixels / 5.0;
    let metres = round_step(least);
    let right = (corner.0 + projection.size.0 - 4.0, corner.1 - 5.0);
    let left = (right.0 - metres * projection.pixels, right.1);
    svg.line(left, right, INK, 1.5, "");
    let label = format!("{} m", n(metres));
    svg.text((left.0 - 4.0, right.1 + 3.5), SMALL, Anchor::End, "", &label);
}
