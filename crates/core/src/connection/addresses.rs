//! Further addresses of the responder, which it announces with ADD_ADDRESS.

use core::net::SocketAddr;
use std::collections::VecDeque;

use super::ingress::Broken;
use super::{Connection, Event};
use crate::path::PathAddress;
use crate::path::candidates::Candidates;
use crate::wire::{CloseCode, ControlFrame, Role};

/// The most addresses that are kept; further ones replace the oldest.
const MOST: usize = 16;

/// Addresses that the responder has announced.
#[derive(Debug, Default)]
pub(super) struct Addresses {
    /// The oldest first.
    all: VecDeque<SocketAddr>,
    /// Bytes received from the responder and not yet spent on probing the addresses that it
    /// announced, which may belong to third parties.
    pub(super) heard: u64,
}

impl Addresses {
    /// Whether the address was announced.
    pub(super) fn has(&self, address: SocketAddr) -> bool {
        self.all.contains(&address)
    }

    /// Probes all other announced addresses of the same IP version as `present` for the responder.
    /// Each probe takes `wire` bytes on the wire.
    pub(super) fn ask(&mut self, present: PathAddress, candidates: &mut Candidates, wire: u64) {
        let PathAddress { socket, remote: present } = present;
        let alike = |one: &&SocketAddr| **one != present && one.is_ipv4() == present.is_ipv4();
        for remote in self.all.iter().filter(alike).copied() {
            candidates.ask_announced(PathAddress { socket, remote }, wire, &mut self.heard);
        }
    }

    /// Adds an address; returns whether it is new.
    fn add(&mut self, address: SocketAddr) -> bool {
        if self.has(address) {
            return false;
        }
        if self.all.len() == MOST {
            self.all.pop_front();
        }
        self.all.push_back(address);
        true
    }
}

impl Connection {
    /// Tells the initiator that this side can be reached at an address, now or soon. The initiator
    /// moves paths there, probes the address when paths fall silent, or opens further paths. Only
    /// the newest 16 are kept. Returns false at the initiator itself, whose peer sends to the
    /// addresses from which packets arrive.
    pub fn announce_address(&mut self, address: SocketAddr) -> bool {
        if self.identity.role == Role::Initiator {
            return false;
        }
        if self.addresses.add(address) {
            self.control.push_back(ControlFrame::AddAddress { address });
            self.changed();
        }
        true
    }

    /// The addresses that the responder has announced, the newest last.
    pub fn peer_addresses(&self) -> Vec<SocketAddr> {
        let of_peer = self.identity.role == Role::Initiator;
        self.addresses.all.iter().copied().filter(|_| of_peer).collect()
    }

    pub(super) fn on_add_address(&mut self, address: SocketAddr) -> Result<(), Broken> {
        if self.identity.role == Role::Responder {
            let what = "an initiator announces no addresses";
            return Err(Broken { code: CloseCode::PROTOCOL_VIOLATION, what });
        }
        if self.addresses.add(address) && !self.events.contains(&Event::PeerAddresses) {
            self.emit(Event::PeerAddresses);
        }
        Ok(())
    }
}
