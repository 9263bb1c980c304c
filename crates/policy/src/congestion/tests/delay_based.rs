//! Controllers that react to the round-trip time or treat a loss as damage, compared with values computed by hand.

use super::*;

/// Runs one round: `packets` packets sent at `sent` are acknowledged one by one, `millis` later.
/// Returns the window in packets.
fn round(control: &mut dyn CongestionController, sent: u64, packets: u32, millis: u64) -> u64 {
    for _ in 0..packets {
        let event = AckEvent { rtt: rtt(millis), ..ack(sent + millis, sent, 1) };
        control.on_ack(&event, &[]);
    }
    control.cwnd() / PACKET
}

/// Runs rounds of five packets, back to back, with these round-trip times. Returns the window after
/// each, in packets.
fn rounds(control: &mut dyn CongestionController, times: &[u64]) -> Vec<u64> {
    let mut sent = 0;
    let mut cwnds = Vec::new();
    for millis in times {
        cwnds.push(round(control, sent, 5, *millis));
        sent += millis + 1;
    }
    cwnds
}

#[test]
fn vegas_moves_a_packet_per_round_trip_between_its_thresholds() {
    let mut vegas = controller("vegas:initial=20");
    // A cut ends slow start at 10 packets. Then each round has five acknowledgements, of which the
    // first ends the previous round.
    vegas.on_ack(&loss(10, 5, 1), &[]);
    assert_eq!(vegas.cwnd(), 10 * PACKET);
    // With a base of 100 ms, a window of 10 has 3.3 packets waiting at 150 ms, 5 at 200 ms and .9
    // at 110 ms.
    let mut sent = 11;
    let mut after = |millis: u64| {
        let cwnd = round(&mut *vegas, sent, 5, millis);
        sent += millis + 1;
        cwnd
    };
    after(100);
    // The base round showed no queue, so the window grows by one. From here on, the first
    // acknowledgement of a round carries out the change that the previous round calls for.
    assert_eq!(after(100), 11);
    assert_eq!(after(150), 12);
    // 12·50/150 = 4: neither below 2 nor above 4.
    assert_eq!(after(200), 12);
    // 12·100/200 = 6.
    assert_eq!(after(110), 11);
    // 11·10/110 = 1.
    assert_eq!(after(110), 12);
}

#[test]
fn vegas_leaves_slow_start_when_a_queue_shows() {
    let mut vegas = controller("vegas:initial=10");
    let cwnds = rounds(&mut *vegas, &[100, 100, 125]);
    // In slow start, five acknowledgements add five packets.
    assert_eq!(cwnds, [15, 20, 25]);
    // 25·25/125 = 5 packets wait: back to 25·100/125 + 1.
    let event = AckEvent { rtt: rtt(125), ..ack(460, 400, 1) };
    vegas.on_ack(&event, &[]);
    assert_eq!(vegas.cwnd(), 21 * PACKET);
    assert_eq!(vegas.phase(), "congestion-avoidance");
}

#[test]
fn veno_cuts_by_a_fifth_without_a_queue_and_by_half_with_one() {
    let cut = |millis: u64, event: AckEvent| {
        let mut veno = controller("veno:initial=10");
        rounds(&mut *veno, &[100, millis]);
        // The next acknowledgement ends the second round and reports what was lost.
        let before = veno.cwnd() / PACKET;
        veno.on_ack(&AckEvent { rtt: rtt(100), ..event }, &[]);
        (before, veno.cwnd())
    };
    // 20·10/110 = 1.8 packets wait.
    assert_eq!(cut(110, loss(500, 400, 1)), (20, 16 * PACKET));
    // 20·25/125 = 4.
    assert_eq!(cut(125, loss(500, 400, 1)), (20, 10 * PACKET));
    assert_eq!(cut(110, mark(500, 400, 1)), (20, 10 * PACKET));
}

