//! Tickets: one line with everything that a sender and a receiver without keys need for one transfer.
//!
//! The maker of a ticket listens under a key pair made for this ticket, and permits one peer: the holder of the key
//! that is derived from the ticket's secret. Without the ticket nobody knows the public key, and without the public key
//! nobody can compute the first MAC of a handshake. So others get no answer, and no Diffie–Hellman is computed for them
//! (`docs/spec/wire-0.md`, Initiation).

use super::frame::Role;
use anabranch::{PresharedKey, PublicKey, SecretKey};
use base64::engine::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom, SystemRandom};
use ring::{digest, hmac};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use zeroize::Zeroizing;

/// How a ticket's text begins; the digit is the version.
pub const PREFIX: &str = "anabranch1";
/// Addresses in a ticket at most.
pub const MAX_ADDRESSES: usize = 16;

/// Beginning of the text in every version.
const FAMILY: &str = "anabranch";
/// Longest text that is looked at, bytes; the longest ticket is shorter.
const MAX_TEXT: usize = 1024;
const SECRET_LEN: usize = 16;
const CHECK_LEN: usize = 4;
const V4: u8 = 4;
const V6: u8 = 6;

/// An invitation to one transfer. Anyone who has it can take the place of its rightful holder.
#[derive(Clone, PartialEq, Eq)]
pub struct Ticket {
    /// The maker's role: a taker's ticket is for sending to the taker.
    pub role: Role,
    /// The maker's public key.
    pub peer: PublicKey,
    /// When the ticket expires, seconds since 1970 by the maker's clock. The maker enforces it.
    pub expires: u64,
    /// Where the maker listens, best first; at least one, at most [`MAX_ADDRESSES`].
    pub addresses: Vec<SocketAddr>,
    secret: Secret,
}

/// Boxed, since a move would leave a copy of the bytes behind.
#[derive(Clone, PartialEq, Eq)]
struct Secret(Box<Zeroizing<[u8; SECRET_LEN]>>);

impl From<[u8; SECRET_LEN]> for Secret {
    fn from(bytes: [u8; SECRET_LEN]) -> Self {
        Secret(Box::new(Zeroizing::new(bytes)))
    }
}

/// Why a text is no ticket, or one cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TicketError {
    /// The text does not begin with the prefix of tickets.
    #[error("a ticket begins with {PREFIX}")]
    Prefix,
    /// The ticket is of another version.
    #[error(
        "the ticket does not begin with {PREFIX}, so another version made it; use the same version on both machines"
    )]
    Version,
    /// The ticket is not complete, or was changed.
    #[error("the ticket was not copied completely")]
    Damaged,
    /// The checksum holds, but the contents make no sense.
    #[error("the ticket has impossible contents")]
    Contents,
    /// There is no address to put into it, or there are too many.
    #[error("a ticket needs from 1 to {MAX_ADDRESSES} addresses")]
    Addresses,
    /// The system has no randomness to give.
    #[error("the system gives no random numbers")]
    Randomness,
}

impl Ticket {
    /// A ticket with a new secret, for the holder of `peer`'s secret key to hand out.
    ///
    /// # Errors
    /// If there are no addresses or too many, or the system gives no random numbers.
    pub fn new(
        role: Role,
        peer: PublicKey,
        expires: u64,
        addresses: Vec<SocketAddr>,
    ) -> Result<Self, TicketError> {
        if !(1..=MAX_ADDRESSES).contains(&addresses.len()) {
            return Err(TicketError::Addresses);
        }
        let mut secret = Secret::from([0; SECRET_LEN]);
        SystemRandom::new().fill(secret.0.as_mut_slice()).map_err(|_| TicketError::Randomness)?;
        Ok(Ticket { role, peer, expires, addresses, secret })
    }

    /// The key that its holder connects with, and the only one that its maker permits.
    pub fn holder(&self) -> SecretKey {
        SecretKey::from_bytes(self.derive(b"anabranch ticket 1 holder"))
    }

    /// The secret that its maker and its holder share beside their keys. If X25519 is broken one
    /// day, the holder's key can be found, but not the ticket's secret and not this one.
    pub fn preshared(&self) -> PresharedKey {
        PresharedKey::from_bytes(self.derive(b"anabranch ticket 1 preshared"))
    }

