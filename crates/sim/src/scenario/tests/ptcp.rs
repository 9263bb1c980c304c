//! Tests of the keys for pTCP's pipes.

use super::mptcp::{rates, run, text};
use super::parse;

#[test]
fn every_segment_has_the_header() {
    let report = run(&text("tcp:ptcp", ""));
    let [goodput, a, b] = rates(&report);
    assert!(goodput > 14.0, "{goodput}");
    // Data that was sent and then unbound, because the window was cut, arrives twice.
    let again = report.scalar("bulk", "duplicate_bytes").expect("measured") * 8e-6 / 10.0;
    assert!((0.001..0.05).contains(&(again / goodput)), "{again}");
    // A packet has 1460 bytes of payload, 52 bytes of IP and TCP headers with timestamps, and 16
    // bytes of pTCP header.
    let share = (a + b) / (goodput + again);
    assert!((share - 1528.0 / 1460.0).abs() < 0.005, "{share}");
    // After a fallback the flow is plain TCP.
    let [goodput, a, b] = rates(&run(&text("tcp:ptcp", "strip-options = \"a\"")));
    assert!((a / goodput - 1512.0 / 1460.0).abs() < 0.01 && b == 0.0, "{}", a / goodput);
}

#[test]
fn the_receiving_side_limits_the_pipes() {
    for (profile, join) in [("tcp:ptcp", "after-first"), ("tcp:mptcp", "all-at-once")] {
        let options = format!("most-subflows = 1, join = \"{join}\"");
        let [goodput, a, b] = rates(&run(&text(profile, &options)));
        assert!(goodput > 7.0 && a > 7.0 && b < 0.01, "{profile}: {goodput}, {a} and {b}");
    }
}

/// Two pipes with a buffer of 16 KiB each carry as much as two pipes that share 32 KiB (pTCP §4.5:
/// n·B).
#[test]
fn buffers_have_their_size_for_each_pipe() {
    let goodput = |size: &str, each: bool| {
        let sizes = format!("receive-buffer = \"{size}\", send-buffer = \"{size}\"");
        let options = format!("{sizes}, buffers-per-subflow = {each}");
        rates(&run(&text("tcp:ptcp", &options)))[0]
    };
    let [each, both] = [goodput("16KiB", true), goodput("32KiB", false)];
    assert!((each / both - 1.0).abs() < 0.02, "{each} and {both} Mb/s");
    assert!(goodput("16KiB", false) < 0.8 * each, "half of that is not enough");
}

/// A host reaches another access point before it loses the first one (pTCP §6, handoffs).
#[test]
fn a_soft_handoff_stops_nothing() {
    let events = "[[event]]\nat = \"0s\"\npath = \"b\"\nwhat = \"down\"\n\
                  [[event]]\nat = \"4s\"\npath = \"b\"\nwhat = \"up\"\n\
                  [[event]]\nat = \"6s\"\npath = \"a\"\nwhat = \"down\"\n\
                  [[probe]]\nseries = \"goodput_mbps\"\nof = [\"bulk\"]\ninterval = \"1s\"\n";
    let report = run(&(text("tcp:ptcp", "") + events));
    let goodput = &report.series("bulk", "goodput_mbps").expect("recorded").values;
    assert!(goodput[1..4].iter().all(|rate| *rate > 6.5), "the first alone: {goodput:?}");
    assert!(goodput[5] > 10.0, "both: {goodput:?}");
    assert!(goodput[7..10].iter().all(|rate| *rate > 6.5), "the second alone: {goodput:?}");
    // A full queue of 60 packets adds 90 ms to the 40 ms of the round trip.
    let gap = report.scalar("bulk", "longest_gap_s").expect("measured");
    assert!(gap < 0.14, "{gap} s without a byte");
}

#[test]
fn transfers_that_close_take_their_time() {
    let transfers = |options: &str| {
        let traffic = "\ntraffic = { kind = \"size\", size = \"20kB\", repeat = 10000 }\n";
        let report = run(&(text("tcp:ptcp", options) + traffic));
        let figure = |name| report.scalar("bulk", name).expect("measured");
        (figure("transfers"), figure("fct_mean_s"))
    };
    let (without, time) = transfers("");
    let (with, closed) = transfers("close = true");
    // Delivery takes the same time, but the next transfer waits for the FINs, which take a round
    // trip of 40 ms.
    assert!((closed / time - 1.0).abs() < 0.05, "{closed} and {time} s");
    let longer = 10.0 / with - 10.0 / without;
    assert!((0.035..0.06).contains(&longer), "{without} and {with}: {longer} s");
}

