//! Buffers of a few packets on short links drop without letting anything wait for long. Their losses look random, and
//! must not be sent in addition.

mod support;

use anabranch_sim::scenario::Plan;

use support::{bulk, links};

/// The goodput as a share of `rate`, Mb/s, and the share of the packets that are lost.
fn measure(text: &str, rate: f64, seconds: u64) -> (f64, f64) {
    let report = support::go(&Plan::parallel(links(&[text])).flow(bulk("anabranch", seconds)), 1);
    let subject = &report.flows[0].subject;
    let [goodput, lost] = ["goodput_mbps", "loss_before_repair"]
        .map(|metric| report.scalar(subject, metric).unwrap_or_else(|| panic!("no {metric}")));
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
