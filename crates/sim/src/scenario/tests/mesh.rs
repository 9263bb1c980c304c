//! Stations with radios.

use super::*;

const RING: &str = r#"
name = "ring"
duration = "20s"
[mesh]
stations = 14
ring = 449.4
loss = "2%"
[[flow]]
name = "tcp"
from = "0"
to = "7"
profile = "tcp:ns2-sack1"
tcp = { mss = 500 }
"#;

fn delivered(text: &str, seed: u64) -> f64 {
    let scenario = Scenario::parse(text, "t.toml").unwrap_or_else(|errors| panic!("{errors:?}"));
    let report = scenario.run(&scenario.points()[0], seed).expect("runs");
    report.scalar("tcp", "delivered_bytes").expect("measured")
}

#[test]
fn a_flow_runs_over_a_ring_and_the_same_seed_gives_the_same() {
    let bytes = delivered(RING, 1);
    assert!(bytes > 20_000.0, "{bytes}");
    assert_eq!(delivered(RING, 1), bytes);
    assert_ne!(delivered(RING, 2), bytes);
    let clean = delivered(&RING.replace("2%", "0%"), 1);
    let copied = delivered(&RING.replace("[mesh]", "[mesh]\nrouting = \"mtcp\""), 1);
    assert!(clean > 1.3 * bytes && copied != bytes, "{clean} {copied} {bytes}");
}

#[test]
fn series_and_warm_up_are_those_of_other_flows() {
    let text = RING.replace("duration = \"20s\"", "duration = \"20s\"\nwarm-up = \"10s\"")
        + "[[probe]]\nof = \"tcp\"\nseries = [\"acknowledged_bytes\", \"timeouts\"]\ninterval = \"1s\"\n";
    let whole = delivered(RING, 1);
    let scenario = Scenario::parse(&text, "t.toml").unwrap();
    let report = scenario.run(&scenario.points()[0], 1).unwrap();
    let late = report.scalar("tcp", "delivered_bytes").unwrap();
    assert!(late > 0.0 && late < whole, "{late} of {whole}");
    let acknowledged = report.series.iter().find(|series| series.metric == "acknowledged_bytes");
    let values = &acknowledged.expect("recorded").values;
    assert!(values.len() >= 19 && values.windows(2).all(|pair| pair[0] <= pair[1]));
}

#[test]
fn stations_move_as_drawn_or_as_a_file_says() {
    let moving = RING.replace("ring = 449.4", "width = 600\nheight = 300\nmovement = 3");
    let drawn = delivered(&moving, 1);
    assert!(drawn > 20_000.0, "{drawn}");
    assert_ne!(delivered(&moving.replace("movement = 3", "movement = 4"), 1), drawn);
    let own = moving.replace("movement = 3\n", "");
    assert_eq!(delivered(&own, 3), delivered(&moving, 3), "the run's seed");
    let file = RING.replace("stations = 14\nring = 449.4", "file = \"line.ns\"").replace('7', "1");
    let line = "$node_(0) set X_ 0\n$node_(1) set X_ 200\n";
    let mut read = |name: &str| match name {
        "line.ns" => Ok(line.to_owned()),
        _ => Err("there is none".to_owned()),
    };
    let scenario = Scenario::load(&file, "t.toml", &[], &mut read).unwrap();
    let report = scenario.run(&scenario.points()[0], 1).unwrap();
    assert!(report.scalar("tcp", "delivered_bytes").unwrap() > 100_000.0);
}

#[test]
fn mistakes_say_where_and_what_is_allowed() {
    let message = |from: &str, to: &str| {
        let text = RING.replace(from, to);
        assert_ne!(text, RING);
        let errors = Scenario::parse(&text, "t.toml").unwrap_err();
        errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    for (from, to, expected) in [
        (
            "to = \"7\"",
            "to = \"14\"",
            "t.toml:11:6: flow.tcp.to: no station '14'; allowed: a station of the mesh, from 0 to 13",
        ),
        ("to = \"7\"", "to = \"0\"", "'0' is also where it begins"),
        ("to = \"7\"\n", "", "missing"),
        ("tcp:ns2-sack1\"\ntcp = { mss = 500 }", "anabranch\"", "not TCP over one path"),
        (
            "from = \"0\"",
            "from = \"0\"\ntraffic = \"size:1MB\"",
            "flow.tcp.traffic: not without end",
        ),
        (
            "from = \"0\"",
            "from = \"0\"\nstop = \"3s\"",
            "flow.tcp.stop: given for a flow between stations",
        ),
        ("ring = 449.4", "ring = 449.4\nwidth = 3", "mesh.width: given beside ring"),
        (
            "stations = 14\nring = 449.4",
            "stations = 3\nfile = \"a\"",
            "mesh.stations: given beside file",
        ),
        ("ring = 449.4", "least-speed = 20", "the highest is no less than the least"),
        ("ring = 449.4", "movement = 1.5", "a whole number from 0 to 1e15"),
        ("loss = \"2%\"", "loss = \"2%\"\nrouting = \"aodv\"", "dsr, smr, mtcp"),
        (
            "[mesh]",
            "[[path]]\nname = \"a\"\nrate = \"1mbit\"\ndelay = \"1ms\"\n[mesh]",
            "path: given beside [mesh]",
        ),
    ] {
        let message = message(from, to);
        assert!(message.contains(expected), "{to}: {message}");
    }
}
