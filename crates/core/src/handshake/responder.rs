use super::cookie::{CookieFor, CookieSecrets};
use super::message::{
    EPHEMERAL_LEN, Initiation, MAC_LEN, MAX_LEN, MessageError, Response, append_mac1,
};
use super::rate_limit::{RateLimit, Source};
use super::replay::Replays;
use super::response_cache::{Answer, Repeat, ResponseCache};
use super::same_mac;
use super::token_bucket::TokenBucket;
use crate::crypto::{Crypto, MacPurpose, PublicKey, Randomness, ResponderState, Session};
use anabranch_types::Time;
use core::net::SocketAddr;
use core::time::Duration;
use std::collections::BTreeSet;

/// Bytes that may be sent to an unproven address per byte received from it.
const AMPLIFICATION: usize = 3;

/// A source that shows a cookie and has shown none for this time takes precedence over others with
/// a cookie.
const NEWCOMER: Duration = Duration::from_secs(10);

/// Peers that may connect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Permitted {
    /// No peer.
    #[default]
    Nobody,
    /// Every peer that knows our public key.
    Anyone,
    /// The holders of these static keys.
    Only(BTreeSet<PublicKey>),
}

impl Permitted {
    /// Whether the holder of `peer` may connect.
    pub fn contains(&self, peer: &PublicKey) -> bool {
        match self {
            Permitted::Nobody => false,
            Permitted::Anyone => true,
            Permitted::Only(keys) => keys.contains(peer),
        }
    }
}

/// Limits of the responder's tables and work.
#[derive(Clone, Debug)]
pub struct ResponderConfig {
    /// Peers that may connect.
    pub permitted: Permitted,
    /// Initiations per second for which Diffie–Hellman operations are done, in the long run. Of
    /// those with a cookie, half are reserved for sources that have shown no cookie for ten
    /// seconds, so that many sources that ask as often as allowed cannot use these up.
    pub rate: u64,
    /// Initiations for which Diffie–Hellman operations are done at once. When less than half of
    /// this is left, senders must show a cookie.
    pub burst: u64,
    /// Initiations without a cookie for which Diffie–Hellman operations are done, per second and at
    /// once. Senders with forged addresses cause no more work than this; further senders must show
    /// a cookie.
    pub unproven_rate: u64,
    /// Initiations of a single source without a cookie, per second in the long run, and as many
    /// again with a cookie. Sources are IPv4 addresses and IPv6 prefixes of 56 bits.
    pub source_rate: u64,
    /// Initiations of a single source at once.
    pub source_burst: u64,
    /// Cookies sent per second, and at once.
    pub cookies: u64,
    /// Cookies sent to a single source per second, and at once.
    pub source_cookies: u64,
    /// Peers whose timestamps are remembered.
    pub peers: usize,
    /// Responses kept for copies of the messages that they answer.
    pub copies: usize,
    /// How long a response is kept. This should be at least the initiators' give-up time, since a
    /// copy that arrives later, as after a long outage, counts as a replay.
    pub copy_lifetime: Duration,
}

impl Default for ResponderConfig {
    fn default() -> Self {
        ResponderConfig {
            permitted: Permitted::Nobody,
            rate: 500,
            burst: 100,
            unproven_rate: 50,
            source_rate: 20,
            source_burst: 20,
            cookies: 2500,
            source_cookies: 50,
            peers: 4096,
            copies: 1024,
            copy_lifetime: Duration::from_secs(30),
        }
    }
}

/// Why an Initiation got no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// The message is not an Initiation of our version.
    Message(MessageError),
    /// The message's first MAC is wrong.
    Mac,
    /// The message repeats an ephemeral key but is not a copy.
    EphemeralReuse,
    /// The rate of Diffie–Hellman operations is exhausted, or that of cookies.
    Rate,
    /// The rate of the message's source is exhausted.
    Source,
    /// The message was answered more often than honest copies need.
    Copies,
    /// The message is a copy of a message that is ignored.
    Ignored,
    /// A cryptographic operation on the message failed.
    Crypto,
    /// The message's payload is too short for a timestamp.
    Payload,
    /// The message's sender is not permitted.
    NotPermitted,
    /// The message's timestamp was accepted before, or is older than all remembered ones.
    Replay,
    /// The answer would exceed the amplification limit of an unproven address.
    Amplification,
}

