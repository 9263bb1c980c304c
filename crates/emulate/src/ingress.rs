use anabranch_types::Ecn;
use core::time::Duration;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;

use quinn_udp::RecvMeta;

use crate::socket::Socket;

/// Receives many datagrams per system call.
#[derive(Debug)]
pub(crate) struct Ingress {
    memory: Box<[u8]>,
}

/// A received datagram.
#[derive(Debug)]
pub(crate) struct Received<'a> {
    pub(crate) payload: &'a [u8],
    pub(crate) from: SocketAddr,
    pub(crate) ecn: Ecn,
    /// The kernel's receive stamp, since the Unix epoch.
    pub(crate) stamp: Option<Duration>,
}

/// Most buffers that one system call fills.
const BATCH: usize = 8;
/// Size of each buffer; the kernel never joins more bytes than this into one buffer.
const BUFFER_BYTES: usize = 1 << 16;

impl Ingress {
    pub(crate) fn new() -> Self {
        Ingress { memory: vec![0; BATCH * BUFFER_BYTES].into() }
    }

    /// Reads the datagrams that one system call returns and passes each to `sink`. Datagrams that
    /// the kernel has joined (GRO) are split first. Returns whether more may be waiting.
    ///
    /// # Errors
    /// When reading fails for a reason other than an empty socket or a transient error.
    pub(crate) fn receive(
        &mut self,
        socket: &Socket,
        mut sink: impl FnMut(Received<'_>),
    ) -> io::Result<bool> {
        let mut metas = [RecvMeta::default(); BATCH];
        let mut chunks = self.memory.chunks_exact_mut(BUFFER_BYTES);
        let mut buffers: [IoSliceMut<'_>; BATCH] =
            std::array::from_fn(|_| IoSliceMut::new(chunks.next().unwrap_or_default()));
        let filled = match socket.state.recv(socket.as_ref(), &mut buffers, &mut metas) {
            Ok(filled) => filled,
            Err(error) if is_transient(error.kind()) => return Ok(false),
            Err(error) => return Err(error),
        };
        for (buffer, meta) in buffers.iter().zip(&metas).take(filled) {
            let joined = buffer.get(..meta.len).unwrap_or_default();
            let received = |payload| Received {
                payload,
                from: meta.addr,
                ecn: meta.ecn.map_or(Ecn::NotEct, |ecn| Ecn::from_bits(ecn as u8)),
                stamp: meta.timestamp,
            };
            if joined.is_empty() {
                sink(received(joined));
            }
            for payload in joined.chunks(meta.stride.max(1)) {
                sink(received(payload));
            }
        }
        Ok(filled == BATCH)
    }
}

/// Whether the socket can still be used after this error: it was empty, the call was interrupted,
/// or an earlier datagram was refused.
fn is_transient(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{ConnectionRefused, ConnectionReset, Interrupted, WouldBlock};
    matches!(kind, WouldBlock | Interrupted | ConnectionRefused | ConnectionReset)
}
