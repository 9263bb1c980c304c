//! Programs that are killed at any instant, and started again with the same command: work goes on within two
//! seconds, and no byte is lost or changed. Each test tries a few instants; `ANABRANCH_KILLS=50` makes it fifty.
#![cfg(unix)]
#![expect(clippy::disallowed_methods, reason = "processes are timed by the clock on the wall")]

mod process;
mod transfer;
mod tunnel;
