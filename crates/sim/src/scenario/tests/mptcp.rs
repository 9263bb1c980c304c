//! Tests of the keys for one stream over several paths.

use super::{messages, parse};
use crate::report::RunReport;

/// A scenario with two paths of 8 Mb/s and a flow of this profile with these options, for 10 s.
pub(super) fn text(profile: &str, options: &str) -> String {
    format!(
        "name = \"several\"\nduration = \"10s\"\n\
         [[path]]\nname = \"a\"\nrate = \"8mbit\"\ndelay = \"20ms\"\nbuffer = \"60p\"\n\
         [[path]]\nname = \"b\"\nrate = \"8mbit\"\ndelay = \"20ms\"\nbuffer = \"60p\"\n\
         [[flow]]\nname = \"bulk\"\nprofile = \"{profile}\"\ntcp = {{ {options} }}\n"
    )
}

pub(super) fn run(text: &str) -> RunReport {
    let scenario = parse(text);
    scenario.run(&scenario.points()[0], 1).unwrap_or_else(|error| panic!("{error}"))
}

/// The goodput of the flow and the throughput of each path, Mb/s.
pub(super) fn rates(report: &RunReport) -> [f64; 3] {
    [("bulk", "goodput_mbps"), ("bulk/a", "throughput_mbps"), ("bulk/b", "throughput_mbps")]
        .map(|(subject, figure)| report.scalar(subject, figure).expect("measured"))
}

/// The only mistake in a scenario.
fn complaint(text: &str) -> String {
    let messages = messages(text);
    assert_eq!(messages.len(), 1, "{messages:#?}");
    messages.into_iter().next().expect("one")
}

/// A probe that records the throughput of each path in Mb/s every second.
const BY_SECOND: &str =
    "[[probe]]\nseries = \"throughput_mbps\"\nof = [\"bulk/a\", \"bulk/b\"]\ninterval = \"1s\"\n";

/// The rates that [`BY_SECOND`] recorded.
fn by_second(report: &RunReport) -> [Vec<f64>; 2] {
    ["bulk/a", "bulk/b"]
        .map(|path| report.series(path, "throughput_mbps").expect("recorded").values.clone())
}

/// An event of a path after `at` milliseconds.
fn event(at: u32, path: &str, what: &str) -> String {
    format!("[[event]]\nat = \"{at}ms\"\npath = \"{path}\"\nwhat = \"{what}\"\n")
}

#[test]
fn linux_fills_both_paths_with_each_of_its_controllers() {
    for congestion in ["cubic", "reno", "bbr"] {
        let [goodput, a, b] =
            rates(&run(&text("tcp:mptcp-linux", &format!("congestion = \"{congestion}\""))));
        assert!(goodput > 13.5, "{congestion}: {goodput}");
        assert!((6.5..8.1).contains(&a) && (6.5..8.1).contains(&b), "{congestion}: {a} and {b}");
    }
}

#[test]
fn without_options_on_the_first_path_it_is_tcp_and_on_another_that_one_does_not_join() {
    for profile in ["tcp:mptcp", "tcp:mptcp-linux"] {
        let [goodput, a, b] = rates(&run(&text(profile, "strip-options = \"a\"")));
        assert!((6.5..7.8).contains(&goodput) && b == 0.0, "{profile}: {goodput}, {a} and {b}");
        // Plain TCP segments have no mapping, so they have 1512 bytes for 1460 bytes of payload.
        assert!((a / goodput - 1512.0 / 1460.0).abs() < 0.015, "{profile}: {}", a / goodput);
        let [goodput, a, b] = rates(&run(&text(profile, "strip-options = [\"b\"]")));
        assert!((6.5..7.8).contains(&goodput) && b < 0.01, "{profile}: {goodput}, {a} and {b}");
        assert!((a / goodput - 1532.0 / 1460.0).abs() < 0.015, "{profile}: {}", a / goodput);
    }
}

#[test]
fn a_path_that_loses_the_options_is_left_until_they_pass_again() {
    let events = [(3000, "strip-options"), (5000, "up"), (6000, "pass-options"), (7000, "up")];
    let events: String = events.iter().map(|(at, what)| event(*at, "b", what)).collect();
    for profile in ["tcp:mptcp", "tcp:mptcp-linux", "tcp:ptcp"] {
        let report = run(&(text(profile, "") + &events + BY_SECOND));
        let [a, b] = by_second(&report);
        assert!(a[1..10].iter().all(|rate| *rate > 5.5), "{profile}: {a:?}");
        assert!(b[1..3].iter().all(|rate| *rate > 5.0), "{profile}: {b:?}");
        // Data in flight at the change is unusable when it arrives, and a subflow that tries to
        // join in this time is given up.
        assert!(b[4..7].iter().all(|rate| *rate < 0.1), "{profile}: {b:?}");
        assert!(b[8..10].iter().all(|rate| *rate > 5.0), "{profile}: {b:?}");
    }
    let alone = text("tcp:linux", "").replace("tcp = {  }", "paths = \"b\"");
    let message = complaint(&(alone + &event(3000, "b", "strip-options")));
    assert!(
        message.contains("event.0.what: no flow over 'b' is one stream of TCP over several paths"),
        "{message}"
    );
}

