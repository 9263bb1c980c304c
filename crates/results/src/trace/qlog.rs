//! A connection's decisions and their reasons as qlog (draft-ietf-quic-qlog-main-schema, JSON text sequences of RFC
//! 7464).

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use anabranch_core::observe::{Observation, Observer};
use anabranch_policy::view::PathState;
use anabranch_types::{PathId, Time};
use serde_json::{Value, json};

use crate::file::Whole;
use crate::{ResultsError, VERSION};

/// Namespace of events that no other schema has.
const SCHEMA: &str = "urn:anabranch:qlog:events";
/// Controllers' states remembered at most.
const MOST_PHASES: usize = 64;
/// The schema of the congestion and timer events.
const QUIC_SCHEMA: &str = "urn:ietf:params:qlog:events:quic-14";

/// The qlog files of one connection: one for each of its paths and one for what concerns no path, or one
/// for all.
///
/// A viewer draws one congestion graph a file, so that a path has to be a file to be drawn. Events that
/// QUIC has too carry its names; decisions that only this protocol makes are in the namespace
/// `anabranch`. Every event names its path as `tuple` and `path_id`.
#[derive(Clone, Debug)]
pub struct Qlog {
    files: Arc<Mutex<Files>>,
}

/// Takes down what a connection observes; give it to the connection, and keep the [`Qlog`].
#[derive(Debug)]
pub struct QlogTrace {
    files: Arc<Mutex<Files>>,
}

#[derive(Debug)]
struct Files {
    directory: PathBuf,
    stem: String,
    title: String,
    /// "client" or "server".
    side: &'static str,
    /// Paths have no files of their own.
    single: bool,
    /// By path id; the one of the connection is last to be named but kept apart.
    paths: Vec<Option<Trace>>,
    connection: Option<Trace>,
    /// The controllers' states by path id, which are told only when they change.
    phases: BTreeMap<u64, &'static str>,
    failed: Option<ResultsError>,
}

#[derive(Debug)]
struct Trace {
    whole: Whole,
    out: BufWriter<File>,
}

impl Qlog {
    /// Files in `directory` whose names begin with `stem`; `title` says which connection of which run
    /// it is. A path's file is begun with the first event about it.
    pub fn new(directory: &Path, stem: &str, title: &str) -> Self {
        let files = Files {
            directory: directory.to_owned(),
            stem: stem.to_owned(),
            title: title.to_owned(),
            side: "client",
            single: false,
            paths: Vec::new(),
            connection: None,
            phases: BTreeMap::new(),
            failed: None,
        };
        Qlog { files: Arc::new(Mutex::new(files)) }
    }

    /// One file in `directory`, `stem` and `.sqlog`, for a connection with all its paths as seen by
    /// `side`, "client" or "server". It is begun with the first event.
    pub fn single(directory: &Path, stem: &str, title: &str, side: &'static str) -> Self {
        let qlog = Qlog::new(directory, stem, title);
        if let Ok(mut files) = qlog.files.lock() {
            files.side = side;
            files.single = true;
        }
        qlog
    }

    /// Says what a path is called.
    pub fn name_path(&self, now: Time, path: PathId, name: &str) {
        if let Ok(mut files) = self.files.lock()
            && files.failed.is_none()
            && let Err(error) = files.write(
                Some(path.0.into()),
                now,
                "anabranch:path_named",
                json!({ "name": name }),
            )
        {
            files.failed = Some(error);
        }
    }

    /// An observer to give to the connection.
    pub fn observer(&self) -> Box<dyn Observer> {
        Box::new(QlogTrace { files: Arc::clone(&self.files) })
    }

    /// Completes the files and gives them their names.
    ///
    /// # Errors
    /// When something of them could not be written.
    pub fn finish(self) -> Result<(), ResultsError> {
        let Ok(mut files) = self.files.lock() else { return Ok(()) };
        if let Some(error) = files.failed.take() {
            return Err(error);
        }
        let connection = files.connection.take();
        let paths = std::mem::take(&mut files.paths);
        for trace in paths.into_iter().flatten().chain(connection) {
            let Trace { whole, mut out, .. } = trace;
            out.flush().map_err(ResultsError::io(whole.path(), "write"))?;
            whole.finish(false)?;
        }
        Ok(())
    }
}

impl Observer for QlogTrace {
    fn observe(&mut self, now: Time, observation: &Observation) {
        // A poisoned lock means that a run is failing already.
        if let Ok(mut files) = self.files.lock()
            && files.failed.is_none()
            && let Err(error) = files.take(now, observation)
        {
            files.failed = Some(error);
        }
    }
}

impl Files {
    fn take(&mut self, now: Time, observation: &Observation) -> Result<(), ResultsError> {
        let (path, events) = events(observation);
        if let (Some(path), Observation::Congestion { phase, .. }) = (path, observation)
            && self.phases.insert(path, phase) != Some(phase)
        {
            // Identifiers rise for as long as the peer opens paths; the lowest are closed by now.
            if self.phases.len() > MOST_PHASES {
                self.phases.pop_first();
            }
            let event = json!({ "new": phase });
            self.write(Some(path), now, "quic:congestion_state_updated", event)?;
        }
        events.into_iter().try_for_each(|(name, data)| self.write(path, now, name, data))
    }

    fn write(
        &mut self,
        path: Option<u64>,
        now: Time,
        name: &str,
        data: Value,
    ) -> Result<(), ResultsError> {
        let mut event = json!({ "time": now.as_nanos() as f64 / 1e6, "name": name, "data": data });
        if let (Some(path), Some(event)) = (path, event.as_object_mut()) {
            event.insert("tuple".to_owned(), json!(path.to_string()));
            event.insert("path_id".to_owned(), json!(path));
        }
        let trace = self.of(path)?;
        record(&mut trace.out, &event).map_err(ResultsError::io(trace.whole.path(), "write"))
    }

