//! Further addresses of the responder, which it announces by ADD_ADDRESS.

use core::net::SocketAddr;
use std::collections::VecDeque;

use super::ingress::Broken;
use super::{Connection, Event};
use crate::wire::{CloseCode, ControlFrame, Role};

/// Addresses kept at most; further ones take the place of the oldest.
const MOST: usize = 16;

/// What was announced, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Addresses(VecDeque<SocketAddr>);

impl Addresses {
    /// Whether the address was announced.
    pub(super) fn has(&self, address: SocketAddr) -> bool {
        self.0.contains(&address)
    }

    /// Those of the family of `present`, except for itself.
    pub(super) fn alike(&self, present: SocketAddr) -> impl Iterator<Item = SocketAddr> {
        let alike = move |one: &SocketAddr| *one != present && one.is_ipv4() == present.is_ipv4();
        self.0.iter().copied().filter(alike)
    }

    /// Adds an address; returns whether that is news.
    fn add(&mut self, address: SocketAddr) -> bool {
        if self.has(address) {
            return false;
        }
        if self.0.len() == MOST {
            self.0.pop_front();
        }
        self.0.push_back(address);
        true
    }
}

impl Connection {
    /// Tells the initiator that this side can be reached at an address, now or soon: so that it follows paths
    /// there, looks there when they fall silent, or opens further ones. Of more than 16, the newest count.
    /// False if this side opened the connection itself, so that the peer sends where this side sends from.
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
        self.addresses.0.iter().copied().filter(|_| of_peer).collect()
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
