//! Tickets that outlive the process that made them, so that the same command takes its ticket up again after a
//! crash, a restart or Ctrl-C, until the ticket expires.
//!
//! A ticket and the secret key behind it are kept in a file that only its owner may read, in
//! `$XDG_STATE_HOME/anabranch/tickets` (`~/.local/state` without that variable), named by what the command does
//! and where. The file is removed when the transfer is complete or the ticket has expired. Where no such file can
//! be written, a ticket is good for one process.

use std::fs::{self, File};
use std::io::Read;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anabranch::SecretKey;
use anabranch_files::{Directory, Locked};
use anabranch_transfer::Ticket;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, Zeroizing};

use crate::format;

/// Version of the file.
const VERSION: u8 = 1;
/// The ending of the file that is locked while a command runs.
const LOCK: &str = "lock";
/// Longest file that is read, bytes.
const MAX_LEN: usize = 1 << 14;

/// Content of a ticket's file. The secrets in it are erased when it is dropped.
#[derive(Serialize, Deserialize)]
struct Record {
    version: u8,
    ticket: String,
    secret_key: String,
    /// Addresses that the sockets were bound to.
    listen: Vec<SocketAddr>,
    /// The offer that the ticket was used for first.
    offer: Option<String>,
}

impl Drop for Record {
    fn drop(&mut self) {
        self.ticket.zeroize();
        self.secret_key.zeroize();
    }
}

/// The place of a command's ticket, which no other process uses as long as this lives.
#[derive(Debug)]
pub(super) struct Place {
    file: PathBuf,
    /// Locked.
    _lock: Locked,
}

/// A ticket, the key behind it, and where its maker listened.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) ticket: Ticket,
    pub(super) key: SecretKey,
    pub(super) listen: Vec<SocketAddr>,
    /// The offer that the ticket was used for first.
    offer: Option<[u8; 32]>,
    /// Place of the ticket's file, if the ticket is kept.
    place: Option<Place>,
}

/// Where tickets are kept. The directory is made if it is not there; `None` if it cannot be.
pub(super) fn directory() -> Option<PathBuf> {
    let below = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let below = below.filter(|path| path.is_absolute()).or_else(|| {
        let home = PathBuf::from(std::env::var_os("HOME")?);
        home.is_absolute().then(|| home.join(".local/state"))
    })?;
    let directory = below.join("anabranch/tickets");
    make_directory(&directory).ok().map(|()| directory)
}

impl Place {
    /// The place of the command that `words` identify; `None` if none can be made, or another process has it.
    /// Others' tickets that have expired by `now` are removed.
    pub(super) fn of(words: &[&str], now: u64) -> Option<Self> {
        Place::within(&directory()?, words, now)
    }

    fn within(directory: &Path, words: &[&str], now: u64) -> Option<Self> {
        make_directory(directory).ok()?;
        remove_expired(directory, now);
        // Each word has its length before it, since joined words alone would be ambiguous.
        let told: String = words.iter().map(|word| format!("{} {word}\n", word.len())).collect();
        let name = format::hex(&digest(&SHA256, told.as_bytes()).as_ref()[..16]);
        let file = directory.join(format!("{name}.json"));
        let lock = Directory::open(directory).ok()?.lock(format!("{name}.{LOCK}")).ok()?;
        lock.is_held().then_some(Place { file, _lock: lock })
    }

    /// The ticket at this place, if it expires after `now`, seconds since 1970.
    fn read(&self, now: u64) -> Option<(Record, Ticket, SecretKey)> {
        let record = read(&self.file)?;
        let ticket = Ticket::parse(&record.ticket).ok()?;
        let key = record.secret_key.parse::<SecretKey>().ok()?;
        let good = record.version == VERSION
            && ticket.expires > now
            && ticket.peer == key.public_key()
            && !record.listen.is_empty();
        good.then_some((record, ticket, key))
    }

