//! The Anabranch protocol core: bytes in, bytes out.
//!
//! Nothing here does I/O, reads a clock or draws random numbers from the system: datagrams, time,
//! seeds and cryptography are arguments. The same core runs in the simulator, over UDP sockets and
//! through the emulator.

pub mod coding;
pub mod config;
pub mod connection;
pub mod crypto;
pub mod endpoint;
#[cfg(any(test, feature = "testing"))]
pub mod fuzzing;
pub mod handshake;
pub mod observe;
pub mod path;
pub mod profiles;
mod runs;
pub mod stream;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod wire;

// The code of the how-to page is compiled and run with the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/howto/add-an-erasure-code.md")]
mod add_an_erasure_code {}