/// Action on an Initiation.
#[derive(Debug)]
pub enum Outcome {
    /// No action, for this reason.
    Drop(DropReason),
    /// Send this to the address from which the Initiation came. No connection is made or changed.
    Reply(Vec<u8>),
    /// The Initiation is a copy of the message that was held under this number, and gets the same answer.
    Copy(u32),
    /// A permitted peer wants a connection: [`Responder::accept`] it, now or after [`Responder::hold`], or drop it.
    Candidate(Candidate),
}

/// An Initiation as it arrived.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// The current time.
    pub now: Time,
    /// Address from which the Initiation came.
    pub remote: SocketAddr,
    /// The message.
    pub bytes: &'a [u8],
    /// Whether so much work is waiting that only messages with a valid cookie are processed
    /// further.
    pub under_load: bool,
}

/// A new, authentic Initiation.
#[derive(Debug)]
pub struct Candidate {
    /// The sender's static key.
    pub peer: PublicKey,
    /// The connection id under which the peer wants to receive.
    pub remote_id: u32,
    /// The peer's encoded transport parameters.
    pub parameters: Vec<u8>,
    /// Whether the peer has shown by a cookie that it receives at its source address.
    pub validated: bool,
    timestamp: u64,
    ephemeral: [u8; EPHEMERAL_LEN],
    mac1: [u8; MAC_LEN],
    received_len: usize,
    responder: Box<dyn ResponderState>,
}

/// An accepted connection.
#[derive(Debug)]
pub struct Accepting {
    /// Message to send to the address from which the Initiation came. Copies on other paths are
    /// answered with the same bytes, through [`Outcome::Reply`].
    pub response: Vec<u8>,
    /// The connection's keys. Nothing may be sealed before a packet of the peer has been opened.
    pub session: Session,
}

/// Why a candidate could not be accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcceptError {
    /// The response would exceed the longest message, or the amplification limit of an unproven
    /// address.
    TooLong,
    /// The cryptography could not produce the response.
    Crypto,
    /// The message's timestamp is now older than all remembered ones of its sender.
    Replay,
}

impl core::fmt::Display for AcceptError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            AcceptError::TooLong => "transport parameters too long for a handshake",
            AcceptError::Crypto => "cryptographic operation failed",
            AcceptError::Replay => "the peer has opened many later connections since it asked",
        })
    }
}

impl std::error::Error for AcceptError {}

/// The responder's side of every handshake of an endpoint. All its memory is bounded.
#[derive(Debug)]
pub struct Responder {
    permitted: Permitted,
    bucket: TokenBucket,
    burst: u64,
    cookies: CookieSecrets,
    /// Limits of all senders together: Initiations without a cookie, and cookies sent.
    unproven: TokenBucket,
    cookie_replies: TokenBucket,
    /// Limits of each source: Initiations without and with a cookie, and cookies sent. Without a
    /// cookie, an address may be forged, and such messages must not use up the allowance of the
    /// address's true holder.
    source_unproven: RateLimit,
    source_proven: RateLimit,
    source_cookies: RateLimit,
    /// Sources that show a cookie for the first time in ten seconds, and the limit of all other
    /// sources with a cookie.
    newcomers: RateLimit,
    regulars: TokenBucket,
    responses: ResponseCache,
    replays: Replays,
    /// Wall clock at [`Time::ZERO`], in nanoseconds since 1970.
    wall_clock: u64,
}

impl Responder {
    /// A responder with empty tables. `random` makes the secrets of cookies and tables.
    pub fn new(config: ResponderConfig, now: Time, mut random: Box<dyn Randomness>) -> Self {
        let newcomers = RateLimit::once(NEWCOMER, random.as_mut());
        let mut limit = |rate, burst| RateLimit::new(rate, burst, random.as_mut());
        Responder {
            source_unproven: limit(config.source_rate, config.source_burst),
            source_proven: limit(config.source_rate, config.source_burst),
            source_cookies: limit(config.source_cookies, config.source_cookies),
            newcomers,
            regulars: TokenBucket::new(config.rate.div_ceil(2), config.burst.div_ceil(2), now),
            unproven: TokenBucket::new(config.unproven_rate, config.unproven_rate, now),
            cookie_replies: TokenBucket::new(config.cookies, config.cookies, now),
            permitted: config.permitted,
            bucket: TokenBucket::new(config.rate, config.burst, now),
            burst: config.burst,
            cookies: CookieSecrets::new(random, now),
            responses: ResponseCache::new(config.copies, config.copy_lifetime),
            replays: Replays::new(config.peers),
            wall_clock: 0,
        }
    }

