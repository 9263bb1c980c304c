//! The keys of a connection: every packet is sealed and opened here.

use anabranch_types::{PathId, Time};

use crate::crypto::{MASK_LEN, Session, TAG_LEN};
use crate::wire::header;
use crate::wire::{ConnectionId, DataHeader, HEADER_LEN, Writer};

/// Headers masked together: as many as the cipher's instructions keep under way.
const MASKED_AT_ONCE: usize = 8;

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

    /// Packets that the present key may still seal, at least 1.
    pub(super) fn remaining(&self) -> u64 {
        self.session.sealer.remaining()
    }

    /// Puts headers before the frames of the packets in `train`, which have `segment` bytes each but for the
    /// last, and numbers from `first` on; seals them, with the tag in the last bytes, and masks the headers.
    /// There must be no more of them than [`remaining`](Self::remaining).
    #[expect(clippy::too_many_arguments, reason = "a train, and what its headers say")]
    pub(super) fn seal_train(
        &mut self,
        connection: ConnectionId,
        path: PathId,
        first: u64,
        train: &mut [u8],
        segment: usize,
    ) {
        let sealer = &mut self.session.sealer;
        let (epoch, path_bits) = (sealer.epoch(), path.0 as u8);
        for (packet, number) in train.chunks_mut(segment.max(1)).zip(first..) {
            let header = DataHeader { connection, epoch, path: path_bits, number: number as u32 };
            // The packet has room for the header: its length was reserved when the frames were written.
            let _ = header.encode(&mut Writer::new(packet));
            sealer.seal(path, number, packet, HEADER_LEN);
        }
        // Several blocks of the mask's cipher go through a core at once.
        for packets in train.chunks_mut(segment.max(1) * MASKED_AT_ONCE) {
            let mut samples = [[0; TAG_LEN]; MASKED_AT_ONCE];
            let mut count = 0;
            for (sample, packet) in samples.iter_mut().zip(packets.chunks(segment.max(1))) {
                *sample = header::sample(packet).copied().unwrap_or_default();
                count += 1;
            }
            let mut masks = [[0; MASK_LEN]; MASKED_AT_ONCE];
            sealer.masks(&samples[..count], &mut masks[..count]);
            for (packet, mask) in packets.chunks_mut(segment.max(1)).zip(masks) {
                header::protect(packet, mask);
            }
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
