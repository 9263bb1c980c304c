//! The least work of any such transport: copy the bytes into symbols, make repairs, seal, send with segmentation
//! offload; receive coalesced, open, copy out. Credit keeps the receiver's buffer from overflowing; there are no
//! acknowledgements, no windows, no streams and no losses.

use std::io::{ErrorKind, IoSliceMut};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::thread;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

use crate::Failure;
use crate::run::{PIECE, Running, Sample, Side, Task};

/// Source symbols of a block, and the repairs that follow them.
const SOURCES: usize = 100;
const REPAIRS: usize = 5;
const HEADER: usize = 11;
const TAG: usize = 16;
/// Most bytes in flight.
const CREDIT: u64 = 1 << 20;
/// Receive buffers of one call.
const BUFFERS: usize = 6;
const BUFFER: usize = 1 << 16;
/// Most bytes of one segmented send.
const LONGEST: usize = 65_507;
/// The transfer fails if no datagram arrives for this long, since nothing is sent again; milliseconds.
const SILENCE: u16 = 5000;

/// Moves the bytes once, with 5 % repairs if `coded`.
pub fn transfer(task: Task, coded: bool) -> Result<Sample, Failure> {
    let (bytes, payload) = (task.bytes, usize::from(task.payload));
    let (from, to) = (socket()?, socket()?);
    let (sender, receiver) = (from.local_addr()?, to.local_addr()?);
    let receiving = move || receive(&to, sender, bytes);
    let receiving = thread::Builder::new().name("receiver".into()).spawn(receiving)?;
    let sending = move || send(&from, receiver, bytes, payload, coded);
    let sending = thread::Builder::new().name("sender".into()).spawn(sending)?;
    let sent = sending.join().map_err(|_| "the sender panicked")??;
    let received = receiving.join().map_err(|_| "the receiver panicked")??;
    Ok(Sample::new(task, sent, received))
}

fn socket() -> Result<UdpSocket, Failure> {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None)?;
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())?;
    socket.set_recv_buffer_size(4 << 20)?;
    socket.set_send_buffer_size(4 << 20)?;
    Ok(socket.into())
}

fn key() -> Result<LessSafeKey, Failure> {
    let key = UnboundKey::new(&AES_256_GCM, &[7; 32]).map_err(|_| "ring refused the key")?;
    Ok(LessSafeKey::new(key))
}

fn nonce(number: u64) -> Nonce {
    let mut bytes = [0; 12];
    bytes[4..].copy_from_slice(&number.to_be_bytes());
    Nonce::assume_unique_for_key(bytes)
}

/// Waits until something arrives.
fn wait(socket: &UdpSocket) -> Result<(), Failure> {
    let ready =
        poll(&mut [PollFd::new(socket.as_fd(), PollFlags::POLLIN)], PollTimeout::from(SILENCE))?;
    if ready == 0 { Err("a datagram was lost".into()) } else { Ok(()) }
}

/// Packets on their way out.
struct Batch {
    bytes: Vec<u8>,
    number: u64,
    key: LessSafeKey,
}

impl Batch {
    /// Adds a packet with `symbol`; the first byte of its header marks a repair.
    fn add(&mut self, symbol: &[u8], repair: bool) -> Result<(), Failure> {
        let start = self.bytes.len();
        let mut header = [u8::from(repair); HEADER];
        header[1..9].copy_from_slice(&self.number.to_be_bytes());
        self.bytes.extend_from_slice(&header);
        self.bytes.extend_from_slice(symbol);
        let body = self.bytes.get_mut(start + HEADER..).unwrap_or_default();
        let tag = self.key.seal_in_place_separate_tag(nonce(self.number), Aad::from(header), body);
        self.bytes.extend_from_slice(tag.map_err(|_| "sealing failed")?.as_ref());
        self.number += 1;
        Ok(())
    }

    /// Sends everything, if no further packet fits.
    fn flush_full(
        &mut self,
        socket: &UdpSocket,
        state: &UdpSocketState,
        to: SocketAddr,
        payload: usize,
    ) -> Result<(), Failure> {
        let full = self.bytes.len() + payload > LONGEST;
        if full { self.flush(socket, state, to, payload) } else { Ok(()) }
    }

    /// Sends everything in one call.
    fn flush(
        &mut self,
        socket: &UdpSocket,
        state: &UdpSocketState,
        to: SocketAddr,
        payload: usize,
    ) -> Result<(), Failure> {
        let transmit = Transmit {
            destination: to,
            ecn: None,
            contents: &self.bytes,
            segment_size: (self.bytes.len() > payload).then_some(payload),
            src_ip: None,
        };
        while let Err(error) = state.try_send(socket.into(), &transmit) {
            if error.kind() != ErrorKind::WouldBlock {
                return Err(error.into());
            }
            thread::yield_now();
        }
        self.bytes.clear();
        Ok(())
    }
}

