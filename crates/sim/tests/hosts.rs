//! Several connections between two endpoints.

use anabranch_core::profiles::Profile;
use anabranch_sim::scenario::{FlowPlan, Plan, Scenario};
use core::time::Duration;

fn plan(host: Option<&str>) -> Plan {
    let links = ["rate=2mbit,delay=10ms,loss=2%", "rate=1mbit,delay=40ms"];
    let plan = Plan::parallel(links.map(|link| link.parse().expect("a link")));
    let flow = |profile, bytes, start| {
        let flow = FlowPlan::core(Profile::named(profile).expect("built in")).of(bytes);
        let flow = FlowPlan { start: Duration::from_millis(start), ..flow };
        host.map_or(flow.clone(), |host| flow.at(host))
    };
    // The second and the third flow end, and send nothing more, long before the first.
    plan.flow(flow("anabranch", 20_000_000, 0))
        .flow(flow("uncoded", 100_000, 300))
        .flow(flow("mplot", 50_000, 50))
}

#[test]
fn flows_of_a_host_share_its_endpoints() {
    let run = |host| {
        let report = plan(host).run(1).expect("it runs");
        let read: Vec<_> = report.flows.iter().map(|flow| (flow.bytes, flow.done)).collect();
        assert_eq!(read, [(20_000_000, true), (100_000, true), (50_000, true)]);
        assert!(report.flows.iter().all(|flow| flow.failure.is_none()));
        let started = |flow: usize| report.flows[flow].start.as_micros() / 1000;
        assert_eq!([0, 1, 2].map(started), [0, 300, 50]);
        let elapsed = report.elapsed();
        (report.digest, elapsed)
    };
    let (shared, elapsed) = run(Some("host"));
    assert!(elapsed > Duration::from_secs(40), "{elapsed:?}");
    assert_eq!(run(Some("host")).0, shared);
    // The delivered data is the same, but a shared endpoint has only one set of connection numbers
    // and random draws.
    assert_ne!(run(None).0, shared);
}

#[test]
fn gaps_of_a_flow_do_not_count_the_time_before_it_began() {
    let late = FlowPlan::core(Profile::named("uncoded").expect("built in")).of(100_000);
    let late = FlowPlan { start: Duration::from_secs(5), ..late };
    let report = plan(Some("host")).flow(late.at("host")).run(1).expect("it runs");
    let gap = report.flows.last().map(|flow| flow.longest_gap);
    assert!(gap.is_some_and(|gap| gap < Duration::from_secs(2)), "{gap:?}");
}

#[test]
fn what_cannot_share_an_endpoint_is_refused() {
    let mut narrow = plan(Some("host"));
    narrow.flows[1].paths.pop();
    let error = narrow.run(1).expect_err("other paths").to_string();
    assert!(error.contains("flow.2") && error.contains("paths"), "{error}");
}

/// A scenario file with two flows at one host, changed by `edit`.
fn file(edit: impl Fn(&str) -> String) -> Result<Scenario, String> {
    let text = r#"
        name = "hosts"
        duration = "200s"
        [[path]]
        name = "a"
        rate = "2mbit"
        delay = "10ms"
        [[path]]
        name = "b"
        rate = "1mbit"
        delay = "40ms"
        [[flow]]
        name = "first"
        profile = "anabranch"
        host = "server"
        traffic = "size:1MB"
        [[flow]]
        name = "second"
        profile = "uncoded"
        host = "server"
        start = "300ms"
        traffic = "size:100kB"
    "#;
    Scenario::parse(&edit(text), "hosts.toml")
        .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}

#[test]
fn a_file_puts_flows_at_a_host() {
    let scenario = file(str::to_owned).expect("a scenario");
    let plan = scenario.plan(&scenario.points()[0]).expect("a plan");
    assert!(plan.flows.iter().all(|flow| flow.host.as_deref() == Some("server")));
    let shared = plan.run(1).expect("it runs");
    assert!(shared.flows.iter().all(|flow| flow.done && flow.failure.is_none()));

    let other_paths = file(|text| text.replace("start = ", "paths = [\"a\"]\nstart = "));
    let error = other_paths.expect_err("other paths");
    assert!(error.contains("host") && error.contains("paths"), "{error}");
    let tcp = file(|text| text.replace("\"uncoded\"", "\"tcp:newreno\""));
    let error = tcp.expect_err("over TCP");
    assert!(error.contains("host") && error.contains("TCP"), "{error}");
}
