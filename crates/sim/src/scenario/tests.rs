use super::*;

mod blocks;
mod errors;
mod format;
mod mesh;
mod mptcp;
mod plans;
mod ptcp;
mod runs;
mod striping;

/// A small scenario without mistakes. Tests replace a part of it by a mistake.
pub(super) const GOOD: &str = r#"name = "small"
duration = "10s"

[[link]]
name = "a"
from = "sender"
to = "receiver"
rate = "10mbit"
delay = "20ms"

[[flow]]
name = "bulk"
profile = "uncoded"
"#;

/// The messages for `text`, one per mistake.
pub(super) fn messages(text: &str) -> Vec<String> {
    match Scenario::parse(text, "t.toml") {
        Ok(_) => Vec::new(),
        Err(errors) => errors.iter().map(ToString::to_string).collect(),
    }
}

pub(super) fn parse(text: &str) -> Scenario {
    Scenario::parse(text, "t.toml").unwrap_or_else(|errors| {
        panic!("{}", errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
    })
}

/// The plan of the first point.
pub(super) fn plan(text: &str) -> Plan {
    let scenario = parse(text);
    scenario.plan(&scenario.points()[0]).expect("checked already")
}
