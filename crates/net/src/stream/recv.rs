use super::error::{ReadError, ReadExactError, ReadToEndError};
use crate::connection::ConnectionRef;
use crate::shared::{ConnectionState, Rest};
use anabranch_core::stream::StreamId;
use bytes::Bytes;
use core::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, ReadBuf};

/// Bytes that [`RecvStream::read_to_end`] reads at a time.
const STEP: usize = 64 << 10;

/// The half of a stream that this side reads. Dropping it before the end tells the peer to stop.
pub struct RecvStream {
    connection: Arc<ConnectionRef>,
    id: StreamId,
    /// The end, or an error, has been read.
    ended: bool,
}

impl fmt::Debug for RecvStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecvStream").field("id", &self.id).finish_non_exhaustive()
    }
}

impl RecvStream {
    pub(crate) fn new(connection: Arc<ConnectionRef>, id: StreamId) -> Self {
        RecvStream { connection, id, ended: false }
    }

    /// The stream's id, the same on both sides.
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// Reads bytes in order, as many as are there, once there are any; `None` at the end of the stream.
    pub async fn read(&mut self, buffer: &mut [u8]) -> Result<Option<usize>, ReadError> {
        poll_fn(|cx| self.poll_read_some(cx, buffer)).await
    }

    /// Fills `buffer`.
    pub async fn read_exact(&mut self, buffer: &mut [u8]) -> Result<(), ReadExactError> {
        let mut filled = 0;
        while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            let count = self.read(rest).await?.ok_or(ReadExactError::FinishedEarly(filled))?;
            filled += count;
        }
        Ok(())
    }

    /// Reads what is there, `limit` bytes at most (and at least one), once there is anything; `None` at the end of the stream.
    /// The bytes are copied once, out of the packets that brought them.
    pub async fn read_chunk(&mut self, limit: usize) -> Result<Option<Bytes>, ReadError> {
        let (count, mut buffer) = poll_fn(|cx| {
            let mut buffer = vec![0; self.readable().clamp(1, limit.max(1))];
            self.poll_read_some(cx, &mut buffer).map_ok(|count| (count, buffer))
        })
        .await?;
        Ok(count.map(|count| {
            buffer.truncate(count);
            Bytes::from(buffer)
        }))
    }

    /// Bytes that can be read without waiting.
    fn readable(&self) -> usize {
        let state = self.connection.shared.lock();
        let rest = state.streams.get(&self.id).and_then(|stream| stream.rest.as_ref());
        let rest = rest.map_or(0, |rest| rest.bytes.len());
        let connection = state.connection.as_ref();
        let readable = connection.and_then(|connection| connection.readable(self.id));
        rest.max(usize::try_from(readable.unwrap_or(0)).unwrap_or(usize::MAX))
    }

    /// Reads everything up to the end of the stream.
    ///
    /// # Errors
    /// When there is more than `limit` bytes, of which the first are then lost; and those of
    /// [`read`](Self::read).
    pub async fn read_to_end(&mut self, limit: usize) -> Result<Vec<u8>, ReadToEndError> {
        let mut bytes = Vec::new();
        loop {
            let filled = bytes.len();
            // One byte beyond the limit tells whether there are more.
            bytes.resize(filled.saturating_add(STEP).min(limit.saturating_add(1)), 0);
            let count = self.read(&mut bytes[filled..]).await?;
            bytes.truncate(filled + count.unwrap_or(0));
            match count {
                None => return Ok(bytes),
                Some(_) if bytes.len() > limit => return Err(ReadToEndError::TooLong(limit)),
                Some(_) => {}
            }
        }
    }

    /// Gives up reading; `code` is the application's and tells the peer why.
    pub fn stop(&mut self, code: u64) {
        self.ended = true;
        // An error means that the stream has ended already.
        let _ = self.connection.shared.act(|connection| connection.stop_sending(self.id, code));
    }

    fn poll_read_some(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<Result<Option<usize>, ReadError>> {
        if self.ended {
            return Poll::Ready(Ok(None));
        }
        if buffer.is_empty() {
            return Poll::Ready(Ok(Some(0)));
        }
        let shared = &self.connection.shared;
        let mut state = shared.lock();
        let Some((count, finished)) = read(&mut state, self.id, buffer)? else {
            if let Some(stream) = state.streams.get_mut(&self.id) {
                stream.reader = Some(cx.waker().clone());
            }
            return Poll::Pending;
        };
        self.ended = finished;
        // Reading gives the peer credit, which has to be sent now and then.
        if state.connection.as_ref().is_some_and(|connection| connection.has_control()) {
            shared.mailbox.ring();
        }
        Poll::Ready(Ok((count > 0).then_some(count)))
    }
}

impl AsyncRead for RecvStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = self.get_mut().poll_read_some(cx, buffer.initialize_unfilled());
        read.map_ok(|count| buffer.advance(count.unwrap_or(0))).map_err(io::Error::from)
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        if !self.ended {
            self.stop(0);
        }
        super::drop_half(&mut self.connection.shared.lock(), &self.connection, self.id);
    }
}

/// Copies bytes; returns how many, and whether the stream ends after them. `None` if there is nothing yet.
fn read(
    state: &mut ConnectionState,
    id: StreamId,
    out: &mut [u8],
) -> Result<Option<(usize, bool)>, ReadError> {
    if let Some(rest) = state.streams.get_mut(&id).and_then(|stream| stream.rest.as_mut()) {
        let count = rest.take(out);
        let at_end = rest.bytes.is_empty() && rest.finished;
        if count > 0 || at_end {
            return Ok(Some((count, at_end)));
        }
    }
    match state.usable()?.read(id, out) {
        Ok(outcome) if outcome.n > 0 || outcome.finished => Ok(Some((outcome.n, outcome.finished))),
        Ok(_) => Ok(None),
        Err(error) => {
            let reset = state.streams.get(&id).and_then(|stream| stream.reset);
            Err(ReadError::new(error, reset))
        }
    }
}

impl Rest {
    fn take(&mut self, out: &mut [u8]) -> usize {
        // Reading from a deque of bytes into a slice cannot fail.
        io::Read::read(&mut self.bytes, out).unwrap_or(0)
    }
}
