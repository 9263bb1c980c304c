//! The protocol between client and server: a request, an answer, and the server's results at the end. Each message is a
//! 4-byte little-endian length followed by that many bytes of JSON, on the first stream.

use std::time::Duration;

use anabranch_types::PeerText;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::inbox::Seen;
use crate::limit::LOWEST;

/// Version of this exchange. A server refuses later ones and serves earlier ones.
pub const VERSION: u32 = 2;
/// The first version. A client sends it unless its request needs an option that a later one added.
const FIRST: u32 = 1;
/// Longest time at the beginning that a request may leave out of the results.
pub const MAX_OMIT: Duration = Duration::from_secs(60);
/// Most streams of a measurement.
pub const MAX_STREAMS: u16 = 128;
/// Longest measurement.
pub const MAX_TIME: Duration = Duration::from_secs(3600);
/// Longest message, bytes: the figures of [`MAX_STREAMS`] streams fit.
const MAX_MESSAGE: u32 = 64 << 10;

/// The client's request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Version of the exchange, at most [`VERSION`].
    pub version: u32,
    /// Senders stop after this many seconds, or earlier once they have sent `bytes`.
    pub seconds: f64,
    /// Bytes of each direction, over all streams.
    pub bytes: Option<u64>,
    /// Data streams, which the client opens.
    pub streams: u16,
    /// The client sends.
    pub upload: bool,
    /// The server sends.
    pub download: bool,
    /// Version 2: highest rate of each direction, over all streams, bits per second.
    #[serde(default)]
    pub bitrate: Option<u64>,
    /// Version 2: the data are datagrams. Each side has one stream, on which it reports at the end
    /// how many it has sent.
    #[serde(default)]
    pub datagrams: bool,
    /// Version 2: seconds at the beginning that do not count; sending goes on this much longer.
    #[serde(default)]
    pub omit: f64,
    /// Version 2: the client opens a stream before the others, and what it writes there is sent back.
    #[serde(default)]
    pub latency: bool,
}

/// The server's answer to a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Answer {
    /// The server carries out the request.
    Ready,
    /// The server refuses the request, for this reason.
    #[serde(with = "peer_text")]
    Refused(PeerText),
}

