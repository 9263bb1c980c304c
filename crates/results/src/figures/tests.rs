use std::collections::BTreeMap;

use crate::tables::{Points, Row};

use super::*;

fn points(keys: &[&str], values: &[&[&str]]) -> Points {
    let owned = |values: &[&str]| values.iter().map(|v| (*v).to_owned()).collect::<Vec<_>>();
    let values: BTreeMap<usize, Vec<String>> =
        values.iter().map(|v| owned(v)).enumerate().collect();
    Points { keys: owned(keys), values }
}

fn data(rows: &[(usize, u64, &str, f64, f64)]) -> Data {
    let mut data = Data::default();
    for (point, seed, subject, at, value) in rows.iter().copied() {
        data.add(&Row { point, seed, subject, metric: "goodput_mbps", at, value });
    }
    data
}

#[test]
fn a_sweep_of_numbers_becomes_lines_with_intervals() {
    let points = points(&["loss", "paths"], &[&["1%", "2"], &["5%", "2"]]);
    let sweep = Sweep::new(&points, None).unwrap();
    let data = data(&[
        (0, 1, "all", 0.0, 3.0),
        (0, 1, "bulk", 0.0, 3.0),
        (0, 1, "bulk.1", 0.0, 3.0),
        (0, 2, "bulk", 0.0, 5.0),
        (1, 1, "bulk", 0.0, 1.0),
        (1, 2, "bulk", 0.0, 1.0),
    ]);
    let figures = scalars(&data, &sweep, false);
    let (name, figure) = &figures[0];
    assert_eq!((figures.len(), name.as_str()), (1, "goodput_mbps"));
    assert_eq!((figure.x.label.as_str(), figure.y.label.as_str()), ("loss (%)", "goodput (Mb/s)"));
    assert_eq!(figure.lines.len(), 1, "flows of a group and all are left out");
    assert_eq!(figure.lines[0].name, "paths = 2");
    assert_eq!(figure.lines[0].points, [(1.0, 4.0), (5.0, 1.0)]);
    let (low, high) = figure.lines[0].band[0];
    assert_eq!(low, 0.0, "a rate below zero");
    assert!((high - 4.0 - 12.706).abs() < 0.01, "{low} {high}");
    assert!(figure.y.zero && figure.caption.contains("Intervals end at zero"));
}

#[test]
fn intervals_below_zero_stay_where_values_are() {
    let points = points(&["loss"], &[&["1%"], &["5%"]]);
    let sweep = Sweep::new(&points, None).unwrap();
    let rows = [(0, 1, "a", 0.0, -3.0), (0, 2, "a", 0.0, 5.0), (1, 1, "a", 0.0, 1.0)];
    let figure = scalars(&data(&rows), &sweep, false).remove(0).1;
    assert!(figure.lines[0].band[0].0 < -40.0);
    assert!(!figure.y.zero && !figure.caption.contains("zero"), "{}", figure.caption);
}

#[test]
fn without_numbers_there_are_bars() {
    let rows = [(0, 1, "a", 0.0, 3.0), (0, 1, "b", 0.0, 4.0)];
    let sweep = Sweep::new(&points(&[], &[&[]]), None).unwrap();
    let bars = scalars(&data(&rows), &sweep, false).remove(0).1.bars.unwrap();
    assert_eq!(bars.categories, ["a", "b"]);
    let rows = [(0, 1, "a", 0.0, 3.0), (1, 1, "a", 0.0, 4.0)];
    let sweep = Sweep::new(&points(&["profile"], &[&["tcp:sack"], &["mplot"]]), None).unwrap();
    let bars = scalars(&data(&rows), &sweep, false).remove(0).1.bars.unwrap();
    assert_eq!(bars.categories, ["tcp:sack", "mplot"]);
    assert_eq!(bars.series[0].values[1], (4.0, 4.0, 4.0));
    let zero = [(0, 1, "a", 0.0, 0.0), (1, 1, "a", 0.0, 0.0)];
    assert_eq!(scalars(&data(&zero), &sweep, false).len(), 0);
    assert_eq!(scalars(&data(&zero), &sweep, true).len(), 1);
}

#[test]
fn bars_of_two_keys_are_named_by_what_differs() {
    let rows = [(0, 1, "a", 0.0, 3.0), (1, 1, "a", 0.0, 4.0), (2, 1, "a", 0.0, 5.0)];
    let values: [&[&str]; 3] =
        [&["tcp:sack", "5%", "2"], &["mplot", "5%", "2"], &["mplot", "ge:1%/20%", "2"]];
    let sweep = Sweep::new(&points(&["profile", "loss_model", "paths"], &values), None).unwrap();
    let figure = scalars(&data(&rows), &sweep, false).remove(0).1;
    assert_eq!(figure.x.label, "profile, loss model");
    let names = figure.bars.unwrap().categories;
    assert_eq!(names, ["tcp:sack, 5%", "mplot, 5%", "mplot, ge:1%/20%"]);
}

