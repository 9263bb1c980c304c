//! Writes a connection's packets, its decisions and their reasons as qlog 0.3, the version that
//! qvis reads (draft-ietf-quic-qlog-main-schema-03 and -quic-events-03, JSON text sequences of RFC
//! 7464).

mod events;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use anabranch_core::observe::{Observation, Observer};
use anabranch_types::{PathId, Time};
use serde_json::{Value, json};

use crate::file::Whole;
use crate::{ResultsError, VERSION};

/// Namespace of the events that only this protocol has.
const SCHEMA: &str = "urn:anabranch:qlog:events";
/// Most paths whose state is remembered.
const MOST_PATHS: usize = 64;

/// The qlog files of one connection: one for each path and one for events that concern no path, or
/// a single file for all.
///
/// Packet numbers count on each path, so a viewer must see each path as a connection of its own: as
/// a file or, in a single file, by its `group_id`. Events that QUIC also has carry QUIC's names;
/// the others are in the namespace `anabranch`. Every event about a path names it as `path_id`.
#[derive(Clone, Debug)]
pub struct Qlog {
    files: Arc<Mutex<Files>>,
}

/// The observer of a connection. It writes to the files of the [`Qlog`] that made it.
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
    /// Whether there is a single file for all paths.
    single: bool,
    /// By path id.
    paths: Vec<Option<Trace>>,
    connection: Option<Trace>,
    /// State of the paths, by path id.
    known: BTreeMap<u64, Known>,
    /// Newly acknowledged packets, which are written with the next packet that is reported as
    /// received.
    acknowledged: Vec<Acknowledged>,
    failed: Option<ResultsError>,
}

/// The remembered state of a path.
#[derive(Debug, Default)]
struct Known {
    /// The controller's phase as last written. It is written only when it changes.
    phase: Option<&'static str>,
    /// Name of the group of the path's events; set when the path is named or has its first event.
    group: Option<String>,
}

#[derive(Debug)]
struct Trace {
    whole: Whole,
    out: BufWriter<File>,
}

impl Qlog {
    /// Files in `directory` whose names begin with `stem`; `title` identifies the connection and
    /// the run. A path's file is begun with the first event about the path.
    pub fn new(directory: &Path, stem: &str, title: &str) -> Self {
        let files = Files {
            directory: directory.to_owned(),
            stem: stem.to_owned(),
            title: title.to_owned(),
            side: "client",
            single: false,
            paths: Vec::new(),
            connection: None,
            known: BTreeMap::new(),
            acknowledged: Vec::new(),
            failed: None,
        };
        Qlog { files: Arc::new(Mutex::new(files)) }
    }

    /// A single file in `directory`, named `stem` with `.sqlog`, for a connection with all its
    /// paths as seen by `side`, "client" or "server". The file is begun with the first event.
    pub fn single(directory: &Path, stem: &str, title: &str, side: &'static str) -> Self {
        let qlog = Qlog::new(directory, stem, title);
        if let Ok(mut files) = qlog.files.lock() {
            files.side = side;
            files.single = true;
        }
        qlog
    }

    /// Writes the name of a path into the files.
    pub fn name_path(&self, now: Time, path: PathId, name: &str) {
        let Ok(mut files) = self.files.lock() else { return };
        let path = u64::from(path.0);
        files.known(path).group.get_or_insert_with(|| format!("{name} (path {path})"));
        if files.failed.is_none()
            && let Err(error) =
                files.write(Some(path), now, "anabranch:path_named", json!({ "name": name }))
        {
            files.failed = Some(error);
        }
    }

    /// An observer to give to the connection.
    pub fn observer(&self) -> Box<dyn Observer> {
        Box::new(QlogTrace { files: Arc::clone(&self.files) })
    }

    /// Completes the files and renames them to their final names.
    ///
    /// # Errors
    /// When part of the files could not be written.
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
        // A poisoned lock means that another thread has panicked, so the run fails anyway.
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
        if let Observation::Acknowledged { path, first, last } = *observation {
            // A packet acknowledges no more ranges than this. More can gather only if no received
            // packet is reported.
            if self.acknowledged.len() < MOST_RANGES {
                self.acknowledged.push(Acknowledged { path, first, last });
            }
            return Ok(());
        }
        let (acknowledged, elsewhere) = match observation {
            Observation::PacketReceived { path, .. } => {
                let acknowledged = std::mem::take(&mut self.acknowledged);
                let elsewhere = events::told_elsewhere(*path, &acknowledged);
                (acknowledged, elsewhere)
            }
            _ => (Vec::new(), Vec::new()),
        };
        let (path, events) = events::of(observation, &acknowledged);
        if let (Some(path), Observation::Congestion { phase, .. }) = (path, observation)
            && self.known(path).phase.replace(phase) != Some(phase)
        {
            let event = json!({ "new": phase });
            self.write(Some(path), now, "recovery:congestion_state_updated", event)?;
        }
        events.into_iter().try_for_each(|(name, data)| self.write(path, now, name, data))?;
        elsewhere.into_iter().try_for_each(|(other, data)| {
            self.write(Some(other), now, "transport:packet_received", data)
        })
    }

    /// The remembered state of a path. Path identifiers only rise, so the lowest ones belong to
    /// closed paths and are forgotten first.
    fn known(&mut self, path: u64) -> &mut Known {
        if self.known.len() >= MOST_PATHS && !self.known.contains_key(&path) {
            self.known.pop_first();
        }
        self.known.entry(path).or_default()
    }

    fn write(
        &mut self,
        path: Option<u64>,
        now: Time,
        name: &str,
        data: Value,
    ) -> Result<(), ResultsError> {
        let mut event = json!({ "time": now.as_nanos() as f64 / 1e6, "name": name, "data": data });
        if let Some(event) = event.as_object_mut() {
            if self.single {
                let group = match path {
                    Some(path) => {
                        let group = &mut self.known(path).group;
                        group.get_or_insert_with(|| format!("path {path}")).clone()
                    }
                    None => "connection".to_owned(),
                };
                event.insert("group_id".to_owned(), json!(group));
            }
            if let Some(path) = path {
                event.insert("path_id".to_owned(), json!(path));
            }
        }
        let trace = self.of(path)?;
        record(&mut trace.out, &event).map_err(ResultsError::io(trace.whole.path(), "write"))
    }

    /// The file of a path or of the connection, which is begun if it does not exist yet.
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
            "qlog_version": "0.3",
            "qlog_format": "JSON-SEQ",
            "title": title,
            "trace": {
                "title": title,
                "vantage_point": { "name": format!("anabranch {VERSION}"), "type": side },
                "common_fields": {
                    "protocol_type": ["anabranch"],
                    "time_format": "relative",
                    "reference_time": 0,
                },
                "event_schemas": [SCHEMA],
            },
        });
        record(&mut out, &header).map_err(ResultsError::io(path, "write"))?;
        Ok(Trace { whole, out })
    }
}

/// Most ranges that a packet acknowledges: it has one ACK for each path, each with at most 64
/// ranges.
const MOST_RANGES: usize = 16 * 64;

/// Packets of a path acknowledged for the first time.
#[derive(Clone, Copy, Debug)]
struct Acknowledged {
    path: PathId,
    first: u64,
    last: u64,
}

/// Writes one text of the sequence, between a record separator and a line feed.
fn record(out: &mut impl Write, value: &Value) -> io::Result<()> {
    out.write_all(b"\x1e")?;
    serde_json::to_writer(&mut *out, value).map_err(io::Error::from)?;
    out.write_all(b"\n")
}
