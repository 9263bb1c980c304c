//! Prints findings, as text and as JSON.

use std::fmt::Write as _;

use serde::Serialize;

use super::facts::{Facts, Measured, Outcome, Path};
use super::judge::{Finding, Severity};
use crate::failure::Failure;
use crate::{format, output};

/// Width of the text, characters.
const WIDTH: usize = 100;
/// Where the text of a finding begins.
const INDENT: usize = 26;

/// Output of `--json`. Fields are added in later versions; none changes its meaning.
#[derive(Serialize)]
struct Report<'a> {
    verdict: Severity,
    findings: &'a [Finding],
    #[serde(flatten)]
    facts: &'a Facts,
}

/// Prints the report.
///
/// # Errors
/// When standard output cannot take it.
pub(super) fn print(facts: &Facts, findings: &[Finding], json: bool) -> Result<(), Failure> {
    if !json {
        return output::print(&text(facts, findings));
    }
    output::print_json(&Report { verdict: verdict(findings), findings, facts })
}

/// The highest severity of all findings.
fn verdict(findings: &[Finding]) -> Severity {
    findings.iter().map(|finding| finding.severity).max().unwrap_or(Severity::Ok)
}

fn text(facts: &Facts, findings: &[Finding]) -> String {
    let mut text = String::new();
    if let Some(peer) = &facts.peer {
        let _ = writeln!(
            text,
            "{:<10} {:<16} {:>9} {:>9} {:>8} {:>8} {:>6}  ECN",
            "link", "address", "RTT min", "median", "loss to", "from", "MTU"
        );
        for path in &peer.paths {
            let _ = writeln!(text, "{}", row(path));
        }
        text.push('\n');
    }
    for finding in findings {
        text.push_str(&lines(finding));
    }
    text
}

/// A link's figures on one line.
fn row(path: &Path) -> String {
    let start = format!("{:<10} {:<16}", path.name, path.local.to_string());
    match (&path.outcome, &path.measured) {
        (Outcome::Answered, Some(measured)) => format!("{start} {}", figures(measured)),
        (Outcome::Answered, None) => format!("{start} lost while it was examined"),
        (Outcome::Silent, _) => format!("{start} no answer"),
        (Outcome::NoRoute, _) => format!("{start} no route"),
        (Outcome::Failed(_), _) => format!("{start} cannot be used"),
    }
}

fn figures(measured: &Measured) -> String {
    let time = |ms: Option<f64>| ms.map_or("-".to_owned(), |ms| format!("{ms:.1} ms"));
    let marks = match (measured.ecn_sent, measured.ecn_arrived + measured.ecn_ce) {
        (0, _) => "-",
        (_, 0) => "removed",
        _ => "passes",
    };
    format!(
        "{:>9} {:>9} {:>8} {:>8} {:>6}  {marks}",
        time(measured.rtt_min_ms),
        time(measured.rtt_median_ms),
        format::percent(measured.loss()),
        format::percent(measured.peer_loss()),
        measured.mtu
    )
}

/// `problem  wwan0  what`, and below it what to do.
fn lines(finding: &Finding) -> String {
    let severity = match finding.severity {
        Severity::Ok => "ok",
        Severity::Note => "note",
        Severity::Problem => "PROBLEM",
    };
    let mut text = format!("{severity:<8} {:<16} ", finding.subject);
    text.push_str(&hung(&finding.what));
    if let Some(advice) = &finding.advice {
        let _ = write!(text, "{:INDENT$}{}", "", hung(&format!("-> {advice}")));
    }
    text
}

/// `text` in lines that hang below its beginning.
fn hung(text: &str) -> String {
    let gap = format!("\n{:INDENT$}", "");
    format::wrapped(text, WIDTH - INDENT).replace('\n', &gap) + "\n"
}
