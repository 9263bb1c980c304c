//! Small frames that are queued again when the packet that carried them is lost.

use anabranch_policy::view::{SymbolId, SymbolSpace};
use anabranch_types::PathId;
use core::net::{IpAddr, SocketAddr};

use super::codec::{NoSpace, Reader, WireError, Writer, varint_len};
use super::frame::kind;
use super::header::ConnectionId;
use super::id::StreamId;
use super::symbol::symbol;
use crate::crypto::{REKEY_LEN, RekeyMessage};

/// Most streams that a MAX_STREAMS frame may allow. More streams would need identifiers of 2^62 or
/// more.
pub const MAX_STREAM_COUNT: u64 = 1 << 60;

/// How the sender wants the peer to use a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathUse {
    /// The path is used normally.
    #[default]
    Available,
    /// The path is used only if no other path is usable.
    Backup,
}

/// A control frame with owned fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ControlFrame {
    /// Asks for an acknowledgement.
    Ping,
    /// Packets of `path` with numbers below `floor` need not be acknowledged any more.
    AckFloor {
        /// The path.
        path: PathId,
        /// Least packet number that still has to be acknowledged.
        floor: u64,
    },
    /// Symbols that will never be sent again, so that the receiver need not wait for them.
    Abandon {
        /// First abandoned symbol.
        first: SymbolId,
        /// Number of abandoned symbols, at least 1 and without an upper bound.
        count: u64,
    },
    /// Credit over all streams.
    MaxData {
        /// Accepted sum of the highest offsets of all streams, bytes.
        limit: u64,
    },
    /// Credit of one stream.
    MaxStreamData {
        /// The stream.
        stream: StreamId,
        /// Highest accepted offset, bytes.
        limit: u64,
    },
    /// Credit for symbols.
    MaxSymbols {
        /// The symbol space.
        space: SymbolSpace,
        /// Symbols with smaller ordinals are accepted.
        limit: u64,
    },
    /// Total number of streams that the receiver of the frame may open.
    MaxStreams {
        /// Number of streams, at most [`MAX_STREAM_COUNT`].
        count: u64,
    },
    /// A challenge, which must be answered on the same path with the same bytes.
    PathChallenge {
        /// Unpredictable bytes.
        data: [u8; 8],
    },
    /// The answer to a challenge.
    PathResponse {
        /// The challenge's bytes.
        data: [u8; 8],
    },
    /// How the sender wants a path to be used. The frame with the highest sequence number applies.
    PathStatus {
        /// The path.
        path: PathId,
        /// Sequence number, which increases with every status of this path.
        sequence: u64,
        /// The requested use.
        status: PathUse,
    },
    /// The path will not be used again.
    PathAbandon {
        /// The path.
        path: PathId,
        /// The reason, as a close code.
        reason: u64,
    },
    /// The send side of a stream ends without its remaining bytes.
    ResetStream {
        /// The stream.
        stream: StreamId,
        /// The application's code.
        code: u64,
        /// Bytes of credit that the stream has used.
        final_size: u64,
    },
    /// The receiving application will not read further.
    StopSending {
        /// The stream.
        stream: StreamId,
        /// The application's code.
        code: u64,
    },
    /// An additional address at which the responder can or will be reached.
    AddAddress {
        /// A unicast address with a port.
        address: SocketAddr,
    },
    /// A message of an exchange that renews the keys: the initiator's request or the responder's
    /// answer.
    Rekey {
        /// Epoch of the new keys. The keys of the handshake have epoch 0.
        epoch: u64,
        /// A message of Noise_KKpsk2.
        message: RekeyMessage,
    },
    /// The id under which the sender of the frame receives on a path.
    NewConnectionId {
        /// The path. Its number is above those of all opened paths, or it is the path that is being
        /// opened.
        path: PathId,
        /// The id, which differs from the ids of all other paths.
        id: ConnectionId,
    },
}

