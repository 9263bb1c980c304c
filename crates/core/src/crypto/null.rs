//! Cryptography without secrecy: messages and tags have their real lengths, but a checksum replaces
//! the authentication tag. It is for the simulator and for wasm, where packets cross no network.

use super::{
    Accepted, Crypto, CryptoError, InitiatorState, MASK_LEN, MacPurpose, Opener, PacketKeys,
    PublicKey, REKEY_LEN, Randomness, Rekey, RekeyMessage, ResponderState, Sealer, Session,
    TAG_LEN,
};
use anabranch_types::{PathId, Rng};

const EPHEMERAL_LEN: usize = 32;
const SEALED_KEY_LEN: usize = 48;

/// An identity whose "public key" is its name; see the module's documentation.
#[derive(Debug)]
pub struct NullCrypto {
    key: PublicKey,
    handshakes: u64,
    key_limit: u64,
    rng: Rng,
}

impl NullCrypto {
    /// The identity called `key`, whose first byte seeds its random numbers.
    pub fn new(key: [u8; 32]) -> Self {
        let seed = u64::from(key[0]);
        NullCrypto { key: PublicKey(key), handshakes: 0, key_limit: u64::MAX, rng: Rng::new(seed) }
    }

    /// This identity with other random numbers.
    pub fn with_random_numbers(self, rng: Rng) -> Self {
        NullCrypto { rng, ..self }
    }

    /// This identity with keys that are worn after `packets` packets, and seal no more than four times as many.
    pub fn with_key_limit(self, packets: u64) -> Self {
        NullCrypto { key_limit: packets, ..self }
    }
}

/// Hash over 8-byte words. Each word is folded in by a 128-bit product, so that a few flipped bits
/// cannot cancel out. The hash detects corruption, not forgery.
fn checksum(seed: u64, data: &[u8]) -> u64 {
    let mut hash = seed ^ 0x9e37_79b9_7f4a_7c15;
    let mut words = data.chunks_exact(8);
    for word in &mut words {
        hash = fold(hash, word.try_into().map_or(0, u64::from_le_bytes));
    }
    for byte in words.remainder() {
        hash = fold(hash, u64::from(*byte));
    }
    fold(hash, data.len() as u64)
}

/// An odd number with as many one bits as zero bits and no pattern.
const MULTIPLIER: u64 = 0x8bb8_4b93_962e_acc9;

fn fold(hash: u64, value: u64) -> u64 {
    let product = u128::from(hash ^ value) * u128::from(MULTIPLIER);
    product as u64 ^ (product >> 64) as u64
}

fn tag(seed: u64, data: &[u8]) -> [u8; TAG_LEN] {
    let mut out = [0; TAG_LEN];
    let first = checksum(seed, data);
    out[..8].copy_from_slice(&first.to_le_bytes());
    out[8..]
        .copy_from_slice(&first.rotate_left(32).wrapping_mul(0x2545_f491_4f6c_dd1d).to_le_bytes());
    out
}

impl Crypto for NullCrypto {
    fn public_key(&self) -> PublicKey {
        self.key
    }

    fn randomness(&mut self) -> Box<dyn Randomness> {
        Box::new(Reproducible(Rng::new(self.rng.next_u64())))
    }

    fn initiate(
        &mut self,
        peer: &PublicKey,
        payload: &[u8],
        message: &mut Vec<u8>,
    ) -> Result<Box<dyn InitiatorState>, CryptoError> {
        let start = message.len();
        self.handshakes += 1;
        let mut ephemeral = [0; EPHEMERAL_LEN];
        ephemeral[..8].copy_from_slice(&checksum(self.handshakes, &self.key.0).to_le_bytes());
        message.extend_from_slice(&ephemeral);
        message.extend_from_slice(&self.key.0);
        message.extend_from_slice(&tag(1, &self.key.0));
        message.extend_from_slice(payload);
        let (header, body) = message.split_at(start);
        let end = tag(checksum(checksum(2, &peer.0), header), body);
        message.extend_from_slice(&end);
        Ok(Box::new(NullInitiator { secret: checksum(3, &ephemeral), key_limit: self.key_limit }))
    }

