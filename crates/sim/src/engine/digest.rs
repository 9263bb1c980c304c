use anabranch_types::{Ecn, Time};

use super::LinkId;
use crate::link::DropCause;

/// Hashes the fate of every packet on every link into one number. Two runs with the same digest
/// are, for all practical purposes, identical.
#[derive(Clone, Copy, Debug)]
pub(super) struct Digest(u64);

impl Digest {
    pub(super) fn new() -> Self {
        Digest(0x243f_6a88_85a3_08d3)
    }

    /// Adds the fate of a packet on a link; `None` means that the packet arrived.
    #[inline]
    #[expect(clippy::too_many_arguments, reason = "what is hashed, field by field")]
    pub(super) fn fold(
        &mut self,
        time: Time,
        link: LinkId,
        size: u32,
        ecn: Ecn,
        fate: Option<DropCause>,
    ) {
        let fate = match fate {
            None => 0,
            Some(cause) => 1 + cause as u64,
        };
        let what =
            u64::from(link.0) << 40 ^ u64::from(size) << 8 ^ fate << 2 ^ u64::from(ecn.bits());
        // Multiplication by an odd constant is invertible, so a single differing time always
        // changes the digest.
        let first = (self.0 ^ time.as_nanos()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let second = (first.rotate_left(31) ^ what).wrapping_mul(0xd6e8_feb8_6659_fd93);
        self.0 = second ^ second >> 32;
    }

    pub(super) fn get(self) -> u64 {
        self.0
    }
}
