//! A transfer over one connection.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anabranch::Connection;
use anabranch_transfer::Role;
use tokio::time::timeout;

use super::channel;
use super::error::TransferError;
use super::kept::Kept;
use super::offer::offer;
use super::progress::Progress;
use super::source::Source;
use super::store::Out;
use super::take::{Taking, take};
use crate::limit::Limit;

/// How long the offering side may take to close the connection after the last message.
const FAREWELL: Duration = Duration::from_secs(2);

/// Part of this side in a transfer.
#[derive(Clone, Debug)]
pub(super) enum Side {
    /// Offers files, and sends them no faster than this.
    Offers(Source, Option<Limit>),
    /// Wants files.
    Takes(Taking),
}

impl Side {
    pub(super) fn role(&self) -> Role {
        match self {
            Side::Offers(..) => Role::Offers,
            Side::Takes(_) => Role::Takes,
        }
    }

    /// The directory that files are put into, if there is one.
    pub(super) fn directory(&self) -> Option<PathBuf> {
        match self {
            Side::Takes(Taking { out: Out::Directory(root), .. }) => Some(root.path().to_owned()),
            Side::Takes(_) | Side::Offers(..) => None,
        }
    }

    /// Whether another connection can go on where one was lost.
    pub(super) fn can_go_on(&self) -> bool {
        match self {
            Side::Offers(source, _) => source.can_be_read_again(),
            Side::Takes(taking) => taking.can_go_on(),
        }
    }
}

/// Does this side's part over `connection`, and closes it. `ticket` is the one that it was made with, if this side
/// made one.
pub(super) async fn run(
    connection: &Connection,
    initiator: bool,
    side: &Side,
    ticket: Option<&mut Kept>,
    progress: &Arc<Progress>,
) -> Result<(), TransferError> {
    let closing = Closing(connection);
    let (reader, mut writer) = channel::open(connection, initiator, side.role()).await?;
    let result = match side {
        Side::Offers(source, limit) => {
            offer((source, limit.as_ref()), reader, &mut writer, progress).await
        }
        Side::Takes(taking) => {
            take(taking, connection.peer(), reader, &mut writer, ticket, progress).await
        }
    };
    match &result {
        Err(error) => writer.fail(error).await,
        Ok(()) if side.role() == Role::Takes => {
            // The offering side has heard that all is done, and closes; if it does not, this one does.
            let _ = timeout(FAREWELL, connection.closed()).await;
        }
        Ok(()) => {}
    }
    drop(closing);
    result
}

/// Closes the connection, also when the transfer is interrupted.
struct Closing<'a>(&'a Connection);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.close(0, "");
    }
}
