//! Statistics that describe a curve with one number.

use anabranch_policy::analysis::diversity::{LineFit, fit_line, fit_proportional};

/// A number that describes a curve of points (x, y) in the order of x.
#[derive(Clone, Copy, Debug)]
pub(in crate::scenario) struct Statistic {
    /// The `kind` of the claims that use this statistic.
    pub name: &'static str,
    /// Computes the statistic; `None` if it is not defined for the curve.
    pub of: fn(&[(f64, f64)]) -> Option<f64>,
}

pub(super) const STATISTICS: &[Statistic] = &[
    // The least-squares line: its rise per unit of x, and the share of the variance that it
    // explains.
    Statistic { name: "slope", of: |curve| fit_line(curve).map(|fit| fit.slope) },
    Statistic { name: "r2", of: |curve| fit_line(curve).map(|fit| fit.r_squared) },
    // The x of the highest point, and its y. Of equally high points, the first counts.
    Statistic { name: "peak", of: |curve| highest(curve).map(|(x, _)| x) },
    Statistic { name: "highest", of: |curve| highest(curve).map(|(_, y)| y) },
    // By what share the last point is lower than the highest.
    Statistic { name: "fall", of: |curve| Some(1.0 - curve.last()?.1 / highest(curve)?.1) },
    // The highest value divided by the lowest.
    Statistic { name: "spread", of: |curve| Some(highest(curve)?.1 / lowest(curve)?) },
    Statistic { name: "knee", of: knee },
    Statistic { name: "monotone", of: monotone },
    // MPLOT, section IV-A: the fit of y proportional to 1 - 1/sqrt(x), and the y that it predicts for infinite x.
    Statistic { name: "diversity-r2", of: |curve| diversity(curve).map(|fit| fit.r_squared) },
    Statistic { name: "diversity-limit", of: |curve| diversity(curve).map(|fit| fit.slope) },
];

fn highest(curve: &[(f64, f64)]) -> Option<(f64, f64)> {
    let higher =
        |best: (f64, f64), point: &(f64, f64)| if point.1 > best.1 { *point } else { best };
    Some(curve.iter().skip(1).fold(*curve.first()?, higher))
}

fn lowest(curve: &[(f64, f64)]) -> Option<f64> {
    curve.iter().map(|(_, y)| *y).reduce(f64::min)
}

/// The x at which the curve is farthest from the straight line between its ends, with both axes
/// scaled to their range (Satopää et al., Finding a "Kneedle" in a Haystack, 2011). A straight
/// curve has no knee.
fn knee(curve: &[(f64, f64)]) -> Option<f64> {
    let ((x0, y0), (x1, y1)) = (*curve.first()?, *curve.last()?);
    let height = highest(curve)?.1 - lowest(curve)?;
    let away = |(x, y): &(f64, f64)| {
        let on_line = y0 + (y1 - y0) * (x - x0) / (x1 - x0);
        ((y - on_line) / height).abs()
    };
    let farthest = curve.iter().map(|point| (point.0, away(point)));
    let farthest: Vec<(f64, f64)> = farthest.collect();
    // Ignore tiny distances, since rounding errors would give a straight line a knee.
    highest(&farthest).filter(|(_, distance)| *distance > 1e-9).map(|(x, _)| x)
}

/// Kendall's rank correlation τ of x and y (Biometrika, 1938): 1 if y always rises, −1 if it always
/// falls.
fn monotone(curve: &[(f64, f64)]) -> Option<f64> {
    let mut sum = 0.0;
    let mut pairs = 0.0;
    for (index, (_, before)) in curve.iter().enumerate() {
        for (_, after) in curve.iter().skip(index + 1) {
            let order = after.partial_cmp(before)?;
            sum += f64::from(order as i8);
            pairs += 1.0;
        }
    }
    (pairs > 0.0).then_some(sum / pairs)
}

fn diversity(curve: &[(f64, f64)]) -> Option<LineFit> {
    let points: Vec<(f64, f64)> =
        curve.iter().map(|(x, y)| (1.0 - 1.0 / x.max(1.0).sqrt(), *y)).collect();
    fit_proportional(&points)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, values: &[f64]) -> Option<f64> {
        let curve: Vec<(f64, f64)> = (1..).map(f64::from).zip(values.iter().copied()).collect();
        let found = STATISTICS.iter().find(|statistic| statistic.name == name).expect(name);
        (found.of)(&curve)
    }

    #[test]
    fn lines_have_slopes_and_peaks_have_places() {
        assert_eq!(of("slope", &[1.0, 3.0, 5.0]), Some(2.0));
        assert_eq!(of("r2", &[1.0, 3.0, 5.0]), Some(1.0));
        assert_eq!(of("peak", &[1.0, 4.0, 4.0, 2.0]), Some(2.0));
        assert_eq!(of("highest", &[1.0, 4.0, 4.0, 2.0]), Some(4.0));
        assert_eq!(of("fall", &[1.0, 4.0, 4.0, 2.0]), Some(0.5));
        assert_eq!(of("spread", &[1.0, 4.0, 4.0, 2.0]), Some(4.0));
        for statistic in STATISTICS {
            assert_eq!((statistic.of)(&[]), None, "{}", statistic.name);
        }
    }

    #[test]
    fn the_knee_is_where_a_curve_turns() {
        assert_eq!(of("knee", &[0.0, 4.0, 8.0, 8.5, 9.0, 9.5]), Some(3.0));
        assert_eq!(of("knee", &[9.0, 9.0, 9.0, 5.0, 1.0]), Some(3.0));
        assert_eq!(of("knee", &[1.0, 2.0, 3.0, 4.0]), None);
    }

    #[test]
    fn order_is_counted_pair_by_pair() {
        assert_eq!(of("monotone", &[1.0, 2.0, 3.0]), Some(1.0));
        assert_eq!(of("monotone", &[3.0, 2.0, 1.0]), Some(-1.0));
        assert_eq!(of("monotone", &[1.0, 3.0, 2.0]), Some(1.0 / 3.0));
        assert_eq!(of("monotone", &[1.0]), None);
    }

    #[test]
    fn diversity_grows_towards_its_limit() {
        let gains: Vec<f64> = (1..=10).map(|m| 0.3 * (1.0 - 1.0 / f64::from(m).sqrt())).collect();
        assert!((of("diversity-limit", &gains).expect("a fit") - 0.3).abs() < 1e-12);
        assert!((of("diversity-r2", &gains).expect("a fit") - 1.0).abs() < 1e-12);
    }
}