    fn accept(&mut self, header: &[u8], message: &[u8]) -> Result<Accepted, CryptoError> {
        let body_len = message.len().checked_sub(TAG_LEN).ok_or(CryptoError)?;
        let (body, end) = message.split_at(body_len);
        if body.len() < EPHEMERAL_LEN + SEALED_KEY_LEN
            || *end != tag(checksum(checksum(2, &self.key.0), header), body)
        {
            return Err(CryptoError);
        }
        let (ephemeral, rest) = body.split_at(EPHEMERAL_LEN);
        let (sealed, payload) = rest.split_at(SEALED_KEY_LEN);
        let peer = PublicKey(sealed[..32].try_into().map_err(|_| CryptoError)?);
        let responder =
            Box::new(NullResponder { secret: checksum(3, ephemeral), key_limit: self.key_limit });
        Ok(Accepted { peer, payload: payload.to_vec(), responder })
    }

    fn mac(&self, purpose: MacPurpose<'_>, data: &[u8]) -> [u8; 16] {
        match purpose {
            MacPurpose::Mac1(key) => tag(checksum(11, &key.0), data),
            MacPurpose::Mac2(cookie) => tag(checksum(12, cookie), data),
            MacPurpose::Cookie(secret) => tag(checksum(13, secret), data),
        }
    }

    fn seal_cookie(&self, cookie: &[u8; 16], nonce: &[u8; 24], mac1: &[u8; 16]) -> [u8; 32] {
        let mut out = [0; 32];
        out[..16].copy_from_slice(cookie);
        out[16..].copy_from_slice(&tag(checksum(checksum(14, nonce), mac1), cookie));
        out
    }

    fn open_cookie(
        &self,
        _peer: &PublicKey,
        sealed: &[u8; 32],
        nonce: &[u8; 24],
        mac1: &[u8; 16],
    ) -> Result<[u8; 16], CryptoError> {
        let cookie: [u8; 16] = sealed[..16].try_into().map_err(|_| CryptoError)?;
        if sealed[16..] == tag(checksum(checksum(14, nonce), mac1), &cookie) {
            Ok(cookie)
        } else {
            Err(CryptoError)
        }
    }
}

/// Random numbers that a seed reproduces, and that can be predicted from earlier ones.
#[derive(Debug)]
pub struct Reproducible(pub Rng);

impl Randomness for Reproducible {
    fn fill(&mut self, out: &mut [u8]) {
        self.0.fill(out);
    }
}

#[derive(Debug)]
struct NullInitiator {
    secret: u64,
    key_limit: u64,
}

impl InitiatorState for NullInitiator {
    fn finish(&mut self, message: &[u8]) -> Result<(Vec<u8>, Session), CryptoError> {
        let body_len = message.len().checked_sub(TAG_LEN).ok_or(CryptoError)?;
        let (body, end) = message.split_at(body_len);
        if body.len() < EPHEMERAL_LEN || *end != tag(self.secret, body) {
            return Err(CryptoError);
        }
        Ok((body[EPHEMERAL_LEN..].to_vec(), session(self.secret, true, self.key_limit)))
    }
}

#[derive(Debug)]
struct NullResponder {
    secret: u64,
    key_limit: u64,
}

impl ResponderState for NullResponder {
    fn respond(
        self: Box<Self>,
        payload: &[u8],
        message: &mut Vec<u8>,
    ) -> Result<Session, CryptoError> {
        let start = message.len();
        message.extend_from_slice(&[0; EPHEMERAL_LEN]);
        message.extend_from_slice(payload);
        let end = tag(self.secret, &message[start..]);
        message.extend_from_slice(&end);
        Ok(session(self.secret, false, self.key_limit))
    }
}

fn session(secret: u64, initiator: bool, limit: u64) -> Session {
    let rekey = NullRekey { secret, initiator, limit, asked: None };
    Session { keys: rekey.packet_keys(), rekey: Box::new(rekey) }
}

/// Derives each secret from the previous one and the messages of the exchange.
#[derive(Debug)]
struct NullRekey {
    secret: u64,
    initiator: bool,
    limit: u64,
    asked: Option<RekeyMessage>,
}

impl NullRekey {
    fn packet_keys(&self) -> PacketKeys {
        let (ours, theirs) = if self.initiator { (1, 2) } else { (2, 1) };
        let key = |direction: u64| {
            let secret = self.secret.wrapping_mul(direction);
            NullKey { secret, limit: self.limit, packets: 0 }
        };
        PacketKeys { sealer: Box::new(key(ours)), opener: Box::new(key(theirs)) }
    }

