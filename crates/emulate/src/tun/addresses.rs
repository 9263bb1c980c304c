use core::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The addresses of one end of a path.
///
/// On path number n, counted from 1, the client's addresses are 10.77.n.1 and fd77:0:0:n::1 and the
/// server's 10.77.n.2 and fd77:0:0:n::2. The IPv6 addresses, too, show n in decimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// The IPv4 address.
    pub v4: Ipv4Addr,
    /// The IPv6 address, where the kernel has IPv6: a unique local one (RFC 4193).
    pub v6: Option<Ipv6Addr>,
}

/// First 16 bits of all IPv6 addresses; two zero words and the path's number follow.
const UNIQUE_LOCAL: u16 = 0xfd77;

impl Addresses {
    /// The addresses of one end of path `number`: `end` is 1 for the client, 2 for the server.
    pub(super) fn new(number: u8, end: u8, ipv6: bool) -> Self {
        let v6 = ipv6.then(|| {
            let (path, end) = (in_digits(number), u16::from(end));
            Ipv6Addr::new(UNIQUE_LOCAL, 0, 0, path, 0, 0, 0, end)
        });
        Addresses { v4: Ipv4Addr::new(10, 77, number, end), v6 }
    }

    /// The client's addresses after its next move. The last byte runs from 3 to 254 and then starts
    /// over at 3, since 2 is the server's.
    pub(super) fn next(self) -> Self {
        let [.., number, end] = self.v4.octets();
        let end = if (3..254).contains(&end) { end + 1 } else { 3 };
        Addresses::new(number, end, self.v6.is_some())
    }
}

/// The number whose hexadecimal digits are the decimal digits of `number`: 48 gives 0x48.
fn in_digits(number: u8) -> u16 {
    let number = u16::from(number);
    (number / 100) * 0x100 + (number / 10 % 10) * 0x10 + number % 10
}

impl fmt::Display for Addresses {
    /// Both addresses, as in `10.77.1.1 and fd77:0:0:1::1`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.v6 {
            Some(v6) => write!(f, "{} and {v6}", self.v4),
            None => self.v4.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_families_have_the_same_digits() {
        let text = |number, end| Addresses::new(number, end, true).to_string();
        assert_eq!(text(1, 2), "10.77.1.2 and fd77:0:0:1::2");
        assert_eq!(text(48, 1), "10.77.48.1 and fd77:0:0:48::1");
        assert_eq!(text(250, 1), "10.77.250.1 and fd77:0:0:250::1");
        assert_eq!(Addresses::new(3, 1, false).to_string(), "10.77.3.1");
    }

    #[test]
    fn the_next_is_never_that_of_the_server() {
        let mut addresses = Addresses::new(7, 1, true);
        for expected in (3..=254).chain([3]) {
            addresses = addresses.next();
            assert_eq!(addresses, Addresses::new(7, expected, true));
        }
    }
}