#[test]
fn veno_grows_half_as_fast_with_a_queue() {
    let grown = |spec: &str, millis: u64| {
        let mut veno = controller(spec);
        veno.on_ack(&AckEvent { rtt: rtt(100), ..mark(100, 50, 1) }, &[]);
        // Two rounds show the queue, then two windows of ten packets.
        veno.on_ack(&AckEvent { rtt: rtt(millis), ..ack(300, 101, 1) }, &[]);
        veno.on_ack(&AckEvent { rtt: rtt(millis), ..ack(500, 301, 1) }, &[]);
        for n in 0..20 {
            veno.on_ack(&AckEvent { rtt: rtt(millis), ..ack(700, 501 + n, 1) }, &[]);
        }
        veno.cwnd() / PACKET
    };
    assert_eq!(grown("veno:initial=20", 100), 12);
    assert_eq!(grown("veno:initial=20", 200), 11);
    assert_eq!(grown("veno:initial=20,increase=reno", 200), 12);
}

#[test]
fn westwood_falls_to_the_pipe_it_has_measured() {
    let mut westwood = controller("westwood:initial=40");
    // 20 packets in each 100 ms: 240 kB/s, and 24 kB in the least round-trip time.
    for n in 0..30 {
        westwood.on_ack(&ack(100 * (n + 1), 100 * n, 20), &[]);
    }
    let rate = westwood.bandwidth().expect("measured").as_bps();
    assert_eq!(rate, 1_920_000);
    westwood.on_ack(&loss(3_100, 3_000, 20), &[]);
    assert_eq!((westwood.cwnd(), westwood.ssthresh()), (20 * PACKET, 20 * PACKET));
    // A timeout keeps that threshold and restarts from one packet.
    westwood.on_timeout(&timeout(4_000, 3, 1));
    assert_eq!((westwood.cwnd(), westwood.ssthresh()), (PACKET, 20 * PACKET));
}

#[test]
fn westwood_smooths_its_samples_twice() {
    let mut westwood = controller("westwood");
    let rate = |control: &dyn CongestionController| control.bandwidth().map(|rate| rate.as_bps());
    westwood.on_ack(&ack(100, 0, 20), &[]);
    assert_eq!(rate(&*westwood), None);
    westwood.on_ack(&ack(200, 100, 20), &[]);
    assert_eq!(rate(&*westwood), Some(1_920_000));
    // A sample of 480 kB/s: once 270, twice (7·240 + 270)/8 = 243.75 kB/s.
    westwood.on_ack(&ack(300, 200, 40), &[]);
    assert_eq!(rate(&*westwood), Some(1_950_000));
}

#[test]
fn who_heeds_loss_notices_is_reno_otherwise() {
    let (mut eln, mut reno) = (controller("eln:initial=20"), controller("reno:initial=20"));
    assert!(eln.heeds_loss_notices() && !reno.heeds_loss_notices());
    for event in [ack(100, 50, 20), loss(200, 150, 1), ack(300, 250, 10)] {
        eln.on_ack(&event, &[]);
        reno.on_ack(&event, &[]);
        assert_eq!((eln.cwnd(), eln.ssthresh()), (reno.cwnd(), reno.ssthresh()));
    }
}

#[test]
fn a_yielding_vegas_gives_way_to_rises_that_are_not_its_own() {
    let mut vegas = controller("vegas:initial=20,yield=3");
    vegas.on_ack(&loss(10, 5, 1), &[]);
    let mut sent = 11;
    let mut after = |millis: u64| {
        let cwnd = round(&mut *vegas, sent, 5, millis);
        sent += millis + 1;
        cwnd
    };
    // The window grows while there is no queue, and delay that rises meanwhile is its own: at 120
    // ms, 2 of 12 packets wait.
    assert_eq!([100, 100, 110, 120, 120].map(&mut after), [10, 11, 12, 13, 13]);
    // The delay rises three times by 5 ms while the window does not grow; the window changes in the
    // next round.
    assert_eq!([125, 130, 135].map(&mut after), [13, 13, 13]);
    assert_eq!(after(150), 1);
    // The window stays at one packet until the delay has fallen by half of the 35 ms.
    assert_eq!([150, 130, 119, 115].map(&mut after), [1, 1, 1, 1]);
    assert!(after(100) > 1, "nobody is there any more");
}

#[test]
fn a_yielding_vegas_is_vegas_where_nothing_rises() {
    let times = [100, 100, 125, 120, 120, 100, 105, 100, 105, 110, 100];
    let [one, other] =
        ["vegas", "vegas:yield=3"].map(|spec| rounds(&mut *controller(spec), &times));
    assert_eq!(one, other);
}
