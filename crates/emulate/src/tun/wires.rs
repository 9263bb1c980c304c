use core::time::Duration;
use std::io;

use anabranch_types::Ecn;
use tun_rs::SyncDevice;

use super::packet;
use crate::clock::Clock;
use crate::network::{Arrival, Network};
use crate::worker::Wires;

/// Packets come from and go to TUN devices: for each path first the client's device, then the
/// server's.
pub(super) struct TunWires {
    buffer: Box<[u8]>,
}

/// Size of the read buffer, bytes. No packet is longer, since the devices' MTU is smaller.
const LONGEST: usize = 1 << 16;
/// Most packets read from one device before the next device gets its turn.
const PACKETS: usize = 16;

impl TunWires {
    pub(super) fn new() -> Self {
        TunWires { buffer: vec![0; LONGEST].into() }
    }
}

impl Wires for TunWires {
    type Port = SyncDevice;

    /// Zero, so that each packet is sent at its own due time.
    const GRANULARITY: Duration = Duration::ZERO;

    fn receive(
        &mut self,
        device: &SyncDevice,
        port: usize,
        clock: Clock,
        network: &mut Network,
    ) -> io::Result<bool> {
        for _ in 0..PACKETS {
            let length = match device.recv(&mut self.buffer) {
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let bytes = self.buffer.get(..length).unwrap_or_default();
            let (now, size, ecn) = (clock.now(), length as u32, packet::ecn(bytes));
            network.arrive(port, Arrival { now, size, ecn, bytes });
        }
        Ok(true)
    }

    fn send(&mut self, device: &SyncDevice, _: usize, ecn: Ecn, bytes: &mut [u8]) -> u64 {
        packet::set_ecn(bytes, ecn);
        u64::from(device.send(bytes).is_err())
    }

    fn flush(&mut self, _: &SyncDevice, _: usize) -> u64 {
        0
    }
}
