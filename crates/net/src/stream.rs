use crate::connection::ConnectionRef;
use crate::error::stream_io_error;
use crate::shared::{ConnectionState, Rest};
use anabranch_core::stream::{StreamError, StreamId};
use anabranch_policy::view::TrafficClass;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The half of a stream that this side writes.
///
/// Writing only queues bytes, up to the send buffer; [`SendStream::acked`] waits until the peer has
/// them. Dropping it ends the stream after what was written, as [`SendStream::finish`] does.
#[derive(Debug)]
pub struct SendStream {
    connection: Arc<ConnectionRef>,
    id: StreamId,
}

/// The half of a stream that this side reads. Dropping it before the end tells the peer to stop.
#[derive(Debug)]
pub struct RecvStream {
    connection: Arc<ConnectionRef>,
    id: StreamId,
    /// The end, or an error, has been read.
    ended: bool,
}

impl SendStream {
    pub(crate) fn new(connection: Arc<ConnectionRef>, id: StreamId) -> Self {
        SendStream { connection, id }
    }

    /// The stream's id, the same on both sides.
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// Treats what is written from now on, and what waits to be sent, as `class` wants it. The half of an
    /// accepted stream that leads back to the peer begins as bulk.
    ///
    /// # Errors
    /// When the connection or the stream has ended.
    pub fn set_class(&mut self, class: TrafficClass) -> io::Result<()> {
        let shared = &self.connection.shared;
        let result = shared.lock().usable()?.set_stream_class(self.id, class);
        shared.mailbox.ring();
        result.map_err(stream_io_error)
    }

    /// Ends the stream after what was written. To finish twice is no error.
    pub fn finish(&mut self) -> io::Result<()> {
        let shared = &self.connection.shared;
        let result = shared.lock().usable()?.finish(self.id);
        shared.mailbox.ring();
        match result {
            // Finished before, and perhaps forgotten since.
            Ok(()) | Err(StreamError::Ended | StreamError::Unknown) => Ok(()),
            Err(error) => Err(stream_io_error(error)),
        }
    }

    /// Abandons what the peer does not have yet; `code` is the application's and tells the peer why.
    pub fn reset(&mut self, code: u64) {
        // An error means that the stream has ended already.
        let _ = self.connection.shared.act(|connection| connection.reset(self.id, code));
    }

    /// Ready when the stream is finished and the peer has all of it.
    pub async fn acked(&mut self) -> io::Result<()> {
        poll_fn(|cx| self.poll_acked(cx)).await
    }

    fn poll_acked(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.connection.shared.lock();
        if state.streams.get(&self.id).is_none_or(|stream| stream.acked) {
            return Poll::Ready(Ok(()));
        }
        // Nothing can be written to a stream that the peer has stopped.
        if let Err(error @ StreamError::Stopped(_)) = state.usable()?.write(self.id, &[]) {
            return Poll::Ready(Err(stream_io_error(error)));
        }
        if let Some(stream) = state.streams.get_mut(&self.id) {
            stream.delivery = Some(cx.waker().clone());
        }
        Poll::Pending
    }
}

impl AsyncWrite for SendStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let shared = &self.connection.shared;
        let mut state = shared.lock();
        match state.usable()?.write(self.id, bytes) {
            Ok(0) if !bytes.is_empty() => {
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
            Err(error) => Poll::Ready(Err(stream_io_error(error))),
        }
    }

    /// Nothing to do: bytes leave as soon as the paths admit them.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Finishes the stream; see [`SendStream::finish`].
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.get_mut().finish())
    }
}

impl Drop for SendStream {
    fn drop(&mut self) {
        let mut state = self.connection.shared.lock();
        if let Some(connection) = &mut state.connection {
            // An error means that the stream has ended already.
            let _ = connection.finish(self.id);
        }
        drop_half(&mut state, &self.connection, self.id);
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

    /// Gives up reading; `code` is the application's and tells the peer why.
    pub fn stop(&mut self, code: u64) {
        self.ended = true;
        // An error means that the stream has ended already.
        let _ = self.connection.shared.act(|connection| connection.stop_sending(self.id, code));
    }
}

/// What a read can do.
enum Reading {
    /// That many bytes; the stream ends after them.
    Bytes(usize, bool),
    Nothing,
    Failed(io::Error),
}

impl AsyncRead for RecvStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.ended || buffer.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let shared = &this.connection.shared;
        let mut state = shared.lock();
        match read(&mut state, this.id, buffer.initialize_unfilled()) {
            Reading::Bytes(count, finished) => {
                this.ended = finished;
                // Reading gives the peer credit, which now and then is to be sent.
                if state.connection.as_ref().is_some_and(|connection| connection.has_control()) {
                    shared.mailbox.ring();
                }
                buffer.advance(count);
                Poll::Ready(Ok(()))
            }
            Reading::Nothing => {
                if let Some(stream) = state.streams.get_mut(&this.id) {
                    stream.reader = Some(cx.waker().clone());
                }
                Poll::Pending
            }
            Reading::Failed(error) => Poll::Ready(Err(error)),
        }
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        if !self.ended {
            self.stop(0);
        }
        drop_half(&mut self.connection.shared.lock(), &self.connection, self.id);
    }
}

fn read(state: &mut ConnectionState, id: StreamId, out: &mut [u8]) -> Reading {
    if let Some(rest) = state.streams.get_mut(&id).and_then(|stream| stream.rest.as_mut()) {
        let count = rest.take(out);
        let at_end = rest.bytes.is_empty() && rest.finished;
        if count > 0 || at_end {
            return Reading::Bytes(count, at_end);
        }
    }
    let read = match state.usable() {
        Ok(connection) => connection.read(id, out),
        Err(error) => return Reading::Failed(error.into()),
    };
    match read {
        Ok(outcome) if outcome.n > 0 || outcome.finished => {
            Reading::Bytes(outcome.n, outcome.finished)
        }
        Ok(_) => Reading::Nothing,
        Err(error) => {
            let reset = state.streams.get(&id).and_then(|stream| stream.reset);
            Reading::Failed(stream_io_error(reset.map_or(error, StreamError::Reset)))
        }
    }
}

fn drop_half(state: &mut ConnectionState, connection: &ConnectionRef, id: StreamId) {
    if let Some(stream) = state.streams.get_mut(&id) {
        stream.dropped += 1;
        if stream.dropped == 2 {
            state.streams.remove(&id);
        }
    }
    connection.shared.mailbox.ring();
}

impl Rest {
    fn take(&mut self, out: &mut [u8]) -> usize {
        // Reading from a deque of bytes into a slice cannot fail.
        io::Read::read(&mut self.bytes, out).unwrap_or(0)
    }
}
