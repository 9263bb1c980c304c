//! The key schedule: what every key is derived from.
//!
//! Every Noise handshake of a connection, the first as well as those that renew its keys, gives one secret per direction.
//! The packet key of that direction is derived from it. The header-protection key is derived from the secret of the first
//! handshake and is not renewed. Derivation is HKDF-Expand with SHA-256 (RFC 5869 §2.3).

use anabranch_core::crypto::CryptoError;
use ring::hkdf;
use zeroize::Zeroizing;

/// Bytes of every secret and key.
pub(super) const KEY_LEN: usize = 32;

/// One direction's secret of one epoch. Erased from memory when dropped; boxed, since Rust moves values by copying them
/// and leaves the old copy as it is.
pub(super) struct Secret(Box<Zeroizing<[u8; KEY_LEN]>>);

impl Secret {
    pub(super) fn new(bytes: &[u8; KEY_LEN]) -> Self {
        let mut secret = Secret(Box::default());
        secret.0.copy_from_slice(bytes);
        secret
    }

    #[cfg(test)]
    pub(super) fn as_bytes(&self) -> &[u8; KEY_LEN] {
        &self.0
    }

    /// The key of the packets.
    pub(super) fn packet_key(&self) -> Result<Box<Zeroizing<[u8; KEY_LEN]>>, CryptoError> {
        self.expand(b"packet")
    }

    /// The header-protection key, if this is the first handshake's secret.
    pub(super) fn header_key(&self) -> Result<Box<Zeroizing<[u8; KEY_LEN]>>, CryptoError> {
        self.expand(b"header")
    }

    fn expand(&self, label: &[u8]) -> Result<Box<Zeroizing<[u8; KEY_LEN]>>, CryptoError> {
        let label = labelled(label);
        let info = [label.as_slice()];
        let prk = hkdf::Prk::new_less_safe(hkdf::HKDF_SHA256, self.0.as_slice());
        let okm = prk.expand(&info, hkdf::HKDF_SHA256).map_err(|_| CryptoError)?;
        let mut out = Box::new(Zeroizing::new([0; KEY_LEN]));
        okm.fill(out.as_mut_slice()).map_err(|_| CryptoError)?;
        #[cfg(test)]
        super::tests::erasure::learn("key of packets or headers", out.as_slice());
        Ok(out)
    }
}

/// `label` under the name of the protocol and its wire version.
pub(super) fn labelled(label: &[u8]) -> Vec<u8> {
    [b"anabranch 0 ".as_slice(), label].concat()
}
