//! One UDP socket: batched sending with segmentation offload, batched receiving, ECN marks.

mod abilities;

use crate::buffers::{BUFFER, Buffer};
pub use abilities::SocketAbilities;
use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSocketState};
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::task::{Context, Poll, ready};
use tokio::io::Interest;
use tokio::net::UdpSocket;

/// Kernel buffers asked for, bytes each; the system may grant less. At 1 Gb/s these hold 32 ms, more
/// than a busy machine keeps the driver waiting.
const KERNEL_BUFFER: usize = 4 << 20;
/// Receive buffers per call while messages are long, so few that what the kernel copied is still in
/// the cache when it is decrypted.
const LONG_BATCH: usize = 6;
/// Whether a receive call that returns fewer messages than asked for found no more.
const RECEIVES_BATCHES: bool = cfg!(any(target_os = "linux", target_os = "android"));
/// Most bytes in one segmented send: the largest UDP payload over IPv4.
pub(crate) const MAX_BATCH: usize = 65_507;

/// A local address to bind, and optionally a network interface to be bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketSpec {
    /// Local address; port 0 lets the system choose one.
    pub local: SocketAddr,
    /// The only interface to be used, whatever the routing table says. Linux only; elsewhere an error.
    pub device: Option<String>,
}

impl From<SocketAddr> for SocketSpec {
    fn from(local: SocketAddr) -> Self {
        SocketSpec { local, device: None }
    }
}

/// A run of equally long datagrams to one destination; the last may be shorter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run<'a> {
    pub(crate) remote: SocketAddr,
    pub(crate) source: Option<IpAddr>,
    pub(crate) ecn: u8,
    /// Length of every datagram but the last.
    pub(crate) segment: usize,
    pub(crate) bytes: &'a [u8],
}

/// A bound UDP socket of the runtime.
#[derive(Debug)]
pub(crate) struct Socket {
    io: UdpSocket,
    state: UdpSocketState,
    local: SocketAddr,
}

impl Socket {
    /// Binds; must be called within a tokio runtime.
    pub(crate) fn bind(spec: &SocketSpec) -> io::Result<Self> {
        let domain = socket2::Domain::for_address(spec.local);
        let kind = socket2::Type::DGRAM;
        let socket = socket2::Socket::new(domain, kind, Some(socket2::Protocol::UDP))?;
        if let Some(device) = &spec.device {
            bind_device(&socket, device)?;
        }
        if spec.local.is_ipv6() {
            // One IP version per socket, so that no IPv4 address arrives in IPv6 form and compares unequal to a known
            // one.
            socket.set_only_v6(true)?;
        }
        socket.set_nonblocking(true)?;
        socket.bind(&spec.local.into())?;
        // Best effort: the limits are the administrator's.
        let _ = socket.set_recv_buffer_size(KERNEL_BUFFER);
        let _ = socket.set_send_buffer_size(KERNEL_BUFFER);
        let socket = std::net::UdpSocket::from(socket);
        let state = UdpSocketState::new((&socket).into())?;
        make_room_for_marks(&socket);
        let local = socket.local_addr()?;
        Ok(Socket { io: UdpSocket::from_std(socket)?, state, local })
    }

    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Most datagrams in one run.
    pub(crate) fn max_segments(&self) -> usize {
        self.state.max_gso_segments().max(1)
    }

    /// Sends a run, or says `WouldBlock` and sends nothing. Other errors count as loss, which the
    /// protocol detects.
    pub(crate) fn send(&self, run: Run<'_>) -> io::Result<()> {
        if run.bytes.len() <= run.segment || self.max_segments() > 1 {
            match self.send_once(run) {
                // After the error of an interface that cannot segment, `state` does not ask for it again.
                Err(error) if !blocked(&error) && self.max_segments() == 1 => {}
                other => return only_blocking(other),
            }
        }
        for (index, bytes) in run.bytes.chunks(run.segment.max(1)).enumerate() {
            let sent = only_blocking(self.send_once(Run { bytes, ..run }));
            // Sent datagrams cannot be taken back: after the first, the rest is lost rather than sent twice.
            if index == 0 {
                sent?;
            }
        }
        Ok(())
    }

