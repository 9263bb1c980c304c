use std::net::IpAddr;

use super::*;
use crate::confine::Kernel;
use crate::doctor::facts::{
    Binding, Interface, Load, Machine, Measured, Outcome, Path, Peer, Socket, Way,
};

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// A link on which everything is in order, with its own default route.
fn interface(name: &str, source: &str) -> Interface {
    let way = Way {
        source: ip(source),
        to: ip("192.0.2.1"),
        route: Some(true),
        gateway: Some(ip("10.0.0.1")),
        unbound: Some(name.to_owned()),
    };
    Interface {
        name: name.to_owned(),
        addresses: vec![ip(source)],
        running: true,
        binding: Binding::Works,
        reverse_filter: Some(2),
        ways: vec![way],
    }
}

fn sound() -> Facts {
    let wanted_buffer = 4 << 20;
    let socket = Socket {
        send_segments: 64,
        receive_segments: 64,
        send_buffer: wanted_buffer,
        receive_buffer: wanted_buffer,
        wanted_buffer,
    };
    let machine = Machine {
        root: false,
        kernel: Some(Kernel { landlock: 4, seccomp: true }),
        unconfined: false,
        clock_is_set: true,
        socket: Some(socket),
        ipv6: false,
    };
    let interfaces = vec![interface("wlan0", "10.0.0.2"), interface("wwan0", "10.1.0.2")];
    Facts { machine, interfaces, peer: None }
}

fn measured() -> Measured {
    Measured {
        rtt_min_ms: Some(20.0),
        rtt_median_ms: Some(22.0),
        sent: 200,
        lost: 0,
        peer_sent: 100,
        peer_lost: 0,
        ecn_sent: 200,
        ecn_arrived: 200,
        ecn_ce: 0,
        mtu: 1500,
        mtu_limit: 1500,
        load: None,
        load_failed: None,
        trace: None,
        trace_failed: None,
    }
}

fn path(name: &str, measured: Measured) -> Path {
    Path {
        name: name.to_owned(),
        local: ip("10.0.0.2"),
        remote: "203.0.113.5:4433".parse().unwrap(),
        outcome: Outcome::Answered,
        measured: Some(measured),
    }
}

fn with_paths(paths: Vec<Path>) -> Facts {
    let name = "home.example:4433".to_owned();
    Facts { peer: Some(Peer { name, refused: false, paths }), ..sound() }
}

/// The findings that are not in order: severity, check and subject.
fn wrong(facts: &Facts) -> Vec<(Severity, &'static str, String)> {
    let wrong = judge(facts).into_iter().filter(|finding| finding.severity > Severity::Ok);
    let wrong: Vec<Finding> = wrong.collect();
    assert!(wrong.iter().all(|f| f.advice.is_some() || f.check == "answer"), "{wrong:?}");
    wrong.into_iter().map(|f| (f.severity, f.check, f.subject)).collect()
}

/// The only finding that is not `ok`.
fn only_wrong(facts: &Facts) -> Finding {
    let mut wrong: Vec<Finding> =
        judge(facts).into_iter().filter(|finding| finding.severity > Severity::Ok).collect();
    assert_eq!(wrong.len(), 1, "{wrong:?}");
    wrong.remove(0)
}

fn on_link(measured: Measured) -> Finding {
    only_wrong(&with_paths(vec![path("wlan0", measured), path("wwan0", super::tests::measured())]))
}

#[test]
fn what_is_in_order_is_not_complained_about() {
    assert_eq!(wrong(&sound()), []);
    assert_eq!(wrong(&with_paths(vec![path("wlan0", measured()), path("wwan0", measured())])), []);
}

#[test]
fn small_buffers_are_told_with_the_command() {
    let mut facts = sound();
    facts.machine.socket.as_mut().unwrap().receive_buffer = 212_992;
    let finding = only_wrong(&facts);
    assert_eq!((finding.severity, finding.check), (Severity::Note, "buffers"));
    assert_eq!(finding.advice.unwrap(), "sysctl -w net.core.rmem_max=4194304");
    facts.machine.socket.as_mut().unwrap().send_buffer = 212_992;
    let advice = only_wrong(&facts).advice.unwrap();
    assert_eq!(advice, "sysctl -w net.core.rmem_max=4194304 net.core.wmem_max=4194304");
}