impl ControlFrame {
    /// Number of bytes that [`encode`](Self::encode) writes.
    pub fn encoded_len(&self) -> usize {
        let fields = match *self {
            ControlFrame::Ping => 0,
            ControlFrame::AckFloor { path, floor } => varint_len(path.0.into()) + varint_len(floor),
            ControlFrame::Abandon { first, count } => {
                varint_len(first.ordinal()) + varint_len(count)
            }
            ControlFrame::MaxData { limit } | ControlFrame::MaxSymbols { limit, .. } => {
                varint_len(limit)
            }
            ControlFrame::MaxStreamData { stream, limit } => {
                varint_len(stream.0) + varint_len(limit)
            }
            ControlFrame::MaxStreams { count } => varint_len(count),
            ControlFrame::PathChallenge { .. } | ControlFrame::PathResponse { .. } => 8,
            ControlFrame::PathStatus { path, sequence, .. } => {
                varint_len(path.0.into()) + varint_len(sequence) + 1
            }
            ControlFrame::PathAbandon { path, reason } => {
                varint_len(path.0.into()) + varint_len(reason)
            }
            ControlFrame::ResetStream { stream, code, final_size } => {
                varint_len(stream.0) + varint_len(code) + varint_len(final_size)
            }
            ControlFrame::StopSending { stream, code } => varint_len(stream.0) + varint_len(code),
            ControlFrame::AddAddress { address } => 3 + if address.is_ipv4() { 4 } else { 16 },
            ControlFrame::Rekey { epoch, .. } => varint_len(epoch) + REKEY_LEN,
            ControlFrame::NewConnectionId { path, .. } => varint_len(path.0.into()) + 4,
        };
        1 + fields
    }

    /// Writes the frame.
    pub fn encode(&self, writer: &mut Writer<'_>) -> Result<(), NoSpace> {
        writer.whole(|writer| self.write(writer))
    }

    fn write(&self, writer: &mut Writer<'_>) -> Result<(), NoSpace> {
        match *self {
            ControlFrame::Ping => writer.u8(kind::PING),
            ControlFrame::AckFloor { path, floor } => {
                fields(writer, kind::ACK_FLOOR, &[path.0.into(), floor])
            }
            ControlFrame::Abandon { first, count } => {
                let kind = kind::about(kind::ABANDON, first.space());
                fields(writer, kind, &[first.ordinal(), count])
            }
            ControlFrame::MaxData { limit } => fields(writer, kind::MAX_DATA, &[limit]),
            ControlFrame::MaxStreamData { stream, limit } => {
                fields(writer, kind::MAX_STREAM_DATA, &[stream.0, limit])
            }
            ControlFrame::MaxSymbols { space, limit } => {
                fields(writer, kind::about(kind::MAX_SYMBOLS, space), &[limit])
            }
            ControlFrame::MaxStreams { count } => fields(writer, kind::MAX_STREAMS, &[count]),
            ControlFrame::PathChallenge { data } => {
                writer.u8(kind::PATH_CHALLENGE)?;
                writer.bytes(&data)
            }
            ControlFrame::PathResponse { data } => {
                writer.u8(kind::PATH_RESPONSE)?;
                writer.bytes(&data)
            }
            ControlFrame::PathStatus { path, sequence, status } => {
                fields(writer, kind::PATH_STATUS, &[path.0.into(), sequence, status as u64])
            }
            ControlFrame::PathAbandon { path, reason } => {
                fields(writer, kind::PATH_ABANDON, &[path.0.into(), reason])
            }
            ControlFrame::ResetStream { stream, code, final_size } => {
                fields(writer, kind::RESET_STREAM, &[stream.0, code, final_size])
            }
            ControlFrame::StopSending { stream, code } => {
                fields(writer, kind::STOP_SENDING, &[stream.0, code])
            }
            ControlFrame::AddAddress { address } => {
                writer.u8(kind::ADD_ADDRESS)?;
                match address.ip() {
                    IpAddr::V4(ip) => writer.u8(4).and_then(|()| writer.bytes(&ip.octets()))?,
                    IpAddr::V6(ip) => writer.u8(6).and_then(|()| writer.bytes(&ip.octets()))?,
                }
                writer.bytes(&address.port().to_be_bytes())
            }
            ControlFrame::Rekey { epoch, message } => {
                fields(writer, kind::REKEY, &[epoch])?;
                writer.bytes(&message)
            }
            ControlFrame::NewConnectionId { path, id } => {
                fields(writer, kind::NEW_CONNECTION_ID, &[path.0.into()])?;
                writer.bytes(&id.0.to_be_bytes())
            }
        }
    }

