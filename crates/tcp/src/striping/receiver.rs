//! The receiving application.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use anabranch_types::Time;

use super::StripingConfig;
use crate::config::Config;
use crate::receiver::Receiver;
use crate::segment::Segment;

/// The receiving application: reads the sockets and delivers their packets in sequence.
///
/// The application reads from each socket as long as its resequencing buffer has room. When the
/// buffer is full, the application peeks at the first packet of each socket and reads only the next
/// in sequence (pTCP, §2). Use it like a [`Receiver`] whose data is read at once.
#[derive(Debug)]
pub struct StripingReceiver {
    sockets: Vec<Socket>,
    /// The next sequence number, bytes.
    next: u64,
    /// Packets beyond the next one: their lengths by sequence number, and their bytes in total.
    held: BTreeMap<u64, u64>,
    held_bytes: u64,
    buffer: u64,
    out_of_order: u64,
    peak_held: u64,
}

/// One socket.
#[derive(Debug)]
struct Socket {
    receiver: Receiver,
    mss: u64,
    /// Sequence numbers of the packets that have arrived, from the first unread place on, and how
    /// many packets were read before.
    packets: VecDeque<Option<u64>>,
    read: u64,
    /// Most packets that the receive buffer holds.
    most: u64,
}

impl Socket {
    fn new(config: Config) -> Self {
        let mss = u64::from(config.mss);
        let most = config.receive_buffer / mss;
        let receiver = Receiver::new(Arc::new(config));
        Socket { receiver, mss, packets: VecDeque::new(), read: 0, most }
    }

    /// Notes the sequence number of the packet in a segment.
    fn note(&mut self, segment: &Segment) {
        let Some(sequence) = segment.data_sequence() else { return };
        let place = (segment.seq / self.mss).checked_sub(self.read).filter(|at| *at < self.most);
        if let Some(place) = place.and_then(|place| usize::try_from(place).ok()) {
            self.packets.resize(self.packets.len().max(place + 1), None);
            if let Some(packet) = self.packets.get_mut(place) {
                *packet = Some(sequence);
            }
        }
    }

    /// The first packet that was not read, if it has arrived: its sequence number and length.
    fn peek(&self) -> Option<(u64, u64)> {
        let len = self.mss.min(self.receiver.readable());
        let whole = len == self.mss || self.receiver.is_finished();
        let sequence = self.packets.front().copied().flatten()?;
        (whole && len > 0).then_some((sequence, len))
    }

    fn take(&mut self, len: u64) {
        self.receiver.read(len);
        self.packets.pop_front();
        self.read += 1;
    }
}

impl StripingReceiver {
    /// An application as `config` describes it, with `paths` sockets, each a connection as
    /// `connection` describes it.
    pub fn new(config: &StripingConfig, connection: &Config, paths: usize) -> Self {
        let socket = |path| Socket::new(config.socket(connection, path));
        StripingReceiver {
            sockets: (0..paths).map(socket).collect(),
            next: 0,
            held: BTreeMap::new(),
            held_bytes: 0,
            buffer: config.resequencing_buffer,
            out_of_order: 0,
            peak_held: 0,
        }
    }

    /// Takes in a segment that arrived on a path; `marked` if its packet carried Congestion Experienced.
    pub fn handle_segment(&mut self, now: Time, path: usize, segment: &Segment, marked: bool) {
        let Some(socket) = self.sockets.get_mut(path) else { return };
        socket.note(segment);
        let before = socket.receiver.statistics().duplicates + socket.receiver.statistics().refused;
        socket.receiver.handle_segment(now, segment, marked);
        let statistics = socket.receiver.statistics();
        if segment.len > 0
            && segment.data > self.next
            && statistics.duplicates + statistics.refused == before
        {
            self.out_of_order += 1;
        }
        self.read();
    }

    /// Reads whatever may be read.
    fn read(&mut self) {
        let mut any = true;
        while core::mem::take(&mut any) {
            for path in 0..self.sockets.len() {
                while self.read_from(path) {
                    any = true;
                }
            }
        }
    }

    /// Reads a packet from a socket, if it has one that may be read.
    fn read_from(&mut self, path: usize) -> bool {
        let Some(socket) = self.sockets.get_mut(path) else { return false };
        let Some((sequence, len)) = socket.peek() else { return false };
        if sequence == self.next {
            socket.take(len);
            self.next += len;
            self.release();
            return true;
        }
        if self.held_bytes + len > self.buffer {
            return false;
        }
        socket.take(len);
        self.held.insert(sequence, len);
        self.held_bytes += len;
        self.peak_held = self.peak_held.max(self.held_bytes);
        true
    }

    /// Delivers held packets that are in sequence now.
    fn release(&mut self) {
        while let Some(len) = self.held.remove(&self.next) {
            self.held_bytes -= len;
            self.next += len;
        }
    }

    /// Does everything that is due at `now`. It may be called when nothing is due.
    pub fn handle_timeout(&mut self, now: Time) {
        for socket in &mut self.sockets {
            socket.receiver.handle_timeout(now);
        }
    }

    /// The next time at which [`handle_timeout`](Self::handle_timeout) has something to do.
    pub fn next_timeout(&self) -> Option<Time> {
        self.sockets.iter().filter_map(|socket| socket.receiver.next_timeout()).min()
    }

    /// The next acknowledgement or window update to send now, and its path.
    pub fn poll_transmit(&mut self, now: Time) -> Option<(usize, Segment)> {
        let mut sockets = self.sockets.iter_mut().enumerate();
        sockets.find_map(|(path, socket)| Some((path, socket.receiver.poll_transmit(now)?)))
    }

    /// Bytes delivered to the application, in sequence.
    pub fn delivered(&self) -> u64 {
        self.next
    }

    /// Packets that arrived beyond the next in sequence, duplicates excluded.
    pub fn out_of_order(&self) -> u64 {
        self.out_of_order
    }

    /// Bytes of packets that arrived at a socket more than once.
    pub fn duplicate_bytes(&self) -> u64 {
        self.sockets.iter().map(|socket| socket.receiver.statistics().duplicate_bytes).sum()
    }

    /// Most bytes that the resequencing buffer has held.
    pub fn peak_held(&self) -> u64 {
        self.peak_held
    }

    /// The connection on a path.
    pub fn socket(&self, path: usize) -> Option<&Receiver> {
        self.sockets.get(path).map(|socket| &socket.receiver)
    }
}
