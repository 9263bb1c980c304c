//! Connections tell the endpoint what memory they take, and close if that is too much.

use super::{ConnectionShared, Shared};
use anabranch_core::connection::Connection;
use anabranch_core::endpoint::Handle;
use anabranch_types::Time;
use core::sync::atomic::Ordering;

impl ConnectionShared {
    /// Tells the endpoint what memory the connection takes, and closes it if that is too much.
    pub(crate) fn weigh(&self, connection: &mut Connection, now: Time) {
        let too_much = match connection.memory_news() {
            Some(bytes) => self.endpoint.weigh(self.handle, connection, bytes),
            None => false,
        };
        if too_much || self.takes_too_much.load(Ordering::Relaxed) {
            connection.close_for_memory(now);
        }
    }

    /// Has the connection's task close it. Whoever asks holds the lock of another connection, so that this one's cannot
    /// be waited for.
    fn ask_to_close(&self) {
        self.takes_too_much.store(true, Ordering::Relaxed);
        self.mailbox.ring();
    }
}

impl Shared {
    /// A connection takes `bytes` of memory. Returns whether it has to close for it; if another one with the same peer
    /// takes more, that one is asked to.
    fn weigh(&self, handle: Handle, connection: &mut Connection, bytes: u64) -> bool {
        let heaviest = self.lock().router.weigh(connection, bytes);
        if let Some(other) = heaviest.filter(|other| *other != handle)
            && let Some(other) = self.connection(other)
        {
            other.ask_to_close();
        }
        heaviest == Some(handle)
    }
}
