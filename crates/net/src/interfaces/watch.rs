use core::time::Duration;
use std::io;

/// Notifications come in bursts: link, addresses and routes one after the other. They are acted on after this pause.
const SETTLE: Duration = Duration::from_millis(20);
/// Interval of polling where the system sends no notifications; a change is noticed this late at most.
const POLL: Duration = Duration::from_secs(1);

/// Reports when the machine's interfaces or addresses may have changed.
///
/// On Linux, a watch waits for notifications of the kernel (rtnetlink). Elsewhere, or where these
/// are not permitted, it reports once a second.
#[derive(Debug)]
pub struct Watch {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    kernel: Option<kernel::Socket>,
}

impl Watch {
    /// Begins to watch. Must be called within a tokio runtime.
    pub fn new() -> Self {
        Watch {
            #[cfg(any(target_os = "linux", target_os = "android"))]
            kernel: kernel::Socket::open().ok(),
        }
    }

    /// Waits for a change, or what may be one. If the future is dropped, a change may be reported up to 10 s late.
    pub async fn changed(&mut self) {
        match self.news().await {
            Ok(()) => tokio::time::sleep(SETTLE).await,
            Err(_) => tokio::time::sleep(POLL).await,
        }
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    async fn news(&mut self) -> io::Result<()> {
        let told = match &self.kernel {
            Some(socket) => tokio::time::timeout(POLL * 10, socket.wait()).await.unwrap_or(Ok(())),
            None => Err(io::ErrorKind::Unsupported.into()),
        };
        if told.is_err() {
            self.kernel = None;
        }
        told
    }

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    async fn news(&mut self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl Default for Watch {
    fn default() -> Self {
        Watch::new()
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod kernel {
    use nix::sys::socket::{
        AddressFamily, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, socket,
    };
    use std::io;
    use std::os::fd::AsRawFd;
    use tokio::net::UdpSocket;

    /// Groups of rtnetlink: links, IPv4 addresses, IPv6 addresses (`linux/rtnetlink.h`, bit n − 1 for
    /// group n).
    const GROUPS: u32 = 1 | 1 << 4 | 1 << 8;

    /// The runtime has no type for netlink sockets; receiving is the same on all datagram sockets.
    #[derive(Debug)]
    pub(super) struct Socket(UdpSocket);

    impl Socket {
        pub(super) fn open() -> io::Result<Self> {
            let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
            let route = SockProtocol::NetlinkRoute;
            let socket = socket(AddressFamily::Netlink, SockType::Raw, flags, route)?;
            bind(socket.as_raw_fd(), &NetlinkAddr::new(0, GROUPS))?;
            Ok(Socket(UdpSocket::from_std(socket.into())?))
        }

        /// Waits for a message of the kernel. Its content is ignored: the interfaces are listed anew,
        /// which is right even if messages were lost.
        pub(super) async fn wait(&self) -> io::Result<()> {
            let mut buffer = [0; 8192];
            let mut any = false;
            loop {
                match self.0.try_recv(&mut buffer) {
                    Ok(_) => any = true,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock && any => return Ok(()),
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        self.0.readable().await?;
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    // The receive buffer overflowed, so there were changes.
                    Err(error) if error.raw_os_error() == Some(nix::libc::ENOBUFS) => any = true,
                    Err(error) => return Err(error),
                }
            }
        }
    }
}
