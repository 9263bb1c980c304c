//! The receiver's reports about packets that arrived and symbols that are missing.

use core::ops::RangeInclusive;

use anabranch_policy::view::{SymbolId, SymbolSpace};
use anabranch_types::PathId;

use super::codec::{NoSpace, Reader, WireError, Writer};
use super::control::path;
use super::frame::kind;
use super::symbol::symbol;

/// Most ranges of packet numbers in an ACK frame.
pub const MAX_ACK_RANGES: usize = 64;

/// Most blocks in a RANK frame.
pub const MAX_RANK_ENTRIES: usize = 32;

/// The fields of an ACK frame before its ranges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AckHeader {
    /// The path whose packets are reported.
    pub path: PathId,
    /// When the packet with the largest number arrived, as the low 32 bits of microseconds on the
    /// receiver's clock.
    pub received_at: u32,
    /// Time from `received_at` until the ACK frame was created, microseconds.
    pub delay_us: u64,
    /// Total number of packets of this path that arrived with ECT(0).
    pub ect0: u64,
    /// Total number of packets of this path that arrived with ECT(1).
    pub ect1: u64,
    /// Total number of packets of this path that arrived with CE.
    pub ce: u64,
}

impl AckHeader {
    /// Writes an ACK frame with as many of `ranges` as fit and are allowed ([`MAX_ACK_RANGES`]).
    /// Returns their number. The ranges must come highest first with a gap of at least one number
    /// between them; the frame ends before the first range that violates this. Without a range
    /// nothing is written. Fails if not even one range fits.
    pub fn encode(
        &self,
        ranges: impl IntoIterator<Item = RangeInclusive<u64>>,
        writer: &mut Writer<'_>,
    ) -> Result<usize, NoSpace> {
        let mut ranges = ranges.into_iter();
        let Some(first) = ranges.next().filter(|range| range.start() <= range.end()) else {
            return Ok(0);
        };
        let count_at = writer.whole(|writer| self.write_first(&first, writer))?;
        let mut written = 1;
        let mut smallest = *first.start();
        for range in ranges.take(MAX_ACK_RANGES - 1) {
            let (start, end) = range.into_inner();
            let Some(gap) = smallest.checked_sub(end).and_then(|distance| distance.checked_sub(2))
            else {
                break;
            };
            let Some(length) = end.checked_sub(start) else { break };
            let pair = writer.whole(|writer| {
                writer.varint(gap)?;
                writer.varint(length)
            });
            if pair.is_err() {
                break;
            }
            smallest = start;
            written += 1;
        }
        writer.patch(count_at, written as u8 - 1);
        Ok(written)
    }

    /// Writes all fields up to the first range. Returns the position of the one-byte range count.
    fn write_first(
        &self,
        range: &RangeInclusive<u64>,
        writer: &mut Writer<'_>,
    ) -> Result<usize, NoSpace> {
        writer.u8(kind::ACK)?;
        writer.varint(self.path.0.into())?;
        writer.varint(*range.end())?;
        writer.u32(self.received_at)?;
        for value in [self.delay_us, self.ect0, self.ect1, self.ce] {
            writer.varint(value)?;
        }
        let count_at = writer.position();
        writer.u8(0)?;
        writer.varint(range.end() - range.start())?;
        Ok(count_at)
    }
}

/// ACK: packets of one path that arrived and whose symbols are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckFrame<'a> {
    /// The path whose packets are reported.
    pub path: PathId,
    /// Largest number reported.
    pub largest: u64,
    /// When `largest` arrived, as the low 32 bits of microseconds on the receiver's clock.
    pub received_at: u32,
    /// Time from `received_at` until the ACK frame was created, microseconds.
    pub delay_us: u64,
    /// Total number of packets of this path that arrived with ECT(0).
    pub ect0: u64,
    /// Total number of packets of this path that arrived with ECT(1).
    pub ect1: u64,
    /// Total number of packets of this path that arrived with CE.
    pub ce: u64,
    ranges: AckRanges<'a>,
}

impl<'a> AckFrame<'a> {
    /// The reported ranges of packet numbers, highest first: at least one and at most
    /// [`MAX_ACK_RANGES`], with a gap of at least one number between them.
    pub const fn ranges(&self) -> AckRanges<'a> {
        self.ranges
    }

    /// The fields before the ranges.
    pub const fn header(&self) -> AckHeader {
        AckHeader {
            path: self.path,
            received_at: self.received_at,
            delay_us: self.delay_us,
            ect0: self.ect0,
            ect1: self.ect1,
            ce: self.ce,
        }
    }

    /// Writes the frame with all of its ranges.
    pub fn encode(&self, writer: &mut Writer<'_>) -> Result<(), NoSpace> {
        writer.whole(|writer| {
            let written = self.header().encode(self.ranges, writer)?;
            if written == self.ranges.len() { Ok(()) } else { Err(NoSpace) }
        })
    }

    pub(super) fn decode(reader: &mut Reader<'a>) -> Result<AckFrame<'a>, WireError> {
        let path = path(reader)?;
        let largest = reader.varint()?;
        let received_at = reader.u32()?;
        let delay_us = reader.varint()?;
        let (ect0, ect1, ce) = (reader.varint()?, reader.varint()?, reader.varint()?);
        let pairs = reader.varint_up_to(MAX_ACK_RANGES as u64 - 1, "ACK range count")?;
        let mut walk =
            AckRanges { reader: *reader, below: None, largest, left: pairs as usize + 1 };
        let ranges = walk;
        while walk.left > 0 {
            walk.step()?;
        }
        *reader = walk.reader;
        Ok(AckFrame { path, largest, received_at, delay_us, ect0, ect1, ce, ranges })
    }
}

