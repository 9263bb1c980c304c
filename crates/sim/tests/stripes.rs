//! One stream over a connection for each path.

use anabranch_sim::scenario::Scenario;

/// A near path and a far one, and a flow on each; `key` makes one stream of the two.
fn scenario(key: &str, profile: &str) -> Result<Scenario, String> {
    let text = format!(
        r#"
        name = "stripes"
        duration = "30s"
        warm-up = "5s"
        [[path]]
        name = "near"
        rate = "8mbit"
        delay = "10ms"
        loss = "2%"
        [[path]]
        name = "far"
        rate = "4mbit"
        delay = "150ms"
        loss = "2%"
        [[flow]]
        name = "bulk"
        profile = "{profile}"
        per-path = true
        {key}"#
    );
    Scenario::parse(&text, "stripes.toml")
        .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}

/// Megabits a second that each of the two flows delivered.
fn goodput(key: &str) -> Vec<f64> {
    let scenario = scenario(key, "anabranch").expect("a scenario");
    let plan = scenario.plan(&scenario.points()[0]).expect("a plan");
    let report = plan.run(1).expect("it runs");
    assert!(report.flows.iter().all(|flow| flow.failure.is_none()), "{:?}", report.flows);
    report.flows.iter().map(|flow| flow.bytes as f64 * 8.0 / 30e6).collect()
}

#[test]
fn one_stream_over_two_connections_needs_room_for_what_the_far_path_delays() {
    // What a send buffer holds is bound to its path, and what the resequencing buffer has no room for waits in the
    // near connection's receive buffer.
    let buffers = "transport = { receive-buffer = \"64KiB\", send-buffer = \"64KiB\" }";
    let apart = goodput(buffers);
    let roomy = goodput(&format!("{buffers}\nresequencing-buffer = \"1MiB\""));
    let narrow = goodput(&format!("{buffers}\nresequencing-buffer = \"16KiB\""));
    let [apart, roomy, narrow] = [apart, roomy, narrow].map(|flows| {
        assert_eq!(flows.len(), 2);
        flows.iter().sum::<f64>()
    });
    assert!(roomy > 0.9 * apart, "{roomy} of {apart}");
    assert!(narrow < 0.7 * apart && narrow > 1.0, "{narrow} of {apart}");
}

#[test]
fn what_cannot_be_one_stream_is_refused() {
    let key = "resequencing-buffer = \"1MiB\"";
    for (more, profile) in [
        (key.to_owned(), "tcp:sack"),
        (format!("{key}\ntraffic = \"size:1MB\""), "anabranch"),
        (format!("{key}\nstop = \"3s\""), "anabranch"),
        (format!("{key}\nhost = \"h\""), "anabranch"),
        ("resequencing-buffer = \"4000B\"".to_owned(), "anabranch"),
    ] {
        let error = scenario(&more, profile).expect_err(&more);
        assert!(error.contains("resequencing-buffer"), "{error}");
    }
}
