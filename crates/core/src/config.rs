//! Limits of a connection, and the memory that they allow.

use core::time::Duration;

use crate::coding::MAX_BLOCK;
use crate::path::UDP_OVERHEAD;
use crate::path::sent::{MOST_UNWATCHED, SentPacket};
use crate::stream::StreamLimits;
use crate::wire::TransportParameters;

/// Limits and options of one side of a connection.
///
/// The limits bound the connection's memory, whatever the peer does:
/// [`TransportConfig::most_memory`]. Memory is taken only as it is needed.
#[derive(Clone, Debug)]
pub struct TransportConfig {
    /// Most bytes of UDP payload in a packet on a path whose MTU is not known; at least 1200. The
    /// default fits the minimum IPv6 path (1280 bytes).
    pub max_datagram: u16,
    /// Longest IP packet that path MTU discovery tries, bytes; 68–65 535. The default is
    /// Ethernet's. With `None`, every packet has at most `max_datagram` bytes on any path.
    pub mtu_limit: Option<u16>,
    /// Source symbols held above the sender's floor: the decoder credit. In addition, a quarter as
    /// many live symbols are held.
    pub receive_symbols: u64,
    /// Source symbols kept until the peer has them, counted from the oldest one that it lacks; its
    /// own credit may be less. In addition, a quarter as many live symbols are kept.
    pub send_symbols: u64,
    /// Stream and flow-control limits.
    pub streams: StreamLimits,
    /// Most paths at a time, 1–16.
    pub max_paths: u8,
    /// Longest time that an acknowledgement is held back.
    pub max_ack_delay: Duration,
    /// Silence after which the connection is given up; `None` means never.
    pub idle_timeout: Option<Duration>,
    /// Idle time after which a path is probed, so that address translators keep its entry and its
    /// failure is noticed; `None` means never.
    pub keepalive: Option<Duration>,
    /// Silence of the peer after which the peer is probed, so that its end is noticed a few round
    /// trips later. With `None`, only packets sent for other reasons show its end.
    pub heartbeat: Option<Duration>,
    /// Whether this side probes the other paths when one is silent, and asks the peer whether it
    /// still has the connection when all paths are silent. Always set over sockets, but not for all
    /// simulated protocols.
    pub notice_silence: bool,
    /// Whether packets are marked ECN-capable.
    pub ecn: bool,
    /// Whether the application gets blocks as a whole and in order, once all their symbols are
    /// there (MPLOT §II-A). If not, it gets each symbol as it arrives. Has no effect with
    /// sliding-window codes, which have no such blocks.
    pub whole_blocks: bool,
}

/// Memory of a connection that its limits do not include, bytes: pieces of streams beyond gaps,
/// scratch space of the decoder, policies.
const FIXED_MEMORY: u64 = 8 << 20;

/// Other symbols per live symbol that may be held or in flight.
const LIVE_SHARE: u64 = 4;

/// Memory of a path, bytes: its tables, and the sent packets that it remembers although it expects
/// no acknowledgement of them.
const PATH_MEMORY: u64 = (16 << 10) + 3 * (MOST_UNWATCHED * size_of::<SentPacket>()) as u64;

impl Default for TransportConfig {
    fn default() -> Self {
        TransportConfig {
            max_datagram: 1232,
            mtu_limit: Some(1500),
            receive_symbols: 16_384,
            send_symbols: 65_536,
            streams: StreamLimits::default(),
            max_paths: 8,
            max_ack_delay: Duration::from_millis(25),
            idle_timeout: Some(Duration::from_secs(30)),
            keepalive: None,
            heartbeat: None,
            notice_silence: false,
            ecn: true,
            whole_blocks: false,
        }
    }
}

impl TransportConfig {
    /// Most bytes of UDP payload sent or accepted in any packet.
    pub fn largest_datagram(&self) -> u16 {
        let discovered = self.mtu_limit.map_or(0, |mtu| mtu.saturating_sub(UDP_OVERHEAD as u16));
        self.max_datagram.max(discovered)
    }

    /// Source symbols held above the sender's floor in the symbol space of live data, in addition
    /// to the others. Receivers of whole blocks do not offer such a space.
    pub(crate) const fn live_receive_symbols(&self) -> u64 {
        if self.whole_blocks { 0 } else { self.receive_symbols / LIVE_SHARE }
    }

    /// Source symbols of live data kept until the peer has them, in addition to the others.
    pub(crate) const fn live_send_symbols(&self) -> u64 {
        self.send_symbols / LIVE_SHARE
    }

    /// Most symbols that the peer may send above the floor. This credit grows like that of streams.
    const fn most_symbols(&self) -> u64 {
        let symbols = self.receive_symbols.saturating_add(self.live_receive_symbols());
        symbols.saturating_mul(self.streams.growth)
    }

    /// The most memory that a connection takes under these limits, in bytes, with `open` streams
    /// opened by this side: symbols and repairs held for decoding, symbols kept until they are
    /// recovered or cut again for paths with a smaller MTU, bytes received and not read, bytes
    /// written and not sent, datagrams, paths, and bookkeeping. Buffers grow by doubling, so they
    /// take up to twice the size of their content, and three times while they grow.
    pub fn most_memory(&self, open: u64) -> u64 {
        let (datagram, limits) = (u64::from(self.largest_datagram()), &self.streams);
        let streams = limits.max_streams.saturating_add(open);
        let parts = [
            self.most_symbols().saturating_mul(2 * datagram + 1024),
            2 * MAX_BLOCK as u64 * datagram,
            (self.send_symbols.saturating_add(self.live_send_symbols()))
                .saturating_mul(2 * datagram + 512),
            limits.most_room(streams),
            limits.max_stream_data.saturating_mul(limits.growth).saturating_mul(4),
            streams.saturating_mul(limits.send_buffer.saturating_mul(3).saturating_add(8192)),
            (limits.datagram_buffer as u64).saturating_mul(4 * 3 * 2),
            u64::from(self.max_paths) * PATH_MEMORY,
            FIXED_MEMORY,
        ];
        parts.into_iter().fold(0, u64::saturating_add)
    }

    /// The transport parameters that announce these limits. `ack_profile` names the profile by which
    /// the peer shall acknowledge.
    pub fn parameters(&self, ack_profile: &str) -> TransportParameters {
        TransportParameters {
            max_data: self.streams.max_data,
            max_stream_data: self.streams.max_stream_data,
            max_streams: self.streams.max_streams,
            max_symbols: self.receive_symbols,
            max_udp_payload: self.largest_datagram(),
            max_block: u64::from(self.largest_datagram()) * MAX_BLOCK as u64,
            max_paths: self.max_paths,
            max_ack_delay: self.max_ack_delay,
            idle_timeout: self.idle_timeout,
            ack_profile: Some(ack_profile.to_owned()),
            codes: None,
            check: None,
            connection_ids: Vec::new(),
            whole_blocks: self.whole_blocks,
            max_live_symbols: self.live_receive_symbols(),
        }
    }
}
