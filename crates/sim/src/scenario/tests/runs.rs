//! Tests of the figures that runs measure.

use super::{GOOD, parse};
use crate::report::RunReport;
use crate::scenario::{RunError, RunOptions, Scenario};

fn run(scenario: &Scenario) -> RunReport {
    scenario.run(&scenario.points()[0], 1).unwrap_or_else(|error| panic!("{error}"))
}

fn tcp() -> String {
    GOOD.replace("uncoded", "tcp:sack")
        .replace("delay = \"20ms\"", "delay = \"20ms\"\nbuffer = \"50p\"")
}

#[test]
fn a_bulk_flow_fills_its_link() {
    let report = run(&parse(&format!("warm-up = \"2s\"\n{}", tcp())));
    let goodput = report.scalar("bulk", "goodput_mbps").expect("measured");
    // Of the 1512 bytes of a packet, 1460 are payload.
    assert!((9.3..=9.66).contains(&goodput), "{goodput}");
    let throughput = report.scalar("bulk/route", "throughput_mbps").expect("measured");
    assert!((throughput / goodput - 1512.0 / 1460.0).abs() < 0.01, "{throughput}");
    let utilisation = report.scalar("link.a", "utilisation").expect("measured");
    // A packet that is being sent when the measurement begins counts with all its bytes.
    assert!((0.97..1.001).contains(&utilisation), "{utilisation}");
    assert_eq!(report.scalar("all", "jain"), Some(1.0));
    assert_eq!(report.scalar("bulk", "elapsed_s"), Some(8.0));
    assert_eq!(report.scalar("bulk", "packet_delay_mean_s"), None, "nobody has asked for it");
    assert_eq!(report.virtual_seconds, 10.0);
}

#[test]
fn the_same_point_and_seed_give_the_same_report() {
    let text = tcp().replace("buffer = \"50p\"", "buffer = \"50p\"\nloss = \"1%\"");
    let scenario = parse(&text);
    let once = run(&scenario);
    assert_eq!(once, run(&scenario));
    let other = scenario.run(&scenario.points()[0], 2).expect("runs");
    assert_ne!(once.digest, other.digest);
    assert!(once.scalar("bulk", "retransmissions").is_some_and(|count| count > 10.0));
}

#[test]
fn probes_record_series_and_samples_without_changing_the_run() {
    let probe = "[[probe]]\nof = [\"bulk\", \"link.a\"]\n\
                 series = [\"goodput_mbps\", \"cwnd_bytes\", \"queue_packets\"]\n\
                 samples = [\"packet_delay_s\", \"block_delay_s\"]\ninterval = \"500ms\"\n\
                 [[probe]]\nof = \"link.a\"\nfigures = \"queue_mean_packets\"\n";
    let plain = run(&parse(&tcp()));
    let report = run(&parse(&format!("{}{probe}", tcp())));
    assert_eq!(plain.digest, report.digest);
    let goodput = report.series("bulk", "goodput_mbps").expect("recorded");
    assert_eq!((goodput.times.len(), goodput.times[0]), (20, 0.5));
    let total = report.scalar("bulk", "goodput_mbps").expect("measured");
    assert!((crate::probe::mean(&goodput.values) - total).abs() < 1e-9);
    assert!(report.series("bulk", "queue_packets").is_none(), "a flow has no queue");
    assert_eq!(
        report.series("link.a", "queue_packets").map(|series| series.values.len()),
        Some(20)
    );
    let delays = report.samples("bulk", "packet_delay_s").expect("kept");
    // A delay is at least propagation plus serialisation. A full buffer of 50 packets adds to it at
    // most, except for packets behind a dropped one.
    assert!(delays.iter().all(|delay| *delay >= 0.0212), "{:?}", &delays[..5]);
    let mean = report.scalar("bulk", "packet_delay_mean_s").expect("measured");
    assert!((0.03..0.1).contains(&mean), "{mean}");
    let queue = report.scalar("link.a", "queue_mean_packets").expect("asked for");
    assert!((5.0..50.0).contains(&queue), "{queue}");
}

