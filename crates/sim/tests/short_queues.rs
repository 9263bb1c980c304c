//! Buffers of a few packets on short links, and policers, drop packets without delaying any. Their losses look random,
//! but the controller must not send more to make up for them.

mod support;

use anabranch_sim::scenario::Plan;

use support::{bulk, links};

const SEEDS: u64 = 3;

/// The goodput as a share of `rate` (Mb/s), and the share of packets that are lost; both are means
/// of all seeds.
fn measure(text: &str, rate: f64, seconds: u64) -> (f64, f64) {
    let plan = Plan::parallel(links(&[text])).flow(bulk("anabranch", seconds));
    let (mut goodput, mut lost) = (0.0, 0.0);
    for seed in 1..=SEEDS {
        let report = support::go(&plan, seed);
        let scalar = |metric| report.scalar(&report.flows[0].subject, metric);
        goodput += scalar("goodput_mbps").expect("goodput is measured") / SEEDS as f64;
        lost += scalar("loss_before_repair").expect("loss is measured") / SEEDS as f64;
    }
    println!("== {text}: {:.3} of the rate, {lost:.4} lost", goodput / rate);
    (goodput / rate, lost)
}

#[test]
fn a_short_queue_is_not_flooded() {
    for (rate, delay, buffer) in [
        (1000, "50us", 38),
        (1000, "50us", 75),
        (1000, "50us", 300),
        (1000, "200us", 75),
        (2500, "20us", 100),
        (300, "50us", 75),
        (100, "50us", 10),
        (50, "20us", 25),
        (20, "1ms", 12),
    ] {
        for loss in [0.0, 0.02] {
            let text =
                format!("rate={rate}mbit,delay={delay},buffer={buffer}KB,loss={}%", 100.0 * loss);
            let (share, lost) = measure(&text, f64::from(rate), 3);
            assert!(share > 0.85 * (1.0 - loss), "{text}: {share}");
            assert!(lost < loss + 0.1, "{text}: {lost}");
        }
    }
}

#[test]
fn a_policer_is_not_flooded() {
    for (link, policer, burst, loss) in [
        ("rate=100mbit,delay=10ms", 20, 250, 0.0),
        ("rate=100mbit,delay=10ms", 20, 32, 0.0),
        ("rate=50mbit,delay=40ms", 10, 64, 0.0),
        ("rate=100mbit,delay=5ms", 20, 1000, 0.0),
        ("rate=1000mbit,delay=10ms", 50, 250, 0.0),
        ("rate=100mbit,delay=10ms", 20, 100, 0.2),
        ("rate=30mbit,delay=10ms,jitter=10ms", 20, 64, 0.0),
    ] {
        let text = format!("{link},policer={policer}mbit/{burst}KB,loss={}%", 100.0 * loss);
        let (share, lost) = measure(&text, f64::from(policer), 20);
        assert!(share > 0.83 * (1.0 - loss), "{text}: {share}");
        assert!(lost < loss + 0.2, "{text}: {lost}");
    }
}
