//! Body of the fuzz target for keys, and seeds for it; see `fuzz/README.md`.

use super::keys::SecretKey;
use anabranch_core::crypto::{KEY_TEXT_LEN as TEXT_LEN, PublicKey};

/// Reads the text of a key file. Checks that a text parses as a secret key exactly if it parses as
/// a public key, and that both are written as they were read, without blank space around them.
pub fn keys(data: &[u8]) {
    let Ok(text) = core::str::from_utf8(data) else { return };
    match (text.parse::<SecretKey>(), text.parse::<PublicKey>()) {
        (Ok(secret), Ok(public)) => {
            assert_eq!(*secret.to_base64(), text.trim());
            assert_eq!(public.to_string(), text.trim());
            assert_eq!(secret.as_bytes(), &public.0);
        }
        (Err(secret), Err(public)) => assert_eq!(secret, public),
        both => panic!("{both:?}"),
    }
}

/// Inputs for [`keys`].
pub fn key_seeds() -> Vec<Vec<u8>> {
    let key = SecretKey::from_bytes([0xa5; 32]).to_base64();
    let zero = "A".repeat(TEXT_LEN - 1) + "=";
    let texts = [
        key.as_str(),
        &format!(" \r\n{}\n", key.as_str()),
        &zero,
        // Bits beyond the 32 bytes, no padding, too much of it, another alphabet, another length.
        &("A".repeat(TEXT_LEN - 2) + "B="),
        &"A".repeat(TEXT_LEN),
        &("A".repeat(TEXT_LEN - 2) + "=="),
        &("_".repeat(TEXT_LEN - 1) + "="),
        &"A".repeat(TEXT_LEN - 1),
        &"\u{e9}".repeat(TEXT_LEN / 2),
        "",
    ];
    texts.map(|text| text.as_bytes().to_vec()).into()
}
