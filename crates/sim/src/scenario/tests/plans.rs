//! Tests of plans that are built in code.

use core::time::Duration;

use anabranch_core::profiles::Profile;
use anabranch_policy::Axis;
use anabranch_types::Time;

use crate::link::LinkConfig;
use crate::report::RunReport;
use crate::scenario::{FlowPlan, Plan, Scenario};

fn links(texts: &[&str]) -> Vec<LinkConfig> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn flow(name: &str) -> FlowPlan {
    FlowPlan::core(Profile::named(name).unwrap())
}

fn go(plan: &Plan, seed: u64) -> RunReport {
    let report = plan.run(seed).unwrap();
    assert!(report.flows.iter().all(|flow| flow.done && flow.failure.is_none()), "{report:?}");
    report
}

#[test]
fn a_megabyte_crosses_one_clean_link() {
    let plan = Plan::parallel(links(&["rate=10mbit,delay=20ms"]));
    let report = go(&plan.flow(flow("uncoded").of(1_000_000)), 1);
    assert_eq!(report.bytes(), 1_000_000);
    assert!(report.efficiency() > 0.7, "{}", report.efficiency());
}

#[test]
fn loss_on_every_link_loses_nothing() {
    let lossy = ["rate=10mbit,delay=20ms,loss=10%,ecn", "rate=5mbit,delay=50ms,loss=20%,ecn"];
    for name in ["uncoded", "mplot"] {
        let report = go(&Plan::parallel(links(&lossy)).flow(flow(name).of(2_000_000)), 2);
        assert_eq!(report.bytes(), 2_000_000, "{name}");
    }
}

#[test]
fn equal_runs_have_equal_digests() {
    let texts = ["rate=10mbit,delay=20ms,loss=5%", "rate=20mbit,delay=5ms,loss=1%"];
    let plan = Plan::parallel(links(&texts)).flow(flow("uncoded").until(Duration::from_secs(2)));
    let first = go(&plan, 3);
    assert_eq!(first.digest, go(&plan, 3).digest);
    assert_ne!(first.digest, go(&plan, 4).digest);
    assert!(first.flows[0].last > Time::from_secs(2), "what was written by then is delivered");
}

/// MPLOT's alternative way of retransmission sends the lost symbols again, and also uses proactive
/// repairs.
#[test]
fn losses_can_be_resent_beside_proactive_repairs() {
    let lossy = ["rate=10mbit,delay=20ms,loss=20%,ecn", "rate=5mbit,delay=50ms,loss=20%,ecn"];
    let mut profile = Profile::named("mplot").unwrap();
    profile.set(Axis::Recovery, "resend").unwrap();
    let report = go(&Plan::parallel(links(&lossy)).flow(FlowPlan::core(profile).of(2_000_000)), 5);
    let sent = report.flows[0].sender.as_ref().unwrap().sent;
    assert!(sent.repairs > 0 && sent.resends > 0, "{sent:?}");
}

/// The same network and flow, written as a file and built in code, give exactly the same packets.
#[test]
fn a_plan_is_the_same_thing_as_a_file() {
    let text = r#"
        name = "same"
        duration = "600s"
        stop = "done"
        [[path]]
        name = "a"
        rate = "10mbit"
        delay = "20ms"
        loss = "5%"
        faults = { duplicate = "5%", hold = "5%" }
        [[path]]
        name = "b"
        rate = "5mbit"
        delay = "50ms"
        [[event]]
        at = "300ms"
        path = "b"
        what = "down"
        [[flow]]
        name = "flow"
        profile = "anabranch"
        traffic = "size:1MB"
        messages = { interval = "50ms", size = "100B" }
    "#;
    let scenario = Scenario::parse(text, "same.toml").unwrap();
    let file = scenario.run(&scenario.points()[0], 1).unwrap();
    let mut all = links(&["name=a,rate=10mbit,delay=20ms,loss=5%", "name=b,rate=5mbit,delay=50ms"]);
    all[0].faults.duplicate = 0.05;
    all[0].faults.hold = 0.05;
    let messages = scenario.plan(&scenario.points()[0]).unwrap().flows[0].messages;
    let flow = FlowPlan { messages, ..flow("anabranch").of(1_000_000) };
    let mut built = Plan::parallel(all).flow(flow);
    built = built.event(Duration::from_millis(300), 1, crate::endpoint::PathChange::Down);
    // A run of a file checks in steps whether it is done. Do the same here, so that both runs end
    // at the same packet.
    built.stop_when_done = scenario.plan(&scenario.points()[0]).unwrap().stop_when_done;
    let transport = scenario.plan(&scenario.points()[0]).unwrap().flows[0].transport.clone();
    built.flows[0].transport = transport;
    let code = built.run(1).unwrap();
    assert_eq!((file.digest, file.packet_hops), (code.digest, code.packet_hops));
    assert_eq!(file.scalars, code.scalars);
    assert!(file.flows[0].messages.sent > 5);
}

/// Over every transport, each message takes at least the delay of its path. Over TCP, messages
/// arrive in order.
#[test]
fn messages_are_timed_over_every_transport() {
    for profile in ["anabranch", "tcp:sack"] {
        let text = format!(
            "name = \"messages\"\nduration = \"20s\"\n[[path]]\nname = \"a\"\nrate = \"10mbit\"\n\
             delay = \"20ms\"\nloss = \"2%\"\n[[flow]]\nname = \"talk\"\nprofile = \"{profile}\"\n\
             traffic = {{ kind = \"messages\", size = \"200B\", interval = \"20ms\", count = 500 }}\n\
             [[probe]]\nsamples = \"message_delay_s\""
        );
        let scenario = Scenario::parse(&text, "messages.toml").unwrap();
        let report = scenario.run(&scenario.points()[0], 1).unwrap();
        assert_eq!(report.scalar("talk", "messages"), Some(500.0), "{profile}");
        let missing = report.scalar("talk", "messages_missing").unwrap();
        assert!(missing < 30.0, "{profile}: {missing} missing");
        let delays = report.samples("talk", "message_delay_s").unwrap();
        assert_eq!(delays.len(), 500 - missing as usize, "{profile}");
        assert!(delays.iter().all(|delay| *delay >= 0.020), "{profile}");
        let mean = report.scalar("talk", "message_delay_mean_s").unwrap();
        assert!((0.020..0.2).contains(&mean), "{profile}: {mean}");
    }
}