/// Reads and writes the other side's text as a JSON string.
mod peer_text {
    use super::{Deserialize, PeerText};
    use serde::{Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(text: &PeerText, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(text.as_untrusted())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PeerText, D::Error> {
        String::deserialize(from).map(PeerText::from)
    }
}

/// Figures of one side of the measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Bytes given to each stream.
    pub sent: Vec<u64>,
    /// Bytes read from each stream.
    pub received: Vec<u64>,
    /// Seconds until the last byte was written, 0 if none was.
    pub sent_seconds: f64,
    /// Seconds until the last byte was read, 0 if none was.
    pub received_seconds: f64,
    /// CPU seconds used in that time.
    pub cpu_seconds: f64,
    /// Source symbols and repairs sent.
    pub symbols: u64,
    /// Repairs sent.
    pub repairs: u64,
    /// Packets declared lost.
    pub lost_packets: u64,
    /// Version 2: datagrams sent.
    #[serde(default)]
    pub datagrams_sent: u64,
    /// Version 2: what was received of the other side's datagrams.
    #[serde(default)]
    pub datagrams_seen: Seen,
}

/// The exchange failed.
#[derive(Debug, Error)]
pub enum ExchangeError {
    /// The connection or the stream failed.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// This side could not write to the stream.
    #[error("{0}")]
    Write(#[from] anabranch::WriteError),
    /// A message is announced as longer than 64 KiB.
    #[error("the other side sent a message of {0} bytes; is it an `anabranch bench`?")]
    TooLong(u32),
    /// A message does not parse.
    #[error("the other side sent something that is not a message of `anabranch bench`: {0}")]
    Malformed(#[from] serde_json::Error),
}

impl Request {
    /// The request with the lowest version that has all its options, so that older servers can
    /// answer.
    pub fn with_lowest_version(self) -> Self {
        let later = self.bitrate.is_some() || self.datagrams || self.omit > 0.0 || self.latency;
        Request { version: if later { VERSION } else { FIRST }, ..self }
    }

    /// The reason to refuse the request; `None` if it is acceptable. Servers check it because a
    /// client may be a stranger.
    pub fn objection(&self) -> Option<String> {
        let seconds = MAX_TIME.as_secs_f64();
        if !(FIRST..=VERSION).contains(&self.version) {
            return Some(format!("this server speaks version {VERSION} of the protocol"));
        }
        if self.bitrate.is_some_and(|rate| rate < LOWEST.as_bps()) {
            return Some("the rate must be at least 8 kbit/s".to_owned());
        }
        if !(0.0..=MAX_OMIT.as_secs_f64()).contains(&self.omit) {
            return Some(format!("at most {} seconds can be omitted", MAX_OMIT.as_secs()));
        }
        if self.datagrams && self.streams != 1 {
            return Some("a datagram test has exactly one stream".to_owned());
        }
        if self.streams == 0 || self.streams > MAX_STREAMS {
            return Some(format!("from 1 to {MAX_STREAMS} streams are possible"));
        }
        if !(self.seconds > 0.0 && self.seconds <= seconds) {
            return Some(format!("a measurement takes up to {seconds} seconds"));
        }
        (!self.upload && !self.download).then(|| "neither side would send anything".to_owned())
    }
}

/// Writes one message.
///
/// # Errors
/// When the stream fails.
pub async fn write_message(
    stream: &mut (impl AsyncWrite + Unpin),
    message: &impl Serialize,
) -> Result<(), ExchangeError> {
    let text = serde_json::to_vec(message)?;
    stream.write_all(&(text.len() as u32).to_le_bytes()).await?;
    stream.write_all(&text).await?;
    Ok(())
}

/// Reads one message.
///
/// # Errors
/// When the stream fails or ends, or its bytes are not such a message.
pub async fn read_message<T: DeserializeOwned>(
    stream: &mut (impl AsyncRead + Unpin),
) -> Result<T, ExchangeError> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).await?;
    let length = u32::from_le_bytes(length);
    if length > MAX_MESSAGE {
        return Err(ExchangeError::TooLong(length));
    }
    let mut text = vec![0; length as usize];
    stream.read_exact(&mut text).await?;
    Ok(serde_json::from_slice(&text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> Request {
        Request {
            version: VERSION,
            seconds: 10.0,
            bytes: None,
            streams: 2,
            upload: true,
            download: false,
            bitrate: None,
            datagrams: false,
            omit: 0.0,
            latency: false,
        }
    }

    #[tokio::test]
    async fn messages_come_back_as_they_were() {
        let mut bytes = Vec::new();
        write_message(&mut bytes, &request()).await.unwrap();
        write_message(&mut bytes, &Answer::Refused("no".into())).await.unwrap();
        let mut rest = bytes.as_slice();
        assert_eq!(read_message::<Request>(&mut rest).await.unwrap(), request());
        assert_eq!(read_message::<Answer>(&mut rest).await.unwrap(), Answer::Refused("no".into()));
        assert!(rest.is_empty());
    }

    #[tokio::test]
    async fn garbage_is_an_error_and_costs_no_memory() {
        let long = [0xff; 8];
        let error = read_message::<Request>(&mut long.as_slice()).await.unwrap_err();
        assert!(matches!(error, ExchangeError::TooLong(u32::MAX)));
        let cut = [9, 0, 0, 0, b'{'];
        let error = read_message::<Request>(&mut cut.as_slice()).await.unwrap_err();
        assert!(matches!(error, ExchangeError::Io(_)));
        let wrong = [2, 0, 0, 0, b'{', b'}'];
        let error = read_message::<Request>(&mut wrong.as_slice()).await.unwrap_err();
        assert!(matches!(error, ExchangeError::Malformed(_)));
    }

    #[test]
    fn earlier_versions_are_understood() {
        let text = r#"{"version":1,"seconds":10.0,"bytes":null,"streams":2,"upload":true,"download":false}"#;
        let earlier: Request = serde_json::from_str(text).unwrap();
        assert_eq!((&earlier, earlier.objection()), (&request().with_lowest_version(), None));
        for later in [
            Request { bitrate: Some(1_000_000), ..request() },
            Request { datagrams: true, streams: 1, ..request() },
            Request { omit: 1.0, ..request() },
            Request { latency: true, ..request() },
        ] {
            assert_eq!(later.clone().with_lowest_version().version, VERSION);
            assert_eq!(later.objection(), None);
        }
    }

    #[test]
    fn a_server_does_not_do_everything() {
        assert_eq!(request().objection(), None);
        for wrong in [
            Request { version: 0, ..request() },
            Request { version: VERSION + 1, ..request() },
            Request { bitrate: Some(7_999), ..request() },
            Request { omit: 61.0, ..request() },
            Request { omit: f64::NAN, ..request() },
            Request { datagrams: true, ..request() },
            Request { streams: 0, ..request() },
            Request { streams: MAX_STREAMS + 1, ..request() },
            Request { seconds: f64::NAN, ..request() },
            Request { seconds: -1.0, ..request() },
            Request { seconds: 1e9, ..request() },
            Request { upload: false, ..request() },
        ] {
            assert!(wrong.objection().is_some(), "{wrong:?}");
        }
    }
}
