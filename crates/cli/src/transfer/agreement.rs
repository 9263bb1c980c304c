//! Asks the person about an offer where consent is needed.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anabranch::PublicKey;
use anabranch_transfer::{Code, Frame, Manifest};
use tokio::task::spawn_blocking;
use tokio::time::{interval, sleep};

use super::channel::Writer;
use super::consent::{Grant, Survey, Verdict};
use super::error::TransferError;
use super::hash::{Hash, Sum};
use super::progress::{Asked, Progress};
use super::screen::REDRAW;
use super::store::Out;
use super::take::Taking;
use super::terminal;

/// How often the peer is told that a person is being asked.
const ASKING: Duration = Duration::from_secs(1);
/// Most offers that are remembered.
const MOST: usize = 64;

/// Offers that a person has accepted, so that nobody is asked again if the peer comes back. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Agreed(Arc<Mutex<VecDeque<Offered>>>);

#[derive(Clone, Copy, Debug)]
struct Offered {
    sum: Sum,
    grant: Grant,
}

impl Agreed {
    fn find(&self, sum: Sum) -> Option<Grant> {
        let offers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        offers.iter().find(|offered| offered.sum == sum).map(|offered| offered.grant)
    }

    fn add(&self, sum: Sum, grant: Grant) {
        let mut offers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        offers.truncate(MOST - 1);
        offers.push_front(Offered { sum, grant });
    }
}

/// Decides whether the offer may be taken, and asks a person if need be.
pub(super) async fn consent(
    taking: &Taking,
    peer: PublicKey,
    manifest: Manifest,
    writer: &mut Writer,
    progress: &Progress,
) -> Result<(Manifest, Grant), TransferError> {
    let surveyed = taking.clone();
    let looking = spawn_blocking(move || (Survey::of(&manifest, &surveyed), manifest));
    let (survey, manifest) = looking.await?;
    let offer = of_both(peer, &manifest);
    if let Some(grant) = taking.agreed.find(offer) {
        return Ok((manifest, grant));
    }
    let Out::Directory(root) = &taking.out else { return Ok((manifest, Grant::default())) };
    match survey.judge(taking.rules, !taking.wanted.is_empty(), taking.asks)? {
        Verdict::Take(grant, told) => {
            told.iter().for_each(|told| eprintln!("anabranch: {told}"));
            return Ok((manifest, grant));
        }
        Verdict::Ask => {}
    }
    let sender = if taking.keyed { peer.to_string() } else { "The other side".to_owned() };
    progress.ask(Asked::Here);
    let yes = ask(|all| survey.question(&sender, &manifest, root, all), writer).await;
    progress.ask(Asked::Nobody);
    if !yes? {
        let why = "the receiver does not want these files".to_owned();
        return Err(TransferError::Local(Code::Refused, why));
    }
    let grant = survey.granted(taking.rules);
    taking.agreed.add(offer, grant);
    Ok((manifest, grant))
}

/// Asks the person, and tells the peer meanwhile that it has to wait.
async fn ask(
    question: impl Fn(bool) -> String,
    writer: &mut Writer,
) -> Result<bool, TransferError> {
    // Waits until the line that shows progress has been removed.
    sleep(2 * REDRAW).await;
    let asking = terminal::ask(question);
    tokio::pin!(asking);
    let mut ticks = interval(ASKING);
    loop {
        tokio::select! {
            yes = &mut asking => return Ok(yes),
            _ = ticks.tick() => writer.frame(&Frame::Asking).await?,
        }
    }
}

/// A hash of an offer and its peer, so that equal offers of different peers are told apart.
fn of_both(peer: PublicKey, manifest: &Manifest) -> [u8; 32] {
    let mut both = Hash::new();
    both.update(&peer.0);
    both.update(&manifest.identity());
    both.sum()
}
