//! The offering side of a transfer: frames between the peer and the thread that reads the files.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anabranch::transfer::frame::MAX_FETCHES;
use anabranch::transfer::{Frame, Kind, Name};
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::channel::{Reader, Writer, unexpected};
use super::error::TransferError;
use super::progress::Progress;
use super::source::{Fetch, Offer, Outgoing, Source};
use super::take::ALIVE;

/// Pieces of files that may wait for the connection: 1 MiB.
const WAITING: usize = 16;
/// How long a peer that takes nothing any more may take to say why.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// Names that a peer may ask for.
const MAX_WANTED: usize = 10_000;

/// Offers `source` and sends what the peer asks for, until it has all it wants.
pub(super) async fn offer(
    source: &Source,
    mut reader: Reader,
    writer: &mut Writer,
    progress: &Arc<Progress>,
) -> Result<(), TransferError> {
    let names = wanted(&mut reader).await?;
    let source = source.clone();
    let collecting = spawn_blocking(move || source.collect());
    let broken = |_| TransferError::lost("an internal task broke down");
    let offer = collecting.await.map_err(broken)??.wanted(&names)?;
    announce(&offer, writer).await?;
    let files = offer.manifest.entries().iter().filter(|entry| entry.kind != Kind::Directory);
    progress.begin(offer.manifest.total(), files.count() as u64);

    let (to_peer, outgoing) = mpsc::channel(WAITING);
    let (ask, asked) = mpsc::unbounded_channel();
    let unanswered = Arc::new(AtomicUsize::new(0));
    let answered = Arc::clone(&unanswered);
    let reading = spawn_blocking(move || read(&offer, asked, &to_peer, &answered));
    let hearing = hear(reader, ask, &unanswered, progress);
    tokio::pin!(hearing);
    let writing = write(writer, outgoing, progress);
    let written = tokio::select! {
        heard = &mut hearing => return heard,
        written = writing => written,
    };
    match written {
        // The thread has stopped: of itself only because of an error.
        Ok(()) => Err(match reading.await {
            Ok(Err(error)) => error,
            _ => TransferError::lost("an internal task broke down"),
        }),
        Err(error) => match timeout(LAST_WORDS, hearing).await {
            Ok(heard) => heard,
            Err(_) => Err(error),
        },
    }
}

/// What the peer wants.
async fn wanted(reader: &mut Reader) -> Result<Vec<Name>, TransferError> {
    let mut names = Vec::new();
    loop {
        match reader.frame().await? {
            Frame::Want(name) if names.len() < MAX_WANTED => names.push(name),
            Frame::Want(_) => return Err(TransferError::protocol("too many names")),
            Frame::WantEnd => return Ok(names),
            Frame::Alive => {}
            frame => return Err(unexpected(format!("{frame:?}"))),
        }
    }
}

async fn announce(offer: &Offer, writer: &mut Writer) -> Result<(), TransferError> {
    let entries = offer.manifest.entries();
    for entry in entries {
        writer.frame(&Frame::Entry(entry.clone())).await?;
    }
    let entries = u32::try_from(entries.len()).map_err(TransferError::protocol)?;
    writer.frame(&Frame::OfferEnd { entries }).await
}

/// Reads files as they are asked for, until nobody asks or listens any more.
fn read(
    offer: &Offer,
    mut asked: mpsc::UnboundedReceiver<Fetch>,
    to_peer: &mpsc::Sender<Outgoing>,
    unanswered: &AtomicUsize,
) -> Result<(), TransferError> {
    while let Some(fetch) = asked.blocking_recv() {
        offer.read(fetch, &mut |outgoing| to_peer.blocking_send(outgoing).is_ok())?;
        unanswered.fetch_sub(1, Ordering::Relaxed);
    }
    Ok(())
}

/// Listens until the peer has all it wants.
async fn hear(
    mut reader: Reader,
    ask: mpsc::UnboundedSender<Fetch>,
    unanswered: &AtomicUsize,
    progress: &Progress,
) -> Result<(), TransferError> {
    loop {
        match reader.frame().await? {
            Frame::Fetch { index, offset, prefix } => {
                // One more than may be pending is being sent.
                if unanswered.fetch_add(1, Ordering::Relaxed) > MAX_FETCHES {
                    return Err(TransferError::protocol("too many requests at a time"));
                }
                // If the thread has stopped, its error is the one to report.
                let _ = ask.send(Fetch { index, offset, prefix });
            }
            Frame::Stored { .. } => progress.add_stored(),
            Frame::Durable { .. } | Frame::Alive => {}
            Frame::Done => return Ok(()),
            frame => return Err(unexpected(format!("{frame:?}"))),
        }
    }
}

/// Sends what the thread has read, until it stops.
async fn write(
    writer: &mut Writer,
    mut outgoing: mpsc::Receiver<Outgoing>,
    progress: &Progress,
) -> Result<(), TransferError> {
    let mut ticks = interval(ALIVE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            next = outgoing.recv() => match next {
                Some(Outgoing::Frame(frame)) => {
                    if let Frame::File { offset, .. } = frame {
                        progress.add_kept(offset);
                    }
                    writer.frame(&frame).await?;
                }
                Some(Outgoing::Data(bytes)) => {
                    writer.data(&bytes).await?;
                    progress.add_moved(bytes.len() as u64);
                }
                None => return Ok(()),
            },
            _ = ticks.tick() => writer.frame(&Frame::Alive).await?,
        }
    }
}
