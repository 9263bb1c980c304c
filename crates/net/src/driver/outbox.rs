//! Datagrams on their way to the sockets.

use crate::buffers::Buffer;
use crate::socket::{MAX_BATCH, Run, Socket};
use crate::sockets::{SocketTable, Sockets};
use anabranch_core::connection::Transmit;
use anabranch_core::path::SocketId;
use core::future::Future;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;

/// The batch that is planned and then sent, and datagrams of earlier batches that full kernel buffers refused.
pub(crate) struct Outbox {
    /// Room that the core needs for one datagram.
    room: usize,
    planned: Vec<Planned>,
    blocked: Vec<Blocked>,
}

/// A train of datagrams in the batch.
#[derive(Clone, Copy, Debug)]
struct Planned {
    socket: usize,
    source: Option<IpAddr>,
    transmit: Transmit,
}

/// A socket whose kernel buffer is full.
struct Blocked {
    socket: usize,
    runs: VecDeque<Waiting>,
    writable: Writable,
}

/// Ready when a socket may be written to again. Several tasks can wait for one socket in this way.
type Writable = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A run that a full kernel buffer refused.
#[derive(Debug)]
struct Waiting {
    remote: SocketAddr,
    source: Option<IpAddr>,
    ecn: u8,
    segment: usize,
    bytes: Vec<u8>,
}

impl Outbox {
    /// An empty outbox for datagrams of up to `largest` bytes.
    pub(crate) fn new(largest: usize) -> Self {
        Outbox { room: largest.max(1500), planned: Vec::new(), blocked: Vec::new() }
    }

    /// Asks `next` for trains of datagrams until the batch is full or there are none. `next` is told which sockets
    /// are writable, and writes each train to the room it is given. Returns whether there is something to send.
    pub(crate) fn plan(
        &mut self,
        sockets: &Sockets,
        batch: &mut Buffer,
        mut next: impl FnMut(&dyn Fn(SocketId) -> bool, &mut [u8]) -> Option<Transmit>,
    ) -> bool {
        self.planned.clear();
        let table = sockets.read();
        let blocked = &self.blocked;
        let writable = |id| match table.ports.get(id) {
            Some(port) => blocked.iter().all(|blocked| blocked.socket != port.socket),
            None => false,
        };
        let mut end = 0;
        while let Some(room) = batch[..MAX_BATCH].get_mut(end..).filter(|r| r.len() >= self.room) {
            let Some(transmit) = next(&writable, room) else { break };
            end += transmit.len;
            if let Some(port) = table.ports.get(transmit.socket) {
                let (socket, source) = (port.socket, port.source);
                self.planned.push(Planned { socket, source, transmit });
            }
        }
        !self.planned.is_empty()
    }

    /// Sends the batch, in runs as long as segmentation allows.
    pub(crate) fn send(&mut self, sockets: &Sockets, batch: &Buffer, cx: &mut Context<'_>) {
        let table = sockets.read();
        let mut bytes = &batch[..];
        let mut planned = &self.planned[..];
        let mut refused = false;
        while let Some(first) = planned.first() {
            let Some(socket) = table.sockets.get(first.socket) else { return };
            let (trains, len) = run_of(planned);
            let segment = first.transmit.segment;
            let Some((run, rest)) = bytes.split_at_checked(len) else { return };
            for head in run.chunks((segment * socket.max_segments()).max(1)) {
                refused |= send_run(&mut self.blocked, socket, first, head);
            }
            (planned, bytes) = (&planned[trains..], rest);
        }
        if refused {
            self.try_again(&table, cx);
        }
    }

    /// Sends again what full kernel buffers refused. If they still refuse it, the task is woken when
    /// there is room.
    pub(crate) fn retry(&mut self, sockets: &Sockets, cx: &mut Context<'_>) {
        if !self.blocked.is_empty() {
            self.try_again(&sockets.read(), cx);
        }
    }

    fn try_again(&mut self, table: &SocketTable, cx: &mut Context<'_>) {
        self.blocked.retain_mut(|blocked| {
            while blocked.writable.as_mut().poll(cx).is_ready() {
                // The socket may have been replaced.
                let Some(socket) = table.sockets.get(blocked.socket) else { return false };
                blocked.writable = writable(socket);
                while let Some(waiting) = blocked.runs.front() {
                    if socket.send(waiting.as_run()).is_err() {
                        break;
                    }
                    blocked.runs.pop_front();
                }
                if blocked.runs.is_empty() {
                    return false;
                }
            }
            true
        });
    }
}

