//! Transport parameters, which each side announces once in the handshake.

use core::time::Duration;

use super::codec::{Reader, WireError, varint_len};
use super::control::MAX_STREAM_COUNT;
use super::header::ConnectionId;

/// Least UDP payload that every endpoint accepts, bytes.
pub const MIN_UDP_PAYLOAD: u16 = 1200;

/// Largest number of paths that a side can allow.
pub const MAX_PATHS: u8 = 16;

/// Longest name of an acknowledgement profile, bytes.
pub const MAX_PROFILE_NAME: usize = 64;

/// Longest list of erasure code names, bytes.
pub const MAX_CODE_NAMES: usize = 256;

/// Largest acknowledgement delay that can be announced: 2^24 − 1 microseconds, 16.8 s.
pub const MAX_ACK_DELAY: Duration = Duration::from_micros((1 << 24) - 1);

mod id {
    pub(super) const MAX_DATA: u64 = 1;
    pub(super) const MAX_STREAM_DATA: u64 = 2;
    pub(super) const MAX_STREAMS: u64 = 3;
    pub(super) const MAX_SYMBOLS: u64 = 4;
    pub(super) const MAX_UDP_PAYLOAD: u64 = 5;
    pub(super) const MAX_BLOCK: u64 = 6;
    pub(super) const MAX_PATHS: u64 = 7;
    pub(super) const MAX_ACK_DELAY: u64 = 8;
    pub(super) const IDLE_TIMEOUT: u64 = 9;
    pub(super) const ACK_PROFILE: u64 = 10;
    pub(super) const CODES: u64 = 11;
    pub(super) const CHECK: u64 = 12;
    pub(super) const CONNECTION_IDS: u64 = 13;
    pub(super) const WHOLE_BLOCKS: u64 = 14;
    pub(super) const MAX_LIVE_SYMBOLS: u64 = 15;
}

/// Transport parameters of one side. A parameter that is absent has its default value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransportParameters {
    /// Initial credit over all streams, bytes.
    pub max_data: u64,
    /// Initial credit of each stream, bytes.
    pub max_stream_data: u64,
    /// Number of streams that the peer may open initially, at most 2^60.
    pub max_streams: u64,
    /// Symbol ids below this value are accepted initially.
    pub max_symbols: u64,
    /// Largest UDP payload that this side accepts, 1200–65 535 bytes.
    pub max_udp_payload: u16,
    /// Largest block (source symbols × symbol size) that this side decodes, bytes. 0 means that
    /// this side decodes nothing.
    pub max_block: u64,
    /// Most paths at a time, 1–16.
    pub max_paths: u8,
    /// Longest intentional delay of this side's acknowledgements, in whole microseconds, at most
    /// [`MAX_ACK_DELAY`].
    pub max_ack_delay: Duration,
    /// Length of silence after which this side drops the connection, in whole milliseconds; `None`
    /// for never.
    pub idle_timeout: Option<Duration>,
    /// Name of the profile that tells the peer how to acknowledge, at most 64 bytes.
    pub ack_profile: Option<String>,
    /// Names of the erasure codes that this side decodes, separated by single spaces, at most 256
    /// bytes. The first is the code of this side's own repairs. `None` means all codes of the
    /// specification, Reed–Solomon first.
    pub codes: Option<String>,
    /// From an initiator: the responder's id of a connection. Such a handshake only asks whether
    /// the responder still has that connection. From a responder: 1 if it has the connection, 0 if
    /// not.
    pub check: Option<u32>,
    /// The connection ids under which this side receives on the paths 1, 2, …; at most 16, all
    /// different.
    pub connection_ids: Vec<ConnectionId>,
    /// Whether this side delivers data to the application in whole blocks, so that the peer must
    /// mark the last symbol of each block.
    pub whole_blocks: bool,
    /// Symbols of live data with ordinals below this value are accepted initially. 0 means that
    /// there is no separate space for live data, which is then sent in the main space.
    pub max_live_symbols: u64,
}

impl Default for TransportParameters {
    fn default() -> Self {
        TransportParameters {
            max_data: 0,
            max_stream_data: 0,
            max_streams: 0,
            max_symbols: 0,
            max_udp_payload: MIN_UDP_PAYLOAD,
            max_block: 0,
            max_paths: 1,
            max_ack_delay: Duration::from_millis(25),
            idle_timeout: None,
            ack_profile: None,
            codes: None,
            check: None,
            connection_ids: Vec::new(),
            whole_blocks: false,
            max_live_symbols: 0,
        }
    }
}

