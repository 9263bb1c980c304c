//! Writes the packets of links to files for Wireshark.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use anabranch_emulate::{Tap, set_ecn};
use anabranch_results::trace::Capture;
use anabranch_sim::link::DropCause;
use anabranch_types::{Ecn, Time};

use crate::failure::Failure;

/// A capture file, which appears once it is finished. A thread of its own writes it, so that the one that carries
/// packets does not wait for the disk.
pub(super) struct Capturing {
    thread: Option<JoinHandle<Capture>>,
    missed: Arc<AtomicU64>,
    name: String,
}

struct Record {
    time: Time,
    packet: Vec<u8>,
    dropped: Option<DropCause>,
}

struct LinkTap {
    records: SyncSender<Record>,
    /// Buffers whose packets have been written, to use again.
    spare: Receiver<Vec<u8>>,
    missed: Arc<AtomicU64>,
}

/// Packets that wait to be written; beyond that they are missed.
const WAITING: usize = 10_000;

impl Capturing {
    /// Begins a file for the link called `link`; the tap goes to the emulator.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(super) fn begin(
        link: &str,
        file: &Path,
        comment: &str,
    ) -> Result<(Capturing, Box<dyn Tap>), Failure> {
        let mut capture = Capture::begin(file, comment, [link]).map_err(Failure::failed)?;
        let (records, to_write) = sync_channel::<Record>(WAITING);
        let (written, spare) = sync_channel(WAITING);
        let write = move || {
            for Record { time, packet, dropped } in to_write {
                capture.add(0, time, &packet, dropped);
                // If there is no room for the buffer, it is dropped.
                let _ = written.try_send(packet);
            }
            capture
        };
        let cannot = |error| Failure::failed(format!("cannot start threads: {error}"));
        let name = "anabranch-pcap".to_owned();
        let thread = thread::Builder::new().name(name).spawn(write).map_err(cannot)?;
        let missed = Arc::new(AtomicU64::new(0));
        let tap = LinkTap { records, spare, missed: Arc::clone(&missed) };
        let name = file.display().to_string();
        Ok((Capturing { thread: Some(thread), missed, name }, Box::new(tap)))
    }

    /// Completes the file. Its tap must have been dropped.
    ///
    /// # Errors
    /// When the file could not be written, or the disk was too slow for some packets.
    pub(super) fn finish(mut self) -> Result<(), Failure> {
        let broken = |_| Failure::failed("an internal task failed");
        if let Some(thread) = self.thread.take() {
            thread.join().map_err(broken)?.finish().map_err(Failure::failed)?;
        }
        match self.missed.load(Ordering::Relaxed) {
            0 => Ok(()),
            missed => Err(Failure::failed(format!(
                "{}: {missed} packets are missing: the disk was too slow",
                self.name
            ))),
        }
    }
}

impl Drop for Capturing {
    /// Removes the file if it was not finished. Its tap must have been dropped.
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was reported when it happened.
            drop(thread.join());
        }
    }
}

impl Tap for LinkTap {
    fn left(&mut self, time: Time, packet: &[u8], ecn: Ecn, dropped: Option<DropCause>) {
        let mut copy = self.spare.try_recv().unwrap_or_default();
        copy.clear();
        copy.extend_from_slice(packet);
        set_ecn(&mut copy, ecn);
        if self.records.try_send(Record { time, packet: copy, dropped }).is_err() {
            self.missed.fetch_add(1, Ordering::Relaxed);
        }
    }
}
