use core::future::pending;
use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use anabranch::{RecvStream, SendStream};

/// Bytes copied at a time.
const STEP: usize = 1 << 16;
/// Application code of a reset: the TCP connection broke.
pub(super) const BROKEN: u64 = 256;

/// Carries bytes both ways between a pair of byte pipes, such as a TCP connection, and a stream, until
/// both directions have ended. An end is passed on as an end, an error as a reset; a receiver that
/// reads slowly holds its sender back. Returns the bytes carried (to the stream, from the stream).
///
/// # Errors
/// The first error of either side; the other is then cut short as well.
pub async fn splice<R, W>(
    read: R,
    write: W,
    send: SendStream,
    receive: RecvStream,
) -> io::Result<(u64, u64)>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    splice_until((read, write), (send, receive), pending()).await
}

/// Variant of [`splice`] that `over` ends with an error.
pub(super) async fn splice_until<R, W>(
    (mut read, mut write): (R, W),
    (mut send, mut receive): (SendStream, RecvStream),
    over: impl Future<Output = io::Error>,
) -> io::Result<(u64, u64)>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let up = async {
        let copied = copy(&mut read, &mut send).await;
        match &copied {
            Ok(_) => send.finish()?,
            Err(_) => send.reset(BROKEN),
        }
        copied
    };
    let down = async {
        let copied = copy(&mut receive, &mut write).await;
        // Only a clean end is passed on as an end. After an error the writer is not shut down: its
        // owner resets a TCP connection.
        if copied.is_ok() {
            // If this fails, the receiver has gone and does not need the end.
            let _ = write.shutdown().await;
        }
        copied
    };
    let both = async { tokio::try_join!(up, down) };
    let ended = tokio::select! {
        ended = both => return ended,
        why = over => Err(why),
    };
    send.reset(BROKEN);
    ended
}

async fn copy<R, W>(from: &mut R, to: &mut W) -> io::Result<u64>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut buffer = vec![0; STEP];
    let mut copied = 0;
    loop {
        let count = from.read(&mut buffer).await?;
        if count == 0 {
            to.flush().await?;
            return Ok(copied);
        }
        let bytes = buffer.get(..count).unwrap_or_default();
        to.write_all(bytes).await?;
        to.flush().await?;
        copied += count as u64;
    }
}
