use core::time::Duration;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use anabranch_types::Time;
use nix::poll::{PollFd, PollFlags};

use crate::clock::Reading;
use crate::egress::Egress;
use crate::ingress::Ingress;
use crate::relay::{Path, Paths, Shared};
use crate::socket::Socket;
use crate::wait::wait;

/// The relay's thread: waits for datagrams or for one to fall due, whichever is first.
#[derive(Debug)]
pub(crate) struct Worker {
    shared: Arc<Shared>,
    receiver: SocketAddr,
    ingress: Ingress,
    egress: Egress,
}

/// The two sockets of a path.
#[derive(Debug)]
pub(crate) struct PathSockets {
    /// Faces the sender.
    pub(crate) client: Socket,
    /// Faces the receiver.
    pub(crate) receiver: Socket,
}

/// The shortest sleep: what falls due sooner is sent in one go at its end. It bounds the wake-ups to
/// 10 000 a second and delays no datagram by more.
const GRANULARITY: Duration = Duration::from_micros(100);
/// The longest sleep.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);
/// System calls spent on one socket before the others get their turn.
const READS_PER_TURN: usize = 4;

impl Worker {
    pub(crate) fn new(shared: Arc<Shared>, receiver: SocketAddr) -> Self {
        Worker { shared, receiver, ingress: Ingress::new(), egress: Egress::new() }
    }

    /// Relays until the other end of `stopped` is closed or a socket fails for good.
    pub(crate) fn run(mut self, sockets: &[PathSockets], stopped: &UnixStream) {
        let mut fds = vec![PollFd::new(stopped.as_fd(), PollFlags::POLLIN)];
        for path in sockets {
            fds.push(PollFd::new(path.client.udp.as_fd(), PollFlags::POLLIN));
            fds.push(PollFd::new(path.receiver.udp.as_fd(), PollFlags::POLLIN));
        }
        loop {
            let sleep = self.release(sockets);
            match wait(&mut fds, sleep) {
                Ok(true) => {}
                Ok(false) => continue,
                Err(_) => return,
            }
            let [stopped, fds @ ..] = fds.as_slice() else { return };
            if is_ready(stopped) || self.read(sockets, fds).is_err() {
                return;
            }
        }
    }

    /// Sends on everything that is due and returns how long nothing else will be.
    fn release(&mut self, sockets: &[PathSockets]) -> Duration {
        let mut paths = self.shared.lock();
        let now = self.shared.clock.now();
        let mut next = Time::MAX;
        for (path, sockets) in paths.paths.iter_mut().zip(sockets) {
            let Path { forward, reverse, client, .. } = path;
            forward.release(now, &mut self.egress, &sockets.receiver, Some(self.receiver));
            reverse.release(now, &mut self.egress, &sockets.client, *client);
            next = next.min(forward.next_event()).min(reverse.next_event());
        }
        next.since(now).clamp(GRANULARITY, LONGEST_SLEEP)
    }

    /// Takes in what the readable sockets hold. `fds` has two for each path, the client side first.
    fn read(&mut self, sockets: &[PathSockets], fds: &[PollFd<'_>]) -> io::Result<()> {
        let Worker { shared, receiver, ingress, .. } = self;
        let mut paths = shared.lock();
        for (index, (sockets, fds)) in sockets.iter().zip(fds.chunks_exact(2)).enumerate() {
            let reads = |fd: &PollFd<'_>| if is_ready(fd) { READS_PER_TURN } else { 0 };
            let [client_side, receiver_side] = fds else { continue };
            for _ in 0..reads(client_side) {
                let reading = shared.clock.reading();
                if !read_client(ingress, &sockets.client, reading, &mut paths, index)? {
                    break;
                }
            }
            let Some(path) = paths.paths.get_mut(index) else { continue };
            for _ in 0..reads(receiver_side) {
                let reading = shared.clock.reading();
                let more = ingress.receive(&sockets.receiver, |datagram| {
                    if datagram.from == *receiver {
                        let now = reading.arrival(datagram.stamp);
                        path.reverse.arrive(now, datagram.payload, datagram.ecn);
                    }
                })?;
                if !more {
                    break;
                }
            }
        }
        Ok(())
    }
}

/// Whether a descriptor can be read, has failed or has been closed at its other end.
fn is_ready(fd: &PollFd<'_>) -> bool {
    fd.revents().is_none_or(|events| !events.is_empty())
}

/// Takes in one batch from the sender of path `index`.
fn read_client(
    ingress: &mut Ingress,
    socket: &Socket,
    reading: Reading,
    paths: &mut Paths,
    index: usize,
) -> io::Result<bool> {
    let Paths { first_datagram, paths } = paths;
    ingress.receive(socket, |datagram| {
        let now = reading.arrival(datagram.stamp);
        if first_datagram.is_none() {
            *first_datagram = Some(now);
            for path in paths.iter_mut() {
                path.forward.start_capacity(now);
                path.reverse.start_capacity(now);
            }
        }
        if let Some(path) = paths.get_mut(index) {
            path.client = Some(datagram.from);
            path.forward.arrive(now, datagram.payload, datagram.ecn);
        }
    })
}
