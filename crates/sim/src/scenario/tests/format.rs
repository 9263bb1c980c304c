//! Tests of the features of the scenario format.

use anabranch_types::{Bitrate, Probability, Time};

use super::{GOOD, messages, parse, plan};
use crate::loss::LossConfig;
use crate::queue::{Discipline, QueueLimit, RedThresholds};
use crate::scenario::Scenario;
use crate::traffic::Traffic;

#[test]
fn a_small_file_says_what_runs() {
    let plan = plan(GOOD);
    assert_eq!(plan.links.len(), 2);
    assert_eq!(plan.links[1].name, "a.reverse");
    assert_eq!((plan.flows.len(), plan.flows[0].subject.as_str()), (1, "bulk"));
    assert_eq!(plan.flows[0].paths[0].forward, [0]);
    assert_eq!(plan.flows[0].paths[0].back, [1]);
    assert_eq!(plan.flows[0].traffic, Traffic::Bulk);
}

#[test]
fn groups_are_spelled_out_and_numbered() {
    let text = r#"
name = "many"
duration = "1s"
[vars]
M = 4
[[path]]
name = "near"
count = "{M/2}"
rate = "{10/M}mbit"
delay = "20ms"
[[path]]
name = "far"
count = "{M/2}"
rate = "{10/M}mbit"
delay = "{20*3}ms"
loss = "{i}%"
[[flow]]
name = "multi"
count = 3
profile = "anabranch"
[[flow]]
name = "lone"
per-path = true
profile = "uncoded"
paths = "far"
"#;
    let plan = plan(text);
    let names: Vec<&str> = plan.paths.iter().map(|path| path.name.as_str()).collect();
    assert_eq!(names, ["near1", "near2", "far1", "far2"]);
    let far2 = &plan.links[plan.paths[3].forward[0]];
    assert_eq!(far2.config.rate.at(Time::ZERO), Bitrate::from_mbps(2.5));
    assert_eq!(far2.config.delay.as_millis(), 60);
    assert_eq!(far2.config.loss, LossConfig::Bernoulli(Probability::clamped(0.02)));
    let back = &plan.links[plan.paths[3].back[0]];
    assert_eq!((back.name.as_str(), &back.config.loss), ("far2.reverse", &LossConfig::None));
    let flows: Vec<(String, usize)> =
        plan.flows.iter().map(|flow| (flow.subject.clone(), flow.paths.len())).collect();
    let expected = [("multi.1", 4), ("multi.2", 4), ("multi.3", 4), ("lone.1", 1), ("lone.2", 1)];
    assert_eq!(flows, expected.map(|(name, paths)| (name.to_owned(), paths)));
}

#[test]
fn routes_are_shortest_or_spelled_out() {
    let text = r#"
name = "dumbbell"
duration = "1s"
[[link]]
name = "in{i}"
count = 2
from = "s{i}"
to = "left"
rate = "1gbit"
delay = "1ms"
[[link]]
name = "bottleneck"
from = "left"
to = "right"
rate = "10mbit"
delay = "18ms"
queue = { kind = "red", ecn = true, min = 8, max = 24 }
buffer = "49p"
reverse = { rate = "1mbit", loss = "1%" }
[[link]]
name = "out{i}"
count = 2
from = "right"
to = "d{i}"
rate = "1gbit"
delay = "1ms"
[[path]]
name = "first"
via = ["in1", "bottleneck", "out1"]
[[flow]]
name = "cross"
count = 2
profile = "uncoded"
from = "s{i}"
to = "d{3 - i}"
[[load]]
name = "udp"
paths = "first"
rate = "1mbit"
on = "1s"
off = "3s"
"#;
    let plan = plan(text);
    let route = |links: &[usize]| -> Vec<&str> {
        links.iter().map(|link| plan.links[*link].name.as_str()).collect()
    };
    assert_eq!(route(&plan.flows[0].paths[0].forward), ["in1", "bottleneck", "out2"]);
    let back = ["out2.reverse", "bottleneck.reverse", "in1.reverse"];
    assert_eq!(route(&plan.flows[0].paths[0].back), back);
    assert_eq!(route(&plan.paths[0].back), ["out1.reverse", "bottleneck.reverse", "in1.reverse"]);
    let bottleneck = &plan.links[4].config;
    assert_eq!(bottleneck.queue.limit, Some(QueueLimit::Packets(49)));
    assert!(matches!(&bottleneck.queue.discipline, Discipline::Red(red)
        if red.ecn && red.thresholds == RedThresholds::Packets { min: 8.0, max: 24.0 }));
    let reverse = &plan.links[5].config;
    assert_eq!(reverse.rate.at(Time::ZERO), Bitrate::from_mbps(1.0));
    assert_eq!(reverse.loss, LossConfig::Bernoulli(Probability::clamped(0.01)));
    assert_eq!(plan.loads[0].subject, "udp");
}

