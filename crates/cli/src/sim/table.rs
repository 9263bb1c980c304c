//! Prints the summary of a sweep.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use anabranch_results::{ClaimSummary, MetricSummary, PointSummary, Summary};

use crate::format;

/// Subjects with more figures than this fill the screen; the files have all of them.
const MOST_ROWS: usize = 24;
/// Most claims that are shown; the files have all of them.
const MOST_CLAIMS: usize = 200;

/// The report of a run on standard output.
pub(super) fn text(title: &str, summary: &Summary, directory: &Path) -> String {
    let mut text = format!("{title}\n");
    for point in &summary.points {
        // Writing to a string cannot fail.
        let _ = match named(&point.point) {
            name if name.is_empty() => writeln!(text),
            name => writeln!(text, "\n{name}"),
        };
        figures(&mut text, point);
    }
    if summary.further > 0 {
        let _ =
            writeln!(text, "\nand {}", format::counted(summary.further as u64, "further point"));
    }
    if !summary.claims.is_empty() {
        text.push_str("\nClaims\n");
        for claim in summary.claims.iter().take(MOST_CLAIMS) {
            let _ = writeln!(text, "  {}", verdict(claim));
        }
        if let Some(more) = summary.claims.len().checked_sub(MOST_CLAIMS + 1) {
            let _ = writeln!(text, "  and {}", format::counted(more as u64 + 1, "further claim"));
        }
    }
    let _ = writeln!(
        text,
        "\nMean and 95 % interval over the seeds. All of it: {}",
        directory.display()
    );
    text
}

/// `loss = 5%, paths = 2`.
fn named(point: &BTreeMap<String, String>) -> String {
    let pairs: Vec<String> = point.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    pairs.join(", ")
}

/// The figures of one point in columns; groups rather than single flows where there are many.
fn figures(text: &mut String, point: &PointSummary) {
    let mut shown: Vec<&MetricSummary> = point.metrics.iter().filter(|m| m.n > 0).collect();
    let mut hidden = 0;
    if shown.len() > MOST_ROWS {
        // Leaves `all` and whole groups: names of single flows and of links have a dot, those of a
        // flow's paths a slash.
        let detail = |metric: &&&MetricSummary| {
            let subject = metric.subject.as_str();
            !subject.contains(['.', '/'])
        };
        let brief: Vec<&MetricSummary> = shown.iter().filter(detail).copied().collect();
        if !brief.is_empty() {
            hidden = shown.len() - brief.len();
            shown = brief;
        }
    }
    let groups = |subject: &str| subject != "all" && !subject.starts_with("link.");
    let mut named: Vec<&str> =
        shown.iter().map(|m| m.subject.as_str()).filter(|s| groups(s)).collect();
    named.dedup();
    if let [_] = named.as_slice() {
        // A single group is the same as `all`.
        shown.retain(|metric| metric.subject != "all");
    }
    let width = |of: fn(&MetricSummary) -> &str| {
        shown.iter().map(|metric| of(metric).chars().count()).max().unwrap_or(0)
    };
    let (subjects, metrics) = (width(|m| &m.subject), width(|m| &m.metric));
    for metric in &shown {
        let _ = writeln!(
            text,
            "  {:subjects$}  {:metrics$}  {:>12}{}",
            metric.subject,
            metric.metric,
            metric.mean.map_or_else(|| "-".to_owned(), figure),
            metric.lo.zip(metric.hi).map_or_else(String::new, |(lo, hi)| {
                format!("  ± {}", figure((hi - lo) / 2.0))
            }),
        );
    }
    if hidden > 0 {
        let _ = writeln!(text, "  and {hidden} figures of single flows, paths and links");
    }
}

/// `holds  goodput_mbps of bulk: 9.31 ± 0.02 (at least 8)`.
fn verdict(claim: &ClaimSummary) -> String {
    let word = match claim.verdict {
        Some("fails") => "FAILS",
        Some(word) => word,
        None => "",
    };
    let mean = claim.mean.map_or_else(|| "not measured".to_owned(), figure);
    let mut line = format!("{word:5}  {}: {mean}", claim.name);
    if let Some((lo, hi)) = claim.lo.zip(claim.hi) {
        let _ = write!(line, " ± {}", figure((hi - lo) / 2.0));
    }
    match (claim.min, claim.max) {
        (Some(min), Some(max)) => line.push_str(&format!(" (from {min} to {max})")),
        (Some(min), None) => line.push_str(&format!(" (at least {min})")),
        (None, Some(max)) => line.push_str(&format!(" (at most {max})")),
        (None, None) => {}
    }
    if let Some(seeds) = claim.seeds_to_settle {
        let _ = write!(line, "; {seeds} seeds would settle it");
    }
    line
}

/// Four significant digits.
fn figure(value: f64) -> String {
    let size = value.abs();
    let decimals = match size {
        0.0 => 0,
        _ if size >= 999.95 => 0,
        _ if size >= 99.995 => 1,
        _ if size >= 9.9995 => 2,
        _ if size >= 0.99995 => 3,
        _ if size >= 0.001 => 5,
        _ => return format!("{value:.3e}"),
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_four_digits() {
        let shown = [0.0, 12_345.6, 123.44, 12.344, 1.2344, 0.012_34, 0.000_012, -3.0].map(figure);
        let expected = ["0", "12346", "123.4", "12.34", "1.234", "0.01234", "1.200e-5", "-3.000"];
        assert_eq!(shown, expected);
    }
}
