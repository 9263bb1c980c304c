//! Tests of scenarios with radio stations.

use core::time::Duration;

use anabranch_types::Probability;

use super::*;
use crate::wireless::MacConfig;
use crate::wireless::mesh::{
    AckRoute, Answers, Forwarding, Renewal, RouteUse, RoutingConfig, Separation,
};

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

/// The messages about `RING` with `from` replaced by `to`.
fn message(from: &str, to: &str) -> String {
    let text = RING.replace(from, to);
    assert_ne!(text, RING);
    let errors = Scenario::parse(&text, "t.toml").unwrap_err();
    errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn mistakes_say_where_and_what_is_allowed() {
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
            "from = \"0\"\ntraffic = { kind = \"messages\", size = \"100B\", interval = \"1s\" }",
            "flow.tcp.traffic: messages, or nothing; allowed: bulk, size, poisson or on-off",
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
        ("ring = 449.4", "apart = 3001", "mesh.apart: the two stations that stand are no farther"),
        ("ring = 449.4", "ring = 449.4\napart = 3", "mesh.apart: given beside ring"),
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

#[test]
fn movements_that_cannot_be_drawn_are_the_only_mistake() {
    let message = message("ring = 449.4", "apart = 3001");
    assert_eq!(message.lines().count(), 1, "{message}");
}

#[test]
fn options_that_do_not_go_together_are_refused() {
    for (from, to, expected) in [
        (
            "[mesh]",
            "[mesh]\nrts = \"sometimes\"",
            "mesh.rts: 'sometimes' is not accepted; allowed: never",
        ),
        (
            "[mesh]",
            "[mesh]\nslot = \"2ms\"",
            "mesh.slot: '2ms' is not accepted; allowed: at most 1ms",
        ),
        ("[mesh]", "[mesh]\nmost-window = 30", "window_max must be at least window_min"),
        ("[mesh]", "[mesh]\nsense-reach = 4000", "sensed farther away than it gets in a SIFS"),
        ("[mesh]", "[mesh]\nrenewal = \"never\"", "no-route, one-route"),
        (
            "[mesh]",
            "[mesh]\nroutes = \"copies-if-lossy\"\ndrop-copies = true",
            "mesh.drop-copies: given beside copies-if-lossy",
        ),
        (
            "mss = 500 }",
            "mss = 500, delayed-ack = 2 }\n[set]\nmesh.routes = \"copies-if-lossy\"",
            "delayed-ack = 1 beside copies-if-lossy",
        ),
    ] {
        let message = message(from, to);
        assert!(message.contains(expected), "{to}: {message}");
    }
}

/// The radio, medium access and routing of a mesh with these keys.
fn keys(keys: &str) -> crate::wireless::mesh::MeshConfig {
    let scenario = Scenario::parse(&RING.replace("[mesh]", &format!("[mesh]\n{keys}")), "t.toml");
    let scenario = scenario.unwrap_or_else(|errors| panic!("{errors:?}"));
    scenario.plan(&scenario.points()[0]).unwrap().mesh.unwrap().config
}

#[test]
fn keys_reach_the_radio_and_medium_access() {
    let usual = keys("").air;
    assert_eq!(usual.mac.rts_threshold, u32::MAX);
    let other = keys(
        "mac = \"ns2\"\nrts = \"always\"\nslot = \"9us\"\nsifs = \"16us\"\npreamble = \"96us\"\nleast-window = 15\n\
         most-window = 511\nshort-retries = 5\nlong-retries = 3\nqueue = 20\nreach = 100\nsense-reach = 200\ncapture = 4",
    )
    .air;
    let micros = Duration::from_micros;
    let expected = MacConfig {
        rts_threshold: 0,
        slot: micros(9),
        sifs: micros(16),
        preamble: micros(96),
        window_min: 15,
        window_max: 511,
        short_retry_limit: 5,
        long_retry_limit: 3,
        queue: 20,
        data_rate: usual.mac.data_rate,
        ..MacConfig::ns2()
    };
    assert_eq!(other.mac, expected);
    assert_eq!(other.radio.reception_range().round(), 100.0);
    assert_eq!(other.radio.sense_range().round(), 200.0);
    assert_eq!(other.radio.capture_ratio, 4.0);
    assert_eq!(keys("rts = \"500B\"").air.mac.rts_threshold, 500);
}

#[test]
fn keys_reach_every_part_of_routing() {
    assert_eq!(keys("").routing, RoutingConfig::dsr());
    assert_eq!(keys("routing = \"mtcp\"").routing, RoutingConfig::mtcp());
    assert_eq!(keys("routing = \"smr\"").routing, RoutingConfig::smr());
    let routing = keys(
        "routing = \"mtcp\"\nroutes = \"copies-if-lossy\"\njitter = \"5ms\"\nlossy-above = \"4%\"\n\
         separation = \"stations\"\nrenewal = \"one-route\"\nforwarding = \"other-link\"\n\
         answers = \"maximally-disjoint\"\nanswer-wait = \"50ms\"\nneighbour-lists = false\n\
         acknowledgements = \"arrival\"\nneighbours-first = \"20ms\"\nreply-from-cache = true\nshorten = true\n\
         overhear = false\nsalvage = false\narp = false\nsend-buffer = 8\nsend-buffer-timeout = \"5s\"\n\
         release-gap = \"1ms\"\nrequest-period = \"100ms\"\nmost-request-period = \"2s\"\nrequest-jitter = \"3ms\"",
    )
    .routing;
    let millis = Duration::from_millis;
    let above = Probability::clamped(0.04);
    let expected = RoutingConfig {
        neighbours_first: Some(millis(20)),
        request_period: millis(100),
        most_request_period: millis(2000),
        reply_from_cache: true,
        overhear: false,
        shorten: true,
        salvage: false,
        send_buffer: 8,
        send_buffer_timeout: millis(5000),
        release_gap: millis(1),
        jitter: millis(3),
        arp: false,
        forwarding: Forwarding::OtherLink,
        answers: Answers::MaximallyDisjoint { wait: millis(50) },
        neighbour_lists: false,
        routes: RouteUse::CopiesIfLossy { jitter: millis(5), above },
        separation: Separation::Stations,
        renewal: Renewal::OneRoute,
        acknowledgements: AckRoute::Arrival,
        ..RoutingConfig::dsr()
    };
    assert_eq!(routing, expected);
    assert_eq!(keys("neighbours-first = \"0s\"").routing.neighbours_first, None);
}

#[test]
fn runs_with_the_same_movements_differ() {
    let moving = RING.replace("ring = 449.4", "width = 600\nheight = 300");
    let again = |run: &str| delivered(&moving.replace("[mesh]", &format!("[mesh]\n{run}")), 1);
    let (first, second) = (again("run = 1"), again("run = 2"));
    assert_eq!(delivered(&moving, 1), first);
    assert_ne!(first, second);
    assert_eq!(again("run = 2"), second);
}

#[test]
fn transfers_end_and_loads_arrive() {
    let text = RING.replace("loss = \"2%\"", "routing = \"mtcp\"\ndrop-copies = true")
        + "traffic = \"size:20kB\"\n\
           [[load]]\nname = \"udp\"\nfrom = \"3\"\nto = \"10\"\nrate = \"20kbit\"\npacket = 500\nstart = \"2s\"\nstop = \"12s\"\n";
    let scenario = Scenario::parse(&text, "t.toml").unwrap_or_else(|errors| panic!("{errors:?}"));
    let report = scenario.run(&scenario.points()[0], 1).unwrap();
    let figure = |subject, metric| report.scalar(subject, metric).expect(metric);
    assert_eq!(figure("tcp", "transfers"), 1.0);
    assert_eq!(figure("tcp", "delivered_bytes"), 20_000.0);
    // Of 50 packets of 500 bytes in ten seconds, nearly all arrive, and none arrives twice.
    let rate = figure("udp", "throughput_mbps");
    assert!((0.015..=0.0201).contains(&rate), "{rate}");
    // Both sources search for routes. The source of the load finds two routes and sends its 50
    // packets over both. The transfer may end before its source knows a second route.
    let (requests, copies) = (figure("mesh", "route_requests"), figure("mesh", "copies"));
    assert!(requests >= 2.0 && copies > 40.0, "{requests} {copies}");
    let (packets, bytes) = (figure("mesh", "routing_packets"), figure("mesh", "routing_bytes"));
    assert!(packets > figure("mesh", "forwarded_requests") && bytes > 20.0 * packets, "{bytes}");
    let late = text.replace("duration = \"20s\"", "duration = \"20s\"\nwarm-up = \"18s\"");
    let scenario = Scenario::parse(&late, "t.toml").unwrap();
    let late = scenario.run(&scenario.points()[0], 1).unwrap();
    assert!(late.scalar("mesh", "copies").unwrap() < figure("mesh", "copies") / 2.0);
}

/// Positions of stations and the traffic of each hop can be recorded without changing the run.
#[test]
fn stations_and_hops_can_be_recorded() {
    let probe = "[[probe]]\nof = \"mesh\"\nseries = [\"x_m\", \"y_m\", \"hop_packets\", \"hop_losses\"]\n\
                 interval = \"2s\"\n";
    let run = |text: &str| {
        let scenario =
            Scenario::parse(text, "t.toml").unwrap_or_else(|errors| panic!("{errors:?}"));
        scenario.run(&scenario.points()[0], 1).unwrap()
    };
    let (plain, recorded) = (run(RING), run(&format!("{RING}{probe}")));
    assert_eq!(plain.scalar("tcp", "delivered_bytes"), recorded.scalar("tcp", "delivered_bytes"));
    let of =
        |metric: &'static str| recorded.series.iter().filter(move |series| series.metric == metric);
    let names = |metric| of(metric).map(|series| series.subject.clone()).collect::<Vec<_>>();
    let stations: Vec<String> = (0..14).map(|station| format!("station.{station}")).collect();
    assert_eq!((names("x_m"), names("y_m")), (stations.clone(), stations));
    for (x, y) in of("x_m").zip(of("y_m")) {
        assert_eq!(x.times, (0..=10).map(|point| f64::from(2 * point)).collect::<Vec<_>>());
        let radius = x.values.iter().zip(&y.values).map(|(x, y)| x.hypot(*y));
        assert!(radius.clone().all(|radius| (radius - 449.4).abs() < 1e-6));
    }
    // Data goes from station 0 to station 7 around either side of the ring, and some of it is lost.
    let sum = |metric, hop: &str| {
        let series = of(metric).filter(|series| hop.is_empty() || series.subject == hop);
        series.flat_map(|series| series.values.iter()).sum::<f64>()
    };
    let hops = names("hop_packets");
    assert!(hops.iter().all(|hop| hop.starts_with("hop.")), "{hops:?}");
    let segments = recorded.scalar("tcp", "delivered_bytes").unwrap() / 500.0;
    let last = sum("hop_packets", "hop.6-7") + sum("hop_packets", "hop.8-7");
    assert!(last >= segments && segments > 50.0, "{last} {segments}");
    let first = sum("hop_packets", "hop.0-1") + sum("hop_packets", "hop.0-13");
    assert!(first > last && sum("hop_losses", "") > 0.0, "{first} {last}");
    // Packets that only carry an acknowledgement do not count.
    assert!(!hops.iter().any(|hop| hop == "hop.7-6" || hop == "hop.7-8"), "{hops:?}");
}

#[test]
fn positions_are_of_stations() {
    let text = format!("{RING}[[probe]]\nof = \"tcp\"\nseries = \"x_m\"\n");
    let errors = Scenario::parse(&text, "t.toml").unwrap_err();
    assert!(errors[0].to_string().contains("'tcp' has none of x_m"), "{}", errors[0]);
    // Without a subject, the probe records the only subject that has the metric.
    let text = format!("{RING}[[probe]]\nseries = \"x_m\"\n");
    Scenario::parse(&text, "t.toml").unwrap();
}