    fn send_once(&self, run: Run<'_>) -> io::Result<()> {
        let transmit = Transmit {
            destination: run.remote,
            ecn: quinn_udp::EcnCodepoint::from_bits(run.ecn),
            contents: run.bytes,
            segment_size: (run.bytes.len() > run.segment).then_some(run.segment),
            src_ip: run.source,
        };
        self.io.try_io(Interest::WRITABLE, || self.state.try_send((&self.io).into(), &transmit))
    }

    /// Waits until a send may succeed again, or has an error to report. Any number of tasks may wait.
    pub(crate) async fn writable(&self) {
        let _ = self.io.writable().await;
    }

    /// Receives a batch into `buffers`.
    pub(crate) fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut ReceiveBuffers,
    ) -> Poll<io::Result<()>> {
        buffers.filled = 0;
        loop {
            ready!(self.io.poll_recv_ready(cx))?;
            let received = self.io.try_io(Interest::READABLE, || {
                let mut each = buffers.buffers.iter_mut();
                let mut slices: [IoSliceMut<'_>; BATCH_SIZE] = std::array::from_fn(|_| {
                    IoSliceMut::new(each.next().map(|buffer| &mut buffer[..]).unwrap_or_default())
                });
                let wanted = buffers.wanted;
                let slices = slices.get_mut(..wanted).unwrap_or_default();
                let count = self.state.recv((&self.io).into(), slices, &mut buffers.metas)?;
                buffers.on_filled(count);
                // A batch that is not full emptied the socket. Reporting that spares the call that
                // would find nothing: the runtime waits for the next arrival.
                let emptied = RECEIVES_BATCHES && count < wanted;
                if emptied { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
            });
            match received {
                Err(error) if !blocked(&error) => return Poll::Ready(Err(error)),
                _ if buffers.filled > 0 => return Poll::Ready(Ok(())),
                _ => {}
            }
        }
    }
}

fn blocked(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

fn only_blocking(result: io::Result<()>) -> io::Result<()> {
    result.or_else(|error| if blocked(&error) { Err(error) } else { Ok(()) })
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn bind_device(socket: &socket2::Socket, device: &str) -> io::Result<()> {
    socket.bind_device(Some(device.as_bytes()))
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn bind_device(_: &socket2::Socket, _: &str) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "binding to an interface needs Linux"))
}

/// `quinn-udp` 0.6.3 asks for receive timestamps too, and its control buffer cannot hold those, the
/// segment size, the local address and the congestion mark at once: the kernel then drops the mark of
/// every coalesced batch. We need the marks and not the timestamps.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn make_room_for_marks(socket: &std::net::UdpSocket) {
    use nix::sys::socket::{setsockopt, sockopt::ReceiveTimestampns};
    // Where there are no timestamps to turn off, there is nothing to make room for.
    let _ = setsockopt(socket, ReceiveTimestampns, &false);
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn make_room_for_marks(_: &std::net::UdpSocket) {}

/// Memory for one batch of received messages.
#[derive(Debug)]
pub(crate) struct ReceiveBuffers {
    buffers: Vec<Buffer>,
    metas: [RecvMeta; BATCH_SIZE],
    filled: usize,
    /// How many buffers the next call may fill.
    wanted: usize,
}

/// A received message: one datagram, or several that the kernel has coalesced.
#[derive(Debug)]
pub(crate) struct Message<'a> {
    pub(crate) remote: SocketAddr,
    /// The local address it was sent to, where the system tells.
    pub(crate) local: Option<IpAddr>,
    pub(crate) ecn: u8,
    /// Bytes of each datagram but the last, at least 1.
    pub(crate) stride: usize,
    /// Bytes of all datagrams.
    pub(crate) len: usize,
    /// Holds the datagrams, from its start. The receiver may leave another buffer in its place.
    pub(crate) buffer: &'a mut Buffer,
}

