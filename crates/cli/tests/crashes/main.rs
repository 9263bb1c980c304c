//! Programs are killed at random instants and started again with the same command. Work goes on within two seconds, and
//! no byte is lost or changed, on loopback and over two links with delay and loss. Each test tries a few instants;
//! `ANABRANCH_KILLS=50` makes it fifty.
#![cfg(unix)]
#![expect(clippy::disallowed_methods, reason = "processes are timed by the clock on the wall")]

mod asleep;
#[allow(dead_code, reason = "shared by the tests, each of which uses its part")]
#[path = "../common/echo.rs"]
mod echo;
mod harder;
#[allow(dead_code, reason = "shared by the tests, each of which uses its part")]
#[path = "../netns/lab.rs"]
mod lab;
#[path = "../common/memory.rs"]
mod memory;
mod place;
mod process;
#[path = "../netns/slow.rs"]
mod slow;
mod transfer;
mod tunnel;
