//! Claims judged against made-up reports.

use crate::report::{RunReport, Scalar, Series};
use crate::scenario::tests::{GOOD, messages, parse};
use crate::scenario::{Finding, Scenario};
use crate::stats::Verdict;

/// A scenario with a sweep of M and two variants.
fn swept(claims: &str) -> String {
    format!(
        "{GOOD}only = \"a\"\n[[flow]]\nname = \"other\"\nprofile = \"uncoded\"\nonly = \"b\"\n\
         [vars]\nM = 1\n[[sweep]]\nkey = \"vars.M\"\nvalues = [1, 2, 4]\n\
         [[variant]]\nname = \"a\"\ntitle = \"First\"\n[[variant]]\nname = \"b\"\n\
         [[probe]]\nof = \"all\"\nseries = \"goodput_mbps\"\n{claims}"
    )
}

/// Reports in which the goodput of `all` is `value(M, variant, seed)`.
fn reports(scenario: &Scenario, value: impl Fn(f64, &str, u64) -> f64) -> Vec<Vec<RunReport>> {
    let report = |point: &crate::scenario::Point, seed: u64| {
        let m = point.label("M").and_then(|m| m.parse().ok()).unwrap_or(1.0);
        let value = value(m, point.label("variant").unwrap_or("a"), seed);
        let scalar = |metric: &str, value| Scalar {
            subject: "all".to_owned(),
            metric: metric.to_owned(),
            value,
        };
        RunReport {
            point: point.labels.clone(),
            seed,
            scalars: vec![scalar("goodput_mbps", value), scalar("timeouts", 2.0)],
            series: vec![Series {
                subject: "all".to_owned(),
                metric: "goodput_mbps".to_owned(),
                times: vec![1.0, 2.0, 3.0],
                values: vec![0.0, value, 3.0 * value],
            }],
            ..RunReport::default()
        }
    };
    let of_point = |point| (1..=3).map(|seed| report(point, seed)).collect();
    scenario.points().iter().map(of_point).collect()
}

/// The findings of `claims` for a goodput of 10·M with the first variant and 5·M with the second,
/// plus a little noise, which depends only on the seed.
fn judged(claims: &str) -> Vec<Finding> {
    let scenario = parse(&swept(claims));
    let noise = |seed: u64| seed as f64 * 0.1;
    let value = |m: f64, variant: &str, seed| {
        if variant == "a" { 10.0 * m + noise(seed) } else { 5.0 * m + noise(seed) }
    };
    scenario.judge(&reports(&scenario, value))
}

fn one(claim: &str) -> Finding {
    let findings = judged(claim);
    assert_eq!(findings.len(), 1, "{findings:#?}");
    findings.into_iter().next().expect("one")
}

fn mean(finding: &Finding) -> f64 {
    finding.estimate.expect("measured").mean
}

#[test]
fn a_value_is_claimed_of_every_point_that_is_left_open() {
    let findings = judged(
        "[[claim]]\nname = \"goodput\"\nmetric = \"goodput_mbps\"\nat = { variant = \"a\" }\nmin = 15\n",
    );
    let found: Vec<(&str, &str)> =
        findings.iter().map(|f| (f.name.as_str(), f.verdict.expect("judged").word())).collect();
    assert_eq!(
        found,
        [("goodput, M=1", "fails"), ("goodput, M=2", "holds"), ("goodput, M=4", "holds")]
    );
    let estimate = findings[0].estimate.expect("measured");
    assert!((estimate.mean - 10.2).abs() < 1e-12 && estimate.n == 3);
}

#[test]
fn two_points_are_compared_seed_by_seed() {
    let difference =
        one("[[claim]]\nname = \"x\"\nkind = \"difference\"\nmetric = \"goodput_mbps\"\n\
         at = { variant = \"a\", M = 2 }\nover = { variant = \"b\" }\nmin = 10\nmax = 10\n");
    // The noise is the same at both points, so it cancels, except for rounding.
    let estimate = difference.estimate.expect("measured");
    assert!((estimate.mean - 10.0).abs() < 1e-9 && estimate.half_width() < 1e-9);
    let ratio = one("[[measure]]\nname = \"{variant}\"\nmetric = \"goodput_mbps\"\n\
         at = { variant = \"a\", M = 1 }\nover = { M = 4 }\n");
    assert!((mean(&ratio) - 10.2 / 40.2).abs() < 1e-4);
    assert_eq!((ratio.name.as_str(), ratio.verdict), ("First", None));
}

