use core::time::Duration;
use std::io;

use nix::errno::Errno;
use nix::poll::PollFd;

/// Sleeps until one of `fds` is ready or `timeout` is over. Returns whether one is.
///
/// # Errors
/// When polling fails. An interruption by a signal is no error: it counts as the end of the
/// timeout.
pub(crate) fn wait(fds: &mut [PollFd<'_>], timeout: Duration) -> io::Result<bool> {
    match poll(fds, timeout) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::EINTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Polls with a timeout in nanoseconds, where the system has such a call.
#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
fn poll(fds: &mut [PollFd<'_>], timeout: Duration) -> nix::Result<i32> {
    nix::poll::ppoll(fds, Some(timeout.into()), None)
}

/// Polls with a timeout in milliseconds. The timeout is rounded down, because polling too often is
/// better than sending late.
#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
fn poll(fds: &mut [PollFd<'_>], timeout: Duration) -> nix::Result<i32> {
    let millis = u16::try_from(timeout.as_millis()).unwrap_or(u16::MAX);
    nix::poll::poll(fds, nix::poll::PollTimeout::from(millis))
}