    /// The file of a path or of the connection, begun if it is not there.
    fn of(&mut self, path: Option<u64>) -> Result<&mut Trace, ResultsError> {
        let path = path.filter(|_| !self.single);
        let name = match path {
            None if self.single => format!("{}.sqlog", self.stem),
            Some(path) => format!("{}-path{path}.sqlog", self.stem),
            None => format!("{}-connection.sqlog", self.stem),
        };
        let file = self.directory.join(name);
        let slot = match path.and_then(|path| usize::try_from(path).ok()) {
            Some(index) => {
                if self.paths.len() <= index {
                    self.paths.resize_with(index + 1, || None);
                }
                self.paths.get_mut(index)
            }
            None => Some(&mut self.connection),
        };
        let slot = slot.ok_or_else(|| ResultsError::Damaged {
            path: file.clone(),
            why: "there are too many paths".to_owned(),
        })?;
        if slot.is_none() {
            let title = match path {
                Some(path) => format!("{}, path {path}", self.title),
                None => self.title.clone(),
            };
            *slot = Some(Trace::begin(&file, &title, self.side)?);
        }
        let missing = || ResultsError::Damaged { path: file, why: "it was not begun".to_owned() };
        slot.as_mut().ok_or_else(missing)
    }
}

impl Trace {
    fn begin(path: &Path, title: &str, side: &str) -> Result<Self, ResultsError> {
        if let Some(directory) = path.parent() {
            fs::create_dir_all(directory)
                .map_err(ResultsError::io(directory, "make the directory"))?;
        }
        let whole = Whole::begin(path)?;
        let mut out = BufWriter::new(whole.writer()?);
        let header = json!({
            "file_schema": "urn:ietf:params:qlog:file:sequential",
            "serialization_format": "application/qlog+json-seq",
            "title": title,
            "trace": {
                "common_fields": {
                    "protocol_types": ["UDP"],
                    "time_format": "relative_to_epoch",
                    "reference_time": { "clock_type": "monotonic", "epoch": "unknown" },
                },
                "event_schemas": [QUIC_SCHEMA, SCHEMA],
                "vantage_point": { "name": format!("anabranch {VERSION}"), "type": side },
            },
        });
        record(&mut out, &header).map_err(ResultsError::io(path, "write"))?;
        Ok(Trace { whole, out })
    }
}

/// One text of the sequence: a record separator before it and a line feed behind it.
fn record(out: &mut impl Write, value: &Value) -> io::Result<()> {
    out.write_all(b"\x1e")?;
    serde_json::to_writer(&mut *out, value).map_err(io::Error::from)?;
    out.write_all(b"\n")
}

type Event = (&'static str, Value);

/// One event about a path.
fn about(path: PathId, event: &'static str, data: Value) -> (Option<u64>, Vec<Event>) {
    (Some(u64::from(path.0)), vec![(event, data)])
}

/// Which path an observation is about, and the events it is in qlog.
fn events(observation: &Observation) -> (Option<u64>, Vec<Event>) {
    match *observation {
        Observation::Scheduled { path, what, symbol, reason } => about(
            path,
            "anabranch:scheduled",
            json!({ "what": what, "symbol": symbol, "reason": reason }),
        ),
        Observation::Held { path, until, reason } => {
            let until = until.as_nanos() as f64 / 1e6;
            let data = json!({ "until": until, "reason": reason });
            (Some(u64::from(path.0)), vec![("anabranch:held", data)])
        }
        Observation::BlockClosed { first, sources, repairs, loss_permille } => {
            let data = json!({
                "first_symbol": first,
                "sources": sources,
                "repairs": repairs,
                "loss": f64::from(loss_permille) / 1000.0,
            });
            (None, vec![("anabranch:block_closed", data)])
        }
        Observation::RepairsDue { first, count } => {
            let data = json!({ "first_symbol": first, "count": count });
            (None, vec![("anabranch:repairs_due", data)])
        }
        Observation::Lost { path, packets } => {
            about(path, "anabranch:packets_lost", json!({ "packets": packets }))
        }
        Observation::Timeout { path, consecutive } => {
            let expired = json!({ "timer_type": "pto", "event_type": "expired" });
            let count = json!({ "pto_count": consecutive });
            let events =
                vec![("quic:timer_updated", expired), ("quic:recovery_metrics_updated", count)];
            (Some(u64::from(path.0)), events)
        }
        Observation::Reinjected { path, packets } => {
            about(path, "anabranch:reinjected", json!({ "packets": packets }))
        }
        Observation::PathMtu { path, bytes, reason } => {
            about(path, "quic:mtu_updated", json!({ "new": bytes, "reason": reason }))
        }
        Observation::SharedBottleneck { path, with, shared } => {
            about(path, "anabranch:shared_bottleneck", json!({ "with": with.0, "shared": shared }))
        }
        Observation::PathState { path, state, reason } => about(
            path,
            "anabranch:path_state_updated",
            json!({ "new": name(state), "reason": reason }),
        ),
        Observation::Congestion { path, cwnd, pacing_bps, .. } => {
            let mut data = json!({ "congestion_window": cwnd });
            if pacing_bps > 0
                && let Some(data) = data.as_object_mut()
            {
                data.insert("pacing_rate".to_owned(), json!(pacing_bps));
            }
            (Some(u64::from(path.0)), vec![("quic:recovery_metrics_updated", data)])
        }
    }
}

fn name(state: PathState) -> String {
    format!("{state:?}").to_lowercase()
}
