//! Figure 10: paths that share a wireless last hop.

use super::{Evidence, FIG10, FIG10_11B, curve};
use crate::figure::Figure;
use crate::measure::Measure;
use crate::outcome::Outcome;

/// Raw rate of the channel less its loss, Mb/s: what the paper counts throughput and goodput against.
const USABLE: f64 = 11.0 * 0.9;

const ACCESS: [(&str, &str); 3] = [("1", "basic"), ("2", "RTS/CTS"), ("3", "TDMA")];

fn shares(evidence: &Evidence, access: &str, metric: &str) -> Vec<(f64, Measure)> {
    curve(evidence, FIG10.name, "M", &[("MAC", access)], metric, |_| 1.0 / USABLE)
}

/// Where a curve is highest.
fn peak(points: &[(f64, Measure)]) -> (f64, f64) {
    let best = points.iter().max_by(|a, b| a.1.mean.total_cmp(&b.1.mean));
    best.map_or((f64::NAN, f64::NAN), |(m, measure)| (*m, measure.mean))
}

fn at(points: &[(f64, Measure)], m: f64) -> Measure {
    let found = points.iter().find(|(x, _)| *x == m);
    found.map_or(Measure::exact(f64::NAN), |(_, measure)| *measure)
}

fn figure(evidence: &Evidence, access: &[(&str, &str)]) -> Figure {
    let mut figure =
        Figure::new("A shared wireless last hop", "paths M", "share of raw rate less loss");
    for (mac, name) in access {
        figure.line(format!("throughput, {name}"), shares(evidence, mac, "throughput_mbps"));
        figure.line(format!("goodput, {name}"), shares(evidence, mac, "goodput_mbps"));
    }
    figure.paper("paper, basic, throughput", &[(5.0, 0.82)]);
    figure.paper("paper, basic, goodput", &[(5.0, 0.70)]);
    figure
}

/// `mplot-fig10`: basic access.
pub(super) fn contention(evidence: &Evidence) -> Outcome {
    let mut outcome = Outcome::new();
    for (metric, name, stated) in
        [("throughput_mbps", "throughput", 0.82), ("goodput_mbps", "goodput", 0.70)]
    {
        let points = shares(evidence, "1", metric);
        outcome.bounded(format!("M of most {name}"), Measure::exact(peak(&points).0), 4.0, 6.0);
        let five = at(&points, 5.0);
        outcome.bounded(format!("{name} at M=5, share"), five, stated - 0.1, stated + 0.1);
        outcome.measure(format!("{name} at M=1, share"), at(&points, 1.0));
        outcome.measure(format!("{name} at M=10, share"), at(&points, 10.0));
    }
    let goodput = |mac: &str, m: f64| at(&shares(evidence, mac, "goodput_mbps"), m).mean;
    let gain = goodput("3", 5.0) / goodput("3", 3.0);
    outcome.exact("goodput, M=5 over M=3", goodput("1", 5.0) / goodput("1", 3.0));
    outcome.exact("goodput, M=5 over M=3, no contention", gain);
    outcome.explain(format!(
        "Bianchi's model takes 3.2 % of the channel's rate from three to five stations (S = .837 and \
         .810). On the channel without contention, run beside it, five paths bring {:.1} % more than \
         three: the diversity gain is there, but less than contention takes, so the peak comes earlier \
         than in the paper.",
        100.0 * (gain - 1.0)
    ));
    for (metric, name) in [("throughput_mbps", "throughput"), ("goodput_mbps", "goodput")] {
        let fixed = [("MAC", "1")];
        let points = curve(evidence, FIG10_11B.name, "M", &fixed, metric, |_| 1.0 / USABLE);
        for (m, share) in points {
            outcome.measure(format!("{name} with 802.11b's own timing, M={m}, share"), share);
        }
    }
    outcome.figures.push(figure(evidence, &ACCESS[..1]));
    outcome.remark(
        "The channel's rate is divided evenly by Bianchi's model with his own parameters. With those of \
         802.11b packets of 750 bytes get less than half of 11 Mb/s through, whatever the transport does: \
         the paper's 82 % would be out of reach.",
    );
    outcome
}

/// `mplot-fig10-rts`: RTS/CTS and a channel without contention.
pub(super) fn other_access(evidence: &Evidence) -> Outcome {
    let mut outcome = Outcome::new();
    let [basic, rts, tdma] = ACCESS.map(|(mac, _)| shares(evidence, mac, "goodput_mbps"));
    for ((_, name), points) in ACCESS.iter().zip([&basic, &rts, &tdma]) {
        outcome.exact(format!("M of most goodput, {name}"), peak(points).0);
    }
    let later = peak(&rts).0 - peak(&basic).0;
    outcome.bounded("peak of RTS/CTS later by (paths)", Measure::exact(later), 1.0, None);
    let falls = |points: &[(f64, Measure)]| 1.0 - at(points, 10.0).mean / peak(points).1;
    for ((_, name), points) in ACCESS.iter().zip([&basic, &rts, &tdma]) {
        outcome.exact(format!("fall from the peak to M=10, {name}"), falls(points));
    }
    let gentler = falls(&basic) - falls(&rts);
    outcome.bounded("fall of basic less RTS/CTS", Measure::exact(gentler), 0.0, None);
    let gentlest = falls(&basic) - falls(&tdma);
    outcome.bounded("fall of basic less TDMA", Measure::exact(gentlest), 0.0, None);
    outcome.figures.push(figure(evidence, &ACCESS));
    outcome
}

#[cfg(test)]
mod tests {
    use anabranch_sim::scenario::{Point, Scenario};
    use anabranch_sim::wireless::bianchi::{Access, Channel, Preamble};

    use super::super::{FIG10, FIG10_11B};

    /// Every rate of a last hop beside the model's, `rate` for the packets and stations it is asked about.
    fn compare(scenario: &Scenario, rate: impl Fn(Access, u32) -> f64) {
        let number = |point: &Point, name: &str| -> f64 {
            let found =
                point.labels.iter().find(|(key, _)| key == name).expect("a key of the sweep");
            found.1.parse().expect("a number")
        };
        assert_eq!(scenario.points().len(), 27);
        for point in scenario.points() {
            let access = [Access::Basic, Access::RtsCts, Access::Tdma];
            let access = access[number(point, "MAC") as usize - 1];
            let stations = number(point, "M");
            let expected = rate(access, stations as u32) / stations;
            let given = number(point, "LAST");
            assert!((given - expected).abs() < 0.0002, "{point:?}: {expected}");
        }
    }

    #[test]
    fn rates_of_the_last_hop_are_those_of_the_model() {
        let scenario = FIG10.scenario(false).expect("right");
        let channel = Channel::fhss();
        // His payload of 8184 bits.
        compare(&scenario, |access, n| 11.0 * channel.share(access, n, 1023));
        let scenario = FIG10_11B.scenario(false).expect("right");
        let channel = Channel::dsss_11b(Preamble::Long);
        compare(&scenario, |access, n| channel.throughput(access, n, 750).as_mbps());
    }
}
