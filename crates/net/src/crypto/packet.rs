//! Protection of data packets: AES-256-GCM, header protection, key epochs.

use super::schedule::Secret;
use aes::cipher::{BlockEncrypt, KeyInit};
use aes::{Aes256, Block};
use anabranch_core::crypto::{CryptoError, MASK_LEN, Opener, Sealer, TAG_LEN};
use anabranch_types::PathId;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

/// Packets that one key may seal (RFC 9001 §6.6, AEAD_AES_256_GCM).
const CONFIDENTIALITY_LIMIT: u64 = 1 << 23;
/// Forged packets that one direction may refuse before its keys are no longer trusted (RFC 9001 §6.6).
const INTEGRITY_LIMIT: u64 = 1 << 52;

/// Blocks of header masks that are encrypted side by side.
const AT_ONCE: usize = 8;

/// Protects what this side sends.
pub(super) struct PacketSealer {
    header: HeaderKey,
    secret: Secret,
    key: LessSafeKey,
    epoch: u8,
    sealed: u64,
}

impl PacketSealer {
    pub(super) fn new(secret: Secret) -> Result<Self, CryptoError> {
        let header = HeaderKey::new(&secret)?;
        let key = packet_key(&secret)?;
        Ok(PacketSealer { header, secret, key, epoch: 0, sealed: 0 })
    }

    fn try_seal(
        &mut self,
        nonce: Nonce,
        packet: &mut [u8],
        header_len: usize,
    ) -> Result<(), CryptoError> {
        if self.remaining() == 0 {
            return Err(CryptoError);
        }
        let (header, rest) = packet.split_at_mut_checked(header_len).ok_or(CryptoError)?;
        let (body, end) = rest.split_last_chunk_mut::<TAG_LEN>().ok_or(CryptoError)?;
        let tag = self
            .key
            .seal_in_place_separate_tag(nonce, Aad::from(&*header), body)
            .map_err(|_| CryptoError)?;
        end.copy_from_slice(tag.as_ref());
        self.sealed += 1;
        Ok(())
    }
}

impl Sealer for PacketSealer {
    /// Where sealing is impossible (no room for header and tag, or the key's limit is reached) the
    /// packet is zeroed instead: it must not leave in the clear.
    fn seal(&mut self, path: PathId, number: u64, packet: &mut [u8], header_len: usize) {
        if self.try_seal(nonce(path, number), packet, header_len).is_err() {
            packet.fill(0);
        }
    }

    fn masks(&self, samples: &[[u8; TAG_LEN]], masks: &mut [[u8; MASK_LEN]]) {
        self.header.masks(samples, masks);
    }

    fn epoch(&self) -> u8 {
        self.epoch
    }

    fn advance(&mut self) {
        let next = self.secret.next().and_then(|secret| Ok((packet_key(&secret)?, secret)));
        match next {
            Ok((key, secret)) => {
                (self.key, self.secret) = (key, secret);
                self.epoch = next_epoch(self.epoch);
                self.sealed = 0;
            }
            // Not reached with these fixed lengths; the old key may go on to its limit only.
            Err(CryptoError) => self.sealed = CONFIDENTIALITY_LIMIT,
        }
    }

    fn remaining(&self) -> u64 {
        CONFIDENTIALITY_LIMIT.saturating_sub(self.sealed)
    }
}

/// Opens what the peer sends, under the previous, current and next key.
pub(super) struct PacketOpener {
    header: HeaderKey,
    previous: Option<LessSafeKey>,
    current: LessSafeKey,
    next: LessSafeKey,
    next_secret: Secret,
    epoch: u8,
    refused: u64,
}

impl PacketOpener {
    pub(super) fn new(secret: Secret) -> Result<Self, CryptoError> {
        let next_secret = secret.next()?;
        Ok(PacketOpener {
            header: HeaderKey::new(&secret)?,
            previous: None,
            current: packet_key(&secret)?,
            next: packet_key(&next_secret)?,
            next_secret,
            epoch: 0,
            refused: 0,
        })
    }

    fn key(&self, epoch: u8) -> Option<&LessSafeKey> {
        if epoch == self.epoch {
            Some(&self.current)
        } else if epoch == next_epoch(self.epoch) {
            Some(&self.next)
        } else if next_epoch(epoch) == self.epoch {
            self.previous.as_ref()
        } else {
            None
        }
    }

