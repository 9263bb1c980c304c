use super::*;

#[test]
fn a_constant_link_delivers_rate_times_one_minus_loss() {
    let mut link = link("rate=10mbit,delay=20ms,loss=25%");
    assert_eq!(link.capacity_bits(Time::from_secs(2)), 15e6);
    assert_eq!(link.capacity_integral(Time::from_secs(1), Time::from_millis(1_500)), 3.75e6);
    assert_eq!(link.capacity_integral(Time::from_secs(2), Time::from_secs(1)), 0.0);
}

#[test]
fn changes_and_blackouts_are_cut_exactly() {
    let mut link = link("rate=10mbit/20mbit@3s,delay=20ms,loss=0%/50%@2s,blackout=1s-1500ms");
    // Rate times (1 − loss) is 10 Mb/s in [0,1), 0 in [1,1.5), 10 in [1.5,2), 5 in [2,3), 10 in
    // [3,4).
    let bits = link.capacity_bits(Time::from_secs(4));
    assert!((bits - 30e6).abs() < 1e-3, "{bits}");
    assert_eq!(link.capacity_integral(Time::from_secs(1), Time::from_millis(1_500)), 0.0);
}

#[test]
fn gilbert_elliott_is_charged_its_mean() {
    let mut link = link("rate=10mbit,delay=20ms,loss=ge:10%/30%");
    let bits = link.capacity_bits(Time::from_secs(1));
    assert!((bits - 7.5e6).abs() < 1e-3, "{bits}");
}

#[test]
fn the_running_and_the_replayed_integral_agree_and_follow_the_loss_state() {
    let text = "rate=10mbit,delay=20ms,loss=markov:5%/35%/90%@100ms,blackout=2s-3s";
    let mut link = link(text);
    let mut by_hand = 0.0;
    for millis in 0..5_000 {
        // Sample the loss state every millisecond, with traffic in between.
        let now = Time::from_millis(millis);
        let loss = link.loss_state(now).get();
        by_hand += link.rate().as_bps() as f64 * (1.0 - loss) * 1e-3;
        link.enqueue(now, 400, Ecn::NotEct, millis).ok();
        link.advance(now, |_| ());
        if millis % 77 == 0 {
            link.capacity_bits(now);
        }
    }
    let end = Time::from_secs(5);
    let running = link.capacity_bits(end);
    assert_eq!(running, link.capacity_integral(Time::ZERO, end));
    assert_eq!(running, super::link(text).capacity_bits(end));
    // Sampling errs by at most a millisecond of traffic per change, and there are about 50 changes.
    assert!((running - by_hand).abs() < 50.0 * 10e3, "{running} {by_hand}");
}

#[test]
fn realised_delivery_of_a_saturated_link_meets_its_capacity() {
    let mut link = link("rate=10mbit,delay=20ms,loss=markov:5%/35%@250ms,buffer=64KiB");
    let out = constant_traffic(&mut link, 60_000, 1250, core::time::Duration::from_micros(990));
    assert_eq!(out.len(), 60_000);
    let counters = *link.counters();
    // The transmitter is never idle before the last packet leaves at about 59.4 s.
    let busy = Time::from_millis(counters.packets_serialised);
    let delivered = counters.bytes_delivered as f64 * 8.0;
    let capacity = link.capacity_integral(Time::ZERO, busy);
    assert!((delivered / capacity - 1.0).abs() < 0.01, "{delivered} {capacity}");
}
