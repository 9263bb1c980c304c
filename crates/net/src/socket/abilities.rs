use super::{KERNEL_BUFFER, Socket, SocketSpec};
use socket2::SockRef;
use std::io;

/// Abilities that the system gives a socket: offloads, and how much it buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketAbilities {
    /// Most datagrams that one call hands to the system; 1 where it cannot segment (UDP_SEGMENT).
    pub send_segments: usize,
    /// Most datagrams that the system hands over as one; 1 where it cannot coalesce (UDP_GRO).
    pub receive_segments: usize,
    /// Buffer granted for sending, bytes.
    pub send_buffer: usize,
    /// Buffer granted for receiving, bytes.
    pub receive_buffer: usize,
}

impl SocketAbilities {
    /// Bytes that an endpoint asks for as each of a socket's buffers.
    pub const WANTED_BUFFER: usize = KERNEL_BUFFER;

    /// Binds a socket as an endpoint does, and reads back its options. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// If it cannot be bound: the address is not this machine's, the interface is not there, or binding
    /// to an interface is not permitted.
    pub fn of(spec: &SocketSpec) -> io::Result<Self> {
        let socket = Socket::bind(spec)?;
        let options = SockRef::from(&socket.io);
        Ok(SocketAbilities {
            send_segments: socket.max_segments(),
            receive_segments: socket.state.gro_segments().max(1),
            send_buffer: granted(options.send_buffer_size()?),
            receive_buffer: granted(options.recv_buffer_size()?),
        })
    }
}

/// Linux reports twice what it granted, the other half being for its own accounting (socket(7)).
fn granted(told: usize) -> usize {
    if cfg!(any(target_os = "linux", target_os = "android")) { told / 2 } else { told }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, SocketAddr};

    #[tokio::test]
    async fn a_socket_has_buffers_and_an_absent_interface_has_no_socket() {
        let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let found = SocketAbilities::of(&local.into()).unwrap();
        assert!(found.send_segments >= 1 && found.receive_segments >= 1, "{found:?}");
        assert!((1024..=SocketAbilities::WANTED_BUFFER).contains(&found.receive_buffer));
        let spec = SocketSpec { local, device: Some("no-such-device".into()) };
        assert!(SocketAbilities::of(&spec).is_err());
    }
}
