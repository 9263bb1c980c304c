//! Renewing a connection's keys while packets flow (`docs/spec/wire-0.md`, Keys).

use anabranch_types::Time;
use core::time::Duration;

use super::ingress::Broken;
use super::{CloseReason, Connection};
use crate::crypto::RekeyMessage;
use crate::wire::CloseCode;

impl Connection {
    /// Begins a key exchange if one is due, and closes the connection if its key may not seal more
    /// packets.
    pub(super) fn renew_keys(&mut self, now: Time) {
        if self.is_closed() || !self.established {
            return;
        }
        if self.keys.are_spent() {
            let what = "the peer has not renewed the keys";
            self.start_close(now, CloseReason::local(CloseCode::KEY_LIMIT, what));
        } else if self.keys.are_due(now) {
            match self.keys.ask() {
                Ok(question) => self.control.push_back(question),
                // Without random numbers, no keys can be exchanged and no connection can be made.
                Err(_) => {
                    let what = "no keys can be made";
                    self.start_close(now, CloseReason::local(CloseCode::INTERNAL, what));
                }
            }
        }
    }

    pub(super) fn on_rekey(
        &mut self,
        now: Time,
        epoch: u64,
        message: &RekeyMessage,
    ) -> Result<(), Broken> {
        let what = "a key exchange out of turn, or not by the peer";
        let broken = |_| Broken { code: CloseCode::PROTOCOL_VIOLATION, what };
        let reply = self.keys.on_message(now, epoch, message).map_err(broken)?;
        self.control.extend(reply);
        Ok(())
    }

    /// Keeps the previous key after the peer has switched to new keys, so that its packets under
    /// the old ones are opened for three more timeouts.
    pub(super) fn keep_previous_key(&mut self) {
        let longest = self.paths.iter().map(|path| path.base_timeout().base).max();
        self.keys.keep_previous(self.last_received + longest.unwrap_or(Duration::from_secs(1)) * 3);
    }
}
