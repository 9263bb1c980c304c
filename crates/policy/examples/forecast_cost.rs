//! Makes LATE's forecasts so that the instructions of one can be counted: run it twice under
//! `valgrind --tool=callgrind` with different numbers of forecasts, and divide the difference of
//! the instructions by that of the forecasts.
//!
//! Arguments: window, T in round trips, loss, timeout in round trips, how many forecasts. Prints the packets forecast.

use anabranch_policy::analysis::rounds::{Forecast, Forecaster, Reading};
use core::time::Duration;

fn main() {
    let arguments: Vec<f64> =
        std::env::args().skip(1).filter_map(|text| text.parse().ok()).collect();
    let [window, rounds, loss, rto, count] = arguments[..] else {
        eprintln!("forecast_cost WINDOW ROUNDS LOSS RTO COUNT");
        std::process::exit(2);
    };
    let (window, rtt) = (window as u32, Duration::from_millis(10));
    let mut forecaster = Forecaster::pruning(Reading::Model);
    let mut packets = 0.0;
    for step in 0..count as u32 {
        // The loss differs each time, so that no forecast can use the table of an earlier one.
        let loss = loss * (1.0 + 1e-9 * f64::from(step));
        let path = Forecast { rtt, rto: rtt.mul_f64(rto), loss, cap: 512 };
        packets = forecaster.packets(&path, rtt.mul_f64(rounds), window, window / 2 + 1);
    }
    println!("{packets}");
}
