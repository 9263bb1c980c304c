use super::*;
use anabranch_core::profiles::Profile;
use core::time::Duration;

fn links(specs: &[&str]) -> Vec<crate::link::LinkConfig> {
    specs.iter().map(|text| text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))).collect()
}

fn profile(name: &str) -> Profile {
    Profile::named(name).unwrap()
}

fn go(spec: &Spec) -> Report {
    run(spec, &mut |_| None).unwrap_or_else(|e| panic!("seed {}: {e}", spec.seed))
}

#[test]
fn a_megabyte_crosses_one_clean_link() {
    let spec = Spec::new(
        links(&["rate=10mbit,delay=20ms"]),
        profile("uncoded"),
        Goal::Bytes(1_000_000),
        1,
    );
    let report = go(&spec);
    assert_eq!(report.bytes(), 1_000_000);
    assert!(report.efficiency() > 0.7, "{}", report.efficiency());
}

#[test]
fn loss_on_every_link_loses_nothing() {
    for name in ["uncoded", "mplot"] {
        let spec = Spec::new(
            links(&["rate=10mbit,delay=20ms,loss=10%,ecn", "rate=5mbit,delay=50ms,loss=20%,ecn"]),
            profile(name),
            Goal::Bytes(2_000_000),
            2,
        );
        let report = go(&spec);
        assert_eq!(report.bytes(), 2_000_000, "{name}");
    }
}

#[test]
fn equal_runs_have_equal_digests() {
    let mut spec = Spec::new(
        links(&["rate=10mbit,delay=20ms,loss=5%", "rate=20mbit,delay=5ms,loss=1%"]),
        profile("uncoded"),
        Goal::Time(Duration::from_secs(2)),
        3,
    );
    let first = go(&spec);
    assert_eq!(first.digest, go(&spec).digest);
    spec.seed = 4;
    assert_ne!(first.digest, go(&spec).digest);
}

/// MPLOT's alternative retransmission: the lost symbols themselves, with proactive repairs all the same.
#[test]
fn losses_can_be_resent_beside_proactive_repairs() {
    let links =
        links(&["rate=10mbit,delay=20ms,loss=20%,ecn", "rate=5mbit,delay=50ms,loss=20%,ecn"]);
    let mut spec = Spec::new(links, profile("mplot"), Goal::Bytes(2_000_000), 5);
    spec.flows[0].profile.set("recovery", "resend").unwrap();
    let report = go(&spec);
    assert_eq!(report.bytes(), 2_000_000);
    let sent = report.flows[0].sender.as_ref().unwrap().sent;
    assert!(sent.repairs > 0 && sent.resends > 0, "{sent:?}");
}
