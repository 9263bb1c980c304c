//! Limits of a connection, and what they cost in memory.

use core::time::Duration;

use crate::stream::StreamLimits;
use crate::wire::TransportParameters;

/// What one side of a connection grants and uses.
///
/// Memory of a connection is at most about
/// `receive_symbols × max_datagram × 2` (symbols and repairs held for decoding)
/// `+ peer's receive_symbols × max_datagram` (symbols kept until recovered)
/// `+ streams.max_data` (received, unread) `+ streams × send_buffer` (written, unsent)
/// `+ 4 kB per path`; all of it grows only as it is used.
#[derive(Clone, Debug)]
pub struct TransportConfig {
    /// Most bytes of UDP payload sent or accepted in a packet; at least 1200. The default fits the
    /// minimum IPv6 path (1280 bytes).
    pub max_datagram: u16,
    /// Source symbols held above the sender's floor: the decoder credit.
    pub receive_symbols: u64,
    /// Stream and flow-control limits.
    pub streams: StreamLimits,
    /// Most paths at a time, 1–16.
    pub max_paths: u8,
    /// Longest time that an acknowledgement is held back.
    pub max_ack_delay: Duration,
    /// Silence after which the connection is given up; `None`: never.
    pub idle_timeout: Option<Duration>,
    /// Idle time after which a path is asked for a sign of life, so that address translators keep its
    /// entry and its death is noticed; `None`: never.
    pub keepalive: Option<Duration>,
    /// Whether packets are marked ECN-capable.
    pub ecn: bool,
}

impl Default for TransportConfig {
    fn default() -> Self {
        TransportConfig {
            max_datagram: 1232,
            receive_symbols: 16_384,
            streams: StreamLimits::default(),
            max_paths: 8,
            max_ack_delay: Duration::from_millis(25),
            idle_timeout: Some(Duration::from_secs(30)),
            keepalive: None,
            ecn: true,
        }
    }
}

impl TransportConfig {
    /// The transport parameters that announce these limits. `ack_profile` names the profile by which
    /// the peer shall acknowledge.
    pub fn parameters(&self, ack_profile: &str) -> TransportParameters {
        TransportParameters {
            max_data: self.streams.max_data,
            max_stream_data: self.streams.max_stream_data,
            max_streams: self.streams.max_streams,
            max_symbols: self.receive_symbols,
            max_udp_payload: self.max_datagram,
            max_window: u64::from(self.max_datagram) * 255,
            max_paths: self.max_paths,
            max_ack_delay: self.max_ack_delay,
            idle_timeout: self.idle_timeout,
            ack_profile: Some(ack_profile.to_owned()),
        }
    }
}