    /// Reads the fields of a frame whose type byte was `kind`.
    pub(super) fn decode(kind: u8, reader: &mut Reader<'_>) -> Result<ControlFrame, WireError> {
        let frame = match kind {
            kind::PING => ControlFrame::Ping,
            kind::ACK_FLOOR => {
                ControlFrame::AckFloor { path: path(reader)?, floor: reader.varint()? }
            }
            kind::MAX_DATA => ControlFrame::MaxData { limit: reader.varint()? },
            kind::MAX_STREAM_DATA => {
                ControlFrame::MaxStreamData { stream: stream(reader)?, limit: reader.varint()? }
            }
            kind::MAX_STREAMS => ControlFrame::MaxStreams {
                count: reader.varint_up_to(MAX_STREAM_COUNT, "stream count")?,
            },
            kind::PATH_CHALLENGE => ControlFrame::PathChallenge { data: reader.array()? },
            kind::PATH_RESPONSE => ControlFrame::PathResponse { data: reader.array()? },
            kind::PATH_STATUS => path_status(reader)?,
            kind::PATH_ABANDON => {
                ControlFrame::PathAbandon { path: path(reader)?, reason: reader.varint()? }
            }
            kind::RESET_STREAM => ControlFrame::ResetStream {
                stream: stream(reader)?,
                code: reader.varint()?,
                final_size: reader.varint()?,
            },
            kind::STOP_SENDING => {
                ControlFrame::StopSending { stream: stream(reader)?, code: reader.varint()? }
            }
            kind::ADD_ADDRESS => ControlFrame::AddAddress { address: address(reader)? },
            kind::REKEY => {
                ControlFrame::Rekey { epoch: reader.varint()?, message: reader.array()? }
            }
            kind::NEW_CONNECTION_ID => {
                let (path, id) = (path(reader)?, u32::from_be_bytes(reader.array()?));
                ControlFrame::NewConnectionId { path, id: ConnectionId(id) }
            }
            _ => return ControlFrame::decode_of_space(kind, reader),
        };
        Ok(frame)
    }

    /// Reads the fields of a frame that refers to a symbol space.
    fn decode_of_space(kind: u8, reader: &mut Reader<'_>) -> Result<ControlFrame, WireError> {
        let (plain, space) = kind::split(kind);
        match plain {
            kind::ABANDON => abandon(reader, space),
            kind::MAX_SYMBOLS => Ok(ControlFrame::MaxSymbols { space, limit: reader.varint()? }),
            _ => Err(WireError::UnknownFrame(kind)),
        }
    }
}

fn fields(writer: &mut Writer<'_>, kind: u8, values: &[u64]) -> Result<(), NoSpace> {
    writer.u8(kind)?;
    values.iter().try_for_each(|value| writer.varint(*value))
}

/// Reads a path id, a varint of at most 32 bits.
pub(super) fn path(reader: &mut Reader<'_>) -> Result<PathId, WireError> {
    let value = reader.varint_up_to(u32::MAX.into(), "path id")?;
    u32::try_from(value).map(PathId).map_err(|_| WireError::Value("path id"))
}

fn stream(reader: &mut Reader<'_>) -> Result<StreamId, WireError> {
    reader.varint().map(StreamId)
}

/// Reads an address to which datagrams can be sent.
fn address(reader: &mut Reader<'_>) -> Result<SocketAddr, WireError> {
    let ip = match reader.u8()? {
        4 => IpAddr::from(reader.array::<4>()?),
        6 => IpAddr::from(reader.array::<16>()?),
        _ => return Err(WireError::Value("address family")),
    };
    let port = u16::from_be_bytes(reader.array()?);
    if port == 0 || ip.is_unspecified() || ip.is_multicast() {
        return Err(WireError::Value("address"));
    }
    Ok(SocketAddr::new(ip, port))
}

fn abandon(reader: &mut Reader<'_>, space: SymbolSpace) -> Result<ControlFrame, WireError> {
    let first = symbol(reader, space)?;
    let count = reader.varint()?;
    if count == 0 || count > SymbolSpace::SYMBOLS - first.ordinal() {
        return Err(WireError::Value("symbol count"));
    }
    Ok(ControlFrame::Abandon { first, count })
}

fn path_status(reader: &mut Reader<'_>) -> Result<ControlFrame, WireError> {
    let path = path(reader)?;
    let sequence = reader.varint()?;
    let status = match reader.varint()? {
        0 => PathUse::Available,
        1 => PathUse::Backup,
        _ => return Err(WireError::Value("path status")),
    };
    Ok(ControlFrame::PathStatus { path, sequence, status })
}
