//! `--qlog DIR`: writes the decisions of each connection and their reasons to a file of its own.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anabranch::Connection;
use anabranch_core::observe::{Observation, Observer};
use anabranch_results::trace::Qlog;
use anabranch_types::{PathId, Time};

use crate::failure::Failure;

/// Events that wait to be written, at most: some 300 kB. More are left out rather than waited for.
const QUEUE: usize = 4096;
/// Interval at which a thread without events checks whether it has to end.
const TURN: Duration = Duration::from_millis(200);

/// An observation of a connection, and its time.
type Observed = (Time, Observation);

/// Records connections, if that is wanted. Clones write into the same directory.
#[derive(Clone, Debug, Default)]
pub struct Qlogs(Option<Arc<Directory>>);

#[derive(Debug)]
struct Directory {
    path: PathBuf,
    /// Prefix of the names of its files.
    stem: String,
    begun: AtomicU64,
    /// Set when files are to be completed, whether or not their connections are over.
    over: Arc<AtomicBool>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Qlogs {
    /// Makes `directory`. The files in it are named after `command`, this process and a number.
    /// Without a directory, nothing is recorded.
    ///
    /// # Errors
    /// When the directory cannot be made.
    pub fn new(directory: Option<&Path>, command: &str) -> Result<Self, Failure> {
        let Some(path) = directory else { return Ok(Qlogs(None)) };
        if path.exists() && !path.is_dir() {
            return Err(Failure::usage(format!(
                "--qlog {}: is a file; name a directory, which gets a file for each connection",
                path.display()
            )));
        }
        std::fs::create_dir_all(path).map_err(|error| {
            let text = format!(
                "--qlog {}: the directory cannot be created: {error}; name another",
                path.display()
            );
            if error.kind() == ErrorKind::NotADirectory {
                Failure::usage(text)
            } else {
                Failure::failed(text)
            }
        })?;
        Ok(Qlogs(Some(Arc::new(Directory {
            path: path.to_owned(),
            stem: format!("{command}-{}", std::process::id()),
            begun: AtomicU64::new(0),
            over: Arc::default(),
            threads: Mutex::default(),
        }))))
    }

    /// Where the files are, if any are wanted.
    pub fn directory(&self) -> Option<&Path> {
        self.0.as_ref().map(|directory| directory.path.as_path())
    }

    /// Writes down what `connection` decides from now on, as `side` sees it, "client" or "server". The
    /// file gets its name when the connection is over.
    pub fn follow(&self, connection: &Connection, side: &'static str) {
        let Some(directory) = &self.0 else { return };
        let number = directory.begun.fetch_add(1, Ordering::Relaxed) + 1;
        let title = format!("a connection with {}", connection.peer());
        let stem = format!("{}-{number}", directory.stem);
        let qlog = Qlog::single(&directory.path, &stem, &title, side);
        let (sender, receiver) = sync_channel(QUEUE);
        let missed = Arc::new(AtomicU64::new(0));
        let tap = Tap { sender, missed: Arc::clone(&missed) };
        let over = Arc::clone(&directory.over);
        let writing = std::thread::Builder::new().name("qlog".to_owned());
        let named = Naming { name: Box::new(connection.path_namer()), known: BTreeSet::new() };
        match writing.spawn(move || write(qlog, &receiver, (named, &over), &missed)) {
            Ok(thread) => {
                connection.set_observer(Some(Box::new(tap)));
                let mut threads = directory.threads.lock().unwrap_or_else(PoisonError::into_inner);
                threads.retain(|thread| !thread.is_finished());
                threads.push(thread);
            }
            Err(error) => eprintln!("anabranch: --qlog: {error}"),
        }
    }

    /// Completes the files, also those of connections that are not over yet.
    pub fn finish(&self) {
        let Some(directory) = &self.0 else { return };
        directory.over.store(true, Ordering::Relaxed);
        let mut threads = directory.threads.lock().unwrap_or_else(PoisonError::into_inner);
        for thread in threads.drain(..) {
            // A thread that panicked has reported it.
            let _ = thread.join();
        }
    }
}

/// Writes the name of each path once.
struct Naming {
    name: Box<dyn Fn(PathId) -> Option<String> + Send>,
    known: BTreeSet<PathId>,
}

impl Naming {
    /// Most paths that are remembered. Path numbers grow without limit, and the lowest are closed first.
    const MOST: usize = 64;

    fn tell(&mut self, qlog: &Qlog, now: Time, path: PathId) {
        if !self.known.contains(&path)
            && let Some(name) = (self.name)(path)
        {
            if self.known.len() >= Self::MOST {
                self.known.pop_first();
            }
            self.known.insert(path);
            qlog.name_path(now, path, &name);
        }
    }
}

/// Writes until the connection is over, or `over` is set.
fn write(
    qlog: Qlog,
    receiver: &Receiver<Observed>,
    (mut naming, over): (Naming, &AtomicBool),
    missed: &AtomicU64,
) {
    let mut observer = qlog.observer();
    loop {
        match receiver.recv_timeout(TURN) {
            Ok((now, observation)) => {
                path_of(&observation).into_iter().for_each(|path| naming.tell(&qlog, now, path));
                observer.observe(now, &observation);
            }
            Err(RecvTimeoutError::Timeout) if !over.load(Ordering::Relaxed) => {}
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
        }
    }
    drop(observer);
    match missed.load(Ordering::Relaxed) {
        0 => {}
        missed => eprintln!("anabranch: --qlog: {missed} events came too fast to be written"),
    }
    if let Err(error) = qlog.finish() {
        eprintln!("anabranch: --qlog: {error}");
    }
}

/// The path that an observation is about.
fn path_of(observation: &Observation) -> Option<PathId> {
    match *observation {
        Observation::Scheduled { path, .. }
        | Observation::Held { path, .. }
        | Observation::Lost { path, .. }
        | Observation::Timeout { path, .. }
        | Observation::Reinjected { path, .. }
        | Observation::PathMtu { path, .. }
        | Observation::SharedBottleneck { path, .. }
        | Observation::PathState { path, .. }
        | Observation::PacketSent { path, .. }
        | Observation::PacketReceived { path, .. }
        | Observation::PacketLost { path, .. }
        | Observation::Metrics { path, .. }
        | Observation::Congestion { path, .. } => Some(path),
        Observation::BlockClosed { .. }
        | Observation::RepairsDue { .. }
        | Observation::Waited { .. }
        | Observation::Acknowledged { .. } => None,
    }
}

/// Passes observations to the thread, and never waits for it.
#[derive(Debug)]
struct Tap {
    sender: SyncSender<Observed>,
    missed: Arc<AtomicU64>,
}

impl Observer for Tap {
    fn observe(&mut self, now: Time, observation: &Observation) {
        if self.sender.try_send((now, *observation)).is_err() {
            self.missed.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_policy::view::SymbolId;

    #[test]
    fn events_that_come_too_fast_are_counted_and_left_out() {
        let (sender, receiver) = sync_channel(2);
        let missed = Arc::new(AtomicU64::new(0));
        let mut tap = Tap { sender, missed: Arc::clone(&missed) };
        for count in 0..5 {
            tap.observe(Time::ZERO, &Observation::RepairsDue { first: SymbolId(0), count });
        }
        assert_eq!((receiver.try_iter().count(), missed.load(Ordering::Relaxed)), (2, 3));
    }
}
