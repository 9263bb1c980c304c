//! §II-A and §III-C: blocks in transit, tails, packet numbers and free slots.

use anabranch_policy::Axis;
use anabranch_sim::report::RunReport;
use anabranch_sim::scenario::{Plan, Protocol};
use core::time::Duration;

use crate::support::{bins, bytes, flow, in_tenths, links};

/// A transfer of `size` bytes by MPLOT over the links `texts`.
pub fn plan(texts: &[&str], size: u64) -> Plan {
    Plan::parallel(links(texts)).flow(bytes("mplot", size))
}

pub fn go(plan: &Plan) -> RunReport {
    crate::support::go(plan, 1)
}

/// Changes the policy on one axis.
pub fn set(plan: &mut Plan, axis: Axis, policy: &str) {
    if let Protocol::Core(profile) = &mut flow(plan).protocol {
        profile.set(axis, policy).unwrap();
    }
}

#[test]
fn the_next_block_starts_while_earlier_ones_are_in_transit() {
    let links = ["rate=10mbit,delay=40ms,loss=10%,ecn", "rate=5mbit,delay=80ms,loss=20%,ecn"];
    let report = go(&plan(&links, 3_000_000));
    let sent = report.flows[0].sender.as_ref().unwrap().sent;
    let live = sent.live_at_openings as f64 / sent.blocks as f64;
    assert!(sent.blocks > 20 && live > 1.5, "{live} blocks at once, of {}", sent.blocks);
}

#[test]
fn a_short_tail_leaves_at_once() {
    // A block has at least five packets, which these bytes do not fill, and no more data will come.
    let delay = Duration::from_millis(100);
    let report = go(&plan(&["rate=100mbit,delay=100ms,ecn"], 700));
    let sent = report.flows[0].sender.as_ref().unwrap().sent;
    assert_eq!((sent.blocks, sent.sources), (1, 2));
    // The handshake takes a round trip and the data half of one. No other time may pass.
    assert!(report.elapsed() < delay * 3 + Duration::from_millis(2), "{:?}", report.elapsed());
}

#[test]
fn a_path_takes_a_packet_only_if_its_window_has_room() {
    let report = go(&in_tenths(plan(&["rate=1gbit,delay=100ms,ecn"], 1_000_000)));
    let path = &report.flows[0].sender.as_ref().unwrap().paths[0];
    assert!(path.cwnd > 100_000, "it opened: {}", path.cwnd);
    // Bins of 100 ms: the handshake until 200 ms, then two packets in a round trip, doubled each
    // time.
    let sent = bins(&report, "link.0", "sent_mbps");
    let mut most = 2 * 1500 + 500;
    for round in sent[2..].chunks(2).take(6) {
        let bytes: u64 = round.iter().sum();
        assert!(bytes <= most, "{bytes} of {most} allowed in {sent:?}");
        most *= 2;
    }
}

#[test]
fn no_number_is_used_twice_even_when_blocks_wrap_around() {
    let mut plan = plan(&["rate=50mbit,delay=100ms,loss=50%,ecn"], 20_000_000);
    // A block has as many packets as a codeword delivers on average, so half of the blocks need
    // more packets than a codeword has.
    set(&mut plan, Axis::Redundancy, "mean-sigma:residual=0.5,kappa1=0");
    let report = go(&plan);
    let flow = &report.flows[0];
    let (sender, receiver) = (flow.sender.as_ref().unwrap(), flow.receiver.as_ref().unwrap());
    assert!(sender.sent.wraps > 0, "{:?}", sender.sent);
    // A packet whose number was seen before would be refused, and the link itself duplicates
    // nothing.
    assert_eq!(receiver.dropped.unopened, 0);
    let delivered = report.links[0].counters.packets_delivered;
    let received: u64 = receiver.paths.iter().map(|path| path.counters.received_packets).sum();
    assert!(received <= delivered && received + 5 >= delivered, "{received} of {delivered}");
}
