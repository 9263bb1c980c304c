//! A TCP segment without its payload bytes.

use anabranch_types::Time;

/// Most SACK blocks in one segment (RFC 2018 §3: four, three beside timestamps).
pub const MAX_SACK_BLOCKS: usize = 4;

/// The control bits that the model uses, and marks of its own ([`PROBE`](Self::PROBE),
/// [`MAPPED`](Self::MAPPED), [`ECT`](Self::ECT), [`MULTIPATH`](Self::MULTIPATH),
/// [`DATA_FIN`](Self::DATA_FIN), [`LIMITED`](Self::LIMITED)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u16);

impl Flags {
    /// No bit set.
    pub const NONE: Flags = Flags(0);
    /// Opens the connection.
    pub const SYN: Flags = Flags(1);
    /// The stream ends after this segment's payload.
    pub const FIN: Flags = Flags(1 << 1);
    /// The acknowledgement fields are valid.
    pub const ACK: Flags = Flags(1 << 2);
    /// A congestion mark has arrived (RFC 3168 §6.1.3).
    pub const ECE: Flags = Flags(1 << 3);
    /// The sender has reduced its window (RFC 3168 §6.1.2).
    pub const CWR: Flags = Flags(1 << 4);
    /// A zero-window probe: an empty data segment that wants an answer.
    pub const PROBE: Flags = Flags(1 << 5);
    /// `data` holds a data sequence number or a data acknowledgement.
    pub const MAPPED: Flags = Flags(1 << 6);
    /// The packet leaves as ECN-capable (the ECT(0) codepoint of the IP header).
    pub const ECT: Flags = Flags(1 << 7);
    /// The payload was sent before. The receiver does not look at it; traces and statistics do.
    pub const RETRANSMISSION: Flags = Flags(1 << 8);
    /// On a SYN and its answer: the option by which a subflow opens (MP_CAPABLE or MP_JOIN, RFC
    /// 8684 §3.1, §3.2). On other segments: a multipath header without a mapping. Its bytes are
    /// counted only with [`WireFormat::every_segment`].
    pub const MULTIPATH: Flags = Flags(1 << 9);
    /// With [`MAPPED`](Self::MAPPED): the data ends after this segment's payload (RFC 8684 §3.3.3).
    pub const DATA_FIN: Flags = Flags(1 << 10);
    /// With [`MULTIPATH`](Self::MULTIPATH) on the answer to a SYN: the number of subflows in the
    /// answer is a limit, now and later.
    pub const LIMITED: Flags = Flags(1 << 11);

    /// The receiver closes the subflow at once (RST): segments have come without a mapping, and it cannot tell where their
    /// data belongs (RFC 8684 §3.7).
    pub const RESET: Flags = Flags(1 << 12);

    /// Whether every bit of `other` is set.
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Union of these bits and those of `other`.
    #[must_use]
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// Bits that are set here and not in `other`.
    #[must_use]
    pub const fn without(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
    }

    /// The bits as an integer, for traces and digests.
    pub const fn bits(self) -> u16 {
        self.0
    }
}

/// The timestamps option (RFC 7323 §3). Both times are read off one clock, since the clocks of the
/// peers agree in a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamps {
    /// When the segment was sent (TSval).
    pub value: Time,
    /// The peer's value that this segment answers (TSecr); [`Time::MAX`] where there is none.
    pub echo: Time,
}

/// The ranges that a receiver reports above its cumulative acknowledgement, newest first (RFC
/// 2018). One range that has arrived again may come before them (RFC 2883).
///
/// Blocks are kept as 32-bit distances from the acknowledgement, so each ends within 4 GiB of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    count: u8,
    first: First,
    blocks: [(u32, u32); MAX_SACK_BLOCKS],
}

/// What the first block reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum First {
    /// A range above the acknowledgement.
    #[default]
    Range,
    /// A duplicate above the acknowledgement.
    DuplicateAbove,
    /// A duplicate below the acknowledgement, with distances downwards from it.
    DuplicateBelow,
}

impl SackBlocks {
    /// Adds a block `[start, end)` above `ack`. The block is left out if there are
    /// [`MAX_SACK_BLOCKS`] already, or if it is empty, not above `ack` or too far from it.
    pub fn push(&mut self, ack: u64, start: u64, end: u64) {
        let (Some(from), Some(to)) = (start.checked_sub(ack), end.checked_sub(ack)) else { return };
        let (Ok(from), Ok(to)) = (u32::try_from(from), u32::try_from(to)) else { return };
        if from < to
            && let Some(slot) = self.blocks.get_mut(usize::from(self.count))
        {
            *slot = (from, to);
            self.count += 1;
        }
    }