#[test]
fn transfers_are_timed_and_end_the_run() {
    let text = format!("stop = \"done\"\n{}", tcp()).replace(
        "profile = \"tcp:sack\"",
        "profile = \"tcp:sack\"\ntraffic = { kind = \"size\", size = \"100kB\", repeat = 5 }",
    );
    let text = format!("{text}[[probe]]\nsamples = \"fct_s\"\n");
    let report = run(&parse(&text));
    assert_eq!(report.scalar("bulk", "transfers"), Some(5.0));
    assert_eq!(report.scalar("bulk", "delivered_bytes"), Some(500_000.0));
    let times = report.samples("bulk", "fct_s").expect("kept");
    assert_eq!(times.len(), 5);
    // Each transfer has a connection of its own on an idle link, so handshake and slow start take
    // the same time.
    assert!(times.iter().all(|time| (time - times[0]).abs() < 1e-9), "{times:?}");
    assert!((0.2..0.4).contains(&times[0]), "{times:?}");
    assert!(report.virtual_seconds < 3.0, "{}", report.virtual_seconds);
}

#[test]
fn loads_take_their_share() {
    let load = "[[load]]\nname = \"udp\"\nrate = \"4mbit\"\nstart = \"1s\"\nstop = \"9s\"\n";
    let report = run(&parse(&format!("{}{load}", tcp())));
    let load = report.scalar("udp", "throughput_mbps").expect("measured");
    assert!((3.5..=4.01).contains(&load), "{load}");
    let flow = report.scalar("bulk", "throughput_mbps").expect("measured");
    assert!(flow + load * 0.8 > 9.0 && flow + load * 0.8 <= 10.0, "{flow} beside {load}");
}

#[test]
fn runs_report_progress_and_can_be_cancelled() {
    let scenario = parse(&tcp());
    let mut shares = Vec::new();
    let mut progress = |share: f64| shares.push(share);
    let mut options = RunOptions { progress: Some(&mut progress), ..RunOptions::default() };
    scenario.run_with(&scenario.points()[0], 1, &mut options).expect("runs");
    assert!(shares.len() >= 50 && shares.windows(2).all(|pair| pair[0] <= pair[1]));
    assert_eq!(shares.last(), Some(&1.0));
    let cancel = core::sync::atomic::AtomicBool::new(true);
    let mut options = RunOptions { cancel: Some(&cancel), ..RunOptions::default() };
    let outcome = scenario.run_with(&scenario.points()[0], 1, &mut options);
    assert_eq!(outcome, Err(RunError::Cancelled));
}

#[test]
fn claims_have_what_they_look_at_measured() {
    let claim = "[[claim]]\nmetric = \"goodput_mbps\"\nof = \"bulk\"\nmin = 9\nmax = 9.7\n\
                 [[expect]]\nmetric = \"packet_delay_mean_s\"\nof = \"bulk\"\nmax = 0.01\n";
    let scenario = parse(&format!("{}{claim}", tcp()));
    let findings = scenario.judge(&[vec![run(&scenario)]]);
    let verdicts: Vec<&str> =
        findings.iter().filter_map(|finding| Some(finding.verdict?.word())).collect();
    assert_eq!(verdicts, ["open", "fails"]);
    assert_eq!(findings[0].name, "goodput_mbps of bulk");
    assert!(findings.iter().all(|finding| finding.estimate.is_some()));
}

