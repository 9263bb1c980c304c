//! Cookies, which prove that the sender of an Initiation receives at its source address.

use super::message::{CookieReply, Initiation, MAC_LEN};
use super::same_mac;
use crate::crypto::{Crypto, MacPurpose, Randomness};
use anabranch_types::Time;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;

/// How long a secret is used to make cookies. It verifies them for the same time again.
const LIFETIME: Duration = Duration::from_secs(120);

/// Recipient of a cookie.
#[derive(Clone, Copy, Debug)]
pub(super) struct CookieFor<'a> {
    /// The address from which the recipient's message came.
    pub(super) remote: SocketAddr,
    /// The connection id under which its sender wants to receive.
    pub(super) receiver: u32,
    /// First MAC of the message.
    pub(super) mac1: &'a [u8; MAC_LEN],
}

/// The secrets from which cookies are computed, so that no cookie need be stored.
pub(super) struct CookieSecrets {
    current: [u8; 32],
    previous: Option<[u8; 32]>,
    made: Time,
    replies: u64,
    random: Box<dyn Randomness>,
}

impl CookieSecrets {
    pub(super) fn new(mut random: Box<dyn Randomness>, now: Time) -> Self {
        let mut current = [0; 32];
        random.fill(&mut current);
        CookieSecrets { current, previous: None, made: now, replies: 0, random }
    }

    /// Whether the message's second MAC proves its source address.
    pub(super) fn proves(
        &mut self,
        crypto: &dyn Crypto,
        now: Time,
        remote: SocketAddr,
        message: &Initiation<'_>,
    ) -> bool {
        if message.macs.mac2 == [0; MAC_LEN] {
            // The message has no cookie. A flood of such messages should cost as little as
            // possible.
            return false;
        }
        self.rotate(now);
        let address = address_bytes(remote);
        core::iter::once(&self.current).chain(&self.previous).any(|secret| {
            let cookie = crypto.mac(MacPurpose::Cookie(secret), &address);
            let expected = crypto.mac(MacPurpose::Mac2(&cookie), message.macs.before_mac2);
            same_mac(&expected, &message.macs.mac2)
        })
    }

    /// The cookie reply to a message.
    pub(super) fn reply(
        &mut self,
        crypto: &dyn Crypto,
        now: Time,
        to: CookieFor<'_>,
    ) -> CookieReply {
        self.rotate(now);
        let cookie = crypto.mac(MacPurpose::Cookie(&self.current), &address_bytes(to.remote));
        let nonce = self.nonce(crypto, to.mac1);
        let sealed = crypto.seal_cookie(&cookie, &nonce, to.mac1);
        CookieReply { receiver: to.receiver, nonce, sealed }
    }

    /// A nonce that never repeats. It is computed from the secret, which costs less than drawing
    /// random bytes.
    fn nonce(&mut self, crypto: &dyn Crypto, mac1: &[u8; MAC_LEN]) -> [u8; 24] {
        self.replies += 1;
        let mut input = [0; 8 + MAC_LEN];
        input[..8].copy_from_slice(&self.replies.to_be_bytes());
        input[8..].copy_from_slice(mac1);
        let mut nonce = [0; 24];
        nonce[..16].copy_from_slice(&crypto.mac(MacPurpose::Cookie(&self.current), &input));
        nonce[16..].copy_from_slice(&self.replies.to_be_bytes());
        nonce
    }

    fn rotate(&mut self, now: Time) {
        let age = now.since(self.made);
        if age < LIFETIME {
            return;
        }
        self.previous = (age < LIFETIME * 2).then_some(self.current);
        self.random.fill(&mut self.current);
        self.made = now;
    }
}

impl core::fmt::Debug for CookieSecrets {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("CookieSecrets").field("made", &self.made).finish_non_exhaustive()
    }
}

/// An address in 18 bytes: IPv6 (IPv4 mapped into it), then the port.
fn address_bytes(remote: SocketAddr) -> [u8; 18] {
    let ip = match remote.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    let mut out = [0; 18];
    out[..16].copy_from_slice(&ip.octets());
    out[16..].copy_from_slice(&remote.port().to_be_bytes());
    out
}
