//! A log of the keys of connections, with which a capture of one's own traffic can be decrypted.

use super::KeyError;
use super::keys::check_mode;
use super::schedule::KEY_LEN;
use core::fmt::{self, Write as _};
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use tracing::warn;
use zeroize::Zeroizing;

/// A file that gets the keys of every connection, so that a debugger can decrypt its packets.
/// `tools/wireshark/anabranch.lua` reads it, as Wireshark reads `SSLKEYLOGFILE` for TLS.
///
/// **Whoever reads the file can read and forge those connections' packets.** It holds nothing that helps with other
/// connections of the same two peers. Clones write to the same file.
///
/// Each line is `LABEL CONNECTION KEY`, the last two in hexadecimal. CONNECTION is the hash of the connection's first
/// handshake and the same at both ends. The labels are `ANABRANCH_INITIATOR_HEADER` and `ANABRANCH_RESPONDER_HEADER`
/// for the header-protection keys of what each side sends, `ANABRANCH_INITIATOR_PACKET_N` and
/// `ANABRANCH_RESPONDER_PACKET_N` for the packet keys of epoch N.
#[derive(Clone)]
pub struct KeyLog(Arc<Mutex<File>>);

impl KeyLog {
    /// Appends to the file `path`. On Unix, only its owner may read a new file.
    ///
    /// # Errors
    /// If the file cannot be opened or, on Unix, users other than its owner may read it.
    pub fn append(path: &Path) -> Result<Self, KeyError> {
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path).map_err(KeyError::Io)?;
        check_mode(&file)?;
        Ok(KeyLog(Arc::new(Mutex::new(file))))
    }

    /// Writes both directions' keys of an epoch, the initiator's first.
    pub(super) fn packet_keys(&self, connection: &Hash, epoch: u64, keys: [&[u8; KEY_LEN]; 2]) {
        self.write(connection, &format!("PACKET_{epoch}"), keys);
    }

    /// Writes both directions' header-protection keys, the initiator's first.
    pub(super) fn header_keys(&self, connection: &Hash, keys: [&[u8; KEY_LEN]; 2]) {
        self.write(connection, "HEADER", keys);
    }

    /// The lines leave in one write, so that those of several processes do not mix. A connection does not fail because
    /// its keys cannot be written down.
    fn write(&self, connection: &Hash, what: &str, [initiator, responder]: [&[u8; KEY_LEN]; 2]) {
        // A text that grew would leave copies of keys behind.
        let mut lines = Zeroizing::new(String::with_capacity(400));
        for (side, key) in [("INITIATOR", initiator), ("RESPONDER", responder)] {
            let (connection, key) = (Hex(connection), Hex(key));
            // Writing to a text does not fail.
            let _ = writeln!(lines, "ANABRANCH_{side}_{what} {connection} {key}");
        }
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = file.write_all(lines.as_bytes()) {
            warn!(%error, "cannot write keys to the key log");
        }
    }
}

impl fmt::Debug for KeyLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyLog(…)")
    }
}

/// Names a connection: the hash of its first handshake.
pub(super) type Hash = [u8; KEY_LEN];

/// Bytes as hexadecimal digits.
struct Hex<'a>(&'a [u8; KEY_LEN]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_owner_alone_may_read_it_and_lines_are_appended() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("keys");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        for epoch in 0..2 {
            let log = KeyLog::append(&path).unwrap();
            log.packet_keys(&[0xab; KEY_LEN], epoch, [&[1; KEY_LEN], &[2; KEY_LEN]]);
        }
        assert_eq!(mode(&path), 0o600);
        let text = fs::read_to_string(&path).unwrap();
        let labels: Vec<_> = text.lines().map(|line| line.split(' ').next().unwrap()).collect();
        let side = |epoch| {
            ["INITIATOR", "RESPONDER"].map(|side| format!("ANABRANCH_{side}_PACKET_{epoch}"))
        };
        assert_eq!(labels, [side(0), side(1)].concat());
        let line = text.lines().nth(3).unwrap();
        assert!(line.ends_with(&format!(" {} {}", "ab".repeat(32), "02".repeat(32))), "{line}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(KeyLog::append(&path), Err(KeyError::Exposed(0o640))));
    }
}