impl TransportParameters {
    /// The encoded list for the handshake. Default values are omitted. Values out of range are
    /// clamped, and text that is too long is truncated at a character boundary.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64);
        let ack_delay = self.max_ack_delay.min(MAX_ACK_DELAY).as_micros() as u64;
        let idle = self
            .idle_timeout
            .map_or(0, |timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX).max(1));
        let defaults = TransportParameters::default();
        let numbers = [
            (id::MAX_DATA, self.max_data, 0),
            (id::MAX_STREAM_DATA, self.max_stream_data, 0),
            (id::MAX_STREAMS, self.max_streams.min(MAX_STREAM_COUNT), 0),
            (id::MAX_SYMBOLS, self.max_symbols, 0),
            (id::MAX_UDP_PAYLOAD, self.max_udp_payload.max(MIN_UDP_PAYLOAD).into(), 1200),
            (id::MAX_BLOCK, self.max_block, 0),
            (id::MAX_PATHS, self.max_paths.clamp(1, MAX_PATHS).into(), 1),
            (id::MAX_ACK_DELAY, ack_delay, defaults.max_ack_delay.as_micros() as u64),
            (id::IDLE_TIMEOUT, idle, 0),
            (id::MAX_LIVE_SYMBOLS, self.max_live_symbols, 0),
        ];
        for (id, value, default) in numbers {
            if value != default {
                put_varint(&mut out, id);
                put_varint(&mut out, varint_len(value) as u64);
                put_varint(&mut out, value);
            }
        }
        put_text(&mut out, id::ACK_PROFILE, self.ack_profile.as_deref(), MAX_PROFILE_NAME);
        put_text(&mut out, id::CODES, self.codes.as_deref(), MAX_CODE_NAMES);
        if let Some(check) = self.check {
            put_varint(&mut out, id::CHECK);
            put_varint(&mut out, varint_len(check.into()) as u64);
            put_varint(&mut out, check.into());
        }
        if !self.connection_ids.is_empty() {
            let ids = self.connection_ids.iter().take(MAX_PATHS.into());
            put_varint(&mut out, id::CONNECTION_IDS);
            put_varint(&mut out, (ids.len() * size_of::<ConnectionId>()) as u64);
            ids.for_each(|id| out.extend_from_slice(&id.0.to_be_bytes()));
        }
        if self.whole_blocks {
            put_varint(&mut out, id::WHOLE_BLOCKS);
            put_varint(&mut out, 0);
        }
        out
    }

    /// Reads a list. Parameters with unknown ids are skipped. Fails if a known parameter is
    /// repeated, out of range or shorter than its length field says; the close code is then
    /// TRANSPORT_PARAMETER.
    pub fn decode(bytes: &[u8]) -> Result<TransportParameters, WireError> {
        let mut parameters = TransportParameters::default();
        let mut seen = 0_u16;
        let mut list = Reader::new(bytes);
        while !list.is_empty() {
            let id = list.varint()?;
            let mut value = Reader::new(list.prefixed()?);
            if id == 0 || id > id::MAX_LIVE_SYMBOLS {
                continue;
            }
            if seen & 1 << id != 0 {
                return Err(WireError::Value("repeated transport parameter"));
            }
            seen |= 1 << id;
            parameters.read(id, &mut value)?;
            if !value.is_empty() {
                return Err(WireError::Value("transport parameter length"));
            }
        }
        Ok(parameters)
    }

    fn read(&mut self, id: u64, value: &mut Reader<'_>) -> Result<(), WireError> {
        match id {
            id::MAX_DATA => self.max_data = value.varint()?,
            id::MAX_STREAM_DATA => self.max_stream_data = value.varint()?,
            id::MAX_STREAMS => {
                self.max_streams = value.varint_up_to(MAX_STREAM_COUNT, "max streams")?;
            }
            id::MAX_SYMBOLS => self.max_symbols = value.varint()?,
            id::MAX_UDP_PAYLOAD => {
                let most = u16::try_from(value.varint()?).unwrap_or(u16::MAX);
                if most < MIN_UDP_PAYLOAD {
                    return Err(WireError::Value("max UDP payload"));
                }
                self.max_udp_payload = most;
            }
            id::MAX_BLOCK => self.max_block = value.varint()?,
            id::MAX_PATHS => {
                self.max_paths = value.varint_up_to(MAX_PATHS.into(), "max paths")? as u8;
                if self.max_paths == 0 {
                    return Err(WireError::Value("max paths"));
                }
            }
            id::MAX_ACK_DELAY => {
                let most = MAX_ACK_DELAY.as_micros() as u64;
                let delay = value.varint_up_to(most, "max acknowledgement delay")?;
                self.max_ack_delay = Duration::from_micros(delay);
            }
            id::IDLE_TIMEOUT => {
                let timeout = value.varint()?;
                self.idle_timeout = (timeout > 0).then(|| Duration::from_millis(timeout));
            }
            id::ACK_PROFILE => self.ack_profile = Some(text(value, MAX_PROFILE_NAME)?),
            id::CODES => self.codes = Some(text(value, MAX_CODE_NAMES)?),
            id::CHECK => {
                let id = value.varint_up_to(u32::MAX.into(), "checked connection")?;
                self.check = u32::try_from(id).ok();
            }
            id::WHOLE_BLOCKS => self.whole_blocks = true,
            id::MAX_LIVE_SYMBOLS => self.max_live_symbols = value.varint()?,
            _ => self.connection_ids = connection_ids(value)?,
        }
        Ok(())
    }
}

/// Reads connection ids up to the end; all must be different.
fn connection_ids(value: &mut Reader<'_>) -> Result<Vec<ConnectionId>, WireError> {
    let mut ids = Vec::new();
    while !value.is_empty() {
        let id = ConnectionId(u32::from_be_bytes(value.array()?));
        if ids.len() == usize::from(MAX_PATHS) || ids.contains(&id) {
            return Err(WireError::Value("connection ids"));
        }
        ids.push(id);
    }
    Ok(ids)
}

fn text(value: &mut Reader<'_>, most: usize) -> Result<String, WireError> {
    let text = value.rest()?;
    if text.len() > most {
        return Err(WireError::Value("length of a transport parameter's text"));
    }
    let text = core::str::from_utf8(text).map_err(|_| WireError::Value("text"))?;
    Ok(text.to_owned())
}

fn put_text(out: &mut Vec<u8>, id: u64, text: Option<&str>, most: usize) {
    let Some(text) = text else { return };
    let text = text.get(..text.floor_char_boundary(most)).unwrap_or_default();
    put_varint(out, id);
    put_varint(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// Appends the shortest encoding of `value`, limited to the largest varint.
fn put_varint(out: &mut Vec<u8>, value: u64) {
    let value = value.min(super::codec::MAX_VARINT);
    let mut buffer = [0; 8];
    let mut writer = super::codec::Writer::new(&mut buffer);
    if writer.varint(value).is_ok() {
        out.extend_from_slice(writer.written());
    }
}