#[test]
fn core_flows_add_their_paths_up() {
    let text = "name = \"bond\"\nduration = \"6s\"\nwarm-up = \"1s\"\n\
                [[path]]\nname = \"a\"\nrate = \"8mbit\"\ndelay = \"20ms\"\nloss = \"2%\"\n\
                [[path]]\nname = \"b\"\nrate = \"4mbit\"\ndelay = \"40ms\"\n\
                [[flow]]\nname = \"bulk\"\nprofile = \"anabranch\"\n\
                [[probe]]\nof = [\"bulk\", \"bulk/a\", \"bulk/b\"]\n\
                series = [\"goodput_mbps\", \"throughput_mbps\", \"srtt_s\", \"cwnd_bytes\"]\n\
                samples = [\"packet_delay_s\", \"block_delay_s\"]\n";
    let report = run(&parse(text));
    let goodput = report.scalar("bulk", "goodput_mbps").expect("measured");
    assert!((8.0..11.6).contains(&goodput), "{goodput}");
    let [a, b] =
        ["bulk/a", "bulk/b"].map(|path| report.scalar(path, "throughput_mbps").expect(path));
    assert!(a > 5.0 && b > 2.5, "{a} and {b}");
    assert!(report.scalar("bulk", "redundancy").is_some_and(|share| share > 0.0));
    assert_eq!(report.scalar("bulk", "failed"), Some(0.0));
    assert_eq!(report.series("bulk/b", "srtt_s").map(|series| series.times.len()), Some(6));
    let delays = report.samples("bulk", "packet_delay_s").expect("kept");
    let packets = goodput * 5e6 / 8.0 / 1192.0;
    assert!((delays.len() as f64 / packets - 1.0).abs() < 0.1, "{} of {packets}", delays.len());
    assert!(delays.iter().all(|delay| *delay > 0.02));
    let blocks = report.samples("bulk", "block_delay_s").expect("kept");
    let slices = goodput * 5e6 / 8.0 / 65_536.0;
    assert!((blocks.len() as f64 / slices - 1.0).abs() < 0.15, "{} of {slices}", blocks.len());
}

#[test]
fn short_flows_come_at_random_over_either_transport() {
    for profile in ["tcp:sack", "uncoded"] {
        let text = tcp().replace("tcp:sack", profile).replace(
            &format!("profile = \"{profile}\""),
            &format!(
                "profile = \"{profile}\"\n\
                 traffic = {{ kind = \"poisson\", size = \"20kB\", interval = \"100ms\" }}"
            ),
        );
        let text = format!("{text}[[probe]]\nsamples = [\"fct_s\", \"packet_delay_s\"]\n");
        let report = run(&parse(&text));
        let transfers = report.scalar("bulk", "transfers").expect("counted");
        assert!((60.0..140.0).contains(&transfers), "{profile}: {transfers}");
        let times = report.samples("bulk", "fct_s").expect("kept");
        assert!(times.iter().all(|time| (0.036..3.0).contains(time)), "{profile}: {times:?}");
        let delays = report.samples("bulk", "packet_delay_s").expect("kept");
        assert!(delays.len() as f64 >= transfers * 13.0, "{profile}: {}", delays.len());
    }
}

#[test]
fn applications_fall_silent_and_come_back() {
    let traffic = "traffic = { kind = \"on-off\", on = \"1s\", off = \"1s\", rate = \"2mbit\" }";
    for profile in ["tcp:sack", "anabranch"] {
        let text = tcp()
            .replace("tcp:sack", profile)
            .replace("[[flow]]", &format!("[[flow]]\n{traffic}"))
            .replace("duration = \"10s\"", "duration = \"100s\"");
        let report = run(&parse(&text));
        let goodput = report.scalar("bulk", "goodput_mbps").expect("measured");
        assert!((0.6..1.4).contains(&goodput), "{profile}: {goodput}");
        assert!(report.scalar("bulk", "longest_gap_s").is_some_and(|gap| gap > 1.0));
    }
}

#[test]
fn tcp_streams_over_several_paths_add_them_up() {
    for (profile, least) in [("tcp:mptcp", 8.5), ("tcp:parallel", 10.0), ("tcp:ptcp", 10.0)] {
        let text = format!(
            "name = \"several\"\nduration = \"20s\"\nwarm-up = \"4s\"\n\
             [[path]]\nname = \"a\"\nrate = \"8mbit\"\ndelay = \"20ms\"\n\
             [[path]]\nname = \"b\"\nrate = \"4mbit\"\ndelay = \"30ms\"\n\
             [[flow]]\nname = \"bulk\"\nprofile = \"{profile}\"\n\
             [[probe]]\nsamples = [\"packet_delay_s\", \"block_delay_s\"]\n\
             series = \"cwnd_bytes\"\nof = [\"bulk\", \"bulk/b\"]\n"
        );
        let report = run(&parse(&text));
        let goodput = report.scalar("bulk", "goodput_mbps").expect("measured");
        assert!((least..11.6).contains(&goodput), "{profile}: {goodput}");
        let [a, b] =
            ["bulk/a", "bulk/b"].map(|path| report.scalar(path, "throughput_mbps").expect(path));
        assert!(a > 5.0 && b > 2.0, "{profile}: {a} and {b}");
        let delays = report.samples("bulk", "packet_delay_s").expect("kept");
        let packets = goodput * 16e6 / 8.0 / 1460.0;
        assert!((delays.len() as f64 / packets - 1.0).abs() < 0.1, "{profile}: {}", delays.len());
        assert!(report.samples("bulk", "block_delay_s").is_some_and(|blocks| blocks.len() > 100));
        let all = report.series("bulk", "cwnd_bytes").expect("recorded");
        let one = report.series("bulk/b", "cwnd_bytes").expect("recorded");
        assert!(all.values.iter().zip(&one.values).all(|(all, one)| all > one), "{profile}");
    }
}

