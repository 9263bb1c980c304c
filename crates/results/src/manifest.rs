//! The manifest of a results directory, which names the scenario and build of its results.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anabranch_sim::scenario::{Scenario, ScenarioSource};
use serde::{Deserialize, Serialize};

use crate::{Provenance, ResultsError, Sweep, file};

/// The file `scenario.json` of a results directory. It suffices to read the scenario again and to
/// make missing runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Provenance of the results.
    #[serde(flatten)]
    pub provenance: Provenance,
    /// Name of the scenario file, which messages use.
    pub file: String,
    /// The seeds requested so far.
    pub seeds: Vec<u64>,
    /// Contents of the files that the scenario names, by the paths in the scenario.
    pub files: BTreeMap<String, String>,
}

impl Manifest {
    /// Name of the file.
    pub const FILE: &'static str = "scenario.json";

    /// The manifest of a directory that holds the results of `sweep`.
    pub fn new(sweep: &Sweep) -> Self {
        let source = sweep.scenario().to_source();
        Manifest {
            provenance: sweep.provenance().clone(),
            file: source.file,
            seeds: sweep.seeds().to_vec(),
            files: source.files,
        }
    }

    /// Reads the manifest of `directory`.
    ///
    /// # Errors
    /// When it is not a results directory, or its manifest cannot be read.
    pub fn of(directory: &Path) -> Result<Self, ResultsError> {
        Manifest::read(directory)?.ok_or_else(|| {
            let what = match directory.is_dir() {
                true => format!("it holds no results: there is no {} in it", Manifest::FILE),
                false => "there is no such directory".to_owned(),
            };
            ResultsError::Foreign { path: directory.to_owned(), what }
        })
    }

    /// Version of [`of`](Self::of) that gives `None` if there is no manifest.
    pub(crate) fn read(directory: &Path) -> Result<Option<Self>, ResultsError> {
        let path = directory.join(Manifest::FILE);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) if error.kind() == ErrorKind::NotADirectory => {
                let path = directory.to_owned();
                return Err(ResultsError::Foreign { path, what: "it is a file".to_owned() });
            }
            Err(error) => return Err(ResultsError::io(&path, "read")(error)),
        };
        let manifest = serde_json::from_slice(&text).map_err(|error| {
            let why = format!("not what this version writes: {error}");
            ResultsError::Damaged { path, why }
        })?;
        Ok(Some(manifest))
    }

    /// Writes the manifest into `directory`, completely or not at all.
    pub(crate) fn write(&self, directory: &Path) -> Result<(), ResultsError> {
        let path = directory.join(Manifest::FILE);
        let text = serde_json::to_vec_pretty(self).map_err(|error| ResultsError::Damaged {
            path: path.clone(),
            why: error.to_string(),
        })?;
        file::write(&path, &text, true)
    }

    /// The source from which the scenario is read.
    pub fn source(&self) -> ScenarioSource {
        let (quick, assignments): (Vec<_>, Vec<_>) = self
            .provenance
            .settings
            .iter()
            .cloned()
            .partition(|setting| setting == Scenario::QUICK);
        ScenarioSource {
            file: self.file.clone(),
            text: self.provenance.text.clone(),
            assignments,
            quick: !quick.is_empty(),
            files: self.files.clone(),
        }
    }
}
