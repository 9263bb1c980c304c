//! §II-A and §III-C: blocks in transit, tails, packet numbers and free slots.

use anabranch_core::profiles::Profile;
use anabranch_sim::harness::{Goal, Report, Spec, run};
use core::time::Duration;

/// A transfer of the protocol over `links`.
pub fn spec(links: &[&str], goal: Goal) -> Spec {
    let links = links.iter().map(|link| link.parse().unwrap()).collect();
    Spec::new(links, Profile::named("mplot").unwrap(), goal, 1)
}

pub fn go(spec: &Spec) -> Report {
    run(spec, &mut |_| None).unwrap_or_else(|error| panic!("seed {}: {error}", spec.seed))
}

#[test]
fn the_next_block_starts_while_earlier_ones_are_in_transit() {
    let links = ["rate=10mbit,delay=40ms,loss=10%,ecn", "rate=5mbit,delay=80ms,loss=20%,ecn"];
    let report = go(&spec(&links, Goal::Bytes(3_000_000)));
    let sent = report.flows[0].sender.as_ref().unwrap().sent;
    let live = sent.live_at_openings as f64 / sent.windows as f64;
    assert!(sent.windows > 20 && live > 1.5, "{live} blocks at once, of {}", sent.windows);
}

#[test]
fn a_short_tail_leaves_at_once() {
    // A block is five packets at least, which these bytes do not fill; nothing else is to come.
    let delay = Duration::from_millis(100);
    let report = go(&spec(&["rate=100mbit,delay=100ms,ecn"], Goal::Bytes(700)));
    let sent = report.flows[0].sender.as_ref().unwrap().sent;
    assert_eq!((sent.windows, sent.sources), (1, 2));
    // The handshake takes a round trip, the data half of one, and nothing else passes.
    assert!(report.elapsed < delay * 3 + Duration::from_millis(2), "{:?}", report.elapsed);
}

#[test]
fn a_path_takes_a_packet_only_if_its_window_has_room() {
    let report = go(&spec(&["rate=1gbit,delay=100ms,ecn"], Goal::Bytes(1_000_000)));
    let path = &report.flows[0].sender.as_ref().unwrap().paths[0];
    assert!(path.window > 100_000, "it opened: {}", path.window);
    // Bins of 100 ms: the handshake until 200 ms, then two packets a round trip, doubled each time.
    let sent = &report.links[0].sent;
    let mut most = 2 * 1500 + 500;
    for round in sent[2..].chunks(2).take(6) {
        let bytes: u64 = round.iter().sum();
        assert!(bytes <= most, "{bytes} of {most} allowed in {sent:?}");
        most *= 2;
    }
}

#[test]
fn no_number_is_used_twice_even_when_blocks_wrap_around() {
    let mut spec = spec(&["rate=50mbit,delay=100ms,loss=50%,ecn"], Goal::Bytes(20_000_000));
    // Blocks as large as a codeword delivers on average: half of them need more than it has.
    spec.flows[0].profile.set("redundancy", "mean-sigma:residual=0.5,kappa1=0").unwrap();
    let report = go(&spec);
    let flow = &report.flows[0];
    let (sender, receiver) = (flow.sender.as_ref().unwrap(), flow.receiver.as_ref().unwrap());
    assert!(sender.sent.wraps > 0, "{:?}", sender.sent);
    // A packet whose number was seen before would be refused: the link duplicates nothing.
    assert_eq!(receiver.dropped.unopened, 0);
    let delivered = report.links[0].forward.packets_delivered;
    let received: u64 = receiver.paths.iter().map(|path| path.counters.received_packets).sum();
    assert!(received <= delivered && received + 5 >= delivered, "{received} of {delivered}");
}