/// Sends a run to the destination of `first`, or keeps it for later; returns true if it is the first run kept for its
/// socket.
fn send_run(
    blocked: &mut Vec<Blocked>,
    socket: &Arc<Socket>,
    first: &Planned,
    bytes: &[u8],
) -> bool {
    let Planned { source, transmit, .. } = *first;
    let Transmit { remote, ecn, segment, .. } = transmit;
    let run = Run { remote, source, ecn: ecn.bits(), segment, bytes };
    match blocked.iter_mut().find(|blocked| blocked.socket == first.socket) {
        Some(blocked) => blocked.runs.push_back(Waiting::of(run)),
        None if socket.send(run).is_err() => {
            let runs = VecDeque::from([Waiting::of(run)]);
            let writable = writable(socket);
            blocked.push(Blocked { socket: first.socket, runs, writable });
            return true;
        }
        None => {}
    }
    false
}

fn writable(socket: &Arc<Socket>) -> Writable {
    let socket = Arc::clone(socket);
    Box::pin(async move { socket.writable().await })
}

impl Waiting {
    fn of(run: Run<'_>) -> Self {
        let Run { remote, source, ecn, segment, bytes } = run;
        Waiting { remote, source, ecn, segment, bytes: bytes.to_vec() }
    }

    fn as_run(&self) -> Run<'_> {
        Run {
            remote: self.remote,
            source: self.source,
            ecn: self.ecn,
            segment: self.segment,
            bytes: &self.bytes,
        }
    }
}

/// How many of the first trains make one run, and their bytes: same socket, destination and mark, same
/// length of all datagrams except for a shorter last one. A probe of the MTU goes alone: it may well be
/// refused.
fn run_of(planned: &[Planned]) -> (usize, usize) {
    let Some(first) = planned.first() else { return (0, 0) };
    let segment = first.transmit.segment.max(1);
    let mut len = 0;
    for (count, next) in planned.iter().enumerate() {
        let joins = next.socket == first.socket
            && next.source == first.source
            && next.transmit.remote == first.transmit.remote
            && next.transmit.ecn == first.transmit.ecn
            && (next.transmit.segment == segment || next.transmit.len <= segment)
            && len % segment == 0
            && !first.transmit.mtu_probe
            && !next.transmit.mtu_probe;
        if count > 0 && !joins {
            return (count, len);
        }
        len += next.transmit.len;
    }
    (planned.len(), len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_core::path::received::Ecn;

    fn planned(socket: usize, port: u16, ecn: Ecn, len: usize) -> Planned {
        let remote = SocketAddr::from(([127, 0, 0, 1], port));
        let id = SocketId(socket as u32);
        let transmit = Transmit { socket: id, remote, ecn, len, segment: len, mtu_probe: false };
        Planned { socket, source: None, transmit }
    }

    #[test]
    fn runs_end_where_anything_changes() {
        let a = planned(0, 1, Ecn::Ect0, 1200);
        let shorter = planned(0, 1, Ecn::Ect0, 100);
        let train = |len| {
            let mut train = a;
            train.transmit.len = len;
            train
        };
        assert_eq!(run_of(&[]), (0, 0));
        assert_eq!(run_of(&[a; 5]), (5, 6000));
        assert_eq!(run_of(&[a, a, shorter, a]), (3, 2500));
        assert_eq!(run_of(&[shorter, a]), (1, 100));
        assert_eq!(run_of(&[train(3600), a, train(2400)]), (3, 7200));
        assert_eq!(run_of(&[train(3600), train(2500), a]), (2, 6100));
        assert_eq!(run_of(&[train(3600), shorter, a]), (2, 3700));
        assert_eq!(run_of(&[shorter, train(200)]), (1, 100));
        let mut probe = a;
        probe.transmit.mtu_probe = true;
        assert_eq!(run_of(&[probe, a]), (1, 1200));
        assert_eq!(run_of(&[a, probe, a]), (1, 1200));
        for other in [
            planned(1, 1, Ecn::Ect0, 1200),
            planned(0, 2, Ecn::Ect0, 1200),
            planned(0, 1, Ecn::NotEct, 1200),
        ] {
            assert_eq!(run_of(&[a, other, a]), (1, 1200));
        }
    }
}
