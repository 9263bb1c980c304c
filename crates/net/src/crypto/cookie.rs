//! Encryption of cookies under the responder's public key: hides them from those who do not know it.

use super::schedule::labelled;
use anabranch_core::crypto::{CryptoError, PublicKey};
use ring::{aead, hkdf};
use zeroize::Zeroizing;

const COOKIE_LEN: usize = 16;

/// Seals and opens the cookies of one responder.
pub(super) struct CookieBox(hkdf::Prk);

impl CookieBox {
    pub(super) fn new(responder: &PublicKey) -> Self {
        let salt = hkdf::Salt::new(hkdf::HKDF_SHA256, &labelled(b"cookie reply"));
        CookieBox(salt.extract(&responder.0))
    }

    pub(super) fn seal(
        &self,
        cookie: &[u8; COOKIE_LEN],
        nonce: &[u8; 24],
        mac1: &[u8; 16],
    ) -> [u8; 32] {
        let mut out = [0; 32];
        let (body, end) = out.split_at_mut(COOKIE_LEN);
        body.copy_from_slice(cookie);
        let sealed = self.key(nonce).and_then(|key| {
            key.seal_in_place_separate_tag(zero_nonce(), aead::Aad::from(mac1), body)
                .map_err(|_| CryptoError)
        });
        match sealed {
            Ok(tag) => end.copy_from_slice(tag.as_ref()),
            // Unreachable with these fixed lengths; a cookie that does not open is the safe answer.
            Err(CryptoError) => out = [0; 32],
        }
        out
    }

    pub(super) fn open(
        &self,
        sealed: &[u8; 32],
        nonce: &[u8; 24],
        mac1: &[u8; 16],
    ) -> Result<[u8; COOKIE_LEN], CryptoError> {
        let mut bytes = *sealed;
        let key = self.key(nonce)?;
        let cookie = key
            .open_in_place(zero_nonce(), aead::Aad::from(mac1), &mut bytes)
            .map_err(|_| CryptoError)?;
        cookie.first_chunk().copied().ok_or(CryptoError)
    }

    /// The key for one nonce. Deriving a key from each 24-byte nonce makes up for the extended nonce that AES-GCM
    /// lacks, so the AEAD's own nonce can be zero.
    fn key(&self, nonce: &[u8; 24]) -> Result<aead::LessSafeKey, CryptoError> {
        let info = [nonce.as_slice()];
        let okm = self.0.expand(&info, &aead::AES_256_GCM).map_err(|_| CryptoError)?;
        let mut bytes = Zeroizing::new([0; 32]);
        okm.fill(bytes.as_mut_slice()).map_err(|_| CryptoError)?;
        let key = aead::UnboundKey::new(&aead::AES_256_GCM, bytes.as_slice());
        key.map(aead::LessSafeKey::new).map_err(|_| CryptoError)
    }
}

fn zero_nonce() -> aead::Nonce {
    aead::Nonce::assume_unique_for_key([0; aead::NONCE_LEN])
}
