//! The halves of streams and their errors.

mod error;
mod recv;
mod send;

pub use error::{ReadError, ReadExactError, ReadToEndError, WriteError};
pub use recv::RecvStream;
pub use send::SendStream;

use crate::connection::ConnectionRef;
use crate::shared::ConnectionState;
use anabranch_core::stream::StreamId;

/// Forgets a stream once the application has dropped all halves that it can hold.
fn drop_half(state: &mut ConnectionState, connection: &ConnectionRef, id: StreamId) {
    if let Some(stream) = state.streams.get_mut(&id) {
        stream.halves -= 1;
        if stream.halves == 0 {
            state.streams.remove(&id);
        }
    }
    connection.shared.mailbox.ring();
}