#[test]
fn arithmetic_may_reach_other_points() {
    let finding = one("[[measure]]\nname = \"x\"\n\
         metric = \"goodput_mbps[M=4, variant=a] / (4 * goodput_mbps[M=1, variant=a]) - 1\"\n");
    let expected: f64 = (1..=3)
        .map(|seed| 0.1 * f64::from(seed))
        .map(|noise| (40.0 + noise) / (4.0 * (10.0 + noise)) - 1.0)
        .sum();
    assert!((mean(&finding) - expected / 3.0).abs() < 1e-12);
    let own = one(
        "[[measure]]\nname = \"x\"\nmetric = \"M * timeouts / 2\"\nat = { variant = \"a\", M = 4 }\n",
    );
    assert_eq!(mean(&own), 4.0);
    let series = one("[[measure]]\nname = \"x\"\nat = { variant = \"a\", M = 1 }\n\
         metric = \"mean(goodput_mbps, 2) - mean(goodput_mbps, 1, 2) \
         + reaches(goodput_mbps, mean(goodput_mbps, 3) / 2)\"\n");
    // The value is 2·10.2 − 0.5·10.2 + 3, since the last point, at 3 s, is the first that reaches
    // half of the mean.
    assert!((mean(&series) - (1.5 * 10.2 + 3.0)).abs() < 1e-9);
}

#[test]
fn curves_have_one_number_with_the_interval_of_the_jackknife() {
    let slope = one(
        "[[claim]]\nname = \"x\"\nkind = \"slope\"\nalong = \"M\"\nmetric = \"goodput_mbps\"\n\
         at = { variant = \"a\" }\nmin = 9.9\nmax = 10.1\n",
    );
    // All three seeds have the same slope.
    assert!((mean(&slope) - 10.0).abs() < 1e-9);
    assert_eq!(slope.verdict, Some(Verdict::Holds));
    let less = one(
        "[[measure]]\nname = \"x\"\nkind = \"slope\"\nalong = \"M\"\nmetric = \"goodput_mbps\"\n\
         at = { variant = \"a\" }\nless = { variant = \"b\" }\n",
    );
    assert!((mean(&less) - 5.0).abs() < 1e-9);
}

#[test]
fn the_jackknife_of_a_mean_is_its_interval() {
    let values = [1.0, 2.0, 4.0, 9.0];
    let plain = crate::stats::Estimate::of(&values).expect("some");
    let without: Vec<f64> = values.iter().map(|v| (16.0 - v) / 3.0).collect();
    let jackknife = crate::stats::Estimate::jackknife(4.0, &without);
    assert!((jackknife.half_width() - plain.half_width()).abs() < 1e-9);
    assert_eq!((jackknife.n, jackknife.mean), (4, 4.0));
}

#[test]
fn an_order_is_judged_by_its_worst_step() {
    let order = |direction: &str, more: &str| {
        one(&format!(
            "[[claim]]\nname = \"x\"\nkind = \"order\"\nalong = \"M\"\ndirection = \"{direction}\"\n\
             metric = \"goodput_mbps\"\nat = {{ variant = \"b\" }}\n{more}"
        ))
    };
    let rising = order("rising", "");
    assert_eq!((rising.verdict, rising.min), (Some(Verdict::Holds), Some(0.0)));
    assert!((mean(&rising) - 5.0).abs() < 1e-9, "the smaller of two steps");
    assert_eq!(order("rising", "min = 6\n").verdict, Some(Verdict::Fails));
    let falling = order("falling", "");
    assert_eq!((falling.verdict, falling.max), (Some(Verdict::Fails), Some(0.0)));
    assert_eq!(order("falling", "values = [4, 2]\n").verdict, Some(Verdict::Holds));
    let schemes = one(
        "[[claim]]\nname = \"x\"\nkind = \"order\"\nalong = \"variant\"\nvalues = [\"b\", \"a\"]\n\
         direction = \"rising\"\nmetric = \"goodput_mbps\"\nat = { M = 1 }\n",
    );
    assert_eq!(schemes.verdict, Some(Verdict::Holds));
}