    /// A message that only a holder of the secret can write.
    fn message(&self, purpose: u64) -> RekeyMessage {
        let mut message = [0; REKEY_LEN];
        let (body, end) = message.split_at_mut(EPHEMERAL_LEN);
        body[..8].copy_from_slice(&checksum(self.secret, &purpose.to_le_bytes()).to_le_bytes());
        end.copy_from_slice(&tag(self.secret, body));
        message
    }

    /// The keys that result from an exchange of these two messages.
    fn renew(&mut self, asked: &RekeyMessage, answer: &RekeyMessage) -> PacketKeys {
        self.secret = checksum(checksum(self.secret, asked), answer);
        self.packet_keys()
    }
}

impl Rekey for NullRekey {
    fn ask(&mut self) -> Result<RekeyMessage, CryptoError> {
        let message = self.message(4);
        self.asked = Some(message);
        Ok(message)
    }

    fn answer(
        &mut self,
        message: &RekeyMessage,
    ) -> Result<(RekeyMessage, PacketKeys), CryptoError> {
        if *message != self.message(4) {
            return Err(CryptoError);
        }
        let answer = self.message(5);
        Ok((answer, self.renew(message, &answer)))
    }

    fn finish(&mut self, message: &RekeyMessage) -> Result<PacketKeys, CryptoError> {
        let asked = self.asked.filter(|_| *message == self.message(5)).ok_or(CryptoError)?;
        self.asked = None;
        Ok(self.renew(&asked, message))
    }
}

#[derive(Debug)]
struct NullKey {
    secret: u64,
    /// Packets after which the key is worn.
    limit: u64,
    /// Packets sealed, or opened.
    packets: u64,
}

impl NullKey {
    fn seed(&self, path: PathId, number: u64) -> u64 {
        // The bits are spread, so that damage to the header does not cancel out with the path and
        // number read from it.
        let place = u64::from(path.0) << 8;
        self.secret
            ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
            ^ place.wrapping_mul(0xc2b2_ae3d_27d4_eb4f)
    }
}

impl Sealer for NullKey {
    fn seal(&mut self, path: PathId, number: u64, packet: &mut [u8], _header_len: usize) {
        let Some(end) = packet.len().checked_sub(TAG_LEN) else { return };
        let value = tag(self.seed(path, number), &packet[..end]);
        packet[end..].copy_from_slice(&value);
        self.packets += 1;
    }

    fn masks(&self, _samples: &[[u8; TAG_LEN]], masks: &mut [[u8; MASK_LEN]]) {
        masks.fill([0; MASK_LEN]);
    }

    fn remaining(&self) -> u64 {
        self.limit.saturating_mul(4).saturating_sub(self.packets)
    }

    fn is_worn(&self) -> bool {
        self.packets >= self.limit
    }
}

impl Opener for NullKey {
    fn mask(&self, _sample: &[u8; TAG_LEN]) -> [u8; MASK_LEN] {
        [0; MASK_LEN]
    }

    fn open(
        &mut self,
        path: PathId,
        number: u64,
        packet: &mut [u8],
        header_len: usize,
    ) -> Result<usize, CryptoError> {
        let end = packet.len().checked_sub(TAG_LEN).ok_or(CryptoError)?;
        if end < header_len || packet[end..] != tag(self.seed(path, number), &packet[..end]) {
            return Err(CryptoError);
        }
        self.packets += 1;
        Ok(end)
    }

    fn is_worn(&self) -> bool {
        self.packets >= self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Multiplication alone would miss a flip of the highest bit of a word together with a bit of
    /// the next word.
    #[test]
    fn no_pair_of_flipped_bits_in_adjacent_words_passes() {
        let data: Vec<u8> = (0..48).map(|n: u8| n.wrapping_mul(37)).collect();
        let expected = checksum(7, &data);
        for first in 0..64 * 6 {
            for second in first + 1..64 * 6 {
                let mut damaged = data.clone();
                for bit in [first, second] {
                    damaged[bit / 8] ^= 1 << (bit % 8);
                }
                assert_ne!(checksum(7, &damaged), expected, "bits {first} and {second}");
            }
        }
    }
}
