use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind};
use std::ops::{Deref, DerefMut};

/// A file that is locked against other processes, and against other openings of it in this process. On a file system
/// without locks the file is returned unlocked: see [`is_held`](Self::is_held).
///
/// Dropping releases the lock explicitly, since closing the file is not enough: a child process holds copies of all
/// descriptors until its program runs, and a lock of `flock(2)` lasts until the last copy is closed. Until then
/// others would find the file in use.
#[derive(Debug)]
pub struct Locked {
    file: File,
    held: bool,
}

impl Locked {
    /// Takes the lock without waiting.
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
        // If unlocking fails, closing the file, which happens next, is all that is left to do.
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
