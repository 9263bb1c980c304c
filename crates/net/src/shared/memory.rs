//! Connections tell the endpoint how much memory they hold, and are closed if that is too much.

use super::{ConnectionShared, Shared};
use anabranch_core::connection::Connection;
use anabranch_core::endpoint::Handle;
use anabranch_types::Time;
use core::sync::atomic::Ordering;

impl ConnectionShared {
    /// Tells the endpoint how much memory the connection holds, and closes it if that is too much.
    pub(crate) fn weigh(&self, connection: &mut Connection, now: Time) {
        let too_much = match connection.memory_news() {
            Some(bytes) => self.endpoint.weigh(self.handle, connection, bytes),
            None => false,
        };
        if too_much || self.takes_too_much.load(Ordering::Relaxed) {
            connection.close_for_memory(now);
        }
    }

    /// Makes the connection's task close it. The caller holds another connection's lock and must not wait for this one's.
    fn ask_to_close(&self) {
        self.takes_too_much.store(true, Ordering::Relaxed);
        self.mailbox.ring();
    }
}

impl Shared {
    /// Records that a connection holds `bytes` of memory. If the connections with its peer hold too much, the largest
    /// must close: returns true if that is this one, and asks another one to close.
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