/// The data that blocks a small receive buffer is sent on another path that has room, with TCP and
/// with the core transport.
#[test]
fn a_full_receive_buffer_is_unblocked() {
    for (profile, with) in [
        ("tcp:mptcp", "tcp = { receive-buffer = \"64KiB\", scheduler = \"min-rtt:full=WHAT\" }"),
        (
            "uncoded",
            "transport = { receive-symbols = 64 }\npolicy = { scheduler = \"min-rtt:full=WHAT\" }",
        ),
    ] {
        let goodput = |what| {
            let with = with.replace("WHAT", what);
            let text = format!(
                "name = \"full\"\nduration = \"20s\"\nwarm-up = \"4s\"\n\
                 [[path]]\nname = \"fast\"\nrate = \"50mbit\"\ndelay = \"5ms\"\nloss = \"0.5%\"\n\
                 [[path]]\nname = \"slow\"\nrate = \"50mbit\"\ndelay = \"50ms\"\n\
                 [[flow]]\nname = \"bulk\"\nprofile = \"{profile}\"\n{with}\n"
            );
            run(&parse(&text)).scalar("bulk", "goodput_mbps").expect("measured")
        };
        let (waited, unblocked) = (goodput("wait"), goodput("unblock"));
        assert!(unblocked > 1.05 * waited, "{profile}: {unblocked} after {waited}");
    }
}

#[test]
fn each_path_may_have_a_congestion_control_of_its_own() {
    for profile in ["tcp:parallel", "uncoded"] {
        let text = format!(
            "name = \"own\"\nduration = \"20s\"\nwarm-up = \"5s\"\n\
             [[path]]\nname = \"a\"\nrate = \"8mbit\"\ndelay = \"20ms\"\nbuffer = \"200p\"\n\
             [[path]]\nname = \"b\"\nrate = \"8mbit\"\ndelay = \"20ms\"\nbuffer = \"200p\"\n\
             congestion = \"vegas\"\n\
             [[flow]]\nname = \"bulk\"\nprofile = \"{profile}\"\n\
             [[probe]]\nseries = \"cwnd_bytes\"\nof = [\"bulk/a\", \"bulk/b\"]\n"
        );
        let report = run(&parse(&text));
        let mean = |path: &str| {
            let series = report.series(path, "cwnd_bytes").expect("recorded");
            series.values.iter().sum::<f64>() / series.values.len() as f64
        };
        // Reno and CUBIC fill the queue, while Vegas uses only a few packets of it.
        let (filled, short) = (mean("bulk/a"), mean("bulk/b"));
        assert!(filled > 2.0 * short, "{profile}: {filled} and {short}");
        let goodput = report.scalar("bulk", "goodput_mbps").expect("measured");
        assert!(goodput > 14.0, "{profile}: {goodput}");
    }
}

/// When a path is up again, the core gives it a new identifier, but its series and its congestion
/// control continue.
#[test]
fn a_path_that_is_up_again_keeps_its_congestion_control_and_its_series() {
    let text = "name = \"again\"\nduration = \"20s\"\n\
         [[path]]\nname = \"a\"\nrate = \"8mbit\"\ndelay = \"20ms\"\nbuffer = \"200p\"\n\
         [[path]]\nname = \"b\"\nrate = \"8mbit\"\ndelay = \"20ms\"\nbuffer = \"200p\"\n\
         congestion = \"vegas\"\n\
         [[event]]\nat = \"2s\"\npath = \"b\"\nwhat = \"down\"\n\
         [[event]]\nat = \"4s\"\npath = \"b\"\nwhat = \"up\"\n\
         [[flow]]\nname = \"bulk\"\nprofile = \"uncoded\"\n\
         [[probe]]\nseries = \"cwnd_bytes\"\nof = [\"bulk/a\", \"bulk/b\"]\ninterval = \"1s\"\n";
    let report = run(&parse(text));
    let late = |path: &str| {
        let series = report.series(path, "cwnd_bytes").expect("recorded");
        series.values[10..].iter().sum::<f64>() / 10.0
    };
    let (filled, short) = (late("bulk/a"), late("bulk/b"));
    assert!(short > 0.0 && filled > 2.0 * short, "{filled} and {short}");
}

