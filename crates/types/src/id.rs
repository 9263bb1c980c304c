use core::fmt;

/// Identifies a path of one connection. Assigned by the initiator in rising order, never reused.
///
/// 32 bits, because the packet nonce is the path identifier followed by the 64-bit packet number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(pub u32);

impl PathId {
    /// The identifier as an index into a table of paths.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for PathId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}
