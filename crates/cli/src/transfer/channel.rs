//! The stream of a transfer: frames in, frames out.

use std::time::Duration;

use anabranch::{Connection, ReadExactError, RecvStream, SendStream, TrafficClass};
use anabranch_transfer::frame::{HEADER_LEN, PREFACE_LEN};
use anabranch_transfer::{Frame, Header, Preface, Role};
use bytes::Bytes;
use tokio::time::timeout;

use super::error::TransferError;

/// How long a peer may take from connecting to its preface.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long the last message to a peer may take to be sent and acknowledged.
const FAREWELL: Duration = Duration::from_secs(2);

/// Input from the peer.
#[derive(Debug)]
pub(super) enum Incoming {
    /// Bytes of the current file, as many as had arrived.
    Data(Bytes),
    /// Anything else.
    Frame(Frame),
}

/// Frames from the peer.
#[derive(Debug)]
pub(super) struct Reader {
    stream: RecvStream,
    /// Bytes of the current file that are still to come before the next header.
    data_left: usize,
    payload: Vec<u8>,
}

/// Frames to the peer.
#[derive(Debug)]
pub(super) struct Writer {
    stream: SendStream,
    buffer: Vec<u8>,
}

/// Opens the stream, or takes the one that the peer opens, and checks that the peer is the other end
/// of a transfer.
pub(super) async fn open(
    connection: &Connection,
    initiator: bool,
    role: Role,
) -> Result<(Reader, Writer), TransferError> {
    let halves = async {
        if initiator {
            return connection.open_bi(TrafficClass::Bulk).await;
        }
        connection.accept_bi().await
    };
    let silent = |_| TransferError::lost("the other side connected but sent nothing");
    let (send, receive) = timeout(PATIENCE, halves).await.map_err(silent)??;
    let mut reader = Reader { stream: receive, data_left: 0, payload: Vec::new() };
    let mut writer = Writer { stream: send, buffer: Vec::new() };
    writer.stream.write_all(&Preface { role }.encode()).await?;
    let mut bytes = [0; PREFACE_LEN];
    timeout(PATIENCE, reader.stream.read_exact(&mut bytes)).await.map_err(silent)??;
    let checked = Preface::decode(bytes).map_err(TransferError::from).and_then(|preface| {
        if preface.role == role.opposite() { Ok(()) } else { Err(same_role(role)) }
    });
    if let Err(error) = checked {
        writer.fail(&error).await;
        return Err(error);
    }
    Ok((reader, writer))
}

fn same_role(role: Role) -> TransferError {
    TransferError::protocol(match role {
        Role::Offers => "both sides want to send; one must use recv or get",
        Role::Takes => "both sides want to receive; one must use send",
    })
}

impl Reader {
    /// The next frame, or bytes of the current file as soon as there are any. Dropping the future may lose bytes.
    pub(super) async fn next(&mut self) -> Result<Incoming, TransferError> {
        if self.data_left > 0 {
            return self.data().await;
        }
        let mut header = [0; HEADER_LEN];
        self.stream.read_exact(&mut header).await?;
        match Header::decode(header)? {
            Header::Data(len) => {
                self.data_left = len;
                self.data().await
            }
            Header::Frame(kind, len) => {
                self.payload.resize(len, 0);
                self.stream.read_exact(&mut self.payload).await?;
                match Frame::decode(kind, &self.payload)? {
                    Frame::Failed { code, text } => Err(TransferError::Peer(code, text)),
                    frame => Ok(Incoming::Frame(frame)),
                }
            }
        }
    }

    /// Some of the bytes that are to come before the next header.
    async fn data(&mut self) -> Result<Incoming, TransferError> {
        let cut_off = || ReadExactError::FinishedEarly(0);
        let bytes = self.stream.read_chunk(self.data_left).await?.ok_or_else(cut_off)?;
        self.data_left -= bytes.len();
        Ok(Incoming::Data(bytes))
    }

    /// The next frame that is not bytes of a file.
    pub(super) async fn frame(&mut self) -> Result<Frame, TransferError> {
        match self.next().await? {
            Incoming::Frame(frame) => Ok(frame),
            Incoming::Data(_) => Err(unexpected("bytes of a file")),
        }
    }
}

/// The error for a frame that the peer must not send at this point.
pub(super) fn unexpected(what: impl std::fmt::Display) -> TransferError {
    TransferError::protocol(format!("unexpected {what}"))
}

impl Writer {
    pub(super) async fn frame(&mut self, frame: &Frame) -> Result<(), TransferError> {
        self.buffer.clear();
        frame.encode(&mut self.buffer);
        Ok(self.stream.write_all(&self.buffer).await?)
    }

    /// Bytes of the current file; at most `MAX_DATA`.
    pub(super) async fn data(&mut self, bytes: &[u8]) -> Result<(), TransferError> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.stream.write_all(&Header::of_data(bytes.len())).await?;
        Ok(self.stream.write_all(bytes).await?)
    }

    /// Ends this direction and waits until the peer has acknowledged all of it, but no longer than [`FAREWELL`].
    pub(super) async fn finish(&mut self) {
        // If the stream has failed, the peer cannot be told anything.
        if self.stream.finish().is_ok() {
            let _ = timeout(FAREWELL, self.stream.acked()).await;
        }
    }

    /// Tells the peer why the transfer ends here, if it does not know.
    pub(super) async fn fail(&mut self, error: &TransferError) {
        if let Some((code, text)) = error.for_peer() {
            // A message that cannot be sent in time is left out.
            let said =
                timeout(FAREWELL, self.frame(&Frame::Failed { code, text: text.into() })).await;
            if said.is_ok() {
                self.finish().await;
            }
        }
    }
}
