//! The scenarios of scenarios/roads, whose variants are the roads.

use std::path::{Path, PathBuf};

use anabranch_sim::scenario::{Scenario, ScenarioError};

/// The files of roads, as `--only` names them.
pub const FILES: [&str; 2] = ["links", "pairs"];

/// Path of a file.
pub fn path(file: &str) -> PathBuf {
    folder().join(format!("{file}.toml"))
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios/roads")
}

/// The scenario of a file with `assignments`.
///
/// # Errors
/// If the file cannot be read or has mistakes; the error names the first one.
pub fn load(file: &str, assignments: &[String]) -> Result<Scenario, String> {
    let read = |path: &Path| {
        std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
    };
    let text = read(&path(file))?;
    let mut files = |name: &str| read(&folder().join(name));
    Scenario::load(&text, &format!("scenarios/roads/{file}.toml"), assignments, &mut files)
        .map_err(|errors| first(&errors))
}

/// The names of a scenario's roads.
pub fn roads(scenario: &Scenario) -> Vec<String> {
    let points = scenario.points();
    points.iter().filter_map(|point| point.label("variant")).map(str::to_owned).collect()
}

/// The first of several mistakes.
pub fn first(errors: &[ScenarioError]) -> String {
    errors.first().map(ToString::to_string).unwrap_or_default()
}
