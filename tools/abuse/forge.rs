//! First messages that no honest peer sends.

use anabranch::crypto::NoiseCrypto;
use anabranch::{PublicKey, SecretKey, TransportConfig};
use anabranch_core::crypto::Crypto;
use anabranch_core::handshake::message::{INITIATION, Initiation, MAC_LEN, VERSION, append_mac1};
use anabranch_types::Rng;

use crate::Failure;

/// Different messages made for a flood; sent repeatedly.
const POOL: u64 = 2000;

/// A kind of flood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Random bytes that begin like a first message.
    Noise,
    /// Initiations in order, under keys that are not permitted, all from one address.
    OneSource,
    /// Initiations as `OneSource`, from many addresses.
    ManySources,
    /// Initiations as `ManySources`, with cookies that the receiver never gave.
    FalseCookies,
    /// One initiation of the sender, captured, from many addresses.
    Replays,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 5] =
        [Kind::Noise, Kind::OneSource, Kind::ManySources, Kind::FalseCookies, Kind::Replays];

    /// The kind in a few words.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Noise => "random bytes, many sources",
            Kind::OneSource => "unknown keys, one source",
            Kind::ManySources => "unknown keys, many sources",
            Kind::FalseCookies => "unknown keys, false cookies",
            Kind::Replays => "replays, many sources",
        }
    }

    /// Number of addresses that the flood comes from.
    pub fn sources(self) -> usize {
        if self == Kind::OneSource { 1 } else { crate::attacker::SOURCES }
    }
}

/// Messages of a kind; `sender` is the key of the peer whose message is replayed.
pub fn messages(
    kind: Kind,
    receiver: &PublicKey,
    sender: &SecretKey,
) -> Result<Vec<Vec<u8>>, Failure> {
    let mut rng = Rng::new(wall_clock());
    if kind == Kind::Noise {
        return Ok((0..POOL).map(|_| noise(&mut rng)).collect());
    }
    if kind == Kind::Replays {
        return Ok(vec![initiation(sender.clone(), receiver, &mut rng, false)?]);
    }
    let with_cookie = kind == Kind::FalseCookies;
    (0..POOL).map(|_| initiation(SecretKey::generate()?, receiver, &mut rng, with_cookie)).collect()
}

fn noise(rng: &mut Rng) -> Vec<u8> {
    let mut bytes = vec![0; 200 + rng.below(200) as usize];
    rng.fill(&mut bytes);
    if let Some(start) = bytes.first_chunk_mut() {
        *start = [INITIATION, VERSION, 0, 0];
    }
    bytes
}

fn initiation(
    secret: SecretKey,
    receiver: &PublicKey,
    rng: &mut Rng,
    with_cookie: bool,
) -> Result<Vec<u8>, Failure> {
    let mut crypto = NoiseCrypto::new(secret)?;
    let mut payload = wall_clock().to_be_bytes().to_vec();
    payload.extend(TransportConfig::default().parameters("anabranch").encode());
    let mut bytes = Vec::new();
    Initiation::start(rng.next_u32(), &mut bytes);
    crypto.initiate(receiver, &payload, &mut bytes)?;
    append_mac1(&crypto, receiver, &mut bytes);
    let mut mac2 = [0; MAC_LEN];
    if with_cookie {
        rng.fill(&mut mac2);
    }
    bytes.extend_from_slice(&mac2);
    Ok(bytes)
}

/// Nanoseconds since 1970, as timestamps in messages are.
#[allow(clippy::disallowed_methods, reason = "an attack runs in real time")]
pub fn wall_clock() -> u64 {
    let now = std::time::SystemTime::now();
    now.duration_since(std::time::UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64)
}