#[test]
fn data_that_loses_the_options_before_its_acknowledgement_is_plain_tcp() {
    // The answer to the first SYN leaves after 20 ms, and the first data leaves after 40 ms.
    for profile in ["tcp:mptcp", "tcp:mptcp-linux"] {
        // The SYN of the other subflow arrives later than the first data.
        let far = text(profile, "").replace(
            "\"b\"\nrate = \"8mbit\"\ndelay = \"20ms\"",
            "\"b\"\nrate = \"8mbit\"\ndelay = \"40ms\"",
        );
        let [goodput, a, b] = rates(&run(&(far + &event(30, "a", "strip-options"))));
        assert!((6.5..7.8).contains(&goodput) && b < 0.001, "{profile}: {goodput}, {a} and {b}");
        assert!((a / goodput - 1512.0 / 1460.0).abs() < 0.015, "{profile}: {}", a / goodput);
    }
}

#[test]
fn what_plain_tcp_delivers_is_logged() {
    let probe = "[[probe]]\nsamples = \"packet_delay_s\"\nof = \"bulk\"\n";
    let report = run(&(text("tcp:mptcp", "strip-options = \"a\"") + probe));
    let delays = report.samples("bulk", "packet_delay_s").expect("kept");
    assert!(delays.len() > 5000, "{}", delays.len());
}

#[test]
fn a_backup_path_takes_over_when_the_other_has_no_interface() {
    let events = event(4000, "a", "down") + BY_SECOND;
    for profile in ["tcp:mptcp", "tcp:mptcp-linux"] {
        let report = run(&(text(profile, "backup = \"b\"") + &events));
        let [a, b] = by_second(&report);
        assert!(a[1..4].iter().all(|rate| *rate > 6.0), "{profile}: {a:?}");
        assert!(b[1..4].iter().all(|rate| *rate < 0.1), "{profile}: {b:?}");
        assert!(b[6..10].iter().all(|rate| *rate > 6.0), "{profile}: {b:?}");
    }
}

#[test]
fn a_path_becomes_a_backup_and_is_one_no_longer() {
    let events = event(3000, "b", "backup") + &event(6000, "b", "regular") + BY_SECOND;
    for profile in ["tcp:mptcp", "tcp:mptcp-linux", "anabranch"] {
        let text = text(profile, "").replace("tcp = {  }\n", "");
        let report = run(&(text + &events));
        let [a, b] = by_second(&report);
        assert!(a[1..10].iter().all(|rate| *rate > 5.0), "{profile}: {a:?}");
        assert!(b[1..3].iter().all(|rate| *rate > 5.0), "{profile}: {b:?}");
        assert!(b[4..6].iter().all(|rate| *rate < 0.2), "{profile}: {b:?}");
        assert!(b[8..10].iter().all(|rate| *rate > 5.0), "{profile}: {b:?}");
    }
    let alone = text("tcp:linux", "").replace("tcp = {  }", "paths = \"b\"");
    let message = complaint(&(alone + &event(3000, "b", "backup")));
    assert!(message.ends_with("has no stream over several paths; allowed: down, up"), "{message}");
}

#[test]
fn buffers_that_grow_do_not_hold_the_flow_up() {
    let goodput = |options: &str| rates(&run(&text("tcp:mptcp", options)))[0];
    let small = goodput("receive-buffer = \"64KiB\"");
    let grown = goodput("receive-buffer = \"4MiB\", autotune = true");
    let large = goodput("receive-buffer = \"4MiB\"");
    assert!(small < 0.9 * large && grown > 0.97 * large, "{small}, {grown}, {large}");
}

#[test]
fn mistakes_are_told() {
    let one = |profile: &str, options: &str| complaint(&text(profile, options));
    let unknown = one("tcp:mptcp", "backup = \"c\"");
    assert!(unknown.contains("bulk.tcp.backup: there is no path 'c'"), "{unknown}");
    assert!(unknown.ends_with("allowed: a, b"), "{unknown}");
    for (options, expected) in [
        ("initial-receive-buffer = \"32KiB\"", "given without autotune; allowed: autotune = true"),
        (
            "autotune = true, initial-receive-buffer = \"32MiB\"",
            "'32MiB' is not accepted; allowed: one segment at least, and at most the receive buffer",
        ),
        (
            "autotune = true, timestamps = false",
            "buffers are tuned by timestamps; allowed: timestamps, or no autotune",
        ),
        (
            "autotune = true, buffers-per-subflow = true",
            "given beside autotune; allowed: autotune = false, or no buffers-per-subflow",
        ),
        (
            "handshake = false, strip-options = \"a\"",
            "given without a handshake; allowed: handshake = true",
        ),
        (
            "congestion = \"reno\", couple-shared = true",
            "no path's congestion control is a coupled one; allowed: congestion = \"lia\", \"olia\", \"balia\", \"mveno\" or \"wvegas\"",
        ),
    ] {
        let message = one("tcp:mptcp", options);
        assert!(message.ends_with(expected), "{message}");
    }
    let single = messages(
        &text("tcp:sack", "autotune = true").replace("[[flow]]", "[[flow]]\nper-path = true"),
    );
    assert_eq!(single.len(), 1, "{single:#?}");
    assert!(single[0].contains("given for a protocol that has no shared buffers"), "{single:?}");
    let apart = messages(
        &text("tcp:mptcp", "backup = \"a\"").replace("[[flow]]", "[[flow]]\nper-path = true"),
    );
    assert!(apart.len() == 1 && apart[0].contains("given beside per-path"), "{apart:?}");
}