    /// Sets the wall clock at [`Time::ZERO`], in nanoseconds since 1970; 0 if never set. It
    /// determines which timestamps are far ahead.
    pub fn set_wall_clock(&mut self, nanos: u64) {
        self.wall_clock = nanos;
    }

    /// Replaces the list of peers that may connect. Existing connections are not affected.
    pub fn set_permitted(&mut self, permitted: Permitted) {
        self.permitted = permitted;
    }

    /// Reads an Initiation. Only messages with a valid cookie are processed further under load, and
    /// when one of these runs low: the bucket of Diffie–Hellman operations, its part for senders
    /// without a cookie, or the source's allowance.
    pub fn handle(&mut self, crypto: &mut dyn Crypto, arrival: Arrival<'_>) -> Outcome {
        self.judge(crypto, arrival).unwrap_or_else(Outcome::Drop)
    }

    /// Completes a candidate's handshake under the connection id `local_id`, and remembers the answer
    /// for copies and the timestamp against replays.
    #[expect(clippy::too_many_arguments, reason = "whom to answer, when and with what")]
    pub fn accept(
        &mut self,
        crypto: &dyn Crypto,
        now: Time,
        candidate: Candidate,
        local_id: u32,
        parameters: &[u8],
    ) -> Result<Accepting, AcceptError> {
        let clock = self.wall_clock.saturating_add(now.as_nanos());
        if !self.replays.is_fresh(&candidate.peer, candidate.timestamp, clock) {
            return Err(AcceptError::Replay);
        }
        let mut response = Vec::with_capacity(128 + parameters.len().min(MAX_LEN));
        Response::start(candidate.remote_id, &mut response);
        let payload = [&local_id.to_be_bytes(), parameters].concat();
        let session = candidate
            .responder
            .respond(&payload, &mut response)
            .map_err(|_| AcceptError::Crypto)?;
        append_mac1(crypto, &candidate.peer, &mut response);
        response.extend_from_slice(&[0; MAC_LEN]);
        if response.len() > MAX_LEN.min(AMPLIFICATION * candidate.received_len) {
            return Err(AcceptError::TooLong);
        }
        self.replays.record(candidate.peer, candidate.timestamp, clock);
        let answer = Answer::new(candidate.mac1, response.clone());
        self.responses.insert(now, candidate.ephemeral, answer);
        Ok(Accepting { response, session })
    }

    /// Reports copies of a candidate's message under `number` until it is accepted, [reopened](Self::reopen) or
    /// [ignored](Self::ignore).
    pub fn hold(&mut self, now: Time, candidate: &Candidate, number: u32) {
        self.responses.insert(now, candidate.ephemeral, Answer::held(candidate.mac1, number));
    }

    /// Reads the next copy of a held message as if it were the first.
    pub fn reopen(&mut self, now: Time, candidate: &Candidate) {
        if let Some(answer) = self.responses.find(now, &candidate.ephemeral) {
            answer.decide(true);
        }
    }

    /// Drops all copies of a held message.
    pub fn ignore(&mut self, now: Time, candidate: &Candidate) {
        if let Some(answer) = self.responses.find(now, &candidate.ephemeral) {
            answer.decide(false);
        }
    }

    /// The cookie reply for a candidate. A further copy of its message with this cookie proves that
    /// it receives at `remote`.
    pub fn cookie_for(
        &mut self,
        crypto: &dyn Crypto,
        now: Time,
        remote: SocketAddr,
        candidate: &Candidate,
    ) -> Vec<u8> {
        let to = CookieFor { remote, receiver: candidate.remote_id, mac1: &candidate.mac1 };
        self.cookies.reply(crypto, now, to).to_bytes()
    }

