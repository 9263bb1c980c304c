//! The sending application.

use std::sync::Arc;

use anabranch_policy::CongestionController;
use anabranch_types::Time;

use super::estimate::Estimator;
use super::socket::Socket;
use super::turn::{ByRate, UntilFull};
use super::{Striping, StripingConfig};
use crate::config::Config;
use crate::segment::Segment;
use crate::sender::Sender;

/// Most bytes that wait in the application for room in a socket.
const MOST_WAITING: u64 = 1 << 60;

/// The sending application: its data goes to the sockets packet by packet, as their send buffers have room.
///
/// Use it like a [`Sender`]: after each `handle_*`, `write` or `finish`, call
/// [`poll_transmit`](Self::poll_transmit) until it yields nothing, then ask
/// [`next_timeout`](Self::next_timeout). A socket's index is its path.
#[derive(Debug)]
pub struct StripingSender {
    sockets: Vec<Socket>,
    turn: Turn,
    /// Bytes of a full packet.
    mss: u64,
    /// The sequence number of the next packet, in bytes from the start of the stream, and how many
    /// bytes wait from there on.
    next: u64,
    waiting: u64,
    finished: bool,
    /// Whether something has happened since the last attempt that may let a packet be written.
    changed: bool,
}

/// Order in which the sockets take turns.
#[derive(Debug)]
enum Turn {
    UntilFull(UntilFull),
    ByRate(Box<(ByRate, Estimator)>),
}

impl StripingSender {
    /// An application as `striping` describes it. There is a socket for each of `controllers`, and
    /// each socket is a connection as `connection` describes it. Controllers count bytes of
    /// payload, as for [`Sender::new`].
    pub fn new(
        striping: &StripingConfig,
        connection: &Config,
        controllers: Vec<Box<dyn CongestionController>>,
    ) -> Self {
        let paths = controllers.len();
        let turn = match &striping.striping {
            Striping::UntilFull => Turn::UntilFull(UntilFull::default()),
            Striping::ByRate(estimate) => {
                let estimator = Estimator::new(estimate.clone(), paths);
                Turn::ByRate(Box::new((ByRate::new(paths), estimator)))
            }
        };
        let socket = |(path, controller)| {
            let config = Arc::new(striping.socket(connection, path));
            let low_water = striping.low_water;
            Socket::new(Sender::new(config, controller), low_water)
        };
        StripingSender {
            sockets: controllers.into_iter().enumerate().map(socket).collect(),
            turn,
            mss: u64::from(connection.mss.max(1)),
            next: 0,
            waiting: 0,
            finished: false,
            changed: true,
        }
    }

    /// The application has `bytes` more to send; those for which no socket has room wait in the
    /// application. Returns how many bytes the application took.
    pub fn write(&mut self, bytes: u64) -> u64 {
        if self.finished {
            return 0;
        }
        let taken = bytes.min(MOST_WAITING - self.waiting);
        self.waiting += taken;
        self.changed |= taken > 0;
        taken
    }

    /// Declares that nothing more will be written.
    pub fn finish(&mut self) {
        self.changed |= !self.finished;
        self.finished = true;
    }

    /// Takes in an acknowledgement that arrived on a path.
    pub fn handle_segment(&mut self, now: Time, path: usize, segment: &Segment) {
        if let Some(socket) = self.sockets.get_mut(path) {
            socket.handle_segment(now, segment);
            self.changed = true;
        }
    }

    /// Does everything that is due at `now`. It may be called when nothing is due.
    pub fn handle_timeout(&mut self, now: Time) {
        for socket in &mut self.sockets {
            socket.sender.handle_timeout(now);
        }
    }

    /// The next time at which [`handle_timeout`](Self::handle_timeout) has something to do.
    pub fn next_timeout(&self) -> Option<Time> {
        self.sockets.iter().filter_map(|socket| socket.sender.next_timeout()).min()
    }

    /// The next segment to send now, and its path.
    pub fn poll_transmit(&mut self, now: Time) -> Option<(usize, Segment)> {
        if core::mem::take(&mut self.changed) {
            self.stripe(now);
        }
        for (path, socket) in self.sockets.iter_mut().enumerate() {
            let segment = socket.poll_transmit(now);
            while socket.sender.poll_event().is_some() {}
            if let Some(segment) = segment {
                return Some((path, segment));
            }
        }
        None
    }

    /// Writes packets as long as the next socket in turn has room. Nothing is written before every
    /// socket is connected.
    fn stripe(&mut self, now: Time) {
        if !self.sockets.iter().all(|socket| socket.sender.is_open()) {
            return;
        }
        if let Turn::ByRate(order) = &mut self.turn
            && let Some(rates) = order.1.poll(now, &self.sockets)
        {
            order.0.set_rates(rates.into_iter());
        }
        while let Some(len) = self.next_len()
            && let Some(path) = self.choose(len)
            && let Some(socket) = self.sockets.get_mut(path)
        {
            socket.write(self.next, len);
            self.next += len;
            self.waiting -= len;
        }
        if self.finished && self.waiting == 0 {
            self.sockets.iter_mut().for_each(|socket| socket.sender.finish());
        }
    }

    /// Length of the next packet: an MSS, or less at the end of the stream.
    fn next_len(&self) -> Option<u64> {
        match self.waiting >= self.mss {
            true => Some(self.mss),
            false => Some(self.waiting).filter(|waiting| self.finished && *waiting > 0),
        }
    }

    /// The path that takes the next packet, of `len` bytes, if its socket has room now.
    fn choose(&mut self, len: u64) -> Option<usize> {
        let (count, sockets) = (self.sockets.len(), &mut self.sockets);
        let mut has_room =
            |path: usize| sockets.get_mut(path).is_some_and(|socket| socket.has_room(len));
        match &mut self.turn {
            Turn::UntilFull(order) => order.choose(count, has_room),
            Turn::ByRate(order) => {
                let path = order.0.choose(len).filter(|path| has_room(*path))?;
                order.0.take(path, len);
                Some(path)
            }
        }
    }

    /// Everything below this sequence number, in bytes, has been delivered to the peer's sockets.
    pub fn acknowledged(&self) -> u64 {
        self.sockets.iter().filter_map(Socket::oldest).min().unwrap_or(self.next)
    }

    /// First sequence number, in bytes, that has never been sent.
    pub fn sent(&self) -> u64 {
        self.sockets.iter().filter_map(Socket::oldest_unsent).min().unwrap_or(self.next)
    }

    /// Whether everything written has been acknowledged, and the end of every connection.
    pub fn is_drained(&self) -> bool {
        self.finished
            && self.waiting == 0
            && self.sockets.iter().all(|socket| socket.sender.is_drained())
    }

    /// How many sockets there are.
    pub fn sockets(&self) -> usize {
        self.sockets.len()
    }

    /// The connection on a path.
    pub fn socket(&self, path: usize) -> Option<&Sender> {
        self.sockets.get(path).map(|socket| &socket.sender)
    }

    /// Takes in a loss notice, as [`Sender::handle_loss_notice`] does.
    pub fn handle_loss_notice(&mut self, now: Time, path: usize, offset: u64) {
        if let Some(socket) = self.sockets.get_mut(path) {
            socket.sender.handle_loss_notice(now, offset);
        }
    }
}
