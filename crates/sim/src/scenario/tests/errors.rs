//! Tests of the messages about mistakes.

use super::{GOOD, messages};
use crate::scenario::Scenario;

/// The only message about `GOOD` with `from` replaced by `to`.
fn message(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    let messages = messages(&GOOD.replace(from, to));
    assert_eq!(messages.len(), 1, "{messages:#?}");
    messages.into_iter().next().expect("one")
}

#[test]
fn what_is_not_toml_is_placed() {
    let message = message("duration = \"10s\"", "duration = ");
    assert!(message.starts_with("t.toml:2:12: "), "{message}");
    assert!(!message.contains('\n'));
}

#[test]
fn unknown_keys_name_their_nearest() {
    assert_eq!(
        message("delay = ", "dealy = \"20ms\"\ndelay = "),
        "t.toml:9:1: link.a.dealy: there is no key 'dealy'; did you mean 'delay'?; allowed: name, \
         count, from, to, duplex, reverse, rate, fluctuation, delay, delay-steps, \
         jitter, jitter-law, jitter-correlation, clumps, reorder, loss, policer, buffer, queue, blackout, mtu, faults"
    );
    assert_eq!(
        message("name = \"small\"", "name = \"small\"\ncolour = 1"),
        "t.toml:2:1: colour: there is no key 'colour'; allowed: name, title, description, base, \
         set, quick, item, result, duration, warm-up, stop, seeds, vars, link, path, mesh, correlation, flow, \
         load, event, probe, sweep, variant, variants, claim, expect, measure, figure"
    );
}

#[test]
fn missing_keys_are_named_with_what_they_hold() {
    assert_eq!(
        message("duration = \"10s\"\n", ""),
        "t.toml:1:1: duration: missing; allowed: 0s to 10 days, such as 20ms"
    );
    assert!(message("rate = \"10mbit\"\n", "").starts_with("t.toml:4:1: link.a.rate: missing; "));
}

#[test]
fn units_ranges_and_signs_are_checked() {
    for (from, to, start) in [
        (
            "10mbit",
            "10",
            "t.toml:8:8: link.a.rate: '10' is not accepted; allowed: 1kbit to 1000gbit",
        ),
        ("10mbit", "-10mbit", "t.toml:8:8: link.a.rate: '-10mbit' is not accepted; allowed: 1kbit"),
        (
            "10mbit",
            "10mbps/s",
            "t.toml:8:8: link.a.rate: '10mbps/s' is not accepted; allowed: 1kbit",
        ),
        ("20ms", "20", "t.toml:9:9: link.a.delay: '20' is not accepted; allowed: 0ms to 60s"),
        ("20ms", "61s", "t.toml:9:9: link.a.delay: '61s' is not accepted; allowed: 0ms to 60s"),
        ("\"10s\"", "10", "t.toml:2:12: duration: '10' is not accepted; allowed: 0s to 10 days"),
    ] {
        let message = message(from, to);
        assert!(message.starts_with(start), "{message}\n{start}");
    }
}

#[test]
fn losses_above_one_are_refused() {
    let with =
        |loss: &str| message("delay = \"20ms\"", &format!("delay = \"20ms\"\nloss = {loss}"));
    let start = "t.toml:10:8: link.a.loss: '140%' is not accepted; allowed: a loss such as 5%";
    assert!(with("\"140%\"").starts_with(start));
    assert!(with("1").starts_with("t.toml:10:8: link.a.loss: '1' is not accepted; "));
    assert_eq!(
        with("{ states = [\"5%\", \"200%\"], dwell = \"1s\" }"),
        "t.toml:10:26: link.a.loss.states: '200%' is not accepted; allowed: a list of losses such as \
         5%, one for each state"
    );
    assert_eq!(
        with("{ states = [\"5%\", \"20%\"], dwell = \"1s\", jumps = [[0, 0.9], [1, 0]] }"),
        "t.toml:10:56: link.a.loss.jumps: the jump matrix needs one row and one column for each state, \
         entries from 0 to 1 and rows that sum to 1"
    );
}

#[test]
fn runs_take_some_time_and_measure_some_of_it() {
    assert_eq!(
        message("\"10s\"", "\"0s\""),
        "t.toml:2:12: duration: '0s' is not accepted; allowed: a duration above zero"
    );
    assert_eq!(
        message("duration = \"10s\"", "duration = \"10s\"\nwarm-up = \"10s\""),
        "t.toml:3:11: warm-up: '10s' is not accepted; allowed: less than the duration"
    );
}

