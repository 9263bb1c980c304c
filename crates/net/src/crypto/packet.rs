//! Protection of data packets: AES-256-GCM and header protection.

use super::schedule::{KEY_LEN, Secret};
use super::stack;
use aes::cipher::{BlockEncrypt, KeyInit};
use aes::{Aes256, Block};
use anabranch_core::crypto::{CryptoError, MASK_LEN, Opener, Sealer, TAG_LEN};
use anabranch_types::PathId;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use std::sync::Arc;

/// Blocks of 16 bytes that one key may seal: 2^23 packets of the longest kind that UDP carries, and 2^28 of those that
/// Ethernet does (RFC 9001 §6.6 and B.1.1).
const CONFIDENTIALITY_LIMIT: u64 = 1 << 35;
/// A new key is asked for after this key has sealed this many packets: half of the 2^23 that it may seal.
const WORN_SEALED: u64 = 1 << 22;
/// A new key is asked for after this key has opened this many packets. The peer has sealed more, since some were lost.
const WORN_OPENED: u64 = 1 << 21;
/// Forged packets that one direction may refuse before its keys are no longer trusted (RFC 9001 §6.6).
const INTEGRITY_LIMIT: u64 = 1 << 52;

/// Blocks of header masks that are encrypted side by side.
const AT_ONCE: usize = 8;

/// Protects what this side sends.
pub(super) struct PacketSealer {
    header: Arc<HeaderKey>,
    key: PacketKey,
    packets: u64,
    blocks: u64,
}

impl PacketSealer {
    pub(super) fn new(secret: &Secret, header: Arc<HeaderKey>) -> Result<Self, CryptoError> {
        Ok(PacketSealer { header, key: PacketKey::new(secret)?, packets: 0, blocks: 0 })
    }

    fn try_seal(
        &mut self,
        nonce: Nonce,
        packet: &mut [u8],
        header_len: usize,
    ) -> Result<(), CryptoError> {
        let blocks = blocks(packet.len());
        if self.blocks + blocks > CONFIDENTIALITY_LIMIT {
            return Err(CryptoError);
        }
        let (header, rest) = packet.split_at_mut_checked(header_len).ok_or(CryptoError)?;
        let (body, end) = rest.split_last_chunk_mut::<TAG_LEN>().ok_or(CryptoError)?;
        let tag = self
            .key
            .0
            .seal_in_place_separate_tag(nonce, Aad::from(&*header), body)
            .map_err(|_| CryptoError)?;
        end.copy_from_slice(tag.as_ref());
        self.packets += 1;
        self.blocks += blocks;
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

    fn remaining(&self) -> u64 {
        (CONFIDENTIALITY_LIMIT - self.blocks) / blocks(usize::from(u16::MAX))
    }

    fn is_worn(&self) -> bool {
        self.packets >= WORN_SEALED
    }
}

/// Decrypts and authenticates the peer's packets.
pub(super) struct PacketOpener {
    header: Arc<HeaderKey>,
    key: PacketKey,
    opened: u64,
    refused: u64,
}

impl PacketOpener {
    pub(super) fn new(secret: &Secret, header: Arc<HeaderKey>) -> Result<Self, CryptoError> {
        Ok(PacketOpener { header, key: PacketKey::new(secret)?, opened: 0, refused: 0 })
    }
}

impl Opener for PacketOpener {
    fn mask(&self, sample: &[u8; TAG_LEN]) -> [u8; MASK_LEN] {
        self.header.mask(sample)
    }

    fn open(
        &mut self,
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
        if self.key.0.open_in_place(nonce(path, number), Aad::from(&*header), body).is_err() {
            self.refused += 1;
            return Err(CryptoError);
        }
        self.opened += 1;
        Ok(end)
    }

