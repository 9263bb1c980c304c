use core::time::Duration;
use std::io;

use nix::errno::Errno;
use nix::poll::PollFd;

/// Sleeps until one of `fds` is ready or `timeout` is over. Returns whether one is.
///
/// # Errors
/// When the system refuses; being interrupted by a signal counts as the end of the timeout.
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

/// Polls with a timeout in milliseconds, rounded down: spinning is better than being late.
#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
fn poll(fds: &mut [PollFd<'_>], timeout: Duration) -> nix::Result<i32> {
    let millis = u16::try_from(timeout.as_millis()).unwrap_or(u16::MAX);
    nix::poll::poll(fds, nix::poll::PollTimeout::from(millis))
}