#[test]
fn what_was_not_measured_fails() {
    let scenario =
        parse(&swept("[[claim]]\nname = \"x\"\nmetric = \"jain\"\nat = { M = 1 }\nmin = 0\n"));
    let findings = scenario.judge(&reports(&scenario, |_, _, _| 1.0));
    assert!(findings.iter().all(|finding| finding.verdict == Some(Verdict::Fails)));
    assert!(findings.iter().all(|finding| finding.estimate.is_none()));
    // A single seed gives no confidence interval.
    let mut runs = reports(&scenario, |_, _, _| 1.0);
    let scenario =
        parse(&swept("[[claim]]\nname = \"x\"\nmetric = \"timeouts\"\nat = { M = 1 }\nmin = 0\n"));
    runs.iter_mut().for_each(|runs| runs.truncate(1));
    let findings = scenario.judge(&runs);
    assert!(findings.iter().all(|f| f.verdict == Some(Verdict::Open { seeds: None })));
}

/// Claims that can never be judged, and the messages about them.
const NEVER_JUDGED: &[(&str, &str)] = &[
    (
        "metric = \"godput_mbps\"\nmin = 1\n",
        "claim.x.metric: there is no metric 'godput_mbps'; did you mean 'goodput_mbps'?; allowed: ",
    ),
    (
        "metric = \"goodput_mbps[M=3]\"\nmin = 1\n",
        "claim.x.metric: there is no point of the sweep at 'M = 3'; allowed: 1, 2, 4",
    ),
    (
        "metric = \"mean(cwnd_bytes, 3)\"\nmin = 1\n",
        "claim.x.metric: no probe records cwnd_bytes of all over time; allowed: a [[probe]] with",
    ),
    (
        "metric = \"goodput_mbps * \"\nmin = 1\n",
        "claim.x.metric: '' where a number or a name should be; allowed: metrics such as",
    ),
    (
        "metric = \"goodput_mbps\"\nmin = 1\nat = { variant = \"c\" }\n",
        "claim.x.at: there is no variant 'c'; did you mean 'a'?; allowed: a, b",
    ),
    (
        "metric = \"goodput_mbps\"\nmin = 1\nat = { M = 3 }\n",
        "claim.x.at: there is no point of the sweep at 'M = 3'; allowed: 1, 2, 4",
    ),
    (
        "metric = \"goodput_mbps\"\nmin = 1\nat = { N = 3 }\n",
        "claim.x.at: there is no sweep key 'N'; did you mean 'M'?; allowed: M, variant",
    ),
    (
        "metric = \"goodput_mbps\"\nmin = 1\nfor-each = \"N\"\n",
        "claim.x.for-each: there is no sweep key 'N'; did you mean 'M'?; allowed: M, variant",
    ),
    (
        "metric = \"goodput_mbps\"\nkind = \"order\"\ndirection = \"rising\"\nalong = \"M\"\n\
             values = [2]\n",
        "claim.x.along: 'M' has one value here: 2; allowed: a key with two values or more",
    ),
    (
        "metric = \"goodput_mbps\"\nkind = \"slope\"\nalong = \"variant\"\nmin = 1\n",
        "claim.x.along: 'a' of 'variant' is no number; allowed: a key whose values are numbers, or",
    ),
    (
        "metric = \"goodput_mbps\"\nmin = 1\nkind = \"peak\"\n",
        "claim.x.along: no key to run along for 'peak'; allowed: along for curves and orders alone",
    ),
    (
        "metric = \"goodput_mbps\"\nmin = 1\nkind = \"ratio\"\n",
        "claim.x.kind: 'ratio' of one; allowed: over or relative-to beside",
    ),
    (
        "metric = \"goodput_mbps\"\n",
        "claim.x.min: neither min nor max; allowed: one of them or both; or [[measure]]",
    ),
];