fn send(
    socket: &UdpSocket,
    to: SocketAddr,
    bytes: u64,
    payload: usize,
    coded: bool,
) -> Result<Side, Failure> {
    let state = UdpSocketState::new(socket.into())?;
    let length = payload - HEADER - TAG;
    let piece = vec![7_u8; PIECE];
    let mut batch = Batch { bytes: Vec::with_capacity(BUFFER), number: 0, key: key()? };
    let mut block = Block::new(length);
    let clock = Running::start()?;
    let (mut sent, mut acked, mut at) = (0_u64, 0_u64, 0);
    while sent < bytes {
        let take = (bytes - sent).min(length as u64) as usize;
        if at + length > PIECE {
            at = 0;
        }
        let source = block.take(piece.get(at..at + length).unwrap_or_default())?;
        at += length;
        sent += take as u64;
        batch.add(source.get(..take).unwrap_or_default(), false)?;
        let last = sent == bytes;
        if last {
            batch.flush(socket, &state, to, payload)?;
        }
        batch.flush_full(socket, &state, to, payload)?;
        if block.is_full() {
            for repair in block.close(coded)? {
                batch.add(repair, true)?;
                batch.flush_full(socket, &state, to, payload)?;
            }
        }
        while sent - acked > CREDIT || (last && acked < bytes) {
            acked = acked.max(credit(socket)?.unwrap_or(0));
        }
    }
    clock.stop()
}

/// The bytes that the receiver reports as received; if no report is there, waits for one and returns `None`.
fn credit(socket: &UdpSocket) -> Result<Option<u64>, Failure> {
    let mut credit = [0; 8];
    match socket.recv(&mut credit) {
        Ok(_) => Ok(Some(u64::from_be_bytes(credit))),
        Err(error) if error.kind() == ErrorKind::WouldBlock => wait(socket).map(|()| None),
        Err(error) => Err(error.into()),
    }
}

/// The source symbols of a block being filled, and its repairs.
struct Block {
    sources: Vec<Vec<u8>>,
    repairs: Vec<Vec<u8>>,
    filled: usize,
}

impl Block {
    fn new(length: usize) -> Self {
        Block {
            sources: vec![vec![0; length]; SOURCES],
            repairs: vec![vec![0; length]; REPAIRS],
            filled: 0,
        }
    }

    /// Copies the next symbol in; returns the copy.
    fn take(&mut self, bytes: &[u8]) -> Result<&[u8], Failure> {
        let source = self.sources.get_mut(self.filled).ok_or("a block overflowed")?;
        source.copy_from_slice(bytes);
        self.filled += 1;
        Ok(source)
    }

    fn is_full(&self) -> bool {
        self.filled == self.sources.len()
    }

    /// Returns the repairs, none unless `coded`, and starts an empty block.
    fn close(&mut self, coded: bool) -> Result<&[Vec<u8>], Failure> {
        self.filled = 0;
        if !coded {
            return Ok(&[]);
        }
        encode(&self.sources, &mut self.repairs)?;
        Ok(&self.repairs)
    }
}

fn encode(sources: &[Vec<u8>], repairs: &mut [Vec<u8>]) -> Result<(), Failure> {
    let mut rows = [&[][..]; SOURCES];
    for (row, source) in rows.iter_mut().zip(sources) {
        *row = source;
    }
    let mut out: [&mut [u8]; REPAIRS] = Default::default();
    for (slot, repair) in out.iter_mut().zip(repairs) {
        *slot = repair;
    }
    Ok(anabranch_fec::reed_solomon::encode(0, &rows, &mut out)?)
}

fn receive(socket: &UdpSocket, peer: SocketAddr, bytes: u64) -> Result<Side, Failure> {
    let state = UdpSocketState::new(socket.into())?;
    let key = key()?;
    let mut buffers = vec![vec![0_u8; BUFFER]; BUFFERS];
    let mut metas = [RecvMeta::default(); BUFFERS];
    let mut out = vec![0_u8; PIECE];
    let (mut received, mut told, mut at) = (0_u64, 0_u64, 0);
    let clock = Running::start()?;
    while received < bytes {
        let mut chunks = buffers.iter_mut();
        let mut slices: [IoSliceMut<'_>; BUFFERS] = core::array::from_fn(|_| {
            IoSliceMut::new(chunks.next().map(Vec::as_mut_slice).unwrap_or_default())
        });
        let count = match state.recv(socket.into(), &mut slices, &mut metas) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                wait(socket)?;
                continue;
            }
            count => count?,
        };
        for (buffer, meta) in buffers.iter_mut().zip(&metas).take(count) {
            for packet in buffer[..meta.len].chunks_mut(meta.stride.max(1)) {
                let (header, body) = packet.split_at_mut(HEADER);
                let number = u64::from_be_bytes(header[1..9].try_into()?);
                let repair = header[0] == 1;
                let plain = key
                    .open_in_place(nonce(number), Aad::from(&*header), body)
                    .map_err(|_| "a packet does not open")?;
                if repair {
                    continue;
                }
                if at + plain.len() > PIECE {
                    at = 0;
                }
                out[at..at + plain.len()].copy_from_slice(plain);
                at += plain.len();
                received += plain.len() as u64;
            }
        }
        if received - told >= CREDIT / 8 || received == bytes {
            told = received;
            socket.send_to(&received.to_be_bytes(), peer)?;
        }
    }
    clock.stop()
}
