use super::message::{
    self, CookieReply, Initiation, MAC_LEN, MAX_LEN, MessageError, Response, TIMESTAMP_LEN,
    append_mac1,
};
use super::{HandshakeError, same_mac};
use crate::crypto::{Crypto, InitiatorState, MacPurpose, PublicKey, Session};
use anabranch_types::{PathId, Rng, Time};
use core::time::Duration;
use std::collections::BTreeMap;

/// When an unanswered Initiation is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Wait after the first copy on a path; each later wait is twice the previous one.
    pub first: Duration,
    /// Longest wait.
    pub longest: Duration,
    /// Time after which the attempt has failed.
    pub give_up: Duration,
}

impl Default for Schedule {
    /// 200 ms doubling to 1 s, for 30 s. A message per second is little load, and with half of the
    /// messages lost in each direction, only every fourth is answered.
    fn default() -> Self {
        Schedule {
            first: Duration::from_millis(200),
            longest: Duration::from_secs(1),
            give_up: Duration::from_secs(30),
        }
    }
}

/// Contents of an Initiation.
#[derive(Clone, Copy, Debug)]
pub struct Opening<'a> {
    /// The responder's static key.
    pub peer: PublicKey,
    /// The connection id under which we want to receive.
    pub local_id: u32,
    /// Nanoseconds since 1970; must rise from one attempt of this static key to the next.
    pub timestamp: u64,
    /// Our encoded transport parameters.
    pub parameters: &'a [u8],
}

/// A finished handshake, as the initiator sees it.
#[derive(Debug)]
pub struct Established {
    /// The connection's keys.
    pub session: Session,
    /// The connection id under which the responder wants to receive.
    pub remote_id: u32,
    /// The responder's encoded transport parameters.
    pub parameters: Vec<u8>,
}

/// An attempt to connect: one Initiation, sent on every path until a copy is answered.
#[derive(Debug)]
pub struct Initiator {
    /// The message without its second MAC.
    message: Vec<u8>,
    mac1: [u8; MAC_LEN],
    peer: PublicKey,
    local_id: u32,
    initiator: Box<dyn InitiatorState>,
    paths: BTreeMap<PathId, PathState>,
    schedule: Schedule,
    deadline: Time,
    /// Spreads repetitions in time. The numbers may be predictable.
    rng: Rng,
}

#[derive(Debug)]
struct PathState {
    due: Time,
    wait: Duration,
    /// A cookie proves one address only, so every path has its own.
    cookie: Option<[u8; 16]>,
    /// Whether a copy was sent since the last cookie was accepted.
    cookie_expected: bool,
}

impl Initiator {
    /// Makes the Initiation. Paths are added by [`Initiator::add_path`].
    pub fn new(
        crypto: &mut dyn Crypto,
        opening: Opening<'_>,
        schedule: Schedule,
        now: Time,
    ) -> Result<Self, HandshakeError> {
        let mut payload = Vec::with_capacity(TIMESTAMP_LEN + opening.parameters.len());
        payload.extend_from_slice(&opening.timestamp.to_be_bytes());
        payload.extend_from_slice(opening.parameters);
        let mut bytes = Vec::with_capacity(MAX_LEN.min(256 + payload.len()));
        Initiation::start(opening.local_id, &mut bytes);
        let initiator = crypto.initiate(&opening.peer, &payload, &mut bytes)?;
        let mac1 = append_mac1(crypto, &opening.peer, &mut bytes);
        if bytes.len() + MAC_LEN > MAX_LEN {
            return Err(HandshakeError::TooLong);
        }
        Ok(Initiator {
            message: bytes,
            mac1,
            peer: opening.peer,
            local_id: opening.local_id,
            initiator,
            paths: BTreeMap::new(),
            schedule,
            deadline: now + schedule.give_up,
            rng: Rng::new(crypto.randomness().next_u64()),
        })
    }

    /// The connection id under which we want to receive.
    pub fn local_id(&self) -> u32 {
        self.local_id
    }

    /// The key that the responder must prove to hold.
    pub fn peer(&self) -> PublicKey {
        self.peer
    }