#[test]
fn claims_that_could_never_be_judged_are_refused() {
    let line = swept("").lines().count();
    let refused = |claim: &str| {
        let messages = messages(&swept(&format!("[[claim]]\nname = \"x\"\n{claim}")));
        assert_eq!(messages.len(), 1, "{claim}: {messages:#?}");
        let message = messages.into_iter().next().expect("one");
        let start = format!("t.toml:{}", line + 1);
        assert!(message.starts_with("t.toml:"), "{message}");
        assert!(message >= start, "{message}");
        message.split_once(": ").map(|(_, rest)| rest.to_owned()).expect("a place")
    };
    for (claim, expected) in NEVER_JUDGED {
        let message = refused(claim);
        assert!(message.starts_with(expected), "{message}\n{expected}");
    }
    let twice = "[[claim]]\nname = \"x\"\nmetric = \"goodput_mbps\"\nmin = 1\n";
    assert!(messages(&swept(&format!("{twice}{twice}")))[0].contains("two claims called 'x, M=1"));
}

#[test]
fn a_shorter_sweep_leaves_claims_out() {
    let claim = "[[claim]]\nname = \"x\"\nmetric = \"goodput_mbps\"\nat = { M = 4 }\nmin = 1\n\
                 [quick]\nsweep.M.values = [1, 2]\nvariants = \"a\"\n";
    let scenario = parse(&swept(claim));
    assert_eq!(scenario.points().len(), 6);
    let quick = scenario.quick().expect("right");
    assert_eq!(quick.points().len(), 2);
    assert!(quick.judge(&reports(&quick, |_, _, _| 1.0)).is_empty());
    assert_ne!(quick.hash(), scenario.hash());
    let other = parse(&swept(&claim.replace("min = 1", "min = 2")));
    assert_eq!(other.hash(), scenario.hash(), "claims change no run");
}

#[test]
fn figures_have_a_curve_for_every_value_left_open() {
    let figure = "[[figure]]\ntitle = \"t\"\nx = \"M\"\ny = \"Mb/s\"\n\
                  [[figure.curve]]\nname = \"{variant}\"\nmetric = \"goodput_mbps\"\n\
                  [[figure.curve]]\nname = \"the paper\"\npaper = [[1, 9], [4, 36]]\n\
                  [[figure]]\ntitle = \"bars\"\nx = \"variant\"\ny = \"Mb/s\"\n\
                  [[figure.curve]]\nname = \"goodput\"\nmetric = \"goodput_mbps\"\nat = { M = 2 }\n\
                  [[figure.curve]]\npaper = [[\"b\", 11]]\n\
                  [[figure]]\ntitle = \"time\"\nx = \"time\"\nuntil = \"2s\"\ny = \"Mb/s\"\n\
                  [[figure.curve]]\nmetric = \"goodput_mbps\"\nat = { M = 2, variant = \"a\" }\n";
    let scenario = parse(&swept(figure));
    let drawings = scenario.draw(&reports(&scenario, |m, _, _| m));
    let names: Vec<&str> = drawings[0].curves.iter().map(|curve| curve.name.as_str()).collect();
    assert_eq!(names, ["First", "b", "the paper"]);
    let xs: Vec<f64> = drawings[0].curves[0].points.iter().map(|(x, _)| *x).collect();
    assert_eq!(xs, [1.0, 2.0, 4.0]);
    assert!(drawings[0].curves[2].is_published);
    assert_eq!(drawings[1].categories, ["First", "b"]);
    assert_eq!(drawings[1].curves[1].points[0].0, 1.0);
    assert_eq!(drawings[2].curves[0].points.len(), 2);
}

