//! The keys of a connection: every packet is sealed and opened here.

use anabranch_types::{PathId, Time};

use crate::crypto::Session;
use crate::wire::header;
use crate::wire::{ConnectionId, DataHeader, HEADER_LEN, Writer};

/// The keys of both directions.
#[derive(Debug)]
pub(super) struct Keys {
    session: Session,
    /// Until when the peer's key before its present one opens stragglers.
    old_until: Option<Time>,
}

impl Keys {
    pub(super) fn new(session: Session) -> Self {
        Keys { session, old_until: None }
    }

    /// Puts the header before the frames that are in `packet`, seals them, with the tag in the last bytes,
    /// and masks the header.
    pub(super) fn seal(
        &mut self,
        connection: ConnectionId,
        path: PathId,
        number: u64,
        packet: &mut [u8],
    ) {
        let sealer = &mut self.session.sealer;
        let header = DataHeader {
            connection,
            epoch: sealer.epoch(),
            path: path.0 as u8,
            number: number as u32,
        };
        // The packet has room for the header: its length was reserved when the frames were written.
        let _ = header.encode(&mut Writer::new(packet));
        sealer.seal(path, number, packet, HEADER_LEN);
        if let Some(sample) = header::sample(packet) {
            let mask = sealer.mask(sample);
            header::protect(packet, mask);
        }
        if sealer.remaining() == 0 {
            sealer.advance();
        }
    }

    /// Takes the mask off the header, and reads it. Nothing in it can be trusted yet.
    pub(super) fn unmask(&self, packet: &mut [u8]) -> Option<DataHeader> {
        let sample = *header::sample(packet)?;
        header::unprotect(packet, self.session.opener.mask(&sample));
        DataHeader::decode(packet).ok()
    }

    /// Authenticates and decrypts a packet of the key epoch `epoch`; returns where its frames end, and
    /// whether it is the first under a new key of the peer.
    pub(super) fn open(
        &mut self,
        epoch: u8,
        path: PathId,
        number: u64,
        packet: &mut [u8],
    ) -> Option<(usize, bool)> {
        let Session { sealer, opener, .. } = &mut self.session;
        let before = opener.epoch();
        let end = opener.open(epoch, path, number, packet, HEADER_LEN).ok()?;
        let moved = opener.epoch() != before;
        // The peer's new key is answered with one of this side's.
        if moved && sealer.epoch() == before {
            sealer.advance();
        }
        Some((end, moved))
    }

    /// The peer's old key opens packets until this time.
    pub(super) fn keep_old(&mut self, until: Time) {
        self.old_until = Some(until);
    }

    /// Forgets the peer's old key when its time has come.
    pub(super) fn discard_old(&mut self, now: Time) {
        if self.old_until.take_if(|until| *until <= now).is_some() {
            self.session.opener.discard_old();
        }
    }
}