#[test]
fn a_machine_without_clock_sockets_or_links_is_told() {
    let mut facts = sound();
    facts.machine = Machine { root: true, clock_is_set: false, socket: None, ..facts.machine };
    facts.interfaces.clear();
    let checks: Vec<_> =
        wrong(&facts).into_iter().map(|(severity, check, _)| (severity, check)).collect();
    let problem = Severity::Problem;
    assert_eq!(
        checks,
        [(problem, "links"), (problem, "socket"), (problem, "clock"), (Severity::Note, "root")]
    );
}

#[test]
fn what_the_kernel_lacks_to_confine_commands_is_told() {
    let told = |kernel, unconfined| {
        let mut facts = sound();
        (facts.machine.kernel, facts.machine.unconfined) = (kernel, unconfined);
        let all = judge(&facts).into_iter().find(|finding| finding.check == "confinement");
        all.map(|finding| (finding.severity, finding.what))
    };
    let (severity, what) = told(Some(Kernel { landlock: 4, seccomp: true }), false).unwrap();
    assert_eq!(severity, Severity::Ok);
    assert!(what.contains("Landlock 4 of 6, seccomp"), "{what}");
    let (severity, what) = told(Some(Kernel { landlock: 0, seccomp: false }), false).unwrap();
    assert_eq!(severity, Severity::Note);
    assert!(what.contains("no Landlock, no seccomp"), "{what}");
    let (severity, what) = told(Some(Kernel { landlock: 6, seccomp: true }), true).unwrap();
    assert_eq!(severity, Severity::Note);
    assert!(what.contains("ANABRANCH_UNCONFINED is set"), "{what}");
    assert_eq!(told(None, false), None, "nothing is known of other systems");
}

#[test]
fn an_interface_without_route_is_not_used_and_one_link_is_alone() {
    let mut facts = sound();
    facts.interfaces[1].ways[0].route = Some(false);
    let note = Severity::Note;
    assert_eq!(
        wrong(&facts),
        [(note, "links", "machine".to_owned()), (note, "route", "wwan0".to_owned())]
    );
}

#[test]
fn source_routing_matters_only_where_sockets_cannot_be_bound() {
    let mut facts = sound();
    facts.interfaces[1].ways[0].unbound = Some("wlan0".to_owned());
    assert_eq!(wrong(&facts), []);
    facts.interfaces[1].binding = Binding::Denied;
    let found = judge(&facts);
    let route = found.iter().find(|f| f.severity == Severity::Problem).unwrap();
    assert_eq!((route.check, route.subject.as_str()), ("route", "wwan0"));
    let advice = route.advice.as_deref().unwrap();
    assert_eq!(
        advice,
        "ip route add default via 10.0.0.1 dev wwan0 table 101; ip rule add from 10.1.0.2 table 101"
    );
}

#[test]
fn a_strict_reverse_filter_matters_only_off_the_preferred_link() {
    let mut facts = sound();
    for interface in &mut facts.interfaces {
        interface.reverse_filter = Some(1);
    }
    assert_eq!(wrong(&facts), []);
    facts.interfaces[1].ways[0].unbound = Some("wlan0".to_owned());
    let finding = only_wrong(&facts);
    assert_eq!((finding.severity, finding.check), (Severity::Problem, "rp-filter"));
    assert_eq!(finding.advice.unwrap(), "sysctl -w net.ipv4.conf.wwan0.rp_filter=2");
}

#[test]
fn silence_is_a_links_fault_only_if_others_answer() {
    let silent = Path { outcome: Outcome::Silent, measured: None, ..path("wwan0", measured()) };
    let finding = only_wrong(&with_paths(vec![path("wlan0", measured()), silent.clone()]));
    assert_eq!((finding.severity, finding.subject.as_str()), (Severity::Problem, "wwan0"));
    assert!(finding.advice.unwrap().starts_with("ping -I wwan0 203.0.113.5"));
    let (note, problem) = (Severity::Note, Severity::Problem);
    let mut facts = with_paths(vec![silent]);
    let all = [(note, "answer", "wwan0".to_owned()), (problem, "answer", "peer".to_owned())];
    assert_eq!(wrong(&facts), all);
    facts.peer.as_mut().unwrap().refused = true;
    assert!(judge(&facts).iter().any(|finding| finding.what.contains("nothing listens")));
}