    /// Reports that `[start, end)`, which lies below `ack` or within a range above it, has arrived
    /// again. To be called before [`push`](Self::push). The report is left out if the range is
    /// empty, lies on both sides of `ack` or is too far from it.
    pub fn push_duplicate(&mut self, ack: u64, start: u64, end: u64) {
        if self.count > 0 {
            return;
        }
        let first = if start >= ack {
            self.push(ack, start, end);
            First::DuplicateAbove
        } else {
            // Distances are counted downwards from `ack`.
            let (Some(from), Some(to)) = (ack.checked_sub(end), ack.checked_sub(start)) else {
                return;
            };
            self.push(0, from, to);
            First::DuplicateBelow
        };
        if self.count > 0 {
            self.first = first;
        }
    }

    /// The duplicate as `(start, end)` of stream offsets, given the acknowledgement that it came with.
    pub fn duplicate(&self, ack: u64) -> Option<(u64, u64)> {
        let (from, to) =
            self.blocks.first().map(|(from, to)| (u64::from(*from), u64::from(*to)))?;
        match self.first {
            First::Range => None,
            First::DuplicateAbove => Some((ack.saturating_add(from), ack.saturating_add(to))),
            First::DuplicateBelow => Some((ack.saturating_sub(to), ack.saturating_sub(from))),
        }
    }

    /// The ranges as `(start, end)` of stream offsets, given the acknowledgement they came with; without the duplicate.
    pub fn iter(&self, ack: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let duplicates = usize::from(self.first != First::Range);
        let blocks = self.blocks.iter().take(usize::from(self.count)).skip(duplicates);
        blocks.map(move |(from, to)| {
            (ack.saturating_add(u64::from(*from)), ack.saturating_add(u64::from(*to)))
        })
    }

    /// How many blocks there are, the duplicate's included.
    pub fn len(&self) -> usize {
        usize::from(self.count)
    }

    /// Whether there are no blocks.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

/// One segment. Offsets are 64 bits from the stream's first byte, so they never wrap; a FIN takes
/// one offset after the last byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Offset of the first payload byte.
    pub seq: u64,
    /// Payload, bytes.
    pub len: u32,
    /// Control bits.
    pub flags: Flags,
    /// Every offset below this has arrived (with [`Flags::ACK`]).
    pub ack: u64,
    /// Bytes that the receiver takes from `ack` on, or from the data acknowledgement where
    /// [`Flags::MAPPED`] is set on an acknowledgement.
    pub window: u64,
    /// Ranges that have arrived above `ack`, and one that arrived again.
    pub sack: SackBlocks,
    /// The timestamps option, if the connection uses it.
    pub timestamps: Option<Timestamps>,
    /// With [`Flags::MAPPED`]: the data sequence number of the first payload byte; on an
    /// acknowledgement the data-level cumulative acknowledgement.
    pub data: u64,
    /// With [`Flags::MULTIPATH`] on a SYN: how many subflows its sender would like (pTCP's nTx); on the answer: how
    /// many the answering side agrees to (nRx), as many as were asked for unless it is [limited](Flags::LIMITED).
    pub subflows: u8,
}

impl Segment {
    /// A segment with neither payload nor flags.
    pub const EMPTY: Segment = Segment {
        seq: 0,
        len: 0,
        flags: Flags::NONE,
        ack: 0,
        window: 0,
        sack: SackBlocks { count: 0, first: First::Range, blocks: [(0, 0); MAX_SACK_BLOCKS] },
        timestamps: None,
        data: 0,
        subflows: 0,
    };

    /// The offset after the segment's last one, the FIN's included.
    pub fn end(&self) -> u64 {
        let fin = u64::from(self.flags.has(Flags::FIN));
        self.seq.saturating_add(u64::from(self.len)).saturating_add(fin)
    }

    /// Whether the segment carries payload, a SYN, a FIN or a probe, all of which want an answer.
    pub fn carries_data(&self) -> bool {
        self.len > 0
            || (self.flags.has(Flags::SYN) && !self.flags.has(Flags::ACK))
            || self.flags.has(Flags::FIN)
            || self.flags.has(Flags::PROBE)
    }

    /// The data sequence number or data acknowledgement, where there is one.
    pub fn data_sequence(&self) -> Option<u64> {
        self.flags.has(Flags::MAPPED).then_some(self.data)
    }