    fn judge(
        &mut self,
        crypto: &mut dyn Crypto,
        Arrival { now, remote, bytes, under_load }: Arrival<'_>,
    ) -> Result<Outcome, DropReason> {
        let message = Initiation::parse(bytes).map_err(DropReason::Message)?;
        let own = crypto.public_key();
        let expected = crypto.mac(MacPurpose::Mac1(&own), message.macs.before_mac1);
        if !same_mac(&expected, &message.macs.mac1) {
            return Err(DropReason::Mac);
        }
        if let Some(answer) = self.responses.find(now, &message.ephemeral)
            && let Some(outcome) = repeat(answer, &message, bytes.len())?
        {
            return Ok(outcome);
        }
        let mut validated = false;
        let source = Source::of(remote);
        let scarce = under_load || self.bucket.level(now) < self.burst.div_ceil(2);
        if scarce || !self.source_unproven.take(now, source) || !self.unproven.take(now) {
            if !self.cookies.proves(crypto, now, remote, &message) {
                return self.ask_for_cookie(crypto, now, remote, &message);
            }
            validated = true;
            if !self.source_proven.take(now, source) {
                return Err(DropReason::Source);
            }
            if !self.newcomers.take(now, source) && !self.regulars.take(now) {
                return Err(DropReason::Rate);
            }
        }
        if !self.bucket.take(now) {
            return Err(DropReason::Rate);
        }
        let mut candidate = self.authenticate(crypto, now, &message, bytes.len())?;
        candidate.validated = validated || self.cookies.proves(crypto, now, remote, &message);
        Ok(Outcome::Candidate(candidate))
    }

    fn ask_for_cookie(
        &mut self,
        crypto: &dyn Crypto,
        now: Time,
        remote: SocketAddr,
        message: &Initiation<'_>,
    ) -> Result<Outcome, DropReason> {
        if !self.source_cookies.take(now, Source::of(remote)) {
            return Err(DropReason::Source);
        }
        if !self.cookie_replies.take(now) {
            return Err(DropReason::Rate);
        }
        let to = CookieFor { remote, receiver: message.sender, mac1: &message.macs.mac1 };
        Ok(Outcome::Reply(self.cookies.reply(crypto, now, to).to_bytes()))
    }

    fn authenticate(
        &self,
        crypto: &mut dyn Crypto,
        now: Time,
        message: &Initiation<'_>,
        received_len: usize,
    ) -> Result<Candidate, DropReason> {
        let accepted =
            crypto.accept(message.header, message.noise).map_err(|_| DropReason::Crypto)?;
        if !self.permitted.contains(&accepted.peer) {
            return Err(DropReason::NotPermitted);
        }
        let (timestamp, parameters) =
            accepted.payload.split_first_chunk().ok_or(DropReason::Payload)?;
        let timestamp = u64::from_be_bytes(*timestamp);
        let clock = self.wall_clock.saturating_add(now.as_nanos());
        if !self.replays.is_fresh(&accepted.peer, timestamp, clock) {
            return Err(DropReason::Replay);
        }
        Ok(Candidate {
            peer: accepted.peer,
            remote_id: message.sender,
            parameters: parameters.to_vec(),
            validated: false,
            timestamp,
            ephemeral: message.ephemeral,
            mac1: message.macs.mac1,
            received_len,
            responder: accepted.responder,
        })
    }

    /// Most entries of any table (copies, peers), for tests of the bounds.
    #[cfg(test)]
    pub(super) fn table_sizes(&self) -> (usize, usize) {
        (self.responses.len(), self.replays.len())
    }
}

/// The outcome for a copy; `None` if the copy is to be read as if it were the first message.
fn repeat(
    answer: &mut Answer,
    message: &Initiation<'_>,
    received_len: usize,
) -> Result<Option<Outcome>, DropReason> {
    if !same_mac(&answer.mac1, &message.macs.mac1) {
        return Err(DropReason::EphemeralReuse);
    }
    if answer.len() > AMPLIFICATION * received_len {
        return Err(DropReason::Amplification);
    }
    match answer.repeat() {
        Repeat::Response(response) => Ok(Some(Outcome::Reply(response.clone()))),
        Repeat::Worn => Err(DropReason::Copies),
        Repeat::Held(number) => Ok(Some(Outcome::Copy(number))),
        Repeat::Nothing => Err(DropReason::Ignored),
        Repeat::Read => Ok(None),
    }
}
