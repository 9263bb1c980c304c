//! The pcapng file format (draft-ietf-opsawg-pcapng), as far as a simulation needs it.

use std::io::{self, Write};

/// Block types and options of the format.
const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const PACKET: u32 = 6;
const COMMENT: u16 = 1;
const APPLICATION: u16 = 4;
const NAME: u16 = 2;
const RESOLUTION: u16 = 9;
/// Packets begin with an IP header (LINKTYPE_RAW).
const RAW_IP: u16 = 101;

/// A pcapng file that is being written: one section, its interfaces, then packets. Times are in
/// nanoseconds.
#[derive(Debug)]
pub struct PcapNg<W: Write> {
    out: W,
    block: Vec<u8>,
}

impl<W: Write> PcapNg<W> {
    /// Begins the file; `application` names the writer, `comment` describes the capture.
    ///
    /// # Errors
    /// When `out` cannot be written.
    pub fn begin(out: W, application: &str, comment: &str) -> io::Result<Self> {
        let mut file = PcapNg { out, block: Vec::new() };
        // Byte order, version 1.0, unknown length of the section.
        file.block.extend(0x1a2b_3c4d_u32.to_le_bytes());
        file.block.extend([1, 0, 0, 0]);
        file.block.extend([0xff; 8]);
        file.option(COMMENT, comment.as_bytes());
        file.option(APPLICATION, application.as_bytes());
        file.end(SECTION)?;
        Ok(file)
    }

    /// Adds the next interface; they are numbered from 0, and all come before the first packet.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub fn interface(&mut self, name: &str) -> io::Result<()> {
        self.block.extend(RAW_IP.to_le_bytes());
        // Reserved; no limit on the length of packets.
        self.block.extend([0; 6]);
        self.option(NAME, name.as_bytes());
        self.option(RESOLUTION, &[9]);
        self.end(INTERFACE)
    }

    /// Adds a packet of `length` bytes on the wire, of which `captured` are recorded.
    ///
    /// # Errors
    /// When the output cannot be written.
    #[expect(clippy::too_many_arguments, reason = "the fields of a packet block")]
    pub fn packet(
        &mut self,
        interface: u32,
        nanoseconds: u64,
        captured: &[u8],
        length: u32,
        comment: Option<&str>,
    ) -> io::Result<()> {
        self.block.extend(interface.to_le_bytes());
        self.block.extend(((nanoseconds >> 32) as u32).to_le_bytes());
        self.block.extend((nanoseconds as u32).to_le_bytes());
        self.block.extend((captured.len() as u32).to_le_bytes());
        self.block.extend(length.max(captured.len() as u32).to_le_bytes());
        self.block.extend(captured);
        self.pad();
        if let Some(comment) = comment {
            self.option(COMMENT, comment.as_bytes());
        }
        self.end(PACKET)
    }

    /// Completes the file and gives the output back.
    ///
    /// # Errors
    /// When the output cannot be flushed.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    /// Adds an option to the block; one that is too long for the format is cut.
    fn option(&mut self, code: u16, value: &[u8]) {
        let value = value.get(..usize::from(u16::MAX)).unwrap_or(value);
        self.block.extend(code.to_le_bytes());
        self.block.extend((value.len() as u16).to_le_bytes());
        self.block.extend(value);
        self.pad();
    }

    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    /// Writes the block with its type and length around it.
    fn end(&mut self, kind: u32) -> io::Result<()> {
        // End of options, which is allowed even if there are none.
        self.block.extend([0; 4]);
        let length = (self.block.len() as u32 + 12).to_le_bytes();
        self.out.write_all(&kind.to_le_bytes())?;
        self.out.write_all(&length)?;
        self.out.write_all(&self.block)?;
        self.out.write_all(&length)?;
        self.block.clear();
        Ok(())
    }
}