    fn derive(&self, label: &[u8]) -> [u8; 32] {
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, label), self.secret.0.as_slice());
        tag.as_ref().first_chunk().copied().unwrap_or_default()
    }

    /// The ticket's text: one word of letters, digits, `-` and `_`. As secret as the ticket.
    pub fn to_text(&self) -> Zeroizing<String> {
        // Buffers that grew would leave copies behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(MAX_TEXT));
        bytes.push(self.role as u8);
        bytes.extend_from_slice(&self.peer.0);
        bytes.extend_from_slice(self.secret.0.as_slice());
        bytes.extend_from_slice(&self.expires.to_be_bytes());
        for address in &self.addresses {
            match address.ip() {
                IpAddr::V4(ip) => {
                    bytes.push(V4);
                    bytes.extend_from_slice(&ip.octets());
                }
                IpAddr::V6(ip) => {
                    bytes.push(V6);
                    bytes.extend_from_slice(&ip.octets());
                }
            }
            bytes.extend_from_slice(&address.port().to_be_bytes());
        }
        let check = checksum(&bytes);
        bytes.extend_from_slice(&check);
        let mut text = Zeroizing::new(String::with_capacity(MAX_TEXT));
        text.push_str(PREFIX);
        URL_SAFE_NO_PAD.encode_string(bytes.as_slice(), &mut text);
        text
    }

    /// Whether `text` is meant to be a ticket, of whatever version.
    pub fn is_meant(text: &str) -> bool {
        let rest = text.trim().strip_prefix(FAMILY);
        rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()) && rest.len() > 40)
    }

    /// Reads a ticket's text; blank space in and around it, as from a wrapped line, is ignored.
    ///
    /// # Errors
    /// [`TicketError`], if it is not exactly what [`Ticket::to_text`] writes.
    pub fn parse(text: &str) -> Result<Self, TicketError> {
        if text.len() > MAX_TEXT {
            return Err(TicketError::Damaged);
        }
        // A text that grew would leave copies behind.
        let mut joined = Zeroizing::new(String::with_capacity(text.len()));
        joined.extend(text.split_whitespace());
        let Some(encoded) = joined.strip_prefix(PREFIX) else {
            let other = joined.strip_prefix(FAMILY);
            let versioned = other.is_some_and(|o| o.starts_with(|c: char| c.is_ascii_digit()));
            return Err(if versioned { TicketError::Version } else { TicketError::Prefix });
        };
        let bytes = URL_SAFE_NO_PAD.decode(encoded).map_err(|_| TicketError::Damaged)?;
        let bytes = Zeroizing::new(bytes);
        let (body, check) = bytes.split_last_chunk().ok_or(TicketError::Damaged)?;
        if checksum(body) != *check {
            return Err(TicketError::Damaged);
        }
        decode(body).ok_or(TicketError::Contents)
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket")
            .field("role", &self.role)
            .field("peer", &self.peer)
            .field("expires", &self.expires)
            .field("addresses", &self.addresses)
            .finish_non_exhaustive()
    }
}

fn decode(bytes: &[u8]) -> Option<Ticket> {
    let (role, rest) = bytes.split_first()?;
    let role = match role {
        0 => Role::Offers,
        1 => Role::Takes,
        _ => return None,
    };
    let (peer, rest) = rest.split_first_chunk()?;
    let (secret, rest) = rest.split_first_chunk()?;
    let (expires, mut rest) = rest.split_first_chunk()?;
    let mut addresses = Vec::new();
    while let Some((family, after)) = rest.split_first() {
        let (ip, after) = match *family {
            V4 => after.split_first_chunk::<4>().map(|(ip, after)| (IpAddr::from(*ip), after))?,
            V6 => after.split_first_chunk::<16>().map(|(ip, after)| (IpAddr::from(*ip), after))?,
            _ => return None,
        };
        let (port, after) = after.split_first_chunk()?;
        addresses.push(SocketAddr::new(ip, u16::from_be_bytes(*port)));
        rest = after;
    }
    let usable = |address: &SocketAddr| address.port() != 0 && !address.ip().is_unspecified();
    let fits = (1..=MAX_ADDRESSES).contains(&addresses.len()) && addresses.iter().all(usable);
    fits.then(|| Ticket {
        role,
        peer: PublicKey(*peer),
        expires: u64::from_be_bytes(*expires),
        addresses,
        secret: Secret::from(*secret),
    })
}

/// Detects a mistyped ticket; it is no protection against forgery.
fn checksum(bytes: &[u8]) -> [u8; CHECK_LEN] {
    let mut context = digest::Context::new(&digest::SHA256);
    context.update(FAMILY.as_bytes());
    context.update(bytes);
    context.finish().as_ref().first_chunk().copied().unwrap_or_default()
}
