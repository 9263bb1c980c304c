//! Tests of the keys for striping applications.

use super::{messages, parse};
use crate::report::RunReport;

/// A scenario with two paths, the second `ratio` times as fast as the first, and a flow of this
/// profile with these options, measured from 10 s to 60 s.
fn text(profile: &str, ratio: u32, options: &str) -> String {
    format!(
        "name = \"striping\"\nduration = \"60s\"\nwarm-up = \"10s\"\n\
         [[path]]\nname = \"slow\"\nrate = \"500kbit\"\ndelay = \"200ms\"\nbuffer = \"50p\"\n\
         [[path]]\nname = \"fast\"\nrate = \"{}kbit\"\ndelay = \"50ms\"\nbuffer = \"50p\"\n\
         [[flow]]\nname = \"bulk\"\nprofile = \"{profile}\"\ntcp = {{ {options} }}\n",
        500 * ratio
    )
}

fn run(text: &str) -> RunReport {
    let scenario = parse(text);
    scenario.run(&scenario.points()[0], 1).unwrap_or_else(|error| panic!("{error}"))
}

fn goodput(profile: &str, ratio: u32, options: &str) -> f64 {
    run(&text(profile, ratio, options)).scalar("bulk", "goodput_mbps").expect("measured")
}

#[test]
fn the_smart_application_uses_what_the_unaware_one_cannot() {
    let unaware = [2, 4, 6].map(|ratio| goodput("tcp:unaware", ratio, ""));
    assert!(unaware.iter().all(|mbps| (1.35..1.5).contains(mbps)), "{unaware:?}");
    let smart = goodput("tcp:smart", 6, "");
    assert!((3.0..3.4).contains(&smart), "{smart} of 3.5 Mb/s");
}

#[test]
fn rates_within_the_buffers_are_those_that_can_be_used() {
    // The buffer of the slow path allows 44 packets per 400 ms, which is 1.3 Mb/s of its 2 Mb/s.
    let goodput = |options: &str| {
        let options = format!("resequencing-buffer = \"1MiB\"{options}");
        let text = text("tcp:smart", 10, &options).replace("\"500kbit\"", "\"2mbit\"");
        run(&text).scalar("bulk", "goodput_mbps").expect("measured")
    };
    let (links, usable) = (goodput(""), goodput(", estimate-within-buffers = true"));
    assert!((4.0..4.7).contains(&links), "{links}");
    assert!((5.8..6.2).contains(&usable), "{usable} of 6.3 Mb/s");
}

#[test]
fn buffers_of_one_path_and_of_the_application_can_be_larger() {
    for options in [
        "path-receive-buffer = { fast = \"384KiB\" }",
        "resequencing-buffer = \"320KiB\"",
        "path-receive-buffer = { fast = \"192KiB\" }, path-send-buffer = { fast = \"256KiB\" }",
    ] {
        let mbps = goodput("tcp:unaware", 6, options);
        assert!((3.2..3.5).contains(&mbps), "{options}: {mbps}");
    }
    // A larger buffer for the slow path does not help.
    let mbps = goodput("tcp:unaware", 6, "path-receive-buffer = { slow = \"384KiB\" }");
    assert!((1.3..1.5).contains(&mbps), "{mbps}");
}

#[test]
fn a_blackout_stalls_the_application_whether_its_estimates_show_it_or_not() {
    for estimator in ["link", "link-blackouts"] {
        let text = text("tcp:smart", 4, &format!("estimator = \"{estimator}\""));
        let dark = "\"500kbit\"\nblackout = \"25s-50s\"\ndelay";
        let report = run(&text.replace("\"500kbit\"\ndelay", dark));
        // Data that was given to the path in the blackout stays there.
        let gap = report.scalar("bulk", "longest_gap_s").expect("measured");
        assert!(gap > 20.0, "{estimator}: {gap}");
    }
}