    /// The segment after a middlebox has removed the options of multipath connections: without mark of opening,
    /// mapping or data acknowledgement.
    #[must_use]
    pub fn stripped(self) -> Segment {
        let options =
            Flags::MAPPED.with(Flags::MULTIPATH).with(Flags::DATA_FIN).with(Flags::LIMITED);
        Segment { flags: self.flags.without(options), data: 0, subflows: 0, ..self }
    }

    /// Bytes on the wire under `format`.
    pub fn wire_size(&self, format: &WireFormat) -> u32 {
        let mut size = format.header_bytes.saturating_add(self.len);
        if self.timestamps.is_some() && !self.flags.has(Flags::SYN) {
            size += format.timestamp_bytes;
        }
        let multipath = self.flags.has(Flags::MULTIPATH);
        if self.flags.has(Flags::MAPPED) || (multipath && format.every_segment) {
            size += format.mapping_bytes;
        }
        if multipath && self.flags.has(Flags::SYN) {
            size += format.opening_bytes + format.address_bytes * u32::from(self.subflows);
        }
        if !self.sack.is_empty() && format.sack_block_bytes > 0 {
            // Two bytes of kind and length, two of padding.
            size += 4 + format.sack_block_bytes * self.sack.len() as u32;
        }
        size
    }
}

/// The fields that every segment has, in 48 bytes, for tables of segments in flight.
#[derive(Clone, Copy, Debug)]
pub struct BareSegment {
    seq: u64,
    ack: u64,
    window: u64,
    timestamps: Timestamps,
    len: u32,
    flags: Flags,
    stamped: bool,
    /// Whether the segment also has a [`SegmentRest`].
    rest: bool,
}

/// The fields of a segment, beyond [`BareSegment`], that few segments use.
#[derive(Clone, Copy, Debug, Default)]
pub struct SegmentRest {
    sack: SackBlocks,
    data: u64,
    subflows: u8,
}

impl BareSegment {
    /// Splits a segment into two parts; the second is `None` if all its fields are empty.
    #[inline]
    pub fn split(segment: &Segment) -> (Self, Option<SegmentRest>) {
        let Segment { seq, len, flags, ack, window, sack, timestamps, data, subflows } = *segment;
        let (stamped, none) =
            (timestamps.is_some(), Timestamps { value: Time::MAX, echo: Time::MAX });
        let timestamps = timestamps.unwrap_or(none);
        let rest = !sack.is_empty() || data != 0 || subflows != 0;
        let bare = BareSegment { seq, ack, window, timestamps, len, flags, stamped, rest };
        (bare, rest.then_some(SegmentRest { sack, data, subflows }))
    }

    /// Puts the segment together again; `rest` is called for the second part if there is one.
    #[inline]
    pub fn join(&self, rest: impl FnOnce() -> SegmentRest) -> Segment {
        let BareSegment { seq, ack, window, timestamps, len, flags, stamped, .. } = *self;
        let timestamps = stamped.then_some(timestamps);
        let SegmentRest { sack, data, subflows } =
            if self.rest { rest() } else { SegmentRest::default() };
        Segment { seq, len, flags, ack, window, sack, timestamps, data, subflows }
    }
}

/// How many bytes of header a segment has on the wire; the papers count them differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireFormat {
    /// IP and TCP headers without options (40 in ns-2, 20 + 20 in IPv4).
    pub header_bytes: u32,
    /// Bytes of the timestamps option (12; ns-2 counts 10). Not added to a SYN.
    pub timestamp_bytes: u32,
    /// Bytes of each SACK block (8), in addition to 4 for the option; 0 counts neither, as ns-2 does.
    pub sack_block_bytes: u32,
    /// Bytes of a data sequence mapping (20 for MPTCP's with 64-bit numbers, RFC 8684 §3.3).
    pub mapping_bytes: u32,
    /// Whether `mapping_bytes` are a header of every segment, not an option of those with a mapping
    /// or a data acknowledgement.
    pub every_segment: bool,
    /// Bytes added to a SYN with [`Flags::MULTIPATH`] and its answer. MPTCP's MP_CAPABLE and MP_JOIN are not counted.
    pub opening_bytes: u32,
    /// Bytes added to a SYN with [`Flags::MULTIPATH`], or to its answer, for each subflow that it names.
    pub address_bytes: u32,
}

impl WireFormat {
    /// With pTCP's headers (§4.3, figure 3; the paper gives no field widths). Every segment carries
    /// both sides' connection identifiers, pSEQ and pACK, 32 bits each. SYN and SYN+ACK also carry
    /// nTx and nRx, 16 bits each, and both lists of IPv4 addresses.
    #[must_use]
    pub const fn ptcp(self) -> Self {
        WireFormat {
            mapping_bytes: 16,
            every_segment: true,
            opening_bytes: 4,
            address_bytes: 8,
            ..self
        }
    }
}

