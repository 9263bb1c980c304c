//! The offering side of a transfer: passes frames between the peer and the thread that reads the
//! files.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anabranch_transfer::frame::{MAX_DATA, MAX_FETCHES};
use anabranch_transfer::{Frame, Manifest, Name};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::channel::{Reader, Writer, unexpected};
use super::error::TransferError;
use super::had::Had;
use super::progress::{Asked, Progress};
use super::reading::{Outgoing, Reading, Request};
use super::source::{Offer, Source};
use super::take::ALIVE;
use crate::limit::Limit;

/// Pieces of files that may wait for the connection: 1 MiB.
const WAITING: usize = 16;
/// Time for a peer that takes no more data to say why.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// Most names that a peer may ask for, and most bytes of them together.
const MAX_WANTED: (usize, usize) = (10_000, 1 << 20);
/// Time for a peer to say what it wants.
const WANTING: Duration = Duration::from_secs(60);

/// Offers `source` and sends what the peer asks for, until it has all it wants.
pub(super) async fn offer(
    (source, limit): (&Source, Option<&Limit>),
    mut reader: Reader,
    writer: &mut Writer,
    progress: &Arc<Progress>,
) -> Result<(), TransferError> {
    let silent = |_| TransferError::lost("the other side sent no complete request in time");
    let names = timeout(WANTING, wanted(&mut reader)).await.map_err(silent)??;
    let source = source.clone();
    let collecting = spawn_blocking(move || source.collect());
    let offer = collecting.await??.wanted(&names)?;
    announce(&offer, writer).await?;
    progress.begin(offer.manifest.total(), offer.manifest.files() as u64);

    let (to_peer, outgoing) = mpsc::channel(WAITING);
    let (ask, asked) = mpsc::unbounded_channel();
    let unanswered = Arc::new(AtomicUsize::new(0));
    let answered = Arc::clone(&unanswered);
    let offer = Arc::new(offer);
    let manifest = Arc::clone(&offer);
    let reading = spawn_blocking(move || read(&offer, asked, &to_peer, &answered));
    let hearing = hear(reader, &manifest.manifest, ask, &unanswered, progress);
    tokio::pin!(hearing);
    let writing = write(writer, outgoing, limit, progress);
    let written = tokio::select! {
        heard = &mut hearing => return heard,
        written = writing => written,
    };
    match written {
        // The thread stops by itself only after an error.
        Ok(()) => Err(match reading.await {
            Ok(Err(error)) => error,
            _ => TransferError::lost("an internal task failed"),
        }),
        Err(error) => match timeout(LAST_WORDS, hearing).await {
            Ok(heard) => heard,
            Err(_) => Err(error),
        },
    }
}

/// Reads the names that the peer wants.
async fn wanted(reader: &mut Reader) -> Result<Vec<Name>, TransferError> {
    let (mut names, mut bytes) = (Vec::new(), 0);
    loop {
        match reader.frame().await? {
            Frame::Want(name) => {
                bytes += name.as_str().len();
                names.push(name);
                if names.len() > MAX_WANTED.0 || bytes > MAX_WANTED.1 {
                    return Err(TransferError::protocol("too many names"));
                }
            }
            Frame::WantEnd => return Ok(names),
            Frame::Alive => {}
            frame => return Err(unexpected(frame.name())),
        }
    }
}

async fn announce(offer: &Offer, writer: &mut Writer) -> Result<(), TransferError> {
    for entry in offer.manifest.entries() {
        writer.frame(&Frame::Entry(entry)).await?;
    }
    let entries = u32::try_from(offer.manifest.len()).map_err(TransferError::protocol)?;
    writer.frame(&Frame::OfferEnd { entries }).await
}

/// Reads files as they are asked for, until nobody asks or listens any more.
fn read(
    offer: &Offer,
    mut asked: mpsc::UnboundedReceiver<Request>,
    to_peer: &mpsc::Sender<Outgoing>,
    unanswered: &AtomicUsize,
) -> Result<(), TransferError> {
    let mut reading = Reading::new(offer);
    while let Some(request) = asked.blocking_recv() {
        reading.read(request, &mut |outgoing| to_peer.blocking_send(outgoing).is_ok())?;
        unanswered.fetch_sub(1, Ordering::Relaxed);
    }
    Ok(())
}

/// Reads the peer's requests until the peer has everything that it wants.
async fn hear(
    mut reader: Reader,
    manifest: &Manifest,
    ask: mpsc::UnboundedSender<Request>,
    unanswered: &AtomicUsize,
    progress: &Progress,
) -> Result<(), TransferError> {
    let mut had = Had::new(manifest, progress);
    loop {
        let frame = reader.frame().await?;
        match frame {
            Frame::Fetch { index, offset } | Frame::Check { index, offset } => {
                let sum = matches!(frame, Frame::Check { .. });
                progress.ask(Asked::Nobody);
                if sum {
                    had.check(index, offset);
                } else {
                    had.fetch(index, offset);
                }
                // The request that is being answered is allowed beside those that wait.
                if unanswered.fetch_add(1, Ordering::Relaxed) > MAX_FETCHES {
                    return Err(TransferError::protocol("too many requests at a time"));
                }
                // If the thread has stopped, its error is the one to report.
                let _ = ask.send(Request { index, offset, sum });
            }
            Frame::Stored { index } => had.store(index),
            Frame::Asking => progress.ask(Asked::There),
            Frame::Durable { .. } | Frame::Alive => {}
            Frame::Done => return Ok(()),
            frame => return Err(unexpected(frame.name())),
        }
    }
}

/// Sends what the thread has read, until it stops.
async fn write(
    writer: &mut Writer,
    mut outgoing: mpsc::Receiver<Outgoing>,
    limit: Option<&Limit>,
    progress: &Progress,
) -> Result<(), TransferError> {
    let piece = limit.map_or(MAX_DATA, Limit::piece);
    let mut ticks = interval(ALIVE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            next = outgoing.recv() => match next {
                Some(Outgoing::Frame(frame)) => writer.frame(&frame).await?,
                Some(Outgoing::Data(bytes)) => {
                    for piece in bytes.chunks(piece) {
                        if let Some(limit) = limit {
                            limit.wait(piece.len()).await;
                        }
                        writer.data(piece).await?;
                        progress.add_moved(piece.len() as u64);
                    }
                }
                None => return Ok(()),
            },
            _ = ticks.tick() => writer.frame(&Frame::Alive).await?,
        }
    }
}
