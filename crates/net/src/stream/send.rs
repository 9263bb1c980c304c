use super::error::WriteError;
use crate::connection::ConnectionRef;
use crate::error::ConnectionError;
use anabranch_core::connection::Connection;
use anabranch_core::stream::{StreamError, StreamId};
use anabranch_policy::view::TrafficClass;
use bytes::Bytes;
use core::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::AsyncWrite;

/// The half of a stream that this side writes.
///
/// Writing only queues bytes, up to the send buffer; [`SendStream::acked`] waits until the peer has
/// them. Dropping it ends the stream after what was written, as [`SendStream::finish`] does.
pub struct SendStream {
    connection: Arc<ConnectionRef>,
    id: StreamId,
}

impl fmt::Debug for SendStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendStream").field("id", &self.id).finish_non_exhaustive()
    }
}

impl SendStream {
    pub(crate) fn new(connection: Arc<ConnectionRef>, id: StreamId) -> Self {
        SendStream { connection, id }
    }

    /// The stream's id, the same on both sides.
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// Queues as many of `bytes` as the send buffer has room for, once it has any; returns how many.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<usize, WriteError> {
        poll_fn(|cx| self.poll_write_some(cx, bytes)).await
    }

    /// Queues all of `bytes`, waiting for room in the send buffer.
    pub async fn write_all(&mut self, mut bytes: &[u8]) -> Result<(), WriteError> {
        while !bytes.is_empty() {
            let taken = self.write(bytes).await?;
            bytes = bytes.get(taken..).unwrap_or_default();
        }
        Ok(())
    }

    /// Queues all of `chunk`, waiting for room in the send buffer. The bytes are not copied, unless they are fewer than 256:
    /// the chunk's memory is released once they are in packets.
    pub async fn write_chunk(&mut self, mut chunk: Bytes) -> Result<(), WriteError> {
        while !chunk.is_empty() {
            poll_fn(|cx| {
                self.poll_write_with(cx, true, |connection| {
                    connection.write_chunk(self.id, &mut chunk)
                })
            })
            .await?;
        }
        Ok(())
    }

    fn poll_write_some(
        &self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize, WriteError>> {
        let wants = !bytes.is_empty();
        self.poll_write_with(cx, wants, |connection| connection.write(self.id, bytes))
    }

    /// Calls `write`, which returns how many bytes there was room for. If there was none and it `wants` some, the task is
    /// woken when there is.
    fn poll_write_with(
        &self,
        cx: &mut Context<'_>,
        wants: bool,
        write: impl FnOnce(&mut Connection) -> Result<usize, StreamError>,
    ) -> Poll<Result<usize, WriteError>> {
        let shared = &self.connection.shared;
        let mut state = shared.lock();
        match write(state.usable()?) {
            Ok(0) if wants => {
                if let Some(stream) = state.streams.get_mut(&self.id) {
                    stream.writer = Some(cx.waker().clone());
                }
                Poll::Pending
            }
            Ok(taken) => {
                drop(state);
                shared.mailbox.ring();
                Poll::Ready(Ok(taken))
            }
            Err(error) => {
                let stopped = state.streams.get(&self.id).and_then(|stream| stream.stopped);
                Poll::Ready(Err(WriteError::new(error, stopped)))
            }
        }
    }

    /// The class in which this side's bytes travel; `None` once the stream has ended.
    pub fn class(&self) -> Option<TrafficClass> {
        self.urgency().map(|(class, _)| class)
    }

    /// The stream's priority within its class; `None` once the stream has ended.
    pub fn priority(&self) -> Option<i32> {
        self.urgency().map(|(_, priority)| priority)
    }

    fn urgency(&self) -> Option<(TrafficClass, i32)> {
        self.connection.shared.lock().connection.as_ref()?.stream_urgency(self.id)
    }

    /// Gives what is written from now on, and what waits to be sent, the traffic class `class`. The sending half of
    /// an accepted stream begins as bulk.
    ///
    /// # Errors
    /// When the connection or the stream has ended.
    pub fn set_class(&mut self, class: TrafficClass) -> Result<(), WriteError> {
        let shared = &self.connection.shared;
        let result = shared.lock().usable()?.set_stream_class(self.id, class);
        shared.mailbox.ring();
        result.map_err(|error| WriteError::new(error, None))
    }

    /// Sends what waits on streams of higher priority first, within a class; streams of the same priority
    /// take turns. Every stream begins at 0.
    ///
    /// # Errors
    /// When the connection or the stream has ended.
    pub fn set_priority(&mut self, priority: i32) -> Result<(), WriteError> {
        let result = self.connection.shared.lock().usable()?.set_stream_priority(self.id, priority);
        result.map_err(|error| WriteError::new(error, None))
    }

    /// Ends the stream after what was written. To finish twice is not an error.
    ///
    /// # Errors
    /// When the peer has stopped the stream, or the connection is over.
    pub fn finish(&mut self) -> Result<(), WriteError> {
        let shared = &self.connection.shared;
        let result = shared.lock().usable()?.finish(self.id);
        shared.mailbox.ring();
        match result {
            // The stream was finished before, and the core may have forgotten it since.
            Ok(()) | Err(StreamError::Ended | StreamError::Unknown) => Ok(()),
            Err(error) => Err(WriteError::new(error, None)),
        }
    }

    /// Abandons what the peer does not have yet; `code` is the application's and tells the peer why.
    pub fn reset(&mut self, code: u64) {
        // An error means that the stream has ended already.
        let _ = self.connection.shared.act(|connection| connection.reset(self.id, code));
    }

    /// How many bytes have been sent at least once, or are about to be: the rest of what was written waits for room
    /// on the paths. `None` once the peer has all of a finished stream.
    pub fn sent(&self) -> Option<u64> {
        let state = self.connection.shared.lock();
        let progress = state.connection.as_ref()?.stream_progress(self.id)?;
        Some(progress.sent)
    }

    /// Waits until the stream is finished and the peer has all of it.
    ///
    /// # Errors
    /// When the peer has stopped the stream, or the connection is over.
    pub async fn acked(&mut self) -> Result<(), WriteError> {
        self.stopped().await?.map_or(Ok(()), |code| Err(WriteError::Stopped(code)))
    }

    /// Waits until the peer stops reading, and returns its application's code, or until the stream is
    /// finished and the peer has all of it, and returns `None`.
    ///
    /// # Errors
    /// When the connection is over.
    pub async fn stopped(&mut self) -> Result<Option<u64>, ConnectionError> {
        poll_fn(|cx| self.poll_stopped(cx)).await
    }

    fn poll_stopped(&self, cx: &mut Context<'_>) -> Poll<Result<Option<u64>, ConnectionError>> {
        let mut state = self.connection.shared.lock();
        let error = state.error();
        let Some(stream) = state.streams.get_mut(&self.id) else { return Poll::Ready(Ok(None)) };
        match (stream.stopped, error) {
            (None, _) if stream.acked => Poll::Ready(Ok(None)),
            (Some(code), _) => Poll::Ready(Ok(Some(code))),
            (None, Some(error)) => Poll::Ready(Err(error)),
            (None, None) => {
                stream.delivery = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl AsyncWrite for SendStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_some(cx, bytes).map_err(io::Error::from)
    }

    /// Nothing to do: bytes leave as soon as the paths admit them.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Finishes the stream; see [`SendStream::finish`].
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.get_mut().finish().map_err(io::Error::from))
    }
}

impl Drop for SendStream {
    fn drop(&mut self) {
        let mut state = self.connection.shared.lock();
        if let Some(connection) = &mut state.connection {
            // An error means that the stream has ended already.
            let _ = connection.finish(self.id);
        }
        super::drop_half(&mut state, &self.connection, self.id);
    }
}
