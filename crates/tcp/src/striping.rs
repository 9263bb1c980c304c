//! An application that stripes one stream over several TCP connections. The paper on pTCP compares
//! pTCP with it (Hsieh and Sivakumar, Wireless Networks 2005, §2 and §5.1).
//!
//! The application opens a socket on each path and cuts its data into *packets* of one MSS, each
//! with an application sequence number. A [`StripingSender`] writes each packet to one socket, and
//! the packet stays there, whatever becomes of the path. The *unaware* application fills one send
//! buffer after the other; the *smart* one shares the packets out in the ratio of estimated rates
//! ([`Striping`]). The [`StripingReceiver`] reads the sockets and puts the packets back in order,
//! in a buffer of its own that may be small or absent. Data that it does not read fills a socket's
//! receive buffer and shuts its window. Every socket is an ordinary [`Sender`](crate::Sender) and
//! [`Receiver`](crate::Receiver) with buffers of its own.
//!
//! A receive buffer holds whole packets, so that a window always admits whole packets and each
//! segment carries exactly one. The segment's data sequence number is that of the application,
//! whose header takes [`mapping_bytes`](crate::WireFormat::mapping_bytes) on the wire.

mod estimate;
mod receiver;
mod sender;
mod socket;
mod turn;

use core::time::Duration;
use std::sync::Arc;

use anabranch_types::Bitrate;

use crate::config::Config;

pub use receiver::StripingReceiver;
pub use sender::StripingSender;

/// Configuration of a striping application.
#[derive(Clone, Debug, PartialEq)]
pub struct StripingConfig {
    /// Choice of the socket that a packet is written to.
    pub striping: Striping,
    /// Most bytes of packets beyond the next one in sequence that the receiving application holds.
    /// With 0 it reads packets only in sequence.
    pub resequencing_buffer: u64,
    /// Free bytes of a send buffer at which a socket that was full is written to again (SO_SNDLOWAT): at least a
    /// packet, at most the whole buffer.
    pub low_water: u64,
    /// Buffers of single sockets, by path, that differ from those of the connection's [`Config`].
    pub buffers: Vec<SocketBuffers>,
}

/// Choice of the socket that a packet is written to.
#[derive(Clone, Debug, PartialEq)]
pub enum Striping {
    /// The unaware application: it writes to a socket until that socket's send buffer is full, then
    /// to the next.
    UntilFull,
    /// The smart application: sockets take turns in proportion to their estimated rates. If the
    /// socket whose turn it is has no room, the application waits.
    ByRate(Estimate),
}

/// How the smart application estimates rates.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// Time between two estimates, above zero. Estimates are made at its multiples from time zero
    /// on; until the next one the last one holds.
    pub interval: Duration,
    /// Source of the rates.
    pub source: RateSource,
    /// Whether a rate is limited to what the socket's buffers allow: the smaller of the two divided
    /// by the least round-trip time.
    pub within_buffers: bool,
}

/// Where the estimates of rates come from.
#[derive(Clone, Debug, PartialEq)]
pub enum RateSource {
    /// The caller gives the rates of all paths at each multiple of the interval; the last ones hold
    /// for ever. If the list is empty, all rates are equal.
    Told(Arc<Vec<Vec<Bitrate>>>),
    /// Bytes that each socket's peer acknowledged since the last estimate, divided by the time
    /// since then. As every socket waits for the others' turns, this confirms whatever ratio there
    /// was.
    Acknowledged,
    /// Each socket's congestion window divided by its smoothed round-trip time.
    Window,
}

/// Buffers of one socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketBuffers {
    /// Most bytes that the receiver holds; `None`: as in the connection's configuration.
    pub receive: Option<u64>,
    /// Most bytes written and not yet acknowledged; `None`: as in the connection's configuration.
    pub send: Option<u64>,
}

impl StripingConfig {
    /// An application without a resequencing buffer, whose sockets are all alike.
    pub fn new(striping: Striping) -> Self {
        StripingConfig { striping, resequencing_buffer: 0, low_water: 0, buffers: Vec::new() }
    }

    /// Configuration of the connection on a path. Both buffers hold at least one packet, and the
    /// receiver's holds a whole number of packets.
    fn socket(&self, connection: &Config, path: usize) -> Config {
        let own = self.buffers.get(path).copied().unwrap_or_default();
        let mss = u64::from(connection.mss.max(1));
        let receive_buffer = own.receive.unwrap_or(connection.receive_buffer).max(mss);
        Config {
            mss: connection.mss.max(1),
            receive_buffer: receive_buffer - receive_buffer % mss,
            send_buffer: own.send.unwrap_or(connection.send_buffer).max(mss),
            read_at_once: false,
            ..connection.clone()
        }
    }
}

#[cfg(test)]
mod tests;