#[test]
fn loss_is_judged_each_way_by_its_size() {
    let lossy = |lost, peer_lost| Measured { lost, peer_lost, ..measured() };
    let finding = on_link(lossy(10, 0));
    assert_eq!((finding.severity, finding.check), (Severity::Note, "loss-to-peer"));
    assert_eq!(finding.what, "5.0 % of 200 packets to the peer lost (10)");
    let finding = on_link(lossy(0, 30));
    assert_eq!((finding.severity, finding.check), (Severity::Problem, "loss-from-peer"));
    let few = Measured { sent: 19, lost: 19, ..measured() };
    assert_eq!(wrong(&with_paths(vec![path("wlan0", few)])), []);
}

#[test]
fn marks_that_vanish_are_noted() {
    for (arrived, words) in [(0, "removed"), (100, "only 100 of 200")] {
        let finding = on_link(Measured { ecn_arrived: arrived, ..measured() });
        assert_eq!((finding.severity, finding.check), (Severity::Note, "ecn"));
        assert!(finding.what.contains(words), "{}", finding.what);
    }
    let congested = Measured { ecn_arrived: 150, ecn_ce: 50, ..measured() };
    assert_eq!(wrong(&with_paths(vec![path("wlan0", congested)])), []);
    let unmarked = Measured { ecn_sent: 9, ecn_arrived: 0, ..measured() };
    assert_eq!(wrong(&with_paths(vec![path("wlan0", unmarked)])), []);
}

#[test]
fn queues_and_throttles_are_told_apart() {
    let standing = on_link(Measured { rtt_median_ms: Some(150.0), ..measured() });
    assert_eq!((standing.severity, standing.check), (Severity::Note, "rtt"));
    let filled = |loss, rtt: f64| {
        let load = Load { mbps: 30.0, loss, rtt_median_ms: Some(rtt) };
        Measured { load: Some(load), ..measured() }
    };
    assert_eq!(on_link(filled(0.1, 25.0)).severity, Severity::Problem);
    assert_eq!(on_link(filled(0.1, 320.0)).severity, Severity::Note);
    let failed = Measured { load_failed: Some("it broke".to_owned()), ..measured() };
    let told = wrong(&with_paths(vec![path("wlan0", failed)]));
    assert_eq!(told, [(Severity::Problem, "load", "wlan0".to_owned())]);
    let loaded = |loss| with_paths(vec![path("wlan0", filled(loss, 60.0))]);
    assert_eq!(wrong(&loaded(0.02)), []);
    assert_eq!(wrong(&loaded(0.1)), [], "a full buffer drops");
}

#[test]
fn translation_is_told_as_far_as_addresses_tell_it() {
    let what = |local: &str, remote: &str| {
        let path =
            Path { local: ip(local), remote: remote.parse().unwrap(), ..path("wlan0", measured()) };
        let found = judge(&with_paths(vec![path]));
        found.into_iter().find(|finding| finding.check == "nat").unwrap().what
    };
    assert!(what("10.0.0.2", "203.0.113.5:1").starts_with("there is a NAT"));
    assert!(what("10.0.0.2", "10.0.0.3:1").contains("may be a NAT"));
    assert!(what("203.0.113.9", "203.0.113.5:1").ends_with("no NAT is needed"));
}

#[test]
fn a_link_that_carries_less_than_ethernet_is_noted() {
    let finding = on_link(Measured { mtu: 1420, ..measured() });
    assert_eq!((finding.severity, finding.check), (Severity::Note, "mtu"));
    assert!(finding.what.contains("1420"), "{finding:?}");
    // If the peer does not accept longer packets, the link is not to blame.
    let limited = Measured { mtu: 1420, mtu_limit: 1420, ..measured() };
    assert_eq!(wrong(&with_paths(vec![path("wlan0", limited), path("wwan0", measured())])), []);
}
