use crate::connection::ConnectionRef;
use crate::error::{ConnectionError, stream_io_error};
use crate::shared::{Core, Rest};
use anabranch_core::stream::{StreamError, StreamId};
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

    /// Ends the stream after what was written. To finish twice is no error.
    pub fn finish(&mut self) -> io::Result<()> {
        let mut core = self.connection.shared.lock();
        let handle = self.connection.handle;
        if let Some(error) = core.error(handle) {
            return Err(error.into());
        }
        let connection = core.endpoint.connection(handle).ok_or(ConnectionError::Stopped)?;
        let result = connection.finish(self.id);
        core.wake_driver();
        match result {
            // Finished before, and perhaps forgotten since.
            Ok(()) | Err(StreamError::Ended | StreamError::Unknown) => Ok(()),
            Err(error) => Err(stream_io_error(error)),
        }
    }

    /// Abandons what the peer does not have yet; `code` is the application's and tells the peer why.
    pub fn reset(&mut self, code: u64) {
        let mut core = self.connection.shared.lock();
        if let Some(connection) = core.endpoint.connection(self.connection.handle) {
            // An error means that the stream has ended already.
            let _ = connection.reset(self.id, code);
        }
        core.wake_driver();
    }

    /// Ready when the stream is finished and the peer has all of it.
    pub async fn acked(&mut self) -> io::Result<()> {
        let (handle, id) = (self.connection.handle, self.id);
        self.connection
            .until_news(|core| {
                let state = core.state(handle);
                if state.streams.get(&id).is_none_or(|stream| stream.acked) {
                    return Some(Ok(()));
                }
                if let Some(error) = core.error(handle) {
                    return Some(Err(error.into()));
                }
                // Nothing can be written to a stream that the peer has stopped.
                match core.endpoint.connection(handle)?.write(id, &[]) {
                    Err(error @ StreamError::Stopped(_)) => Some(Err(stream_io_error(error))),
                    _ => None,
                }
            })
            .await
    }
}

impl AsyncWrite for SendStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut core = self.connection.shared.lock();
        let handle = self.connection.handle;
        if let Some(error) = core.error(handle) {
            return Poll::Ready(Err(error.into()));
        }
        let connection = core.endpoint.connection(handle).ok_or(ConnectionError::Stopped)?;
        match connection.write(self.id, bytes) {
            Ok(0) if !bytes.is_empty() => {
                if let Some(stream) = core.state(handle).streams.get_mut(&self.id) {
                    stream.writer = Some(cx.waker().clone());
                }
                Poll::Pending
            }
            Ok(taken) => {
                core.wake_driver();
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
        let mut core = self.connection.shared.lock();
        if let Some(connection) = core.endpoint.connection(self.connection.handle) {
            // An error means that the stream has ended already.
            let _ = connection.finish(self.id);
        }
        drop_half(&mut core, &self.connection, self.id);
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
        let mut core = self.connection.shared.lock();
        if let Some(connection) = core.endpoint.connection(self.connection.handle) {
            // An error means that the stream has ended already.
            let _ = connection.stop_sending(self.id, code);
        }
        core.wake_driver();
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
        let mut core = this.connection.shared.lock();
        match read(&mut core, &this.connection, this.id, buffer.initialize_unfilled()) {
            Reading::Bytes(count, finished) => {
                this.ended = finished;
                // Reading gives the peer credit, which now and then is to be sent.
                let connection = core.endpoint.connection(this.connection.handle);
                if connection.is_some_and(|connection| connection.has_control()) {
                    core.wake_driver();
                }
                buffer.advance(count);
                Poll::Ready(Ok(()))
            }
            Reading::Nothing => {
                let state = core.state(this.connection.handle);
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
        let mut core = self.connection.shared.lock();
        drop_half(&mut core, &self.connection, self.id);
    }
}

fn read(core: &mut Core, connection: &ConnectionRef, id: StreamId, out: &mut [u8]) -> Reading {
    let handle = connection.handle;
    let state = core.state(handle);
    if let Some(rest) = state.streams.get_mut(&id).and_then(|stream| stream.rest.as_mut()) {
        let count = rest.take(out);
        let at_end = rest.bytes.is_empty() && rest.finished;
        if count > 0 || at_end {
            return Reading::Bytes(count, at_end);
        }
    }
    if let Some(error) = core.error(handle) {
        return Reading::Failed(error.into());
    }
    let Some(connection) = core.endpoint.connection(handle) else { return Reading::Nothing };
    match connection.read(id, out) {
        Ok(outcome) if outcome.n > 0 || outcome.finished => {
            Reading::Bytes(outcome.n, outcome.finished)
        }
        Ok(_) => Reading::Nothing,
        Err(error) => {
            let stream = core.state(handle).streams.get(&id);
            let reset = stream.and_then(|stream| stream.reset).map(StreamError::Reset);
            Reading::Failed(stream_io_error(reset.unwrap_or(error)))
        }
    }
}

fn drop_half(core: &mut Core, connection: &ConnectionRef, id: StreamId) {
    let state = core.state(connection.handle);
    if let Some(stream) = state.streams.get_mut(&id) {
        stream.dropped += 1;
        if stream.dropped == 2 {
            state.streams.remove(&id);
        }
    }
    core.wake_driver();
}

impl Rest {
    fn take(&mut self, out: &mut [u8]) -> usize {
        // Reading from a deque of bytes into a slice cannot fail.
        io::Read::read(&mut self.bytes, out).unwrap_or(0)
    }
}