/// Runs a flow with each of these congestion controls for 60 s over one link of 10 Mb/s with a
/// round-trip time of 40 ms and a buffer of `buffer` packets. Returns the goodputs as shares of the
/// link's capacity, and the mean smoothed round-trip time of the first flow, s.
fn beside(controls: &[&str], buffer: u64) -> (Vec<f64>, f64) {
    let mut text = format!(
        "name = \"shared\"\nduration = \"70s\"\nwarm-up = \"10s\"\n\
         [[path]]\nname = \"a\"\nrate = \"10mbit\"\ndelay = \"20ms\"\nbuffer = \"{buffer}p\"\n\
         [[probe]]\nseries = \"srtt_s\"\nof = \"f0\"\ninterval = \"100ms\"\n"
    );
    for (index, control) in controls.iter().enumerate() {
        text += &format!(
            "[[flow]]\nname = \"f{index}\"\nprofile = \"tcp:sack\"\nstart = \"{}ms\"\n\
             tcp = {{ congestion = \"{control}\" }}\n",
            1000 * index
        );
    }
    let report = run(&text);
    let goodput = |index| report.scalar(&format!("f{index}"), "goodput_mbps").expect("measured");
    let srtt = &report.series("f0", "srtt_s").expect("recorded").values;
    let whole = 10.0 * 1460.0 / 1512.0;
    let mean = srtt.iter().sum::<f64>() / srtt.len() as f64;
    ((0..controls.len()).map(|index| goodput(index) / whole).collect(), mean)
}

/// The second way to be TCP-friendly in pTCP §6: additional pipes use only the capacity that others
/// leave.
#[test]
fn a_yielding_vegas_takes_what_others_leave() {
    // The bandwidth-delay product is 33 packets.
    for buffer in [33, 66] {
        let (alone, _) = beside(&["vegas:yield=3"], buffer);
        assert!(alone[0] > 0.97, "{buffer}: {alone:?}");
        for order in [["reno", "vegas:yield=3"], ["vegas:yield=3", "reno"]] {
            let (shares, _) = beside(&order, buffer);
            let (own, reno) =
                if order[0] == "reno" { (shares[1], shares[0]) } else { (shares[0], shares[1]) };
            let (plain, _) = beside(&["reno", "vegas"], buffer);
            assert!(own < 0.06 && reno > 0.9, "{buffer}: {own} and {reno}");
            assert!(plain[1] > 1.5 * own, "{buffer}: Vegas itself takes {}", plain[1]);
        }
    }
}

#[test]
fn a_plateau_keeps_deep_buffers_empty() {
    let (filled, long) = beside(&["reno"], 330);
    let (capped, short) = beside(&["reno:plateau=on"], 330);
    assert!(long > 0.2, "{long} s: the buffer fills");
    assert!(short < 0.08, "{short} s: less than a bandwidth-delay product waits");
    assert!(capped[0] > 0.95 * filled[0], "{capped:?} of {filled:?}");
}

/// When the path suddenly becomes longer, the limit that was found on the old path is given up.
#[test]
fn a_plateau_is_found_anew_when_the_way_changes() {
    let goodput = |control: &str| {
        let text = format!(
            "name = \"moving\"\nduration = \"200s\"\nwarm-up = \"10s\"\n\
             [[path]]\nname = \"a\"\nrate = \"10mbit\"\ndelay = \"20ms\"\nbuffer = \"330p\"\n\
             delay-steps = \"30s/40ms-90ms\"\n\
             [[flow]]\nname = \"f\"\nprofile = \"tcp:sack\"\ntcp = {{ congestion = \"{control}\" }}\n"
        );
        run(&text).scalar("f", "goodput_mbps").expect("measured")
    };
    let (filled, capped) = (goodput("reno"), goodput("reno:plateau=on"));
    assert!(capped > 0.9 * filled, "{capped} of {filled}");
}

/// Runs two pipes and one TCP flow, each with a round-trip time of 60 ms. All use one link of 10
/// Mb/s, or each pipe has a link of its own and the TCP flow uses the first pipe's link. Returns
/// the pipes' share of the goodput, and the utilisation of the links.
fn pipes_beside(tcp: &str, disjoint: bool, seed: u64) -> (f64, f64) {
    let second = if disjoint { "other" } else { "bottleneck" };
    let mut text = String::from("name = \"friendly\"\nduration = \"180s\"\nwarm-up = \"60s\"\n");
    for link in ["bottleneck", "other"] {
        text += &format!(
            "[[link]]\nname = \"{link}\"\nfrom = \"hub\"\nto = \"receiver\"\nrate = \"10mbit\"\n\
             delay = \"25ms\"\nbuffer = \"60p\"\n"
        );
    }
    for (at, (path, last)) in
        [("a", "bottleneck"), ("b", second), ("c", "bottleneck")].iter().enumerate()
    {
        text += &format!(
            "[[link]]\nname = \"access{at}\"\nfrom = \"s{at}\"\nto = \"hub\"\nrate = \"1gbit\"\ndelay = \"5ms\"\n\
             [[path]]\nname = \"{path}\"\nvia = [\"access{at}\", \"{last}\"]\n"
        );
    }
    text += &format!(
        "[[flow]]\nname = \"ours\"\nprofile = \"tcp:ptcp\"\npaths = [\"a\", \"b\"]\n\
         tcp = {{ ecn = false, send-jitter = \"800us\", {tcp} }}\n\
         [[flow]]\nname = \"tcp\"\nprofile = \"tcp:sack\"\npaths = \"c\"\nstart = \"1s\"\n\
         tcp = {{ send-jitter = \"800us\" }}\n"
    );
    let scenario = parse(&text);
    let report =
        scenario.run(&scenario.points()[0], seed).unwrap_or_else(|error| panic!("{error}"));
    let [ours, tcp] =
        ["ours", "tcp"].map(|flow| report.scalar(flow, "goodput_mbps").expect("measured"));
    let links = if disjoint { 20.0 } else { 10.0 };
    (ours / (ours + tcp), (ours + tcp) / links * 1528.0 / 1460.0)
}