    /// Makes the next epoch the current one.
    fn advance(&mut self) -> Result<(), CryptoError> {
        let secret = self.next_secret.next()?;
        let next = packet_key(&secret)?;
        let current = core::mem::replace(&mut self.next, next);
        self.previous = Some(core::mem::replace(&mut self.current, current));
        self.next_secret = secret;
        self.epoch = next_epoch(self.epoch);
        Ok(())
    }
}

impl Opener for PacketOpener {
    fn mask(&self, sample: &[u8; TAG_LEN]) -> [u8; MASK_LEN] {
        self.header.mask(sample)
    }

    fn open(
        &mut self,
        epoch: u8,
        path: PathId,
        number: u64,
        packet: &mut [u8],
        header_len: usize,
    ) -> Result<usize, CryptoError> {
        let end = packet.len().checked_sub(TAG_LEN).ok_or(CryptoError)?;
        let (header, body) = packet.split_at_mut_checked(header_len).ok_or(CryptoError)?;
        if end < header_len || self.refused >= INTEGRITY_LIMIT {
            return Err(CryptoError);
        }
        let key = self.key(epoch).ok_or(CryptoError)?;
        if key.open_in_place(nonce(path, number), Aad::from(&*header), body).is_err() {
            self.refused += 1;
            return Err(CryptoError);
        }
        if epoch == next_epoch(self.epoch) {
            self.advance()?;
        }
        Ok(end)
    }

    fn epoch(&self) -> u8 {
        self.epoch
    }

    fn discard_old(&mut self) {
        self.previous = None;
    }
}

/// Computes masks with AES-256 on single blocks, as RFC 9001 §5.4.3 does, but of six bytes.
struct HeaderKey(Aes256);

impl HeaderKey {
    fn new(secret: &Secret) -> Result<Self, CryptoError> {
        let key = secret.header_key()?;
        Aes256::new_from_slice(key.as_slice()).map(HeaderKey).map_err(|_| CryptoError)
    }

    fn mask(&self, sample: &[u8; TAG_LEN]) -> [u8; MASK_LEN] {
        let mut mask = [[0; MASK_LEN]];
        self.masks(&[*sample], &mut mask);
        mask[0]
    }

    /// Several blocks are encrypted side by side, which takes little longer than one.
    fn masks(&self, samples: &[[u8; TAG_LEN]], masks: &mut [[u8; MASK_LEN]]) {
        let several = samples.chunks(AT_ONCE).zip(masks.chunks_mut(AT_ONCE));
        for (samples, masks) in several {
            let mut blocks = [Block::default(); AT_ONCE];
            for (block, sample) in blocks.iter_mut().zip(samples) {
                *block = (*sample).into();
            }
            self.0.encrypt_blocks(&mut blocks[..samples.len()]);
            for (mask, block) in masks.iter_mut().zip(&blocks) {
                mask.copy_from_slice(&block[..MASK_LEN]);
            }
        }
    }
}

impl core::fmt::Debug for PacketSealer {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("PacketSealer")
            .field("epoch", &self.epoch)
            .field("sealed", &self.sealed)
            .finish_non_exhaustive()
    }
}

impl core::fmt::Debug for PacketOpener {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("PacketOpener")
            .field("epoch", &self.epoch)
            .field("refused", &self.refused)
            .finish_non_exhaustive()
    }
}

fn packet_key(secret: &Secret) -> Result<LessSafeKey, CryptoError> {
    let bytes = secret.packet_key()?;
    let key = UnboundKey::new(&AES_256_GCM, bytes.as_slice()).map_err(|_| CryptoError)?;
    Ok(LessSafeKey::new(key))
}

/// Path, then packet number: unique under one key as long as no path repeats a number.
fn nonce(path: PathId, number: u64) -> Nonce {
    let mut bytes = [0; NONCE_LEN];
    bytes[..4].copy_from_slice(&path.0.to_be_bytes());
    bytes[4..].copy_from_slice(&number.to_be_bytes());
    Nonce::assume_unique_for_key(bytes)
}

fn next_epoch(epoch: u8) -> u8 {
    (epoch + 1) & 3
}