impl ReceiveBuffers {
    pub(crate) fn new() -> Self {
        ReceiveBuffers {
            buffers: (0..BATCH_SIZE).map(|_| vec![0; BUFFER].into_boxed_slice()).collect(),
            metas: [RecvMeta::default(); BATCH_SIZE],
            filled: 0,
            wanted: BATCH_SIZE,
        }
    }

    /// Notes how many buffers a call filled, and by the length of the messages how many to offer next.
    fn on_filled(&mut self, count: usize) {
        self.filled = count;
        let long = |meta: &RecvMeta| meta.len > BUFFER / 4;
        let any = self.metas.iter().take(count).any(long);
        self.wanted = if any { LONG_BATCH } else { BATCH_SIZE };
    }

    /// The messages of the last batch, in order.
    pub(crate) fn messages(&mut self) -> impl Iterator<Item = Message<'_>> {
        let metas = self.metas.iter().take(self.filled);
        self.buffers.iter_mut().zip(metas).map(|(buffer, meta)| {
            let len = meta.len.min(buffer.len());
            let stride = if meta.stride == 0 { len } else { meta.stride };
            Message {
                remote: meta.addr,
                local: meta.dst_ip,
                ecn: meta.ecn.map_or(0, |mark| mark as u8),
                stride: stride.max(1),
                len,
                buffer,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::net::Ipv4Addr;

    fn loopback() -> Socket {
        Socket::bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap()
    }

    async fn receive(socket: &Socket, count: usize) -> Vec<(Vec<u8>, u8, SocketAddr)> {
        let mut buffers = ReceiveBuffers::new();
        let mut all = Vec::new();
        while all.len() < count {
            poll_fn(|cx| socket.poll_recv(cx, &mut buffers)).await.unwrap();
            for message in buffers.messages() {
                assert_eq!(message.local, Some(Ipv4Addr::LOCALHOST.into()));
                let datagrams = message.buffer[..message.len].chunks(message.stride);
                all.extend(datagrams.map(|one| (one.to_vec(), message.ecn, message.remote)));
            }
        }
        all
    }

    #[tokio::test]
    async fn runs_arrive_as_the_datagrams_they_are_made_of() {
        let (from, to) = (loopback(), loopback());
        let bytes: Vec<u8> = (0..10 * 1200 + 77).map(|i| (i / 1200) as u8).collect();
        for (ecn, segment) in [(2, 1200), (1, 1200), (0, bytes.len())] {
            let run = Run { remote: to.local_addr(), source: None, ecn, segment, bytes: &bytes };
            from.writable().await;
            from.send(run).unwrap();
            let sent: Vec<_> = bytes.chunks(segment).collect();
            let received = receive(&to, sent.len()).await;
            assert_eq!(received.len(), sent.len());
            for (expected, (payload, mark, remote)) in sent.iter().zip(&received) {
                assert_eq!(payload, expected);
                assert_eq!(*mark, ecn);
                assert_eq!(*remote, from.local_addr());
            }
        }
    }

    #[tokio::test]
    async fn an_unreachable_destination_is_a_loss_not_an_error() {
        let from = loopback();
        let gone = loopback().local_addr();
        for _ in 0..3 {
            from.writable().await;
            let run = Run { remote: gone, source: None, ecn: 0, segment: 4, bytes: b"lost" };
            from.send(run).unwrap();
        }
        let too_long = [0; MAX_BATCH + 1];
        let run =
            Run { remote: gone, source: None, ecn: 0, segment: too_long.len(), bytes: &too_long };
        from.send(run).unwrap();
    }

    #[tokio::test]
    async fn a_missing_interface_is_an_error() {
        let spec = SocketSpec {
            local: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            device: Some("no-such-device".into()),
        };
        assert!(Socket::bind(&spec).is_err());
    }
}
