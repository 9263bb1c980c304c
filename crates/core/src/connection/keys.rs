//! The keys of a connection. This module seals and opens every packet, and renews the keys.
//!
//! Keys are numbered by *epochs*: the handshake's keys are epoch 0, and each exchange
//! (`docs/spec/wire-0.md`, Keys) makes the keys of the next epoch. The initiator seals under new
//! keys once it has the responder's answer; the responder does so once a packet under the new keys
//! has arrived. Each side opens packets of the previous epoch for a while, so that no packet ever
//! waits for keys.

use anabranch_types::{PathId, Time};
use core::time::Duration;

use crate::crypto::{
    CryptoError, MASK_LEN, Opener, PacketKeys, Rekey, RekeyMessage, Sealer, Session, TAG_LEN,
};
use crate::wire::header;
use crate::wire::{ConnectionId, ControlFrame, DataHeader, HEADER_LEN, Role, Writer};

/// How many headers are masked together: as many as the cipher's instructions process in parallel.
const MASKED_AT_ONCE: usize = 8;
/// Age at which keys that are in use are renewed, as in WireGuard.
const RENEW_AFTER: Duration = Duration::from_secs(120);
/// Least time from one exchange to the next: an exchange takes four Diffie–Hellman operations of the responder.
const PAUSE: Duration = Duration::from_secs(1);
/// How many of the packets within a key's limit are reserved for closing the connection.
const RESERVE: u64 = 64;

/// The keys of both directions.
#[derive(Debug)]
pub(super) struct Keys {
    role: Role,
    rekey: Box<dyn Rekey>,
    sealer: Box<dyn Sealer>,
    /// Epoch of `sealer`.
    sealing: u64,
    opener: Box<dyn Opener>,
    /// Epoch of `opener`.
    opening: u64,
    /// Opens packets of the epoch before `opening`.
    previous: Option<Box<dyn Opener>>,
    /// When `previous` is dropped.
    previous_until: Option<Time>,
    /// Keys of the epoch after `opening`, under which no packet has arrived yet.
    next: Option<Next>,
    /// Whether the initiator has asked for the next keys and waits for the answer.
    asked: bool,
    /// When the newest keys were made.
    since: Time,
    /// Whether a packet has arrived since the previous epoch was dropped.
    in_use: bool,
}

/// Keys that the peer has not used yet.
#[derive(Debug)]
struct Next {
    opener: Box<dyn Opener>,
    /// Seals under these keys; set at a responder that does not know yet whether the initiator has
    /// them.
    sealer: Option<Box<dyn Sealer>>,
}

/// The peer broke the rules of an exchange, or has another identity than before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BadExchange;

impl From<CryptoError> for BadExchange {
    fn from(_: CryptoError) -> Self {
        BadExchange
    }
}

impl Keys {
    pub(super) fn new(role: Role, session: Session, now: Time) -> Self {
        let Session { keys: PacketKeys { sealer, opener }, rekey } = session;
        Keys {
            role,
            rekey,
            sealer,
            sealing: 0,
            opener,
            opening: 0,
            previous: None,
            previous_until: None,
            next: None,
            asked: false,
            since: now,
            in_use: false,
        }
    }

    /// How many exchanges have renewed the keys.
    pub(super) fn renewals(&self) -> u64 {
        self.sealing
    }

    /// How many packets the current key may still seal.
    pub(super) fn remaining(&self) -> u64 {
        self.sealer.remaining()
    }

    /// Whether the current key may only seal packets that close the connection, because the peer
    /// has not answered requests for new keys.
    pub(super) fn are_spent(&self) -> bool {
        self.remaining() <= RESERVE
    }