    fn is_worn(&self) -> bool {
        self.opened >= WORN_OPENED
    }
}

/// Computes masks with AES-256 on single blocks, as RFC 9001 §5.4.3 does, but of six bytes.
pub(super) struct HeaderKey(Aes256);

impl HeaderKey {
    /// The key of a direction, from the first handshake's secret.
    pub(super) fn new(secret: &Secret) -> Result<Arc<Self>, CryptoError> {
        let key = secret.header_key()?;
        stack::wash();
        HeaderKey::on_washed_stack(&key)
    }

    /// `Aes256` has room for the largest of several implementations. If the one in use needs less, moving it to the
    /// heap copies what lay on the stack before, and nothing erases that.
    #[inline(never)]
    fn on_washed_stack(key: &[u8; KEY_LEN]) -> Result<Arc<Self>, CryptoError> {
        let key = Aes256::new_from_slice(key).map_err(|_| CryptoError)?;
        Ok(Arc::new(HeaderKey(key)))
    }

    fn mask(&self, sample: &[u8; TAG_LEN]) -> [u8; MASK_LEN] {
        let mut mask = [[0; MASK_LEN]];
        self.masks(&[*sample], &mut mask);
        mask[0]
    }

    /// Encrypts several blocks side by side, which takes little longer than one.
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
        f.debug_struct("PacketSealer").field("packets", &self.packets).finish_non_exhaustive()
    }
}

impl core::fmt::Debug for PacketOpener {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("PacketOpener")
            .field("opened", &self.opened)
            .field("refused", &self.refused)
            .finish_non_exhaustive()
    }
}

/// A key of packets. It is overwritten when dropped, since `ring` does not erase its keys.
struct PacketKey(LessSafeKey);

impl PacketKey {
    fn new(secret: &Secret) -> Result<Self, CryptoError> {
        let bytes = secret.packet_key()?;
        key_of(&bytes).map(PacketKey)
    }
}

impl Drop for PacketKey {
    fn drop(&mut self) {
        if let Ok(zero) = key_of(&[0; KEY_LEN]) {
            self.0 = zero;
            // Makes the key appear to be read, so that the compiler must not remove the overwriting.
            core::hint::black_box(&self.0);
        }
    }
}

fn key_of(bytes: &[u8; KEY_LEN]) -> Result<LessSafeKey, CryptoError> {
    UnboundKey::new(&AES_256_GCM, bytes).map(LessSafeKey::new).map_err(|_| CryptoError)
}

/// The most cipher blocks that a packet of `len` bytes takes, header and tag included: header and body are each padded to
/// whole blocks, and the tag is encrypted as well.
const fn blocks(len: usize) -> u64 {
    len as u64 / 16 + 3
}

/// Path, then packet number: unique under one key as long as no path repeats a number.
fn nonce(path: PathId, number: u64) -> Nonce {
    let mut bytes = [0; NONCE_LEN];
    bytes[..4].copy_from_slice(&path.0.to_be_bytes());
    bytes[4..].copy_from_slice(&number.to_be_bytes());
    Nonce::assume_unique_for_key(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_seals_no_more_than_its_limit() {
        let secret = Secret::new(&[7; KEY_LEN]);
        let header = HeaderKey::new(&secret).unwrap();
        let mut sealer = PacketSealer::new(&secret, header).unwrap();
        assert!((1 << 22..1 << 23).contains(&sealer.remaining()), "of the longest packets");
        let mut seal = |blocks| {
            sealer.blocks = blocks;
            let mut packet = [1; 100];
            sealer.seal(PathId(0), 0, &mut packet, 10);
            (sealer.remaining(), packet)
        };
        let (left, packet) = seal(CONFIDENTIALITY_LIMIT - blocks(100));
        assert_eq!(left, 0);
        assert_ne!(packet, [0; 100]);
        let (left, packet) = seal(CONFIDENTIALITY_LIMIT - blocks(100) + 1);
        assert_eq!((left, packet), (0, [0; 100]), "nothing leaves in the clear");
    }
}