    fn write(&self, record: &Record) -> std::io::Result<()> {
        // A buffer that grew would leave copies of the secrets in memory.
        let mut text = Zeroizing::new(Vec::with_capacity(MAX_LEN));
        serde_json::to_writer(&mut *text, record)?;
        anabranch_files::write(&self.file, &text, 0o600)
    }
}

impl Kept {
    /// The ticket that is kept at `place`, if it is still good; otherwise the error returns the place.
    pub(super) fn take_up(place: Option<Place>, now: u64) -> Result<Self, Option<Place>> {
        let Some(place) = place else { return Err(None) };
        let Some((mut record, ticket, key)) = place.read(now) else { return Err(Some(place)) };
        let offer = record.offer.as_deref().and_then(from_hex);
        if record.offer.is_some() && offer.is_none() {
            return Err(Some(place));
        }
        let listen = std::mem::take(&mut record.listen);
        Ok(Kept { ticket, key, listen, offer, place: Some(place) })
    }

    /// A new ticket; `place` is where it is kept.
    pub(super) fn new(
        ticket: Ticket,
        key: SecretKey,
        listen: Vec<SocketAddr>,
        place: Option<Place>,
    ) -> Self {
        let kept = Kept { ticket, key, listen, offer: None, place };
        kept.write();
        kept
    }

    /// Returns the place, for another ticket.
    pub(super) fn into_place(self) -> Option<Place> {
        self.place
    }

    /// Whether the same command takes this ticket up again.
    pub(super) fn is_kept(&self) -> bool {
        self.place.as_ref().is_some_and(|place| place.file.exists())
    }

    /// Whether an offer may be brought with this ticket: the first one, and no other after it.
    pub(super) fn admits(&mut self, offer: [u8; 32]) -> bool {
        if self.offer.is_none() {
            self.offer = Some(offer);
            self.write();
        }
        self.offer == Some(offer)
    }

    /// Removes the kept ticket: the transfer is complete, or the ticket has expired.
    pub(super) fn forget(&self) {
        if let Some(place) = &self.place {
            // If the file cannot be removed, its ticket still expires.
            let _ = fs::remove_file(&place.file);
        }
    }

    fn write(&self) {
        let Some(place) = &self.place else { return };
        let record = Record {
            version: VERSION,
            ticket: self.ticket.to_text().to_string(),
            secret_key: self.key.to_base64().to_string(),
            listen: self.listen.clone(),
            offer: self.offer.map(|offer| format::hex(&offer)),
        };
        // A ticket that cannot be kept is good for this process only.
        let _ = place.write(&record);
    }
}

/// Keeps a ticket below `directory`, and takes it up again, as often as there are `commands`.
#[cfg(any(test, feature = "testing"))]
pub fn keep_and_take_up(directory: &Path, ticket: &Ticket, key: &SecretKey, commands: &[&str]) {
    for command in commands {
        let place = || Place::within(directory, &[command], 0);
        drop(Kept::new(ticket.clone(), key.clone(), vec![([127, 0, 0, 1], 1).into()], place()));
        let again = Kept::take_up(place(), 0).ok();
        assert!(again.is_some_and(|again| again.ticket == *ticket), "{command} has no ticket");
    }
}

