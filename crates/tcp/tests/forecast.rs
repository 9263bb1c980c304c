//! LATE's forecast N(T, w, s) beside TCP with selective acknowledgements that begins in the same state: packets that
//! arrive within T, over a path that only loses and delays.

mod network;

use anabranch_policy::analysis::rounds::Forecast;
use anabranch_tcp::Config;
use anabranch_types::Time;
use core::time::Duration;
use network::{Path, Run};

const RTT: Duration = Duration::from_millis(20);
const RTO: Duration = Duration::from_millis(200);

/// Window and threshold, packets, loss, and T in round trips.
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

    /// Distinct packets that one TCP gets across within T.
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
                    let off = 100.0 * (model / tcp.mean - 1.0);
                    let error = 100.0 * tcp.error / tcp.mean;
                    print!(" {model:.1} / {:.1}, {off:+.1} ± {error:.1} |", tcp.mean);
                }
                println!();
            }
        }
    }
}
