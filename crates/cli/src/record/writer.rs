//! The thread that writes a recording, so that the connection never waits for a disk.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use anabranch_core::observe::{Observation, Observer};
use anabranch_types::Time;

use super::entry::{Entry, Header, Line};
use super::file::Target;
use crate::failure::Failure;

/// Observations that wait for the disk, at most. At 100 000 packets a second this bridges over half a
/// second; beyond that, observations are counted instead of kept.
const QUEUE: usize = 1 << 16;

enum Message {
    Observed(Time, Observation),
    /// The last message: how many observations did not fit.
    Finish(u64),
}

/// A recording under way.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    sender: SyncSender<Message>,
    missed: Arc<AtomicU64>,
    thread: JoinHandle<io::Result<()>>,
}

impl Recorder {
    /// Creates the file and writes its header. The file takes its name when the recording is finished;
    /// one that was there before stays until then.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn start(path: &Path, header: &Header) -> Result<Self, Failure> {
        let refuse = |error: io::Error| cannot_write(path, &error);
        let (target, file) = Target::open(path).map_err(refuse)?;
        let mut writer = BufWriter::new(file);
        write_line(&mut writer, header).and_then(|()| writer.flush()).map_err(refuse)?;
        let (sender, receiver) = sync_channel(QUEUE);
        let thread = thread::Builder::new()
            .name("anabranch-record".to_owned())
            .spawn(move || write_all(target, writer, &receiver))
            .map_err(refuse)?;
        Ok(Recorder { path: path.to_owned(), sender, missed: Arc::default(), thread })
    }

    /// The observer that records what the connection does.
    pub fn observer(&self) -> Box<dyn Observer> {
        Box::new(Tap { sender: self.sender.clone(), missed: Arc::clone(&self.missed) })
    }

    /// Whether writing has failed; [`finish`](Self::finish) says why.
    pub fn has_failed(&self) -> bool {
        self.thread.is_finished()
    }

    /// Completes the recording.
    ///
    /// # Errors
    /// When the recording could not be written; then no file is left.
    pub fn finish(self) -> Result<(), Failure> {
        let missed = self.missed.load(Ordering::Relaxed);
        // A thread that failed does not listen any more; joining it tells why.
        let _ = self.sender.send(Message::Finish(missed));
        match self.thread.join() {
            Ok(result) => result.map_err(|error| cannot_write(&self.path, &error)),
            Err(_) => Err(Failure::failed("the recording's thread failed")),
        }
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    let text = format!("cannot write the recording {}: {error}", path.display());
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            Failure::usage(format!("{text}; make its directory, or name another file"))
        }
        _ => Failure::failed(text),
    }
}

fn write_all(
    target: Target,
    mut writer: BufWriter<File>,
    receiver: &Receiver<Message>,
) -> io::Result<()> {
    let mut last = Time::ZERO;
    while let Ok(message) = receiver.recv() {
        match message {
            Message::Observed(now, observation) => {
                last = now;
                if let Some(line) = Line::new(now, &observation) {
                    write_line(&mut writer, &line)?;
                }
            }
            Message::Finish(missed) => {
                let line = Line { t: last.as_nanos(), entry: Entry::End { missed } };
                write_line(&mut writer, &line)?;
                writer.flush()?;
                return target.commit();
            }
        }
    }
    // All senders are gone and the recording was not finished, so the file is discarded.
    Ok(())
}

fn write_line(writer: &mut impl Write, line: &impl serde::Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *writer, line)?;
    writer.write_all(b"\n")
}

/// Passes observations to the thread.
#[derive(Debug)]
struct Tap {
    sender: SyncSender<Message>,
    missed: Arc<AtomicU64>,
}

impl core::fmt::Debug for Message {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Message::Observed(now, observation) => write!(f, "{now}: {observation:?}"),
            Message::Finish(missed) => write!(f, "finish, {missed} missed"),
        }
    }
}

impl Observer for Tap {
    fn observe(&mut self, now: Time, observation: &Observation) {
        // Observations about single packets are not recorded and do not enter the queue.
        if observation.is_about_packets() {
            return;
        }
        if self.sender.try_send(Message::Observed(now, *observation)).is_err() {
            self.missed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_types::PathId;

    fn header() -> Header {
        Header {
            kind: super::super::KIND.to_owned(),
            format: super::super::FORMAT,
            version: "1".to_owned(),
            profile: "uncoded".to_owned(),
            seed: Some(1),
            paths: vec!["a".to_owned()],
        }
    }

    #[test]
    fn a_recording_appears_when_it_is_finished() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run.jsonl");
        let recorder = Recorder::start(&path, &header()).unwrap();
        let mut observer = recorder.observer();
        let lost = Observation::Lost { path: PathId(0), packets: 2 };
        observer.observe(Time::from_millis(1), &lost);
        assert!(!path.exists());
        recorder.finish().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        assert_eq!(lines[1], r#"{"t":1000000,"event":"lost","path":0,"packets":2}"#);
        assert_eq!(lines[2], r#"{"t":1000000,"event":"end","missed":0}"#);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn one_that_is_given_up_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("run.jsonl");
        let Recorder { sender, thread, .. } = Recorder::start(&path, &header()).unwrap();
        drop(sender);
        thread.join().unwrap().unwrap();
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_place_that_cannot_be_written_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let error = Recorder::start(directory.path(), &header()).unwrap_err().to_string();
        assert!(error.contains(&directory.path().display().to_string()), "{error}");
        let missing = directory.path().join("no/such/place");
        assert!(Recorder::start(&missing, &header()).is_err());
    }
}
