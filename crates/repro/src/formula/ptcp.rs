//! The varying bandwidth of pTCP's figure 10.

use anabranch_sim::rate::{RandomCourse, RandomRate};
use core::time::Duration;

use anabranch_sim::stats::Estimate;

use crate::figure::Figure;
use crate::outcome::Outcome;

/// The figure's nominal rate, Mb/s.
const NOMINAL: f64 = 5.0;
/// Periods drawn for each seed, so many that the mean share has a standard error of 0.002.
const PERIODS: usize = 20_000;

/// The shares of the nominal rate in successive periods of 1 s.
fn shares(seed: u64) -> Vec<f64> {
    let config = RandomRate::ptcp(Duration::from_secs(1));
    let Ok(mut course) = RandomCourse::new(&config, seed, "figure-10") else { return Vec::new() };
    let mut shares = Vec::with_capacity(PERIODS);
    for _ in 0..PERIODS {
        shares.push(course.share());
        course.advance(course.next_change());
    }
    shares
}

/// `ptcp-fig10`: the bandwidth drawn for C = 5 Mb/s and a period of 1 s.
pub fn fluctuation() -> Outcome {
    let mut outcome = Outcome::new();
    let seeds: Vec<Vec<f64>> = (1..=5).map(shares).collect();
    let all = || seeds.iter().flatten().copied();
    let least = all().fold(f64::INFINITY, f64::min);
    let most = all().fold(f64::NEG_INFINITY, f64::max);
    // Shares are computed from tenths, so only their last bit may be wrong.
    let exact = 1e-9;
    outcome.bounded("least share of C", Estimate::exact(least), 0.2 - exact, 0.2 + exact);
    outcome.bounded("largest share of C", Estimate::exact(most), 1.0 - exact, 1.0 + exact);
    let off_step = |share: f64| (share * 10.0 - (share * 10.0).round()).abs();
    let error = all().map(off_step).fold(0.0, f64::max);
    outcome.bounded("largest distance from a tenth of C", Estimate::exact(error), None, exact);
    let means: Vec<f64> =
        seeds.iter().map(|shares| shares.iter().sum::<f64>() / shares.len() as f64).collect();
    outcome.bounded("mean share of C", Estimate::of(&means), 0.59, 0.61);
    let count = |tenths: f64| all().filter(|share| (share * 10.0).round() == tenths).count() as f64;
    let ends = (count(2.0) + count(10.0)) / 2.0;
    let inner = (3..=9).map(|tenths| count(f64::from(tenths))).sum::<f64>() / 7.0;
    outcome.bounded("end levels over inner ones", Estimate::exact(ends / inner), 0.45, 0.55);
    let mut figure =
        Figure::new("Bandwidth, C = 5 Mb/s, a draw each second", "time (s)", "rate (Mb/s)");
    let mut points = Vec::new();
    for (second, share) in seeds.iter().flatten().take(60).enumerate() {
        let rate = Estimate::exact(share * NOMINAL);
        points.extend([(second as f64, rate), (second as f64 + 1.0, rate)]);
    }
    figure.line("drawn", points);
    outcome.figures.push(figure);
    outcome.remark(
        "The draw is uniform before it is rounded, so the two end levels come half as often as the \
         others.",
    );
    outcome
}
