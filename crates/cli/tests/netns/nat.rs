//! The router as a NAT that loses or changes its mappings.

use crate::lab::Lab;

/// First of the hundred ports that a NAT maps to at first; after each change it uses the next
/// hundred.
const FIRST_PORT: u16 = 20_000;

/// A source NAT between the links and the server.
pub struct Nat<'lab> {
    lab: &'lab Lab,
    changes: u16,
}

impl<'lab> Nat<'lab> {
    /// Sets the NAT up. Where that is not possible, prints why and returns `None`.
    pub fn new(lab: &'lab Lab) -> Option<Self> {
        lab.ip("r", &["addr", "add", "10.77.100.3/24", "dev", "rs"]);
        let chain = "add chain ip nat out { type nat hook postrouting priority 100; }";
        let commands = ["add table ip nat", chain];
        if !commands.iter().all(|command| lab.try_within("r", "nft", &[command]).status.success()) {
            println!("skipped: `nft` is not installed, or the kernel translates no addresses");
            return None;
        }
        if !lab.try_within("r", "conntrack", &["-L"]).status.success() {
            println!("skipped: `conntrack` is not installed, so mappings cannot be flushed");
            return None;
        }
        let nat = Nat { lab, changes: 0 };
        nat.map();
        Some(nat)
    }

    /// Forgets every mapping; new ones have other ports and, every second time, another address.
    pub fn change(&mut self) {
        let before = self.mappings();
        assert!(!before.is_empty(), "nothing was translated");
        self.changes += 1;
        self.map();
        self.lab.within("r", "conntrack", &["-F"]);
    }

    /// The client's flows as the server sees them.
    pub fn mappings(&self) -> Vec<String> {
        let filter = ["-L", "-p", "udp", "--reply-src", Lab::SERVER];
        let output = self.lab.try_within("r", "conntrack", &filter);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        // Of the two directions, the last is the server's.
        let seen = text.lines().filter_map(|line| {
            let (_, reply) = line.rsplit_once(" src=")?;
            let of = |key: &str| reply.split(' ').find_map(|word| word.strip_prefix(key));
            Some(format!("{}:{}", of("dst=")?, of("dport=")?))
        });
        seen.filter(|address| address.starts_with("10.77.100.")).collect()
    }

    /// Whether every mapping has an address and a port of the range since the last change.
    pub fn is_as_changed(&self) -> bool {
        let (address, first) = self.range();
        let mappings = self.mappings();
        !mappings.is_empty()
            && mappings.iter().all(|mapping| {
                let port = mapping.strip_prefix(address).and_then(|rest| rest.strip_prefix(':'));
                port.and_then(|port| port.parse().ok())
                    .is_some_and(|port: u16| (first..first + 100).contains(&port))
            })
    }

    fn range(&self) -> (&'static str, u16) {
        let address = if self.changes.is_multiple_of(2) { "10.77.100.1" } else { "10.77.100.3" };
        (address, FIRST_PORT + 100 * self.changes)
    }

    fn map(&self) {
        let (address, first) = self.range();
        let to = format!("{address}:{first}-{}", first + 99);
        let rule = format!("add rule ip nat out oif rs meta l4proto udp snat to {to}");
        self.lab.within("r", "nft", &[&format!("flush chain ip nat out; {rule}")]);
    }
}