fn read(file: &Path) -> Option<Record> {
    let mut text = Zeroizing::new(Vec::with_capacity(MAX_LEN + 1));
    File::open(file).ok()?.take(MAX_LEN as u64).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Removes the tickets that have expired, of commands that are not running.
fn remove_expired(directory: &Path, now: u64) {
    let items = fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
    for file in
        items.map(|item| item.path()).filter(|file| file.extension() == Some("json".as_ref()))
    {
        let ticket = read(&file).and_then(|record| Ticket::parse(&record.ticket).ok());
        let lock = file.with_extension(LOCK);
        let expired = ticket.is_some_and(|ticket| ticket.expires <= now);
        // The lock is held until both are gone: nobody takes up a ticket that is being removed.
        if expired
            && let Ok(unused) = File::open(&lock).and_then(Locked::new)
            && unused.is_held()
        {
            // A file that cannot be removed does no harm.
            let _ = fs::remove_file(&file);
            let _ = fs::remove_file(&lock);
        }
    }
}

fn make_directory(path: &Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

fn from_hex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_transfer::Role;

    const NOW: u64 = 1000;

    fn ticket(expires: u64) -> (Ticket, SecretKey, Vec<SocketAddr>) {
        let key = SecretKey::generate().unwrap();
        let address = SocketAddr::from(([192, 0, 2, 1], 4433));
        let ticket = Ticket::new(Role::Takes, key.public_key(), expires, vec![address]).unwrap();
        (ticket, key, vec![address])
    }

    #[test]
    fn a_ticket_is_taken_up_by_the_same_command_until_it_expires() {
        let directory = tempfile::tempdir().unwrap();
        let place = |words: &[&str]| Place::within(directory.path(), words, NOW);
        let (ticket, key, listen) = ticket(NOW + 10);
        let mut kept = Kept::new(ticket.clone(), key, listen, place(&["recv", "a"]));
        assert!(place(&["recv", "a"]).is_none(), "another process has it");
        assert!(kept.admits([7; 32]) && !kept.admits([8; 32]));
        drop(kept);
        let mut again = Kept::take_up(place(&["recv", "a"]), NOW).unwrap();
        assert_eq!(again.ticket, ticket);
        assert!(!again.admits([8; 32]), "it was used for another offer before");
        drop(again);
        assert!(Kept::take_up(place(&["recv", "b"]), NOW).is_err());
        assert!(Kept::take_up(place(&["recv", "a"]), NOW + 10).is_err(), "it has expired");
        Kept::take_up(place(&["recv", "a"]), NOW).unwrap().forget();
        assert!(Kept::take_up(place(&["recv", "a"]), NOW).is_err());
    }

    #[test]
    fn tickets_that_have_expired_are_removed() {
        let directory = tempfile::tempdir().unwrap();
        let place = |words: &[&str], now| Place::within(directory.path(), words, now);
        for expires in [NOW + 10, NOW + 20] {
            let (ticket, key, listen) = ticket(expires);
            drop(Kept::new(ticket, key, listen, place(&[&expires.to_string()], NOW)));
        }
        let (ticket, key, listen) = ticket(NOW + 10);
        let _running = Kept::new(ticket, key, listen, place(&["running"], NOW));
        drop(place(&["another"], NOW + 15));
        let names = fs::read_dir(directory.path()).unwrap();
        let is_ticket = |path: &Path| path.extension() == Some("json".as_ref());
        let tickets = names.filter(|item| is_ticket(&item.as_ref().unwrap().path()));
        assert_eq!(tickets.count(), 2, "one is good, and one is of a command that runs");
    }

    #[test]
    fn what_is_damaged_counts_as_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let place = || Place::within(directory.path(), &["recv"], NOW);
        let (ticket, key, listen) = ticket(NOW + 10);
        drop(Kept::new(ticket, key, listen, place()));
        let file = place().unwrap().file;
        let whole = fs::read_to_string(&file).unwrap();
        for damaged in
            ["", "{}", &whole[..whole.len() / 2], &whole.replace("\"version\":1", "\"version\":2")]
        {
            fs::write(&file, damaged).unwrap();
            assert!(matches!(Kept::take_up(place(), NOW), Err(Some(_))), "{damaged}");
        }
        fs::write(&file, whole).unwrap();
        assert!(Kept::take_up(place(), NOW).is_ok());
    }

    #[cfg(unix)]
    #[test]
    fn only_its_owner_may_read_it() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let inner = directory.path().join("x/tickets");
        let (ticket, key, listen) = ticket(NOW + 10);
        let _kept = Kept::new(ticket, key, listen, Place::within(&inner, &["recv"], NOW));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&inner), 0o700);
        for item in fs::read_dir(&inner).unwrap() {
            assert_eq!(mode(&item.unwrap().path()), 0o600);
        }
    }
}