/// The first way to be TCP-friendly in pTCP §6: pipes that share a bottleneck together behave like
/// one TCP.
#[test]
fn pipes_that_share_a_bottleneck_are_coupled_and_others_are_not() {
    let mean = |tcp: &str, disjoint| {
        let runs = [1, 2].map(|seed| pipes_beside(tcp, disjoint, seed));
        (
            runs.iter().map(|run| run.0).sum::<f64>() / 2.0,
            runs.iter().map(|run| run.1).sum::<f64>() / 2.0,
        )
    };
    let (uncoupled, coupled) =
        ("congestion = \"lia:initial=2\"", "congestion = \"lia:initial=2\", couple-shared = true");
    let ((two, _), (one, filled)) = (mean(uncoupled, false), mean(coupled, false));
    assert!(two > 0.58, "two flows' share: {two}");
    assert!((0.35..0.52).contains(&one), "one flow's share: {one}, uncoupled {two}");
    assert!(filled > 0.95, "{filled}");
    // Over disjoint bottlenecks, each pipe behaves like a TCP of its own, so the pipes get three
    // quarters of both links.
    let ((apart, _), (kept, filled)) = (mean(uncoupled, true), mean(coupled, true));
    assert!((kept / apart - 1.0).abs() < 0.05, "{kept} and {apart}");
    assert!(kept > 0.7 && filled > 0.95, "{kept}, {filled}");
}

/// Different congestion controls in one connection (pTCP §6), with the core transport and with
/// simulated TCP. Each path is used as if it were alone.
#[test]
fn paths_under_different_controls_are_all_filled() {
    let pairs = [["vegas", "reno"], ["westwood", "cubic"], ["bbr", "vegas"], ["veno", "bbr"]];
    let profiles = ["ptcp", "tcp:ptcp"];
    for (controls, profile) in pairs.iter().flat_map(|pair| profiles.map(|name| (pair, name))) {
        let mut text = String::from("name = \"mixed\"\nduration = \"40s\"\nwarm-up = \"10s\"\n");
        for (name, control, rate, delay) in [("a", controls[0], 10, 20), ("b", controls[1], 20, 35)]
        {
            text += &format!(
                "[[path]]\nname = \"{name}\"\nrate = \"{rate}mbit\"\ndelay = \"{delay}ms\"\n\
                 buffer = \"80p\"\ncongestion = \"{control}\"\n"
            );
        }
        text += &format!("[[flow]]\nname = \"ours\"\nprofile = \"{profile}\"\n");
        let scenario = parse(&text);
        let report = scenario.run(&scenario.points()[0], 1).expect("it runs");
        let goodput = report.scalar("ours", "goodput_mbps").expect("measured");
        // Headers take 5 % of the capacity.
        assert!(goodput > 0.85 * 30.0, "{profile}, {controls:?}: {goodput}");
    }
}

/// A yielding Vegas (pTCP §6): one pipe of a connection leaves its link to a TCP flow, while
/// another pipe fills a link of its own.
#[test]
fn one_pipe_yields_and_another_fills_its_link() {
    let scenario = parse(
        r#"
        name = "yields"
        duration = "60s"
        warm-up = "20s"
        [[path]]
        name = "a"
        rate = "10mbit"
        delay = "20ms"
        buffer = "33p"
        [[path]]
        name = "b"
        rate = "20mbit"
        delay = "35ms"
        buffer = "150p"
        congestion = "bbr"
        [[flow]]
        name = "ours"
        profile = "tcp:ptcp"
        tcp = { congestion = "vegas:yield=3" }
        [[flow]]
        name = "lone"
        profile = "tcp:sack"
        paths = ["a"]
        "#,
    );
    let report = scenario.run(&scenario.points()[0], 1).expect("it runs");
    let goodput = |flow| report.scalar(flow, "goodput_mbps").expect("measured");
    let (ours, lone) = (goodput("ours"), goodput("lone"));
    assert!(lone > 8.5, "the lone TCP has {lone} of 10 Mb/s");
    assert!((17.0..20.5).contains(&ours), "{ours}: that of its own link, and next to nothing more");
}
