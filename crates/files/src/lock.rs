use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind};
use std::ops::{Deref, DerefMut};

/// A file that no other process has locked in this way; nor has this process, by another opening of it. File systems
/// without locks give the file nevertheless: see [`is_held`](Self::is_held).
///
/// Closing the file would not be enough to give the lock back. A process that is being started holds copies of all
/// descriptors until its program runs, and a lock that belongs to an opening, as `flock(2)` makes it, lasts until the
/// last copy is closed: for whoever asks in that moment, the file would still be in use.
#[derive(Debug)]
pub struct Locked {
    file: File,
    held: bool,
}

impl Locked {
    /// Takes the lock, without waiting for it.
    ///
    /// # Errors
    /// [`ErrorKind::WouldBlock`] if somebody else holds it.
    pub fn new(file: File) -> io::Result<Self> {
        match file.try_lock() {
            Ok(()) => Ok(Locked { file, held: true }),
            Err(TryLockError::WouldBlock) => Err(ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(_)) => Ok(Locked { file, held: false }),
        }
    }

    /// False if the file system has no locks.
    pub fn is_held(&self) -> bool {
        self.held
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // The file is closed next, which is the most that is left to do.
        let _ = self.file.unlock();
    }
}

impl Deref for Locked {
    type Target = File;

    fn deref(&self) -> &File {
        &self.file
    }
}

impl DerefMut for Locked {
    fn deref_mut(&mut self) -> &mut File {
        &mut self.file
    }
}