/// A subflow leaves when its interface goes down, and a new one joins when the interface is up
/// again, whether the connection was opened before or in between.
#[test]
fn subflows_leave_and_join_with_their_interfaces() {
    for profile in ["tcp:mptcp", "tcp:parallel", "tcp:ptcp"] {
        let text = format!(
            "name = \"coming\"\nduration = \"30s\"\n\
             [[path]]\nname = \"a\"\nrate = \"8mbit\"\ndelay = \"20ms\"\n\
             [[path]]\nname = \"b\"\nrate = \"8mbit\"\ndelay = \"20ms\"\n\
             [[event]]\nat = \"5s\"\npath = \"a\"\nwhat = \"down\"\n\
             [[event]]\nat = \"15s\"\npath = \"a\"\nwhat = \"up\"\n\
             [[flow]]\nname = \"old\"\nprofile = \"{profile}\"\n\
             [[flow]]\nname = \"new\"\nprofile = \"{profile}\"\nstart = \"10s\"\n\
             [[probe]]\nseries = \"throughput_mbps\"\nof = [\"old/a\", \"new/a\"]\ninterval = \"1s\"\n"
        );
        let report = run(&parse(&text));
        for flow in ["old", "new"] {
            let series = report.series(&format!("{flow}/a"), "throughput_mbps").expect("recorded");
            let from = |second: usize, to: usize| series.values[second..to].iter().sum::<f64>();
            assert_eq!(from(7, 15), 0.0, "{profile}, {flow}: nothing passes while it is down");
            assert!(from(17, 30) / 13.0 > 0.8, "{profile}, {flow}: {:?}", series.values);
            let gap = report.scalar(flow, "longest_gap_s").expect("measured");
            assert!(gap < 1.0, "{profile}, {flow}: the other path goes on, but for {gap} s");
        }
    }
}

#[test]
fn thousands_of_flows_are_no_burden() {
    let text = r#"
name = "crowd"
duration = "200ms"
[[link]]
name = "in{i}"
count = 3000
from = "s{i}"
to = "left"
rate = "1gbit"
delay = "1ms"
[[link]]
name = "bottleneck"
from = "left"
to = "right"
rate = "1gbit"
delay = "10ms"
buffer = "100000p"
[[link]]
name = "out{i}"
count = 3000
from = "right"
to = "d{i}"
rate = "1gbit"
delay = "1ms"
[[flow]]
name = "crowd"
count = 3000
profile = "tcp:sack"
from = "s{i}"
to = "d{i}"
start-jitter = "20ms"
"#;
    let report = run(&parse(text));
    assert_eq!(report.scalars.iter().filter(|s| s.metric == "jain").count(), 3002);
    assert!(report.scalar("crowd.3000", "delivered_bytes").is_some_and(|bytes| bytes > 0.0));
    let group = report.scalar("crowd", "delivered_bytes").expect("measured");
    assert_eq!(report.scalar("all", "delivered_bytes"), Some(group));
}

#[test]
fn thinned_acknowledgements_slow_a_window_that_counts_them() {
    let goodput = |reverse: &str| {
        let text = tcp().replace("tcp:sack", "tcp:newreno").replace(
            "buffer = \"50p\"",
            &format!("buffer = \"50p\"\nloss = \"0.5%\"\nreverse = {{ {reverse} }}"),
        );
        let report = run(&parse(&text));
        report.scalar("bulk", "goodput_mbps").expect("measured")
    };
    let (all, few) =
        (goodput("clumps = \"20ms\""), goodput("clumps = \"20ms\", faults = { thin-acks = 8 }"));
    assert!(few < 0.9 * all, "{few} {all}");
}