#[test]
fn averages_over_seeds_and_keys_come_before_ratios() {
    let claim = |average: &str| {
        format!(
            "[[claim]]\nname = \"gain\"\nmetric = \"goodput_mbps\"\nat = {{ variant = \"a\" }}\nover = {{ variant = \"b\" }}\n\
             average = {average}\nmin = 0\n"
        )
    };
    // For seeds 1, 2 and 3, the first variant has M, 2·M and 6·M, each plus 3·(M − 1), and the
    // second has M, 4·M and M.
    let (above, below) = ([1.0, 2.0, 6.0], [1.0, 4.0, 1.0]);
    let judged = |average: &str| {
        let scenario = parse(&swept(&claim(average)));
        let value = |m: f64, variant: &str, seed: u64| {
            let values = if variant == "a" { above } else { below };
            m * values[seed as usize - 1] + if variant == "a" { 3.0 * (m - 1.0) } else { 0.0 }
        };
        scenario.judge(&reports(&scenario, value))
    };
    let findings = judged("\"seed\"");
    assert_eq!(findings.len(), 3);
    let estimate = findings[0].estimate.expect("measured");
    assert!((estimate.mean - 1.5).abs() < 1e-12 && estimate.n == 3);
    // Without one of the seeds, the ratio is 8/5, 7/2 and 3/5. The half width is the jackknife's
    // standard error times Student's t for 2 degrees of freedom.
    let left_out = [1.6, 3.5, 0.6];
    let middle = left_out.iter().sum::<f64>() / 3.0;
    let sum = left_out.iter().map(|x| (x - middle) * (x - middle)).sum::<f64>();
    let half = 4.302_652_73 * (2.0 / 3.0 * sum).sqrt();
    let (lo, hi) = estimate.interval.expect("three seeds");
    assert!((hi - lo - 2.0 * half).abs() < 1e-6, "{lo} {hi} {half}");
    // Averaged over M as well, the sums over three values of M and three seeds are 9·7 + 3·3·4 and
    // 6·7.
    let findings = judged("[\"seed\", \"M\"]");
    assert_eq!((findings.len(), findings[0].name.as_str()), (1, "gain"));
    assert!((mean(&findings[0]) - (63.0 + 36.0) / 42.0).abs() < 1e-12);
    // Averaged over M alone, the ratios of the seeds are (1·7 + 12)/7, (2·7 + 12)/28 and (6·7 +
    // 12)/7.
    let findings = judged("\"M\"");
    let expected = (19.0 / 7.0 + 26.0 / 28.0 + 54.0 / 7.0) / 3.0;
    assert!((mean(&findings[0]) - expected).abs() < 1e-12);
    let told = messages(&swept(&claim("\"N\"")));
    assert!(told[0].contains("there is no sweep key 'N'"), "{told:?}");
}

#[test]
fn slopes_and_orders_of_averages() {
    let findings = judged(
        "[[claim]]\nname = \"slope\"\nkind = \"slope\"\nalong = \"M\"\naverage = \"seed\"\n\
         metric = \"goodput_mbps[variant=a] / goodput_mbps[variant=b]\"\nmax = 0\n\
         [[claim]]\nname = \"order\"\nkind = \"order\"\nalong = \"M\"\ndirection = \"rising\"\naverage = \"seed\"\n\
         metric = \"goodput_mbps[variant=a] / goodput_mbps[variant=b]\"\n",
    );
    // The ratio (10·M + 0.2)/(5·M + 0.2) rises towards 2. The first step has the wider interval,
    // which reaches lower.
    assert_eq!(findings.len(), 2);
    let at = |m: f64| (10.0 * m + 0.2) / (5.0 * m + 0.2);
    let slope = |curve: [f64; 3]| {
        let middle = curve.iter().sum::<f64>() / 3.0;
        let terms = [1.0, 2.0, 4.0].iter().zip(curve);
        terms.map(|(m, y)| (m - 7.0 / 3.0) * (y - middle)).sum::<f64>() / (14.0 / 3.0)
    };
    assert!((mean(&findings[0]) - slope([at(1.0), at(2.0), at(4.0)])).abs() < 1e-9);
    assert_eq!(findings[0].verdict.expect("judged").word(), "fails");
    assert!((mean(&findings[1]) - (at(2.0) - at(1.0))).abs() < 1e-9, "{findings:?}");
    assert_eq!(findings[1].verdict.expect("judged").word(), "open");
}