    /// Writes the headers of the packets in `train`, each of `segment` bytes except for the last,
    /// with numbers from `first` on. Then seals the packets, with the tag in their last bytes, and
    /// masks the headers. There must be no more packets than [`remaining`](Self::remaining).
    #[expect(clippy::too_many_arguments, reason = "a train, and what its headers say")]
    pub(super) fn seal_train(
        &mut self,
        connection: ConnectionId,
        path: PathId,
        first: u64,
        train: &mut [u8],
        segment: usize,
    ) {
        let sealer = &mut self.sealer;
        let (epoch, path_bits) = (self.sealing as u8, path.0 as u8);
        for (packet, number) in train.chunks_mut(segment.max(1)).zip(first..) {
            let header = DataHeader { connection, epoch, path: path_bits, number: number as u32 };
            // The packet has room for the header: its length was reserved when the frames were written.
            let _ = header.encode(&mut Writer::new(packet));
            sealer.seal(path, number, packet, HEADER_LEN);
        }
        // Several headers are masked at once, since a processor core overlaps several blocks of the
        // mask's cipher.
        for packets in train.chunks_mut(segment.max(1) * MASKED_AT_ONCE) {
            let mut samples = [[0; TAG_LEN]; MASKED_AT_ONCE];
            let mut count = 0;
            for (sample, packet) in samples.iter_mut().zip(packets.chunks(segment.max(1))) {
                *sample = header::sample(packet).copied().unwrap_or_default();
                count += 1;
            }
            let mut masks = [[0; MASK_LEN]; MASKED_AT_ONCE];
            sealer.masks(&samples[..count], &mut masks[..count]);
            for (packet, mask) in packets.chunks_mut(segment.max(1)).zip(masks) {
                header::protect(packet, mask);
            }
        }
    }

    /// Unmasks the header and decodes it. The header is not authenticated yet.
    pub(super) fn unmask(&self, packet: &mut [u8]) -> Option<DataHeader> {
        let sample = *header::sample(packet)?;
        header::unprotect(packet, self.opener.mask(&sample));
        DataHeader::decode(packet).ok()
    }

    /// Authenticates and decrypts a packet of the epoch whose low two bits are `epoch`; returns where its frames
    /// end, and whether it is the first of a new epoch.
    pub(super) fn open(
        &mut self,
        epoch: u8,
        path: PathId,
        number: u64,
        packet: &mut [u8],
    ) -> Option<(usize, bool)> {
        let ahead = epoch.wrapping_sub(self.opening as u8) & 3;
        let opener = match ahead {
            0 => &mut self.opener,
            1 => &mut self.next.as_mut()?.opener,
            3 => self.previous.as_mut()?,
            _ => return None,
        };
        let end = opener.open(path, number, packet, HEADER_LEN).ok()?;
        if ahead == 1 {
            self.enter_next();
        }
        self.in_use |= self.is_settled();
        Some((end, ahead == 1))
    }

    /// Switches to the next keys, which the peer has proven to have.
    fn enter_next(&mut self) {
        let Some(Next { opener, sealer }) = self.next.take() else { return };
        self.previous = Some(core::mem::replace(&mut self.opener, opener));
        self.opening += 1;
        if let Some(sealer) = sealer {
            self.sealer = sealer;
            self.sealing = self.opening;
        }
    }

    /// Sets until when packets of the previous epoch are opened.
    pub(super) fn keep_previous(&mut self, until: Time) {
        self.previous_until = Some(until);
    }

    /// Drops the keys of the previous epoch when their time has passed.
    pub(super) fn forget_previous(&mut self, now: Time) {
        if self.previous_until.take_if(|until| *until <= now).is_some() {
            self.previous = None;
            self.in_use = false;
        }
    }

    /// Whether no exchange is in progress and the previous keys have been dropped.
    fn is_settled(&self) -> bool {
        !self.asked && self.next.is_none() && self.previous.is_none()
    }

    /// Whether the initiator should begin an exchange.
    pub(super) fn are_due(&self, now: Time) -> bool {
        now >= self.since + PAUSE
            && self.role == Role::Initiator
            && self.is_settled()
            && (self.is_worn() || self.renew_at().is_some_and(|at| at <= now))
    }

