//! Records the packets of a run's links.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

use anabranch_sim::engine::{Observer, PacketEvent, PacketEventKind};
use anabranch_sim::link::DropCause;
use anabranch_types::Time;

use super::headers;
use super::pcapng::PcapNg;
use crate::file::Whole;
use crate::{ResultsError, VERSION};

/// A pcapng file of a run, with one interface for each link.
///
/// A packet is recorded once for every link that it left. If it arrived at the link's far end, the
/// record has the time of arrival and the congestion mark. If it was dropped, the record has that
/// time and a comment that names the cause. The Wireshark filter `not frame.comment` shows the
/// packets that arrived.
#[derive(Debug)]
pub struct Capture {
    whole: Whole,
    file: PcapNg<BufWriter<File>>,
    bytes: Vec<u8>,
    failed: Option<io::Error>,
}

impl Capture {
    /// Begins the file at `path` for links of these names, in the order of their numbers; `comment`
    /// identifies the run.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn begin<'a>(
        path: &Path,
        comment: &str,
        links: impl IntoIterator<Item = &'a str>,
    ) -> Result<Self, ResultsError> {
        let whole = Whole::begin(path)?;
        let out = BufWriter::new(whole.writer()?);
        let open = || {
            let mut file = PcapNg::begin(out, &format!("anabranch {VERSION}"), comment)?;
            for link in links {
                file.interface(link)?;
            }
            Ok(file)
        };
        let file = open().map_err(ResultsError::io(path, "write"))?;
        Ok(Capture { whole, file, bytes: Vec::new(), failed: None })
    }

    /// Adds an IP packet that left link number `link` at `time`.
    pub fn add(&mut self, link: u32, time: Time, packet: &[u8], dropped: Option<DropCause>) {
        let length = u32::try_from(packet.len()).unwrap_or(u32::MAX);
        self.write(link, time, (packet, length), dropped);
    }

    /// Adds a packet of `length` bytes, of which `bytes` are known.
    fn write(
        &mut self,
        link: u32,
        time: Time,
        (bytes, length): (&[u8], u32),
        dropped: Option<DropCause>,
    ) {
        if self.failed.is_some() {
            return;
        }
        let comment = dropped.map(comment);
        let written = self.file.packet(link, time.as_nanos(), bytes, length, comment);
        self.failed = written.err();
    }

    /// Completes the file and renames it to its final name.
    ///
    /// # Errors
    /// When part of the file could not be written.
    pub fn finish(self) -> Result<(), ResultsError> {
        let written = match self.failed {
            Some(error) => Err(error),
            None => self.file.finish().map(drop),
        };
        written.map_err(ResultsError::io(self.whole.path(), "write"))?;
        self.whole.finish(false)
    }
}

impl Observer for Capture {
    fn packet(&mut self, event: &PacketEvent<'_>) {
        let dropped = match event.kind {
            PacketEventKind::Delivered => None,
            PacketEventKind::Dropped(cause) => Some(cause),
            PacketEventKind::Entered | PacketEventKind::Marked => return,
        };
        let mut bytes = core::mem::take(&mut self.bytes);
        let length = headers::write(event.packet, event.payload, &mut bytes);
        self.write(event.link.0, event.time, (&bytes, length), dropped);
        self.bytes = bytes;
    }
}

fn comment(cause: DropCause) -> &'static str {
    match cause {
        DropCause::QueueFull => "dropped: the buffer was full",
        DropCause::QueueEarly => "dropped: active queue management",
        DropCause::Blackout => "dropped: the link was dark",
        DropCause::TooLong => "dropped: longer than the MTU",
        DropCause::Random => "lost at random",
        DropCause::Policed => "dropped: faster than the policer allows",
        DropCause::Thinned => "dropped: a later acknowledgement says more",
        DropCause::Damaged => "dropped: damaged",
    }
}