#[test]
fn markov_losses_take_a_jump_matrix() {
    let text = GOOD.replace(
        "delay = \"20ms\"\n",
        "delay = \"20ms\"\nloss = { states = [\"5%\", \"35%\", \"100%\"], dwell = \"250ms\", \
         jumps = [[0, 0.9, 0.1], [0.9, 0, 0.1], [0.5, 0.5, 0]] }\n",
    );
    let LossConfig::Markov(markov) = &plan(&text).links[0].config.loss else { panic!("markov") };
    assert_eq!(markov.states.len(), 3);
    assert_eq!(markov.jumps.as_ref().map(|rows| rows[2][1]), Some(0.5));
}

#[test]
fn sweeps_are_cartesian_or_zipped() {
    let sweeps = r#"
[[sweep]]
key = "link.a.loss"
values = ["0%", "1%"]
[[sweep]]
key = "link.a.rate"
values = ["10mbit", "20mbit"]
zip = "size"
[[sweep]]
key = ["link.a.delay", "link.a.jitter"]
name = "far"
values = ["10ms", "30ms"]
zip = "size"
"#;
    let scenario = parse(&format!("{GOOD}{sweeps}"));
    let labels: Vec<String> = scenario
        .points()
        .iter()
        .map(|point| {
            point.labels.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(" ")
        })
        .collect();
    let expected = [
        "loss=0% rate=10mbit far=10ms",
        "loss=0% rate=20mbit far=30ms",
        "loss=1% rate=10mbit far=10ms",
        "loss=1% rate=20mbit far=30ms",
    ];
    assert_eq!(labels, expected);
    let plan = scenario.plan(&scenario.points()[3]).expect("valid");
    let link = &plan.links[0].config;
    assert_eq!((link.delay.as_millis(), link.jitter.size.as_millis()), (30, 30));
    assert_eq!(link.rate.at(Time::ZERO), Bitrate::from_mbps(20.0));
}

#[test]
fn assignments_change_a_scenario_and_its_hash() {
    let mut scenario = parse(GOOD);
    let before = scenario.hash();
    scenario.set("flow.bulk.count=3").expect("valid");
    scenario.set("duration=1500ms").expect("valid");
    let plan = scenario.plan(&scenario.points()[0]).expect("valid");
    assert_eq!((plan.flows.len(), plan.duration.as_millis()), (3, 1500));
    assert_ne!(scenario.hash(), before);
    let errors = scenario.set("link.b.loss=1%").expect_err("no such link");
    assert_eq!(
        errors[0].to_string(),
        "t.toml with link.b.loss=1%: link.b.loss: 'b' leads nowhere; did you mean 'a'?; allowed: a"
    );
    assert_eq!(scenario.assignments().len(), 2, "a refused assignment leaves no trace");
    let errors = scenario.set("link.a.loss=140%").expect_err("above 100 %");
    assert!(errors[0].to_string().starts_with(
        "t.toml with link.a.loss=140%: link.a.loss: '140%' is not accepted; allowed: "
    ));
}

#[test]
fn seeds_are_counted_or_listed() {
    assert_eq!(parse(GOOD).seeds(), [1]);
    assert_eq!(parse(&format!("seeds = 3\n{GOOD}")).seeds(), [1, 2, 3]);
    assert_eq!(parse(&format!("seeds = [7, 5]\n{GOOD}")).seeds(), [7, 5]);
    assert_eq!(messages(&format!("seeds = 0\n{GOOD}")).len(), 1);
}

/// The actual and the expected contents of a file in `docs`. With `BLESS=1`, the expected contents
/// are written first.
fn published(name: &str, now: impl Fn(&str) -> String) -> (String, String) {
    let path = format!("{}/../../docs/{name}", env!("CARGO_MANIFEST_DIR"));
    let before = std::fs::read_to_string(&path).expect(name);
    let wanted = now(&before);
    if std::env::var("BLESS").is_ok_and(|value| value == "1") {
        std::fs::write(&path, &wanted).expect(name);
        return (wanted.clone(), wanted);
    }
    (before, wanted)
}

#[test]
fn golden_schema_is_the_formats() {
    let (published, wanted) = published("scenario.schema.json", |_| Scenario::json_schema());
    assert!(published == wanted, "docs/scenario.schema.json is out of date: cargo xtask bless");
}