    /// Also sends on `path`, from `now` on. A path that is already known stays unchanged.
    pub fn add_path(&mut self, path: PathId, now: Time) {
        let wait = self.schedule.first;
        self.paths.entry(path).or_insert(PathState {
            due: now,
            wait,
            cookie: None,
            cookie_expected: false,
        });
    }

    /// Stops sending on `path`.
    pub fn remove_path(&mut self, path: PathId) {
        self.paths.remove(&path);
    }

    /// Appends the Initiation to `out` and returns true if `path` is due to send it.
    pub fn poll(
        &mut self,
        crypto: &dyn Crypto,
        path: PathId,
        now: Time,
        out: &mut Vec<u8>,
    ) -> bool {
        if self.has_expired(now) {
            return false;
        }
        let Some(state) = self.paths.get_mut(&path).filter(|state| state.due <= now) else {
            return false;
        };
        state.due = now + jittered(state.wait, &mut self.rng);
        state.wait = state.wait.saturating_mul(2).min(self.schedule.longest);
        state.cookie_expected = true;
        let mac2 = state
            .cookie
            .map_or([0; MAC_LEN], |cookie| crypto.mac(MacPurpose::Mac2(&cookie), &self.message));
        out.extend_from_slice(&self.message);
        out.extend_from_slice(&mac2);
        true
    }

    /// When a path is next due, or the attempt fails, whichever is earlier.
    pub fn next_timeout(&self) -> Time {
        self.paths.values().map(|state| state.due).fold(self.deadline, Time::min)
    }

    /// Whether the attempt has failed because no answer arrived.
    pub fn has_expired(&self, now: Time) -> bool {
        now >= self.deadline
    }

    /// Reads a Response. A forged or damaged Response is an error and changes nothing. After the
    /// first success, the attempt is over and should be dropped.
    pub fn on_response(
        &mut self,
        crypto: &dyn Crypto,
        bytes: &[u8],
    ) -> Result<Established, HandshakeError> {
        let response = Response::parse(bytes)?;
        if response.receiver != self.local_id {
            return Err(HandshakeError::WrongReceiver);
        }
        let own = crypto.public_key();
        let expected = crypto.mac(MacPurpose::Mac1(&own), response.macs.before_mac1);
        if !same_mac(&expected, &response.macs.mac1) {
            return Err(HandshakeError::Mac);
        }
        let (payload, session) = self.initiator.finish(response.noise)?;
        let (sender, parameters) =
            payload.split_first_chunk().ok_or(MessageError::Length(bytes.len()))?;
        let remote_id = u32::from_be_bytes(*sender);
        Ok(Established { session, remote_id, parameters: parameters.to_vec() })
    }

    /// Reads a Cookie reply that arrived on `path`, on which the message is then sent again at
    /// once. At most one cookie is accepted for each copy sent, so that a forger cannot make us
    /// send more often.
    pub fn on_cookie_reply(
        &mut self,
        crypto: &dyn Crypto,
        path: PathId,
        now: Time,
        bytes: &[u8],
    ) -> Result<(), HandshakeError> {
        let reply = CookieReply::parse(bytes)?;
        if reply.receiver != self.local_id {
            return Err(HandshakeError::WrongReceiver);
        }
        let state = self
            .paths
            .get_mut(&path)
            .filter(|state| state.cookie_expected)
            .ok_or(HandshakeError::UnexpectedCookie)?;
        let cookie = crypto.open_cookie(&self.peer, &reply.sealed, &reply.nonce, &self.mac1)?;
        state.cookie = Some(cookie);
        state.cookie_expected = false;
        state.due = state.due.min(now);
        Ok(())
    }

    /// Bytes of each copy.
    pub fn message_len(&self) -> usize {
        self.message.len() + message::MAC_LEN
    }
}

/// `wait` ±25 %, so that clients that were cut off together do not return together.
fn jittered(wait: Duration, rng: &mut Rng) -> Duration {
    let nanos = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
    Duration::from_nanos((nanos - nanos / 4).saturating_add(rng.below(nanos / 2)))
}