#[test]
fn unknown_names_name_what_exists() {
    assert_eq!(
        message("profile = \"uncoded\"", "profile = \"uncoded\"\nto = \"reciever\""),
        "t.toml:14:6: flow.bulk.to: there is no node 'reciever'; did you mean 'receiver'?; allowed: \
         receiver, sender"
    );
    assert!(message("uncoded", "unkoded").starts_with(
        "t.toml:13:11: flow.bulk.profile: there is no profile 'unkoded'; did you mean 'uncoded'?; \
             allowed: anabranch, mplot, "
    ));
    assert_eq!(
        message("profile = \"uncoded\"", "profile = \"uncoded\"\npaths = [\"p\"]"),
        "t.toml:14:10: flow.bulk.paths: there is no path 'p'; allowed: none"
    );
    let policy = "profile = \"uncoded\"\npolicy = { scheduler = \"fastest\" }";
    let message = message("profile = \"uncoded\"", policy);
    assert!(
        message.starts_with(
            "t.toml:14:24: flow.bulk.policy.scheduler: there is no scheduler policy 'fastest'; known: "
        ),
        "{message}"
    );
}

#[test]
fn unreachable_hosts_are_named() {
    assert_eq!(
        message("delay = \"20ms\"", "delay = \"20ms\"\nduplex = false"),
        "t.toml:12:1: flow.bulk.from: no links lead from 'receiver' to 'sender'; allowed: nodes that \
         'receiver' reaches: none"
    );
    let island =
        "[[link]]\nname = \"b\"\nfrom = \"x\"\nto = \"y\"\nrate = \"1mbit\"\ndelay = \"1ms\"\n";
    let text = GOOD.replace("[[flow]]", &format!("{island}[[flow]]\nto = \"y\"\n"));
    assert_eq!(
        messages(&text),
        [
            "t.toml:18:6: flow.bulk.to: no links lead from 'sender' to 'y'; allowed: nodes that 'sender' \
          reaches: receiver"
        ]
    );
}

#[test]
fn explicit_routes_must_hang_together() {
    let path = "[[path]]\nname = \"p\"\nvia = [\"a\", \"a\"]\n\n[[flow]]";
    assert_eq!(
        message("[[flow]]", path),
        "t.toml:13:13: path.p.via: link 'a' does not begin at 'receiver'; allowed: a link that begins \
         at 'receiver', where the last one ends"
    );
}

#[test]
fn variables_must_exist() {
    assert_eq!(
        message("10mbit", "{N}mbit"),
        "t.toml:8:8: link.a.rate: there is no variable 'N'; allowed: i"
    );
}

#[test]
fn sweeps_and_expectations_are_checked() {
    let with = |text: &str| messages(&format!("{GOOD}{text}"));
    assert_eq!(
        with("[[sweep]]\nkey = \"link.b.loss\"\nvalues = [\"1%\"]\n"),
        ["t.toml:16:11: link.b.loss: 'b' leads nowhere; did you mean 'a'?; allowed: a"]
    );
    assert!(
        with("[[sweep]]\nkey = \"link.a.loss\"\nvalues = [\"1%\", \"101%\"]\n")[0].starts_with(
            "t.toml:16:17: link.a.loss: '101%' is not accepted; allowed: a loss such as"
        )
    );
    let zip = "[[sweep]]\nkey = \"link.a.loss\"\nvalues = [\"1%\", \"2%\"]\nzip = \"z\"\n\
               [[sweep]]\nkey = \"link.a.delay\"\nvalues = [\"1ms\"]\nzip = \"z\"\n";
    assert_eq!(
        with(zip),
        [
            "t.toml:20:10: sweep.1.values: 1 values, but 'loss' has 2; allowed: as many as every sweep \
          of the same zip"
        ]
    );
    assert_eq!(
        with("[[expect]]\nmetric = \"goodput_mbps\"\nof = \"bulky\"\nmin = 1\nat = { M = 3 }\n"),
        [
            "t.toml:16:6: expect.0.metric: there is no subject 'bulky'; did you mean 'bulk'?; allowed: all, \
             bulk, bulk/route, link.a, link.a.reverse",
            "t.toml:18:6: expect.0.at: there is no sweep key 'M'; allowed: none",
        ]
    );
    assert!(
        with("[[expect]]\nmetric = \"goodput\"\nmin = 1\n")[0]
            .starts_with("t.toml:15:10: expect.0.metric: there is no metric 'goodput'")
    );
}

