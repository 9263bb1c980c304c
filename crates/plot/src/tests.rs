use crate::scale::Scale;
use crate::{BarSeries, Bars, Figure, Hop, Line, Map, Panel, Station, Style};

fn ticks(low: f64, high: f64, count: usize) -> Vec<String> {
    let scale = Scale::new(false, Some((low, high)), core::iter::empty(), false);
    scale.labels(&scale.ticks(count))
}

fn log_ticks(low: f64, high: f64, count: usize) -> Vec<String> {
    let scale = Scale::new(true, Some((low, high)), core::iter::empty(), false);
    scale.labels(&scale.ticks(count))
}

#[test]
fn ticks_are_round() {
    assert_eq!(ticks(0.0, 1.0, 5), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
    assert_eq!(ticks(-3.0, 3.0, 4), ["−2", "0", "2"]);
    assert_eq!(ticks(0.0, 21_000.0, 4), ["0", "10\u{a0}000", "20\u{a0}000"]);
    assert_eq!(ticks(0.0, 4e6, 4), ["0", "10⁶", "2×10⁶", "3×10⁶", "4×10⁶"]);
    assert_eq!(ticks(0.0, 0.0005, 5).last().map(String::as_str), Some("5×10⁻⁴"));
    assert_eq!(log_ticks(1.0, 1000.0, 6), ["1", "10", "100", "1000"]);
    assert_eq!(log_ticks(1e-6, 1e6, 4), ["10⁻⁶", "10⁻³", "10⁰", "10³", "10⁶"]);
    assert_eq!(log_ticks(1e-3, 1.0, 5), ["0.001", "0.01", "0.1", "1"]);
    assert_eq!(log_ticks(2.0, 30.0, 6), ["2", "5", "10", "20"]);
    assert_eq!(log_ticks(4.0, 6.0, 4), ["4", "4.5", "5", "5.5", "6"]);
}

#[test]
fn a_distribution_rises_from_nothing_to_one() {
    let values: Vec<f64> = (0..2500).rev().map(f64::from).chain([f64::NAN]).collect();
    let line = Line::distribution("d", &values);
    assert_eq!(line.points.first(), Some(&(0.0, 0.0)));
    assert_eq!(line.points.last(), Some(&(2499.0, 1.0)));
    assert!(line.points.len() <= 1001);
    for (x, share) in line.points.iter().skip(1) {
        assert!((share - (x + 1.0) / 2500.0).abs() < 1e-12, "{x}");
    }
    assert_eq!(Line::distribution("e", &[]).points, []);
}

#[test]
fn names_and_titles_cannot_break_the_document() {
    let svg = Figure::new("a<b & \"c\"\u{1}", "x", "y")
        .line(Line::new("</svg><script>", vec![(0.0, 1.0)]))
        .line(Line::new("other", vec![(0.0, 1.0)]))
        .to_svg();
    assert!(svg.contains("<title>a&lt;b &amp; &quot;c&quot; </title>"), "{svg}");
    assert!(!svg.contains("<script"));
}

#[test]
fn figures_without_usable_data_are_drawn() {
    let nothing = [
        Figure::new("empty", "x", "y"),
        Figure::new("not finite", "x", "y")
            .line(Line::new("a", vec![(f64::NAN, f64::INFINITY), (1.0, f64::NAN)])),
        Figure::new("one point", "x", "y")
            .line(Line::new("a", vec![(3.0, 3.0)]).band(vec![(1.0, 5.0)])),
        Figure::new("huge", "x", "y").line(Line::new("a", vec![(-1e308, 1e308), (1e308, -1e308)])),
        Figure::new("bars", "x", "y").bars(Bars::default()),
        Figure::distributions("none", "x", [("a", [].as_slice())]),
        Figure::new("layer", "x", "y").layer("a", Vec::new()),
    ];
    for mut figure in nothing {
        for log in [false, true] {
            (figure.x.log, figure.y.log) = (log, log);
            let svg = figure.to_svg();
            assert!(svg.ends_with("</svg>\n"));
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{}: {svg}", figure.title);
        }
    }
}

#[test]
fn long_lines_are_thinned_without_losing_extremes() {
    let spike = |i: i32| if i == 54_321 { 100.0 } else { f64::from(i % 7) };
    let points = (0..100_000).map(|i| (f64::from(i), spike(i))).collect();
    let figure = Figure::new("t", "x", "y").line(Line::new("a", points).style(Style::Plain));
    let svg = figure.to_svg();
    assert!(svg.len() < 60_000, "{}", svg.len());
    // The axis ends at the value 105, 305 pixels above its lower end at pixel 345.2.
    assert!(svg.contains(" 54.72"), "the spike is gone");
    assert_eq!(svg, figure.to_svg());
}

#[test]
fn names_of_bars_are_whole() {
    let names = |count: usize, name: &str| -> String {
        let categories = (0..count).map(|index| format!("{name} {index}")).collect();
        let values = vec![(1.0, 1.0, 1.0); count];
        let series = vec![BarSeries { name: "s".into(), values, is_outlined: false }];
        Figure::new("t", "", "y").bars(Bars { categories, series }).to_svg()
    };
    let few = names(3, "short");
    assert!(few.contains(">short 2</text>"), "{few}");
    let many = names(12, "congestion=compensated, ge:1%/20%, profile=anabranch");
    assert!(many.contains(">congestion=compensated, ge:1%/20%, profile=anabranch 11</text>"));
    assert!(!many.contains('…'), "{many}");
    let upright = |svg: &str| svg.matches("rotate(-90 ").count();
    // One of the turned texts is the label of the vertical axis.
    assert_eq!((upright(&few), upright(&many)), (1, 13));
    let height = |svg: &str| -> f64 {
        let (_, rest) = svg.split_once(" height=\"").unwrap();
        rest.split('"').next().unwrap().parse().unwrap()
    };
    assert!(height(&many) > height(&few) + 150.0, "the figure does not hold them");
}

#[test]
fn an_axis_can_begin_at_zero() {
    let mut figure =
        Figure::new("t", "x", "y").line(Line::new("a", vec![(0.0, 40.0), (1.0, 44.0)]));
    let before = figure.to_svg();
    figure.y.zero = true;
    let after = figure.to_svg();
    assert!(!before.contains(">10</text>") && after.contains(">10</text>"), "{after}");
    // A logarithmic axis has no zero.
    figure.y.log = true;
    assert!(!figure.to_svg().contains("NaN"));
}

#[test]
fn layers_add_up() {
    let figure = Figure::new("t", "x", "y")
        .layer("a", vec![(0.0, 1.0), (1.0, 2.0)])
        .layer("b", vec![(0.0, 3.0), (1.0, 4.0)]);
    let svg = figure.to_svg();
    // The axis ends just above 2 + 4, so 6 has a tick and 7 has none.
    assert!(svg.contains(">6</text>") && !svg.contains(">7</text>"), "{svg}");
}

/// Two panels with the same three stations. In the first, a hop joins two stations that are 300 m
/// apart, and the third station has no traffic.
fn map() -> Map {
    let at = |x, y| Station { name: format!("s{x}"), at: (x, y), way: vec![(x, y), (x + 30.0, y)] };
    let stations = vec![at(0.0, 0.0), at(300.0, 0.0), at(150.0, 100.0)];
    let hop = Hop { from: 0, to: 1, packets: 40.0, losses: 7.0 };
    let panel =
        |title: &str, hops| Panel { title: title.to_owned(), stations: stations.clone(), hops };
    let panels = vec![panel("first", vec![hop]), panel("second", Vec::new())];
    Map { title: "m".to_owned(), caption: "how <to>".to_owned(), panels, width: 500.0 }
}

#[test]
fn a_map_shows_what_goes_from_one_station_to_another() {
    let svg = map().to_svg();
    let count = |what: &str| svg.matches(what).count();
    assert_eq!((count("<circle"), count(">first</text>"), count(">second</text>")), (6, 1, 1));
    // Only the two stations of the hop are named, only in the panel with the hop, and the number of
    // lost packets is shown.
    assert_eq!((count(">s0</text>"), count(">s300</text>"), count(">s150</text>")), (1, 1, 0));
    assert_eq!((count(">7</text>"), count("stroke-opacity=\"0.75\"")), (1, 1));
    assert!(count(">100 m</text>") == 1 && svg.contains("how &lt;to&gt;"), "{svg}");
    // North is up: the third station stands above the others.
    let heights: Vec<f64> = svg
        .split("<circle ")
        .skip(1)
        .map(|rest| rest.split("cy=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap())
        .collect();
    assert!(heights[2] < heights[0] - 20.0 && heights[0] == heights[1], "{heights:?}");
}

#[test]
fn maps_without_usable_places_are_drawn() {
    let mut map = map();
    map.panels[0].stations[0].at = (f64::NAN, 1e300);
    map.panels[0].stations[1].way = vec![(f64::INFINITY, 0.0), (1.0, 1.0)];
    map.panels[0].hops[0].to = 99;
    let mut nothing = map.clone();
    nothing.panels.clear();
    let mut nobody = map.clone();
    nobody.panels.iter_mut().for_each(|panel| panel.stations.clear());
    for map in [map, nothing, nobody] {
        let svg = map.to_svg();
        assert!(svg.ends_with("</svg>\n"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}

#[test]
fn a_logarithmic_axis_is_finite_whatever_it_shows() {
    for (low, high) in [(1e-160, 1e160), (1e-280, 1e280), (1e-300, 1.0), (0.0, f64::MAX)] {
        let scale = Scale::new(true, None, [low, 1.0, high].into_iter(), false);
        let ends = scale.ends();
        assert!(
            ends.0 > 0.0 && ends.0 < ends.1 && ends.1 < f64::INFINITY,
            "{low} {high}: {ends:?}"
        );
        let ticks = scale.ticks(8);
        assert!((1..100).contains(&ticks.len()), "{low} to {high}: {ticks:?}");
        assert!(scale.minor_ticks().len() < 100);
        assert!(scale.place(1.0).is_some_and(f64::is_finite));
    }
}