/// The ranges of an [`AckFrame`], read from its bytes, highest first.
#[derive(Clone, Copy, Debug)]
pub struct AckRanges<'a> {
    reader: Reader<'a>,
    /// Smallest number of the previous range, if there is one.
    below: Option<u64>,
    largest: u64,
    left: usize,
}

impl AckRanges<'_> {
    fn step(&mut self) -> Result<RangeInclusive<u64>, WireError> {
        const UNDERFLOW: WireError = WireError::Value("ACK range");
        let end = match self.below {
            None => self.largest,
            Some(below) => {
                let gap = self.reader.varint()?;
                below.checked_sub(gap).and_then(|end| end.checked_sub(2)).ok_or(UNDERFLOW)?
            }
        };
        let start = end.checked_sub(self.reader.varint()?).ok_or(UNDERFLOW)?;
        self.below = Some(start);
        self.left = self.left.saturating_sub(1);
        Ok(start..=end)
    }
}

impl Iterator for AckRanges<'_> {
    type Item = RangeInclusive<u64>;

    fn next(&mut self) -> Option<Self::Item> {
        // Decoding has already checked the same bytes, so a step cannot fail here.
        if self.left == 0 { None } else { self.step().ok() }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for AckRanges<'_> {}

impl PartialEq for AckRanges<'_> {
    fn eq(&self, other: &Self) -> bool {
        Iterator::eq(*self, *other)
    }
}

impl Eq for AckRanges<'_> {}

/// One block that cannot be decoded yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankEntry {
    /// The block's first symbol.
    pub first: SymbolId,
    /// Number of symbols, source or repair, that the block still needs for decoding.
    pub missing: u16,
}

/// RANK: the state of the receiver's decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankFrame<'a> {
    /// All symbols below this one are delivered or abandoned.
    pub first: SymbolId,
    entries: RankEntries<'a>,
}

impl<'a> RankFrame<'a> {
    /// The reported blocks, at most [`MAX_RANK_ENTRIES`].
    pub const fn entries(&self) -> RankEntries<'a> {
        self.entries
    }

    /// Writes a RANK frame with as many of `entries` as fit and are allowed. Returns their number.
    /// The frame ends before an entry that starts below `first`. Fails if there is no space for a
    /// frame without entries.
    pub fn encode_entries(
        first: SymbolId,
        entries: impl IntoIterator<Item = RankEntry>,
        writer: &mut Writer<'_>,
    ) -> Result<usize, NoSpace> {
        let count_at = writer.whole(|writer| {
            writer.u8(kind::about(kind::RANK, first.space()))?;
            writer.varint(first.ordinal())?;
            let count_at = writer.position();
            writer.u8(0)?;
            Ok(count_at)
        })?;
        let mut written = 0;
        for entry in entries.into_iter().take(MAX_RANK_ENTRIES) {
            let Some(offset) = entry.first.0.checked_sub(first.0) else { break };
            let pair = writer.whole(|writer| {
                writer.varint(offset)?;
                writer.varint(entry.missing.into())
            });
            if pair.is_err() {
                break;
            }
            written += 1;
        }
        writer.patch(count_at, written as u8);
        Ok(written)
    }

    /// Writes the frame with all of its entries.
    pub fn encode(&self, writer: &mut Writer<'_>) -> Result<(), NoSpace> {
        writer.whole(|writer| {
            let written = RankFrame::encode_entries(self.first, self.entries, writer)?;
            if written == self.entries.len() { Ok(()) } else { Err(NoSpace) }
        })
    }

    pub(super) fn decode(
        reader: &mut Reader<'a>,
        space: SymbolSpace,
    ) -> Result<RankFrame<'a>, WireError> {
        let first = symbol(reader, space)?;
        let count = reader.varint_up_to(MAX_RANK_ENTRIES as u64, "RANK entry count")?;
        let mut walk = RankEntries { reader: *reader, first, left: count as usize };
        let entries = walk;
        while walk.left > 0 {
            walk.step()?;
        }
        *reader = walk.reader;
        Ok(RankFrame { first, entries })
    }
}

/// The entries of a [`RankFrame`], read from its bytes.
#[derive(Clone, Copy, Debug)]
pub struct RankEntries<'a> {
    reader: Reader<'a>,
    first: SymbolId,
    left: usize,
}

impl RankEntries<'_> {
    fn step(&mut self) -> Result<RankEntry, WireError> {
        let most = SymbolSpace::SYMBOLS - 1 - self.first.ordinal();
        let offset = self.reader.varint_up_to(most, "RANK offset")?;
        let missing = self.reader.varint_up_to(u16::MAX.into(), "RANK deficit")?;
        self.left = self.left.saturating_sub(1);
        Ok(RankEntry { first: SymbolId(self.first.0 + offset), missing: missing as u16 })
    }
}

impl Iterator for RankEntries<'_> {
    type Item = RankEntry;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 { None } else { self.step().ok() }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for RankEntries<'_> {}

impl PartialEq for RankEntries<'_> {
    fn eq(&self, other: &Self) -> bool {
        Iterator::eq(*self, *other)
    }
}

impl Eq for RankEntries<'_> {}