#[test]
fn probes_name_figures_that_exist_of_subjects_that_have_them() {
    let with = |text: &str| messages(&format!("{GOOD}{text}"));
    assert!(with("[[probe]]\nseries = \"cwnd_byte\"\n")[0].starts_with(
        "t.toml:15:10: probe.0.series: there is no metric for series 'cwnd_byte'; did you mean \
         'cwnd_bytes'?; allowed: "
    ));
    assert_eq!(
        with("[[probe]]\nof = \"link.a\"\nseries = \"cwnd_bytes\"\n"),
        [
            "t.toml:15:6: probe.0.of: 'link.a' has none of cwnd_bytes; allowed: subjects that these are \
          about"
        ]
    );
}

#[test]
fn every_mistake_is_reported_at_once() {
    let text = GOOD
        .replace("10mbit", "fast")
        .replace("uncoded", "best")
        .replace("[[flow]]", "[[flow]]\nstrat = \"1s\"");
    let messages = messages(&text);
    assert_eq!(messages.len(), 3, "{messages:#?}");
    assert!(messages[0].starts_with("t.toml:8:8: link.a.rate: "));
    assert!(messages[1].starts_with(
        "t.toml:12:1: flow.bulk.strat: there is no key 'strat'; did you \
                                     mean 'start'?"
    ));
    assert!(messages[2].starts_with("t.toml:14:11: flow.bulk.profile: "));
}