#[test]
fn shut_windows_and_pauses_are_measured() {
    let lossy = text("tcp:unaware", 6, "")
        .replace("\"3000kbit\"", "\"3000kbit\"\nreverse = { loss = \"30%\" }");
    let scenario = parse(&format!(
        "{lossy}[[probe]]\nof = \"bulk/fast\"\nseries = [\"sequence_bytes\", \"acknowledged_bytes\"]\n\
         interval = \"100ms\"\n\
         [[probe]]\nof = \"bulk\"\nseries = \"delivered_bytes\"\n\
         [[measure]]\nname = \"wait\"\nof = \"bulk\"\nmetric = \"still(delivered_bytes, 10, 60)\"\n\
         [[measure]]\nname = \"pause\"\nof = \"bulk/fast\"\nmetric = \"still(sequence_bytes, 10, 60)\"\n\
         [[measure]]\nname = \"pauses\"\nof = \"bulk/fast\"\nmetric = \"pauses(sequence_bytes, 4.5, 10, 60)\"\n"
    ));
    let report = scenario.run(&scenario.points()[0], 1).unwrap_or_else(|error| panic!("{error}"));
    let findings = scenario.judge(&[vec![report.clone()]]);
    let measured = |name: &str| {
        let finding = findings.iter().find(|finding| finding.name == name).expect("it exists");
        finding.estimate.expect("measured").mean
    };
    // A window update was lost, and the persist timer takes five seconds or more to send a probe.
    assert!(measured("pause") > 4.5 && measured("pauses") >= 1.0, "{findings:?}");
    let scalar = |subject, metric| report.scalar(subject, metric).expect("measured");
    assert!(scalar("bulk/fast", "window_probes") >= 1.0);
    assert!((measured("wait") - scalar("bulk", "longest_gap_s")).abs() < 2.0, "{findings:?}");
    assert!(scalar("bulk/fast", "shut_window_s") > 4.5);
    let both = scalar("bulk/fast", "shut_window_s") + scalar("bulk/slow", "shut_window_s");
    assert!((scalar("bulk", "shut_window_s") - both).abs() < 1e-9);
    let last = |metric| {
        let series = report.series("bulk/fast", metric).expect("recorded");
        assert!(series.values.is_sorted());
        *series.values.last().expect("points")
    };
    let (sent, acknowledged) = (last("sequence_bytes"), last("acknowledged_bytes"));
    assert!(acknowledged > 1e6 && sent >= acknowledged && sent <= acknowledged + 65_536.0);
}

#[test]
fn mistakes_are_placed() {
    let one = |profile: &str, options: &str| {
        let messages = messages(&text(profile, 4, options));
        assert_eq!(messages.len(), 1, "{messages:#?}");
        messages[0].clone()
    };
    for (profile, options, said) in [
        (
            "tcp:unaware",
            "estimator = \"link\"",
            "tcp.estimator: given for an application that knows no rates; allowed: tcp:smart",
        ),
        ("tcp:smart", "estimator = \"links\"", "tcp.estimator: 'links' is not accepted"),
        (
            "tcp:smart",
            "estimate-interval = \"0s\"",
            "tcp.estimate-interval: '0s' is not accepted; allowed: 1ms or more",
        ),
        (
            "tcp:mptcp",
            "low-water = \"9kB\"",
            "tcp.low-water: given for a protocol that does not stripe; allowed: tcp:unaware, tcp:smart",
        ),
        (
            "tcp:mptcp",
            "initial-persist = \"5s\"",
            "tcp.initial-persist: given for a protocol with shared buffers",
        ),
        (
            "tcp:smart",
            "scheduler = \"late\"",
            "tcp.scheduler: given for a protocol that has no shared buffers; allowed: tcp:mptcp",
        ),
        (
            "tcp:smart",
            "initial-persist = \"2min\"",
            "tcp.initial-persist: the first interval above the largest",
        ),
        (
            "tcp:smart",
            "path-receive-buffer = { fats = \"1MiB\" }",
            "tcp.path-receive-buffer.fats: there is no path 'fats'; did you mean 'fast'?",
        ),
        (
            "tcp:smart",
            "path-send-buffer = { fast = \"10B\" }",
            "tcp.path-send-buffer.fast: '10B' is not accepted; allowed: a size of one segment at least",
        ),
    ] {
        let message = one(profile, options);
        assert!(message.contains(said), "{options}: {message}");
        assert!(message.starts_with("t.toml:17:"), "{message}");
    }
}
