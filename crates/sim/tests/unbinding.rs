//! The cost of pTCP's unbinding on the real transport: data that arrives twice. If a path falls
//! silent, its data may have arrived already and is sent again on others. A loss that cuts the
//! window does not unbind data in flight.

mod support;

use anabranch_sim::scenario::Plan;
use core::time::Duration;

use support::{bulk, go, links};

/// Bytes that arrived more than once, as a share of those delivered.
fn repeated(texts: [&str; 2]) -> f64 {
    let plan = Plan::parallel(links(&texts)).within(Duration::from_secs(100));
    let report = go(&plan.flow(bulk("ptcp", 60)), 1);
    let receiver = report.flows[0].receiver.as_ref().expect("of a core flow");
    receiver.repeated_bytes as f64 / report.bytes() as f64
}

#[test]
fn little_arrives_twice() {
    let settings = [
        ["rate=500kbit,delay=50ms", "rate=5mbit,delay=50ms"],
        ["rate=500kbit,delay=200ms", "rate=5mbit,delay=50ms"],
        // The varying rates of the paper's figure 10, on one path and on both.
        ["rate=2mbit,delay=200ms", "rate=5mbit,delay=50ms,fluctuation=1s/20%-100%/10%"],
        [
            "rate=2mbit,delay=200ms,fluctuation=3s/20%-100%/10%",
            "rate=5mbit,delay=50ms,fluctuation=10s/20%-100%/10%",
        ],
        ["rate=2mbit,delay=200ms,blackout=25s-50s", "rate=5mbit,delay=50ms"],
        // Every loss cuts the window.
        ["rate=10mbit,delay=20ms,loss=1%", "rate=10mbit,delay=30ms,loss=1%"],
        ["rate=2mbit,delay=200ms,loss=1%", "rate=20mbit,delay=20ms,loss=3%"],
    ];
    for texts in settings {
        let share = repeated(texts);
        println!("{texts:?}: {share:.4}");
        assert!(share < 0.005, "{texts:?}: {share:.4}");
    }
}