#[test]
fn golden_tables_have_every_key_and_figure() {
    const BEGIN: &str = "<!-- the tables below are generated: cargo xtask bless -->\n";
    let with_tables = |page: &str| {
        let (prose, _) = page.split_once(BEGIN).expect("the marker of the generated tables");
        format!("{prose}{BEGIN}\n{}", Scenario::reference())
    };
    let (published, wanted) = published("scenarios.md", with_tables);
    assert!(published == wanted, "docs/scenarios.md is out of date: cargo xtask bless");
}

#[test]
fn variants_change_keys_and_choose_flows() {
    let text = format!(
        "{GOOD}[[flow]]\nname = \"rival\"\nprofile = \"tcp:sack\"\nonly = \"second\"\n\
         [[variant]]\nname = \"first\"\n[[variant]]\nname = \"second\"\nset.flow.bulk.count = 2\n\
         set.link.a.rate = \"20mbit\"\n"
    );
    let scenario = super::parse(&text);
    let labels: Vec<_> =
        scenario.points().iter().filter_map(|point| point.label("variant")).collect();
    assert_eq!(labels, ["first", "second"]);
    let plans: Vec<_> =
        scenario.points().iter().map(|point| scenario.plan(point).expect("right")).collect();
    assert_eq!(plans.iter().map(|plan| plan.flows.len()).collect::<Vec<_>>(), [1, 3]);
    assert_eq!(plans[1].links[0].config.rate.at(Time::ZERO), Bitrate::from_mbps(20.0));
    let mut one = scenario.clone();
    one.set("variants=second").expect("right");
    assert_eq!(one.points().len(), 1);
    assert_eq!(
        messages(&text.replace("only = \"second\"", "only = \"secnd\"")),
        [
            "t.toml:17:8: flow.rival.only: there is no variant 'secnd'; did you mean 'second'?; allowed: \
          first, second"
        ]
    );
    assert_eq!(
        messages(&text.replace("link.a.rate", "link.b.rate")),
        ["t.toml:23:19: link.b.rate: 'b' leads nowhere; did you mean 'a'?; allowed: a"]
    );
}

/// Reads `text`, which may have `base` as its base.
fn based(text: &str, base: &str) -> Result<Scenario, Vec<String>> {
    let mut read = |path: &str| match path {
        "base.toml" => Ok(base.to_owned()),
        "own.toml" => Ok(text.to_owned()),
        _ => Err("no such file".to_owned()),
    };
    Scenario::load(text, "own.toml", &[], &mut read)
        .map_err(|errors| errors.iter().map(ToString::to_string).collect())
}

#[test]
fn a_file_may_start_from_another() {
    let base = format!("{GOOD}[[claim]]\nmetric = \"jain\"\nmin = 1\n[quick]\nduration = \"2s\"\n");
    let own = "name = \"own\"\nbase = \"base.toml\"\nseeds = 2\n\
               [set]\nlink.a.rate = \"5mbit\"\nflow.bulk.count = 3\n[quick]\nseeds = 1\n";
    let scenario = based(own, &base).expect("right");
    assert_eq!((scenario.name(), scenario.seeds().len()), ("own", 2));
    assert!(scenario.claims().is_empty(), "what results mean is not taken over");
    let claimed = based(&format!("{own}[[claim]]\nmetric = \"jain\"\nmin = 1\n"), &base);
    assert!(claimed.expect("right").claims()[0].is_ablation);
    let plan = scenario.plan(&scenario.points()[0]).expect("right");
    assert_eq!((plan.flows.len(), plan.duration.as_secs()), (3, 10));
    assert_eq!(plan.links[0].config.rate.at(Time::ZERO), Bitrate::from_mbps(5.0));
    let quick = scenario.quick().expect("right");
    assert_eq!(quick.seeds().len(), 1);
    assert_eq!(quick.plan(&quick.points()[0]).expect("right").duration.as_secs(), 2);
}

#[test]
fn mistakes_in_a_base_have_its_lines() {
    let own = "name = \"own\"\nbase = \"base.toml\"\n";
    let wrong = GOOD.replace("10mbit", "fast");
    let messages = based(own, &wrong).expect_err("wrong");
    assert!(
        messages[0].starts_with("base.toml:8:8: link.a.rate: 'fast' is not accepted"),
        "{messages:?}"
    );
    let set = based(&format!("{own}[set]\nlink.b.rate = \"1mbit\"\n"), GOOD).expect_err("wrong");
    assert_eq!(
        set,
        ["own.toml:4:15: link.b.rate: 'b' leads nowhere; did you mean 'a'?; allowed: a"]
    );
}

