use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use quinn_udp::{UdpSockRef, UdpSocketState};

/// A non-blocking UDP socket on loopback that reads and writes ECN codepoints.
#[derive(Debug)]
pub(crate) struct Socket {
    pub(crate) udp: UdpSocket,
    pub(crate) state: UdpSocketState,
    pub(crate) address: SocketAddr,
}

/// Buffer size requested for each direction of each socket; the kernel may grant less.
const BUFFER_BYTES: usize = 4 << 20;

impl Socket {
    /// Binds a free port of 127.0.0.1.
    pub(crate) fn bind() -> io::Result<Self> {
        Socket::new(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?)
    }

    /// Prepares a bound socket.
    pub(crate) fn new(udp: UdpSocket) -> io::Result<Self> {
        let state = UdpSocketState::new((&udp).into())?;
        leave_room_for_ecn(&udp)?;
        // A small buffer only makes overload likelier, so a refusal is not an error.
        state.set_recv_buffer_size((&udp).into(), BUFFER_BYTES).ok();
        state.set_send_buffer_size((&udp).into(), BUFFER_BYTES).ok();
        let address = udp.local_addr()?;
        Ok(Socket { udp, state, address })
    }

    pub(crate) fn as_ref(&self) -> UdpSockRef<'_> {
        (&self.udp).into()
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.udp.as_fd()
    }
}

/// Switches off the control message with the destination address, which `UdpSocketState` requests
/// and the relay does not read.
///
/// quinn-udp 0.6.3 gives the kernel 96 bytes for control messages. When a receive uses GRO, the
/// timestamp (32 bytes), the destination (32) and the segment size (24) leave no room for the ECN
/// codepoint (24), which would be lost without an error.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn leave_room_for_ecn(udp: &UdpSocket) -> io::Result<()> {
    use nix::sys::socket::{setsockopt, sockopt::Ipv4PacketInfo};
    Ok(setsockopt(udp, Ipv4PacketInfo, &false)?)
}

/// Does nothing: other systems have no GRO, so the ECN codepoint fits.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn leave_room_for_ecn(_udp: &UdpSocket) -> io::Result<()> {
    Ok(())
}