impl Default for WireFormat {
    /// IPv4 and TCP with the options at their sizes on the wire.
    fn default() -> Self {
        WireFormat {
            header_bytes: 40,
            timestamp_bytes: 12,
            sack_block_bytes: 8,
            mapping_bytes: 20,
            every_segment: false,
            opening_bytes: 0,
            address_bytes: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_follow_the_format() {
        let ns2 = WireFormat { timestamp_bytes: 10, sack_block_bytes: 0, ..WireFormat::default() };
        let mut segment = Segment { len: 1000, ..Segment::EMPTY };
        assert_eq!(segment.wire_size(&ns2), 1040);
        segment.timestamps = Some(Timestamps { value: Time::ZERO, echo: Time::MAX });
        assert_eq!(segment.wire_size(&ns2), 1050);
        let mut ack = Segment { flags: Flags::ACK, ack: 100, ..Segment::EMPTY };
        ack.sack.push(100, 300, 400);
        ack.sack.push(100, 600, 700);
        assert_eq!(ack.wire_size(&ns2), 40);
        assert_eq!(ack.wire_size(&WireFormat::default()), 60);
    }

    #[test]
    fn every_segment_has_ptcp_s_header_and_syns_the_lists() {
        let (mptcp, ptcp) = (WireFormat::default(), WireFormat::default().ptcp());
        // Flags, number of subflows, and the sizes in bytes with MPTCP's and with pTCP's format.
        for (flags, subflows, sizes) in [
            (Flags::SYN, 0, (40, 40)),
            (Flags::SYN.with(Flags::MULTIPATH), 3, (40, 84)),
            (Flags::SYN.with(Flags::ACK).with(Flags::MULTIPATH).with(Flags::MAPPED), 2, (60, 76)),
            (Flags::ACK.with(Flags::MAPPED), 0, (60, 56)),
            (Flags::PROBE.with(Flags::MULTIPATH), 0, (40, 56)),
            (Flags::ACK, 0, (40, 40)),
        ] {
            let segment = Segment { flags, subflows, ..Segment::EMPTY };
            assert_eq!((segment.wire_size(&mptcp), segment.wire_size(&ptcp)), sizes, "{flags:?}");
            assert_eq!(segment.stripped().wire_size(&ptcp), 40, "{flags:?}");
        }
    }

    #[test]
    fn blocks_out_of_range_are_left_out() {
        let mut sack = SackBlocks::default();
        sack.push(100, 50, 60);
        sack.push(100, 200, 200);
        sack.push(0, 1 << 33, (1 << 33) + 1);
        assert!(sack.is_empty());
        for i in 0..6 {
            sack.push(100, 200 + 10 * i, 205 + 10 * i);
        }
        assert_eq!(sack.len(), MAX_SACK_BLOCKS);
        assert_eq!(sack.iter(100).next(), Some((200, 205)));
    }

    #[test]
    fn duplicates_come_before_ranges() {
        for (start, end) in [(50, 60), (90, 100), (100, 130)] {
            let mut sack = SackBlocks::default();
            sack.push_duplicate(100, start, end);
            sack.push(100, 120, 130);
            assert_eq!(sack.duplicate(100), Some((start, end)));
            assert!(sack.iter(100).eq([(120, 130)]));
            assert_eq!(sack.len(), 2);
        }
        let mut sack = SackBlocks::default();
        sack.push_duplicate(100, 90, 110);
        sack.push_duplicate(1 << 40, 0, 10);
        assert_eq!((sack.duplicate(100), sack.len()), (None, 0));
    }

    #[test]
    fn two_parts_make_the_segment() {
        let mut segment =
            Segment { seq: 1, len: 2, ack: 3, window: 4, data: 5, subflows: 6, ..Segment::EMPTY };
        segment.flags = Flags::ACK.with(Flags::ECE);
        segment.sack.push(3, 300, 400);
        for timestamps in [None, Some(Timestamps { value: Time::from_secs(1), echo: Time::MAX })] {
            segment.timestamps = timestamps;
            let (bare, rest) = BareSegment::split(&segment);
            assert_eq!(bare.join(|| rest.unwrap_or_default()), segment);
        }
        assert_eq!(size_of::<BareSegment>(), 48);
    }

    #[test]
    fn a_fin_takes_one_offset() {
        let segment = Segment { seq: 10, len: 5, flags: Flags::FIN, ..Segment::EMPTY };
        assert_eq!(segment.end(), 16);
        assert!(segment.carries_data());
    }
}
