//! The taking side of a transfer: passes frames between the peer and the thread that stores the files.

use std::sync::Arc;
use std::time::Duration;

use anabranch::PublicKey;
use anabranch_transfer::{Code, Frame, Manifest, Name};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::accounts::{Account, Accounts};
use super::agreement::{Agreed, consent};
use super::channel::{Incoming, Reader, Writer, unexpected};
use super::consent::Rules;
use super::error::TransferError;
use super::kept::Kept;
use super::progress::Progress;
use super::store::{Out, Store};

/// Interval at which the peer is told that this side still works, as while it reads a long file again.
pub(super) const ALIVE: Duration = Duration::from_secs(5);
/// Frames that may wait for the files: as many as hold 1 MiB.
const WAITING: usize = 16;
/// Time for an offer to be complete: the peer has directories to look at.
const OFFER: Duration = Duration::from_secs(300);

/// Files to take, and where to put them.
#[derive(Clone, Debug)]
pub(super) struct Taking {
    /// Names to ask for; everything, if there are none.
    pub(super) wanted: Vec<Name>,
    /// Where files are put.
    pub(super) out: Out,
    /// Permissions that the options give.
    pub(super) rules: Rules,
    /// A person can be asked.
    pub(super) asks: bool,
    /// Peers are known by their keys from one transfer to the next, not only for a ticket.
    pub(super) keyed: bool,
    /// Offers that a person has accepted and that are still remembered.
    pub(super) agreed: Agreed,
    /// Costs of the offers that are being taken.
    accounts: Accounts,
}

impl Taking {
    /// Takes what is `wanted`, or everything.
    pub(super) fn new(wanted: Vec<Name>, out: Out, rules: Rules) -> Self {
        let (agreed, accounts) = (Agreed::default(), Accounts::default());
        Taking { wanted, out, rules, asks: false, keyed: false, agreed, accounts }
    }

    /// Taking from one peer. If peers are known by their keys, its partial files are kept apart from others'.
    fn of_peer(&self, peer: PublicKey) -> Self {
        let out = match &self.out {
            Out::Directory(root) if self.keyed => Out::Directory(root.of_sender(peer)),
            out => out.clone(),
        };
        Taking { out, ..self.clone() }
    }

    /// Whether another connection can go on where one was lost. Bytes written to standard output
    /// are gone.
    pub(super) fn can_go_on(&self) -> bool {
        matches!(self.out, Out::Directory(_))
    }
}

/// Takes what the peer offers. With a ticket, this has to be the offer that the ticket was first used for.
#[expect(clippy::too_many_arguments, reason = "a connection's two directions, and what it is for")]
pub(super) async fn take(
    taking: &Taking,
    peer: PublicKey,
    mut reader: Reader,
    writer: &mut Writer,
    ticket: Option<&mut Kept>,
    progress: &Arc<Progress>,
) -> Result<(), TransferError> {
    let taking = taking.of_peer(peer);
    for name in &taking.wanted {
        writer.frame(&Frame::Want(name.clone())).await?;
    }
    writer.frame(&Frame::WantEnd).await?;
    let mut account = taking.accounts.open(peer);
    let late = |_| TransferError::lost("the other side sent no complete offer in time");
    let manifest = timeout(OFFER, offer(&mut reader, &mut account)).await.map_err(late)??;
    let (manifest, grant) = consent(&taking, peer, manifest, writer, progress).await?;
    if let Some(ticket) = ticket
        && !ticket.admits(manifest.identity())
    {
        let why = "this ticket is for the files that were offered with it first".to_owned();
        return Err(TransferError::Local(Code::Refused, why));
    }
    let store = Store::new(taking.out, grant, manifest, Arc::clone(progress))?;
    let (to_store, of_peer) = mpsc::channel(WAITING);
    let (say, said) = mpsc::unbounded_channel();
    let feeding = Aborting(tokio::spawn(feed(reader, to_store)));
    let storing = spawn_blocking(move || keep(store, of_peer, &say));
    let spoken = speak(writer, said).await;
    if spoken.is_err() {
        feeding.0.abort();
    }
    match storing.await? {
        Ok(()) => {
            spoken?;
            writer.frame(&Frame::Done).await?;
            writer.finish().await;
            Ok(())
        }
        Err(Some(error)) => Err(error),
        // The thread of the files got no more input; the task that feeds it knows why.
        Err(None) => {
            spoken?;
            Err(feeding.error().await)
        }
    }
}

/// Reads the offer.
async fn offer(reader: &mut Reader, account: &mut Account) -> Result<Manifest, TransferError> {
    let mut manifest = Manifest::default();
    loop {
        match reader.frame().await? {
            Frame::Entry(entry) => {
                manifest.push(&entry)?;
                account.charge(manifest.cost())?;
            }
            Frame::OfferEnd { entries } if entries as usize == manifest.len() => {
                // Following many links takes long; on this thread it would delay the transfers of
                // other peers.
                let checking = spawn_blocking(move || manifest.check().map(|()| manifest));
                return Ok(checking.await??);
            }
            Frame::OfferEnd { .. } => {
                return Err(TransferError::protocol("the offer is not complete"));
            }
            Frame::Alive => {}
            frame => return Err(unexpected(frame.name())),
        }
    }
}

/// A task that is aborted when this is dropped.
struct Aborting(JoinHandle<Result<(), TransferError>>);

impl Aborting {
    async fn error(mut self) -> TransferError {
        match (&mut self.0).await {
            Ok(Err(error)) => error,
            _ => TransferError::lost("an internal task failed"),
        }
    }
}

impl Drop for Aborting {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Passes on the peer's frames until nobody takes them any more.
async fn feed(mut reader: Reader, to_store: mpsc::Sender<Incoming>) -> Result<(), TransferError> {
    loop {
        let incoming = reader.next().await?;
        if to_store.send(incoming).await.is_err() {
            return Ok(());
        }
    }
}

/// Keeps the files until all are in place; `Err(None)` if no more comes.
fn keep(
    mut store: Store,
    mut of_peer: mpsc::Receiver<Incoming>,
    say: &mpsc::UnboundedSender<Frame>,
) -> Result<(), Option<TransferError>> {
    // Sending fails only if the connection is gone, which is noticed elsewhere.
    let mut say = |frame| drop(say.send(frame));
    loop {
        store.fill(&mut say)?;
        if store.is_done() {
            return Ok(store.finish()?);
        }
        let Some(incoming) = of_peer.blocking_recv() else {
            store.suspend();
            return Err(None);
        };
        if let Err(error) = store.handle(incoming, &mut say) {
            store.suspend();
            return Err(Some(error));
        }
    }
}

/// Sends the frames of the thread that keeps the files, until there are no more.
async fn speak(
    writer: &mut Writer,
    mut said: mpsc::UnboundedReceiver<Frame>,
) -> Result<(), TransferError> {
    let mut ticks = interval(ALIVE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            frame = said.recv() => match frame {
                Some(frame) => writer.frame(&frame).await?,
                None => return Ok(()),
            },
            _ = ticks.tick() => writer.frame(&Frame::Alive).await?,
        }
    }
}
