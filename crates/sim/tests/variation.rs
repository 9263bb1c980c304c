//! Roads with varying delay: late packets count neither as lost nor as a sign of a queue, and
//! hardly any path times out because of them.

mod support;

use anabranch_core::connection::PathStats;
use anabranch_sim::report::RunReport;
use anabranch_sim::scenario::Plan;

use support::{bulk, go, links, median};

fn over(roads: &[&str], seconds: u64) -> Plan {
    Plan::parallel(links(roads)).flow(bulk("anabranch", seconds))
}

fn paths(report: &RunReport) -> &[PathStats] {
    &report.flows[0].sender.as_ref().expect("a core flow").paths
}

#[test]
fn packets_that_overtake_one_another_are_not_lost() {
    for jitter in ["5ms,jitter-law=normal", "10ms,jitter-law=gamma", "20ms,jitter-law=gamma"] {
        let road = format!("rate=50mbit,delay=20ms,buffer=666p,reorder,jitter={jitter}");
        // Single runs of six seconds vary: of 48 runs with the last jitter, the lowest efficiency
        // was 0.56 and the mean 0.87.
        let efficiencies = (1..=8).map(|seed| {
            let report = go(&over(&[&road], 6), seed);
            let counters = paths(&report)[0].counters;
            let spurious = counters.spurious_losses as f64 / counters.sent_packets as f64;
            assert!(spurious < 0.003, "{road}, seed {seed}: {spurious}");
            report.efficiency()
        });
        let mean = efficiencies.sum::<f64>() / 8.0;
        assert!(mean > 0.82, "{road}: {mean}");
    }
}

#[test]
fn late_packets_are_reported_at_rates_at_which_hundreds_of_gaps_are_open() {
    let road = "rate=150mbit,delay=20ms,buffer=2000p,reorder,jitter=20ms,jitter-law=gamma";
    let report = go(&over(&[road], 8), 1);
    assert!(report.efficiency() > 0.75, "{}", report.efficiency());
}

#[test]
fn loss_is_known_although_the_delay_varies() {
    for jitter in ["20ms,jitter-law=normal", "8ms,jitter-law=gamma,jitter-correlation=50ms"] {
        let road = format!("rate=50mbit,delay=20ms,buffer=666p,loss=2%,jitter={jitter}");
        // In some runs, the queue drops packets shortly before the end.
        let loss =
            median([1, 2, 3, 4, 5], |seed| paths(&go(&over(&[&road], 6), seed))[0].loss.mean);
        assert!((0.01..0.035).contains(&loss), "{road}: {loss}");
    }
}

/// A delay of a few milliseconds that hardly varies must not be taken for a queue that other flows
/// keep full. In 5 of 108 runs over such links this happened, and these runs carried almost
/// nothing.
#[test]
fn much_random_loss_is_known_although_no_delay_is_short() {
    for jitter in ["1ms,jitter-law=normal", "2ms,jitter-law=gamma", "4ms,jitter-law=uniform"] {
        let road = format!("rate=60mbit,delay=40ms,buffer=800p,loss=20%,jitter={jitter}");
        let plan = over(&[&road], 8);
        let share = median([1, 2, 3, 4, 5], |seed| go(&plan, seed).efficiency());
        // The share is over the whole 8 s. The first seconds carry little, since jitter ends
        // startup too early.
        assert!(share > 0.6, "{road}: {share}");
    }
}

/// Of 60 runs with each of these jitters, 1, 1, 6 and 0 runs had a timeout. Log-normal jitter has a
/// long tail: sometimes a packet is later than any useful timeout.
#[test]
fn hardly_any_path_times_out_because_it_is_late() {
    let steady = "rate=20mbit,delay=20ms,buffer=200p";
    let mut timeouts = Vec::new();
    for jitter in [
        "20ms,jitter-law=normal",
        "20ms,jitter-law=gamma,jitter-correlation=200ms",
        "20ms,jitter-law=log-normal,jitter-correlation=50ms",
        "20ms,jitter-law=gamma,reorder",
    ] {
        let varies = format!("rate=20mbit,delay=20ms,buffer=200p,jitter={jitter}");
        for seed in 1..=6 {
            let report = go(&over(&[steady, &varies], 5), seed);
            let late = paths(&report)[1].counters.timeouts;
            timeouts.extend((late > 0).then_some((jitter, seed, late)));
        }
    }
    assert!(timeouts.len() <= 2, "{timeouts:?}");
}