    fn is_worn(&self) -> bool {
        self.sealer.is_worn() || self.opener.is_worn()
    }

    fn renew_at(&self) -> Option<Time> {
        let is_waiting = self.role == Role::Initiator && self.in_use && self.is_settled();
        is_waiting.then(|| self.since + RENEW_AFTER)
    }

    /// When keys are to be dropped or renewed.
    pub(super) fn next_timeout(&self) -> Option<Time> {
        self.previous_until.or_else(|| self.renew_at())
    }

    /// Begins an exchange; returns the frame for the responder.
    pub(super) fn ask(&mut self) -> Result<ControlFrame, BadExchange> {
        let message = self.rekey.ask()?;
        self.asked = true;
        Ok(ControlFrame::Rekey { epoch: self.sealing + 1, message })
    }

    /// Processes a message of the exchange that makes the keys of `epoch`; returns the frame to
    /// send in return.
    pub(super) fn on_message(
        &mut self,
        now: Time,
        epoch: u64,
        message: &RekeyMessage,
    ) -> Result<Option<ControlFrame>, BadExchange> {
        let newest = self.opening + u64::from(self.next.is_some());
        if epoch <= newest {
            // The peer sent the message again although it had already arrived.
            return Ok(None);
        }
        let is_expected = match self.role {
            Role::Initiator => self.asked,
            Role::Responder => self.next.is_none() && now >= self.since + PAUSE,
        };
        if epoch != newest + 1 || !is_expected {
            return Err(BadExchange);
        }
        let reply = match self.role {
            Role::Initiator => {
                let PacketKeys { sealer, opener } = self.rekey.finish(message)?;
                self.sealer = sealer;
                self.sealing = epoch;
                self.next = Some(Next { opener, sealer: None });
                self.asked = false;
                // The responder seals its answer to this under the new keys.
                ControlFrame::Ping
            }
            Role::Responder => {
                let (message, PacketKeys { sealer, opener }) = self.rekey.answer(message)?;
                self.next = Some(Next { opener, sealer: Some(sealer) });
                ControlFrame::Rekey { epoch, message }
            }
        };
        self.since = now;
        Ok(Some(reply))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypto::Crypto;
    use crate::crypto::null::NullCrypto;

    const PATH: PathId = PathId(0);

    /// The keys of an initiator and of a responder, as made by the handshake.
    fn pair() -> [Keys; 2] {
        let [mut client, mut server] = [1, 2].map(|seed| NullCrypto::new([seed; 32]));
        let (mut first, mut second) = (Vec::new(), Vec::new());
        let mut initiator = client.initiate(&server.public_key(), b"", &mut first).unwrap();
        let accepted = server.accept(b"", &first).unwrap();
        let responder = accepted.responder.respond(b"", &mut second).unwrap();
        let (_, initiator) = initiator.finish(&second).unwrap();
        [
            Keys::new(Role::Initiator, initiator, Time::ZERO),
            Keys::new(Role::Responder, responder, Time::ZERO),
        ]
    }

    fn sealed(keys: &mut Keys, number: u64) -> Vec<u8> {
        let mut packet = vec![7; 100];
        keys.seal_train(ConnectionId(1), PATH, number, &mut packet, 100);
        packet
    }

    /// Whether a packet is opened.
    fn opens(keys: &mut Keys, number: u64, packet: &[u8]) -> bool {
        let mut packet = packet.to_vec();
        let header = keys.unmask(&mut packet).unwrap();
        let opened = keys.open(header.epoch, PATH, number, &mut packet);
        if opened.is_some_and(|(_, is_first)| is_first) {
            keys.keep_previous(Time::from_secs(1000));
        }
        opened.is_some()
    }

    fn message(frame: ControlFrame) -> (u64, RekeyMessage) {
        let ControlFrame::Rekey { epoch, message } = frame else { panic!("{frame:?}") };
        (epoch, message)
    }

    const LATER: Time = Time::from_secs(120);

    #[test]
    fn each_side_moves_on_when_the_other_can_follow() {
        let [mut client, mut server] = pair();
        for round in 1..=9 {
            let number = 10 * round;
            let now = Time::from_secs(120 * round);
            assert!(opens(&mut client, number, &sealed(&mut server, number)));
            assert!(client.are_due(now) && !server.are_due(now));
            assert!(!client.are_due(now - Duration::from_nanos(1)));
            let late = sealed(&mut client, number);
            let (epoch, question) = message(client.ask().unwrap());
            assert_eq!(epoch, round);
            assert!(!client.are_due(now), "one exchange at a time");
            // Each side continues with the old keys until the other has the new ones.
            assert!(opens(&mut server, number + 1, &sealed(&mut client, number + 1)));
            let reply = server.on_message(now, epoch, &question).unwrap().unwrap();
            let (_, answer) = message(reply);
            assert_eq!(server.on_message(now, epoch, &question), Ok(None), "a copy");
            let old = sealed(&mut server, number + 2);
            assert!(opens(&mut client, number + 2, &old));
            assert_eq!(client.on_message(now, epoch, &answer), Ok(Some(ControlFrame::Ping)));
            assert_eq!(client.on_message(now, epoch, &answer), Ok(None), "a copy");
            assert!(opens(&mut client, number + 2, &old), "on its way meanwhile");
            assert_eq!((client.renewals(), server.renewals()), (round, round - 1));
            assert!(opens(&mut server, number + 3, &sealed(&mut client, number + 3)));
            assert_eq!(server.renewals(), round);
            assert!(opens(&mut client, number + 3, &sealed(&mut server, number + 3)));
            assert!(opens(&mut server, number, &late) && opens(&mut client, number + 2, &old));
            for keys in [&mut client, &mut server] {
                assert_eq!(keys.next_timeout(), Some(Time::from_secs(1000)));
                keys.forget_previous(Time::from_secs(1000));
                assert_eq!(keys.next_timeout(), None, "not in use since");
            }
            assert!(!opens(&mut server, number, &late) && !opens(&mut client, number + 2, &old));
        }
    }

    #[test]
    fn keys_that_nobody_uses_are_not_renewed() {
        let [mut client, mut server] = pair();
        assert!(!client.are_due(Time::from_secs(1000)) && client.next_timeout().is_none());
        assert!(opens(&mut client, 1, &sealed(&mut server, 1)));
        assert_eq!(client.next_timeout(), Some(Time::ZERO + RENEW_AFTER));
        assert!(opens(&mut server, 1, &sealed(&mut client, 1)));
        assert_eq!(server.next_timeout(), None, "the initiator asks");
    }

    #[test]
    fn messages_out_of_turn_break_the_rules() {
        let [mut client, mut server] = pair();
        assert!(opens(&mut client, 1, &sealed(&mut server, 1)));
        assert_eq!(client.on_message(LATER, 1, &[0; 48]), Err(BadExchange), "nobody asked");
        let (_, question) = message(client.ask().unwrap());
        assert_eq!(client.on_message(LATER, 1, &question), Err(BadExchange), "no answer");
        assert_eq!(client.on_message(LATER, 2, &question), Err(BadExchange));
        let early = Time::ZERO + PAUSE - Duration::from_nanos(1);
        assert_eq!(server.on_message(early, 1, &question), Err(BadExchange), "too soon");
        assert_eq!(server.on_message(LATER, 2, &question), Err(BadExchange), "leaves one out");
        assert_eq!(server.on_message(LATER, 1, &[0; 48]), Err(BadExchange), "a stranger's");
        assert_eq!(server.on_message(LATER, 0, &question), Ok(None), "of the past");
        assert!(server.on_message(LATER, 1, &question).unwrap().is_some());
        let even_later = LATER + RENEW_AFTER;
        assert_eq!(server.on_message(even_later, 2, &question), Err(BadExchange), "unused keys");
    }
}