#[test]
fn bases_do_not_lead_in_a_circle() {
    let own = "name = \"own\"\nbase = \"own.toml\"\n";
    assert_eq!(
        based(own, "").expect_err("wrong"),
        [
            "own.toml:2:8: base: 'own.toml' starts from itself; allowed: a scenario that does not start from \
          this one"
        ]
    );
    let own = "name = \"own\"\nbase = \"base.toml\"\n";
    let messages = based(own, "base = \"own.toml\"\n").expect_err("wrong");
    assert!(
        messages[0].starts_with("base.toml:1:8: base: 'own.toml' starts from itself"),
        "{messages:?}"
    );
    let messages = based("name = \"own\"\nbase = \"gone.toml\"\n", "").expect_err("wrong");
    assert_eq!(messages, ["own.toml:2:8: base: file 'gone.toml' cannot be read: no such file"]);
}

#[test]
fn recorded_rates_and_delays_are_read_from_files() {
    let read = |rate: &str, delay: &str| {
        let text = GOOD
            .replace("rate = \"10mbit\"", &format!("rate = {rate}"))
            .replace("delay = \"20ms\"", &format!("delay = {delay}"));
        let mut files = |path: &str| match path {
            "rate" => Ok("4\n4\n10\n".to_owned()),
            "delay" => Ok("0 20\n10 40\n".to_owned()),
            _ => Err("there is none".to_owned()),
        };
        Scenario::load(&text, "t.toml", &[], &mut files)
    };
    for (rate, delay) in
        [("{ trace = \"rate\" }", "{ trace = \"delay\" }"), ("\"trace:rate\"", "\"trace:delay\"")]
    {
        let scenario = read(rate, delay).expect("valid");
        let plan = scenario.plan(&scenario.points()[0]).expect("valid");
        let link = &plan.links[0].config;
        assert_eq!((link.rate.at(Time::ZERO).as_bps(), link.delay.as_millis()), (3_600_000, 30));
    }
    for (rate, delay, message) in [
        (
            "\"trace:none\"",
            "\"1ms\"",
            "t.toml:8:8: link.a.rate: file 'none' cannot be read: there is",
        ),
        (
            "\"1mbit\"",
            "\"trace:rate\"",
            "t.toml:9:9: link.a.delay: rate: line 1: '4' is not accepted",
        ),
        (
            "\"1mbit\"",
            "{ trace = \"rate\" }",
            "t.toml:9:19: link.a.delay.trace: rate: line 1: '4' is",
        ),
    ] {
        let errors = read(rate, delay).expect_err(message);
        assert!(errors[0].to_string().starts_with(message), "{}", errors[0]);
    }
}

#[test]
fn queueing_delays_are_recorded_of_either_kind_of_link() {
    let probe = "[[probe]]\nof = \"link.a\"\nseries = \"queue_delay_s\"\ninterval = \"100ms\"\n";
    let last = |more: &str| {
        // At most ten packets of 1512 B wait, which is 12.1 ms at 10 Mb/s.
        let link = format!("delay = \"20ms\"\nbuffer = \"10p\"\n{more}");
        let text = GOOD.replace("uncoded", "tcp:sack").replace("delay = \"20ms\"", &link);
        let scenario = parse(&format!("{text}{probe}"));
        let report = scenario.run(&scenario.points()[0], 1).expect("runs");
        let series = report.series("link.a", "queue_delay_s").expect("recorded").values.clone();
        series.into_iter().fold(0.0, f64::max)
    };
    let (plain, shaped) = (last(""), last("jitter = \"1ns\""));
    assert!((0.008..=0.0121).contains(&plain), "{plain}");
    // On this link, the time also includes the rest of the packet that is in service.
    assert!((0.008..=0.0134).contains(&shaped), "{shaped}");
}

#[test]
fn assignments_that_no_point_sees_are_refused() {
    let text = format!("{GOOD}[[sweep]]\nkey = \"link.a.loss\"\nvalues = [\"1%\", \"2%\"]\n");
    let mut scenario = parse(&text);
    let errors = scenario.set("link.a.loss=150%").unwrap_err();
    let told = errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    assert_eq!(
        told,
        "t.toml with link.a.loss=150%: link.a.loss: every sweep or variant sets it, so that the assignment has no effect; \
         allowed: values of the sweep, such as sweep.NAME.values=[…], or settings of a variant"
    );
    scenario.set("sweep.loss.values=[\"3%\"]").unwrap();
    let half = "[[variant]]\nname = \"x\"\nset.link.a.loss = \"1%\"\n[[variant]]\nname = \"y\"\n";
    parse(&format!("{GOOD}{half}")).set("link.a.loss=5%").expect("variant y has it");
}
