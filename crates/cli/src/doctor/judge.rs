//! Turns facts into findings. Nothing here asks the system or the network.

mod link;
mod machine;
mod peer;
#[cfg(test)]
mod tests;

use serde::Serialize;

use super::facts::Facts;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Works as it should.
    Ok,
    /// Works, though not as well as it could; or worth knowing.
    Note,
    /// Does not work, or badly.
    Problem,
}

/// Result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How bad the finding is.
    pub severity: Severity,
    /// Name of the check: a fixed word for programs.
    pub check: &'static str,
    /// Subject of the check: `machine`, `peer`, or a link's name.
    pub subject: String,
    /// Result of the check, in one line.
    pub what: String,
    /// Advice to the user, in one line, if there is any.
    #[serde(rename = "do")]
    pub advice: Option<String>,
}

impl Finding {
    fn ok(check: &'static str, subject: &str, what: impl Into<String>) -> Self {
        let (subject, what) = (subject.to_owned(), what.into());
        Finding { severity: Severity::Ok, check, subject, what, advice: None }
    }

    fn note(check: &'static str, subject: &str, what: impl Into<String>) -> Self {
        Finding { severity: Severity::Note, ..Finding::ok(check, subject, what) }
    }

    fn problem(check: &'static str, subject: &str, what: impl Into<String>) -> Self {
        Finding { severity: Severity::Problem, ..Finding::ok(check, subject, what) }
    }

    fn advise(self, advice: impl Into<String>) -> Self {
        Finding { advice: Some(advice.into()), ..self }
    }
}

/// Judges everything, this machine first.
pub fn judge(facts: &Facts) -> Vec<Finding> {
    let mut findings = machine::judge(&facts.machine, &facts.interfaces);
    let used = |name: &str| facts.peer.as_ref().is_none_or(|peer| peer.uses(name));
    for interface in facts.interfaces.iter().filter(|interface| used(&interface.name)) {
        findings.extend(link::judge(interface));
    }
    if let Some(peer) = &facts.peer {
        findings.extend(peer::judge(peer));
    }
    findings
}
