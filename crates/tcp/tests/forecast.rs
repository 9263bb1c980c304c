//! Compares LATE's forecast N(T, w, s) of the packets that arrive within T with a TCP that starts
//! in the same state and uses selective acknowledgements. The path only loses and delays packets.

mod network;

use anabranch_policy::analysis::rounds::Forecast;
use anabranch_tcp::Config;
use anabranch_types::{Time, math};
use core::time::Duration;
use network::{Path, Run};
use std::collections::BTreeMap;

const RTT: Duration = Duration::from_millis(20);
const RTO: Duration = Duration::from_millis(200);

/// Window and threshold in packets, loss ratio, and T in round trips.
#[derive(Clone, Copy, Debug)]
struct Point {
    window: u32,
    ssthresh: u32,
    loss: f64,
    rounds: u32,
}

/// A mean over runs, and its standard error.
#[derive(Clone, Copy, Debug)]
struct Measured {
    mean: f64,
    error: f64,
}

impl Point {
    fn forecast(self) -> f64 {
        let path = Forecast { rtt: RTT, rto: RTO, loss: self.loss, cap: 512 };
        path.packets(RTT * self.rounds, self.window, self.ssthresh)
    }

    /// Distinct packets that one TCP delivers within T.
    fn play(self, seed: u64) -> f64 {
        let mut config = Config { handshake: false, ..Config::default() };
        config.timers.initial_rto = RTO;
        let Point { window, ssthresh, .. } = self;
        let control = format!("reno:initial={window},threshold={ssthresh}");
        let path = Path::new(1e6, RTT.as_millis() as u64 / 2, 1 << 20, self.loss);
        let mut run = Run::new(&config, &control, path, seed);
        run.until(Time::ZERO + RTT * self.rounds, |run| {
            run.sender.write(1 << 30);
        });
        (run.receiver.delivered() + run.receiver.waiting()) as f64 / f64::from(config.mss)
    }

    fn measure(self, runs: u64) -> Measured {
        let (mut sum, mut squares) = (0.0, 0.0);
        for seed in 1..=runs {
            let packets = self.play(seed);
            sum += packets;
            squares += packets * packets;
        }
        let count = runs as f64;
        let mean = sum / count;
        let variance = (squares / count - mean * mean).max(0.0) * count / (count - 1.0);
        Measured { mean, error: (variance / count).sqrt() }
    }
}

/// The model with one change: recovery lasts one round trip, in which half the window leaves, the
/// retransmissions among it. Time is counted in half round trips. A round with losses delivers all
/// packets that were not lost.
#[derive(Default)]
struct OneRound {
    loss: f64,
    known: BTreeMap<(i64, u32, u32), f64>,
}

impl OneRound {
    fn packets(&mut self, halves: i64, window: u32, ssthresh: u32) -> f64 {
        let key = (halves, window, ssthresh.min(513));
        if halves < 3 {
            return if halves < 1 { 0.0 } else { f64::from(window) * (1.0 - self.loss) };
        }
        if let Some(packets) = self.known.get(&key) {
            return *packets;
        }
        let (arrive, all) = (1.0 - self.loss, f64::from(window));
        let clean = math::pow(arrive, all);
        let (mut few, mut survivors, mut ways) = (0.0, 0.0, 1.0);
        for arrived in 0..window.min(3) {
            let chance = ways
                * math::pow(arrive, f64::from(arrived))
                * math::pow(self.loss, all - f64::from(arrived));
            few += chance;
            survivors += chance * f64::from(arrived);
            ways *= f64::from(window - arrived) / f64::from(arrived + 1);
        }
        let repaired = if window < 4 { 0.0 } else { 1.0 - clean - few };
        let half = window / 2;
        let next = if window < ssthresh { 2 * window } else { window + 1 };
        let mut packets = all * arrive;
        packets += clean * self.packets(halves - 2, next.min(512), ssthresh);
        if repaired > 1e-9 {
            packets += repaired * self.packets(halves - 2, half, half);
        }
        let restarted = halves - 2 * i64::from((RTO.as_millis() / RTT.as_millis()) as u32) - 1;
        if restarted > 0 && few > 1e-9 {
            packets += few * self.packets(restarted, 1, half.max(2));
            // After the timer has fired, the lost packets are sent again.
            packets += few * all - survivors;
        }
        self.known.insert(key, packets);
        packets
    }
}

/// During recovery the model counts only the retransmissions, not the new packets that TCP sends.
/// So it errs on the low side, and the more so, the more rounds have losses. Bounds are in per cent
/// of what TCP delivers, as in docs/protocols/late.md.
#[test]
fn forecasts_are_what_tcp_delivers_at_least() {
    for (window, ssthresh, loss, rounds, low, high) in [
        (2, 2, 0.001, 20, -2.0, 0.0),
        (4, 4, 0.001, 10, -1.5, 0.0),
        (10, 10, 0.001, 5, -1.5, 0.0),
        (2, 32, 0.001, 5, -2.0, 0.0),
        (4, 4, 0.01, 5, -4.0, -0.5),
        (10, 10, 0.01, 10, -8.0, -3.0),
        (32, 32, 0.03, 5, -24.0, -17.0),
        (10, 160, 0.01, 10, -32.0, -22.0),
    ] {
        let point = Point { window, ssthresh, loss, rounds };
        let (model, tcp) = (point.forecast(), point.measure(1_500));
        let off = 100.0 * (model / tcp.mean - 1.0);
        let error = 300.0 * tcp.error / tcp.mean;
        assert!(
            low - error < off && off < high + error,
            "{point:?}: {model}, {tcp:?}, {off:+.2} %"
        );
    }
}

#[test]
#[ignore = "prints the table of docs/protocols/late.md, and checks nothing"]
fn table() {
    for (name, factor) in [("congestion avoidance, s = w", 1), ("slow start, s = 16 w", 16)] {
        println!(
            "\n{name}: model / TCP, their difference in per cent of TCP, standard error in per cent"
        );
        for window in [2, 4, 10, 32] {
            for loss in [0.001, 0.01, 0.03, 0.1] {
                print!("| {window} | {} % |", loss * 100.0);
                for rounds in [2, 5, 10, 20] {
                    let point = Point { window, ssthresh: factor * window, loss, rounds };
                    let (model, tcp) = (point.forecast(), point.measure(4_000));
                    let mut other = OneRound { loss, ..OneRound::default() };
                    let other = other.packets(2 * i64::from(rounds), window, point.ssthresh);
                    let off = |model: f64| 100.0 * (model / tcp.mean - 1.0);
                    let error = 100.0 * tcp.error / tcp.mean;
                    let (ours, other) = (off(model), off(other));
                    print!(" {:.1}, {ours:+.1}, {other:+.1} ± {error:.1} |", tcp.mean);
                }
                println!();
            }
        }
    }
}
