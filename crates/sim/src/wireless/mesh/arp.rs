use std::collections::BTreeMap;

/// How a station finds the MAC addresses of its neighbours (RFC 826), as in ns-2.
///
/// For each neighbour, one packet waits for the address, and the next packet replaces it. Each
/// packet that finds no address causes a request. After three unanswered requests, the next packet
/// and the waiting packet fail. Addresses never expire.
#[derive(Clone, Debug, Default)]
pub(super) struct Arp {
    neighbours: BTreeMap<u16, Neighbour>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Neighbour {
    known: bool,
    held: Option<u32>,
    requests: u32,
}

/// Unanswered requests after which the next packet fails.
const MOST_REQUESTS: u32 = 3;

/// The fate of a packet for a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resolution {
    /// The address is known, so the packet can be sent.
    Known,
    /// The address is unknown. The caller must send a request, and the packet now waits in place of
    /// the `dropped` one.
    Ask { dropped: Option<u32> },
    /// The neighbour does not answer, so this packet and the waiting one are given up.
    Failed { held: Option<u32> },
}

impl Arp {
    /// Decides the fate of a packet for a neighbour.
    pub(super) fn resolve(&mut self, neighbour: u16, token: u32) -> Resolution {
        let entry = self.neighbours.entry(neighbour).or_default();
        if entry.known {
            Resolution::Known
        } else if entry.requests >= MOST_REQUESTS {
            entry.requests = 0;
            Resolution::Failed { held: entry.held.take() }
        } else {
            entry.requests += 1;
            Resolution::Ask { dropped: entry.held.replace(token) }
        }
    }

    /// Marks a neighbour's address as known from its request or reply. Returns the packet that
    /// waited for the address.
    pub(super) fn learn(&mut self, neighbour: u16) -> Option<u32> {
        let entry = self.neighbours.entry(neighbour).or_default();
        entry.known = true;
        entry.held.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_packet_waits_and_the_fourth_gives_up() {
        let mut arp = Arp::default();
        assert_eq!(arp.resolve(2, 10), Resolution::Ask { dropped: None });
        assert_eq!(arp.resolve(2, 11), Resolution::Ask { dropped: Some(10) });
        assert_eq!(arp.resolve(2, 12), Resolution::Ask { dropped: Some(11) });
        assert_eq!(arp.resolve(2, 13), Resolution::Failed { held: Some(12) });
        assert_eq!(arp.resolve(2, 14), Resolution::Ask { dropped: None });
        assert_eq!(arp.resolve(3, 15), Resolution::Ask { dropped: None });
        assert_eq!(arp.learn(2), Some(14));
        assert_eq!(arp.resolve(2, 16), Resolution::Known);
        assert_eq!(arp.learn(2), None);
    }
}