#[test]
fn a_single_report_over_time_is_a_point() {
    let sweep = Sweep::new(&points(&[], &[&[]]), None).unwrap();
    let figure = series(&data(&[(0, 4, "bulk", 1.0, 3.0)]), &sweep).remove(0).1;
    assert_eq!(figure.lines[0].style, anabranch_plot::Style::Marked);
    assert!(figure.y.zero);
}

#[test]
fn paths_are_stacked_and_time_is_of_one_seed() {
    let sweep = Sweep::new(&points(&[], &[&[]]), None).unwrap();
    let data = data(&[
        (0, 4, "bulk/wifi", 1.0, 3.0),
        (0, 4, "bulk/wifi", 2.0, 4.0),
        (0, 4, "bulk/lte", 1.0, 1.0),
        (0, 4, "bulk/lte", 2.0, 2.0),
        (0, 5, "bulk/wifi", 1.0, 9.0),
    ]);
    let stacked = shares(&data, &sweep).remove(0);
    assert_eq!(stacked.0, "goodput_mbps-shares-bulk");
    assert_eq!(stacked.1.layers[0].points, [(1.0, 3.0), (2.0, 4.0)]);
    let lines = series(&data, &sweep).remove(0).1;
    assert_eq!((lines.lines.len(), lines.caption.as_str()), (2, "The run with seed 4."));
    let curves = distributions(&data, &sweep).remove(0).1;
    assert_eq!(curves.lines[0].points.last(), Some(&(9.0, 1.0)));
}

#[test]
fn an_unknown_key_is_refused_with_those_there_are() {
    let error = Sweep::new(&points(&["loss"], &[&["1%"]]), Some("los")).unwrap_err();
    assert_eq!(error, "there is no sweep key 'los'; there is: loss");
}

#[test]
fn a_map_shows_spans_of_time() {
    let mut data = Data::default();
    let mut add = |subject: &str, metric: &str, at: f64, value: f64| {
        data.add(&Row { point: 0, seed: 3, subject, metric, at, value });
    };
    for second in 0..=14 {
        let time = f64::from(second);
        add("station.0", "x_m", time, 0.0);
        add("station.0", "y_m", time, 0.0);
        add("station.7", "x_m", time, 10.0 * time);
        add("station.7", "y_m", time, 50.0);
    }
    add("hop.0-7", "hop_packets", 2.0, 5.0);
    add("hop.0-7", "hop_packets", 4.0, 6.0);
    add("hop.0-7", "hop_losses", 5.0, 1.0);
    // A hop to a station that does not exist.
    add("hop.0-9", "hop_packets", 5.0, 1.0);
    add("hop.x", "hop_packets", 5.0, 1.0);
    // A hop of another run, in which stations are elsewhere.
    let metric = "hop_packets";
    data.add(&Row { point: 0, seed: 4, subject: "hop.7-0", metric, at: 5.0, value: 1.0 });
    let sweep = Sweep::new(&points(&[], &[&[]]), None).unwrap();
    let (name, map) = movement(&data, &sweep).remove(0);
    assert_eq!(name, "stations-map");
    assert!(map.caption.ends_with("The run with seed 3."), "{}", map.caption);
    let titles: Vec<&str> = map.panels.iter().map(|panel| panel.title.as_str()).collect();
    let spans = ["0 to 2 s", "2 to 4 s", "4 to 7 s", "7 to 9 s", "9 to 11 s", "11 to 14 s"];
    assert_eq!(titles, spans);
    let hops: Vec<Vec<(f64, f64)>> = map
        .panels
        .iter()
        .map(|panel| panel.hops.iter().map(|hop| (hop.packets, hop.losses)).collect())
        .collect();
    assert_eq!(hops[..3], [vec![(5.0, 0.0)], vec![(6.0, 0.0)], vec![(0.0, 1.0)]]);
    assert!(hops[3..].iter().all(Vec::is_empty));
    // The station's place in the middle of the third span, and its positions in that span.
    let station = &map.panels[2].stations[1];
    assert_eq!((station.name.as_str(), station.at), ("7", (55.0, 50.0)));
    assert_eq!(station.way, [(40.0, 50.0), (50.0, 50.0), (60.0, 50.0), (70.0, 50.0)]);
    // Metrics of maps are not drawn as lines.
    assert!(series(&data, &sweep).is_empty());
    assert!(movement(&Data::default(), &sweep).is_empty());
}
