//! The key schedule: what every key is derived from.
//!
//! The handshake gives one secret per direction. Epoch n + 1's secret is derived from epoch n's, in
//! the manner of RFC 9001 §6.1, and epoch n's packet key from its secret; the header-protection key comes from
//! epoch 0's and never changes. Derivation is HKDF-Expand with SHA-256 (RFC 5869 §2.3).

use anabranch_core::crypto::CryptoError;
use ring::hkdf;
use zeroize::Zeroizing;

/// Bytes of every secret and key.
pub(super) const KEY_LEN: usize = 32;

/// One direction's secret of one epoch.
pub(super) struct Secret(Zeroizing<[u8; KEY_LEN]>);

impl Secret {
    pub(super) fn new(bytes: [u8; KEY_LEN]) -> Self {
        Secret(Zeroizing::new(bytes))
    }

    /// The secret of the next epoch.
    pub(super) fn next(&self) -> Result<Secret, CryptoError> {
        self.expand(b"next").map(Secret)
    }

    /// The key of this epoch's packets.
    pub(super) fn packet_key(&self) -> Result<Zeroizing<[u8; KEY_LEN]>, CryptoError> {
        self.expand(b"packet")
    }

    /// The header-protection key, if this is the secret of epoch 0.
    pub(super) fn header_key(&self) -> Result<Zeroizing<[u8; KEY_LEN]>, CryptoError> {
        self.expand(b"header")
    }

    fn expand(&self, label: &[u8]) -> Result<Zeroizing<[u8; KEY_LEN]>, CryptoError> {
        let label = labelled(label);
        let info = [label.as_slice()];
        let prk = hkdf::Prk::new_less_safe(hkdf::HKDF_SHA256, self.0.as_slice());
        let okm = prk.expand(&info, hkdf::HKDF_SHA256).map_err(|_| CryptoError)?;
        let mut out = Zeroizing::new([0; KEY_LEN]);
        okm.fill(out.as_mut_slice()).map_err(|_| CryptoError)?;
        Ok(out)
    }
}

/// `label` under the name of the protocol and its wire version.
pub(super) fn labelled(label: &[u8]) -> Vec<u8> {
    [b"anabranch 0 ".as_slice(), label].concat()
}