#[test]
fn traces_must_be_traces() {
    let link = "rate = { trace = \"lte.trace\" }";
    let with = |content: Result<&str, &str>| {
        let text = GOOD.replace("rate = \"10mbit\"", link);
        let mut read = |path: &str| {
            assert_eq!(path, "lte.trace");
            content.map(str::to_owned).map_err(str::to_owned)
        };
        let errors = Scenario::load(&text, "t.toml", &[], &mut read).expect_err("a mistake");
        errors.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(
        with(Ok("0\n5\nfive\n")),
        ["t.toml:8:18: link.a.rate.trace: lte.trace: line 3: 'five' is not accepted; allowed: a \
          millisecond not below the one before it, 0 to 864000000"]
    );
    assert_eq!(
        with(Ok("7\n5\n")),
        ["t.toml:8:18: link.a.rate.trace: lte.trace: line 2: '5' is not accepted; allowed: a \
          millisecond not below the one before it, 0 to 864000000"]
    );
    assert_eq!(
        with(Err("no such file")),
        ["t.toml:8:18: link.a.rate.trace: file 'lte.trace' cannot be read: no such file"]
    );
    assert_eq!(
        messages(&GOOD.replace("rate = \"10mbit\"", link)),
        [
            "t.toml:8:18: link.a.rate.trace: file 'lte.trace' cannot be read: no files can be read here"
        ]
    );
}

#[test]
fn correlations_must_be_possible() {
    let paths = "[[path]]\nname = \"p\"\ncount = 2\nrate = \"1mbit\"\ndelay = \"1ms\"\n\
                 loss = \"{25 + 50*(i-1)}%\"\n";
    let with = |correlation: &str| {
        messages(&GOOD.replace("[[flow]]", &format!("{paths}{correlation}[[flow]]")))
    };
    let park = "[[correlation]]\nlinks = \"p\"\nmethod = \"park\"\n";
    let messages = with(&format!("{park}theta = \"50%\"\n"));
    assert_eq!(messages.len(), 1, "{messages:#?}");
    assert!(messages[0].starts_with("t.toml:20:9: correlation.0.theta: "), "{messages:#?}");
    assert!(
        messages[0]
            .ends_with("; allowed: a theta at which such losses exist, or method = \"chain\""),
        "{messages:#?}"
    );
    // Losses of 25 % and 75 % can have a correlation of at most a third.
    assert_eq!(with(&format!("{park}theta = \"33%\"\n")), [""; 0]);
    assert_eq!(with("[[correlation]]\nlinks = \"p\"\ntheta = \"50%\"\n"), [""; 0]);
    assert_eq!(
        with("[[correlation]]\nlinks = \"q\"\ntheta = \"50%\"\n"),
        ["t.toml:18:9: correlation.0.links: there is no link 'q'; did you mean 'a'?; allowed: a, \
          a.reverse, p1, p1.reverse, p2, p2.reverse"]
    );
    assert_eq!(
        with("[[correlation]]\nlinks = \"p\"\ntheta = 1.5\n"),
        [
            "t.toml:19:9: correlation.0.theta: '1.5' is not accepted; allowed: 0% to 100%, such as 5%"
        ]
    );
}

#[test]
fn keys_of_another_protocol_are_refused() {
    assert_eq!(
        message("profile = \"uncoded\"", "profile = \"uncoded\"\ntcp = { mss = 500 }"),
        "t.toml:14:7: flow.bulk.tcp: given for profile 'uncoded'; allowed: policy, transport"
    );
    assert_eq!(
        message("profile = \"uncoded\"", "profile = \"tcp:sack\"\ntcp = { mss = 0 }"),
        "t.toml:14:15: flow.bulk.tcp.mss: '0' is not accepted; allowed: a whole number from 1 to 65535"
    );
    let paths = "[[path]]\nname = \"p\"\ncount = 2\nrate = \"1mbit\"\ndelay = \"1ms\"\n[[flow]]";
    let text = GOOD.replace("uncoded", "tcp:sack").replace("[[flow]]", paths);
    assert_eq!(
        messages(&text),
        [
            "t.toml:18:11: flow.bulk.profile: 'tcp:sack' uses one path, here are 2; allowed: one path, or \
          per-path = true"
        ]
    );
}

#[test]
fn a_path_names_a_congestion_control_that_exists() {
    let with = |profile: &str, control: &str| {
        let path = format!(
            "[[path]]\nname = \"p\"\nrate = \"1mbit\"\ndelay = \"1ms\"\ncongestion = \"{control}\"\n[[flow]]"
        );
        messages(&GOOD.replace("uncoded", profile).replace("[[flow]]", &path))
    };
    assert_eq!(with("tcp:sack", "vegas"), [""; 0]);
    assert_eq!(with("uncoded", "vegas"), [""; 0]);
    let unknown = with("tcp:sack", "vega");
    assert!(unknown[0].starts_with("t.toml:15:14: path.p.congestion: "), "{unknown:?}");
    assert!(unknown[0].contains("vegas"), "{unknown:?}");
}

#[test]
fn names_are_given_once() {
    let with = |text: &str| messages(&format!("{GOOD}{text}"));
    assert_eq!(
        with("[[flow]]\nname = \"bulk\"\nprofile = \"uncoded\"\n"),
        [
            "t.toml:15:8: flow.bulk.name: 'bulk' is not accepted; allowed: a name that no other flow or \
          load has, and not 'all'"
        ]
    );
    assert_eq!(
        with("[[load]]\nname = \"all\"\nrate = \"1mbit\"\n"),
        [
            "t.toml:15:8: load.all.name: 'all' is not accepted; allowed: a name that no other flow or load \
          has, and not 'all'"
        ]
    );
    let link =
        "[[link]]\nname = \"a\"\nfrom = \"x\"\nto = \"y\"\nrate = \"1mbit\"\ndelay = \"1ms\"\n";
    assert_eq!(
        with(link),
        ["t.toml:15:8: link.a.name: 'a' is not accepted; allowed: a name that no other link has"]
    );
}

/// The messages about `GOOD` with a path instead of its link, followed by `more`.
fn over_a_path(more: &str) -> Vec<String> {
    let from = "[[link]]\nname = \"a\"\nfrom = \"sender\"\nto = \"receiver\"\n";
    assert!(GOOD.contains(from));
    messages(&format!("{}{more}", GOOD.replace(from, "[[path]]\nname = \"a\"\n")))
}

#[test]
fn events_name_paths_that_exist_and_what_can_happen_to_them() {
    let event = |path: &str, what: &str| {
        over_a_path(&format!("[[event]]\nat = \"1s\"\npath = \"{path}\"\nwhat = \"{what}\"\n"))
    };
    assert_eq!(event("a", "rebind"), [""; 0]);
    assert_eq!(
        event("b", "down"),
        ["t.toml:14:8: event.0.path: there is no path 'b'; did you mean 'a'?; allowed: a"]
    );
    assert_eq!(
        event("a", "fall"),
        [
            "t.toml:15:8: event.0.what: 'fall' is not accepted; allowed: down, up, backup, regular, move, rebind, strip-options, pass-options"
        ]
    );
    assert_eq!(
        over_a_path("[[event]]\npath = \"a\"\nwhat = \"up\"\n"),
        ["t.toml:12:1: event.0.at: missing; allowed: 0s to 10 days, such as 20ms"]
    );
    let moved = "[[event]]\nat = \"1s\"\npath = \"a\"\nwhat = \"move\"\n\
                 [[flow]]\nname = \"other\"\nprofile = \"tcp:sack\"\n";
    assert_eq!(
        over_a_path(moved),
        [
            "t.toml:15:8: event.0.what: 'other' is TCP, which is bound to its address; allowed: down, up"
        ]
    );
}

#[test]
fn faults_and_messages_are_held_to_what_they_can_be() {
    assert_eq!(
        message("delay = \"20ms\"", "delay = \"20ms\"\nfaults = { flip = 1 }"),
        "t.toml:10:19: link.a.faults.flip: '1' is not accepted; allowed: 0% to 100%, such as 5%"
    );
    assert_eq!(
        message("delay = \"20ms\"", "delay = \"20ms\"\nfaults = { flop = \"1%\" }"),
        "t.toml:10:12: link.a.faults.flop: there is no key 'flop'; did you mean 'flip'?; allowed: \
         flip, truncate, duplicate, replay, inject, hold, thin-acks"
    );
    let flow = "profile = \"uncoded\"";
    assert_eq!(
        message(flow, &format!("{flow}\nmessages = {{ interval = \"1s\", size = \"15B\" }}")),
        "t.toml:14:38: flow.bulk.messages.size: '15B' is not accepted; allowed: 16B to 1000B"
    );
    assert_eq!(
        message(flow, "profile = \"tcp:sack\"\nclass = \"live\""),
        "t.toml:14:9: flow.bulk.class: given for profile 'tcp:sack'; allowed: tcp"
    );
}

#[test]
fn jitter_goes_with_the_delay_and_its_words_with_jitter() {
    let with = |lines: &str| message("delay = \"20ms\"", &format!("delay = \"20ms\"\n{lines}"));
    assert_eq!(
        with("jitter = \"10ms\"\njitter-law = \"cauchy\""),
        "t.toml:11:14: link.a.jitter-law: 'cauchy' is not accepted; allowed: uniform, normal, gamma, \
         log-normal"
    );
    assert_eq!(
        with("jitter-law = \"gamma\""),
        "t.toml:10:14: link.a.jitter-law: no jitter; allowed: this key along with jitter"
    );
    assert_eq!(
        with("jitter = \"81ms\"\njitter-law = \"gamma\""),
        "t.toml:10:10: link.a.jitter: 81ms; allowed: at most four times the delay, with this \
         jitter-law"
    );
    assert!(
        with("jitter = \"70s\"")
            .starts_with("t.toml:10:10: link.a.jitter: '70s' is not accepted; allowed: 0ms to 60s")
    );
    assert!(with("reorder = true").starts_with("t.toml:10:11: link.a.reorder: neither; allowed:"));
}

#[test]
fn courses_of_the_delay_clumps_and_policers_are_checked() {
    let with = |lines: &str| message("delay = \"20ms\"", &format!("delay = \"20ms\"\n{lines}"));
    assert!(with("delay-steps = \"15s/40ms-60ms\"").starts_with(
        "t.toml:10:15: link.a.delay-steps: '15s/40ms-60ms' is not accepted; allowed: period/least-most, \
         such as 15s/10ms-60ms"
    ));
    assert!(
        with("clumps = \"8ms-2ms\"").starts_with(
            "t.toml:10:10: link.a.clumps: '8ms-2ms' is not accepted; allowed: the time"
        )
    );
    assert!(with("policer = \"20mbit\"").starts_with(
        "t.toml:10:11: link.a.policer: '20mbit' is not accepted; allowed: a rate of 1kbit"
    ));
    assert!(with("faults = { thin-acks = 0 }").starts_with(
        "t.toml:10:24: link.a.faults.thin-acks: '0' is not accepted; allowed: a whole number from 1"
    ));
    let missing = message("delay = \"20ms\"", "delay = { trace = \"none\" }");
    assert!(missing.starts_with("t.toml:9:19: link.a.delay.trace: "), "{missing}");
}
