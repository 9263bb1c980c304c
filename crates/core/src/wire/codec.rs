//! Reading and writing of integers and byte strings, with bounds checks at every step.

use core::fmt;

/// Largest value of a variable-length integer: 2^62 − 1 (RFC 9000 §16).
pub const MAX_VARINT: u64 = (1 << 62) - 1;

/// The buffer is too short for the data to be written, or a number exceeds [`MAX_VARINT`]. This
/// error is local and never caused by a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSpace;

impl fmt::Display for NoSpace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no space left in the packet")
    }
}

impl std::error::Error for NoSpace {}

/// Why received bytes do not parse. The error is caused by the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireError {
    /// A field extends beyond the end of the data.
    Truncated,
    /// There is no frame of this type, or it is not allowed in this place.
    UnknownFrame(u8),
    /// The named field has a value that the specification excludes.
    Value(&'static str),
    /// There are more frames than allowed.
    TooManyFrames,
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WireError::Truncated => f.write_str("a field runs past the end"),
            WireError::UnknownFrame(kind) => write!(f, "frame type {kind:#04x} is not known here"),
            WireError::Value(field) => write!(f, "{field} is out of range"),
            WireError::TooManyFrames => f.write_str("more frames than may be there"),
        }
    }
}

impl std::error::Error for WireError {}

/// Length of the shortest encoding of `value`: 1, 2, 4 or 8 bytes (RFC 9000 §16). Values above
/// [`MAX_VARINT`] have no encoding; 8 is returned for them.
pub const fn varint_len(value: u64) -> usize {
    if value < 1 << 6 {
        1
    } else if value < 1 << 14 {
        2
    } else if value < 1 << 30 {
        4
    } else {
        8
    }
}

/// Reads from the front of a byte slice. A failed read does not change the position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Creates a reader at the start of `bytes`.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Reader { bytes }
    }

    /// Whether everything has been read.
    pub const fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Number of bytes not read yet.
    pub const fn remaining(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the bytes not read yet without reading them.
    pub const fn peek(&self) -> &'a [u8] {
        self.bytes
    }

    /// Reads one byte.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, WireError> {
        let (first, rest) = self.bytes.split_first().ok_or(WireError::Truncated)?;
        self.bytes = rest;
        Ok(*first)
    }

    /// Reads two bytes, big-endian.
    pub fn u16(&mut self) -> Result<u16, WireError> {
        self.array().map(u16::from_be_bytes)
    }

    /// Reads four bytes, big-endian.
    pub fn u32(&mut self) -> Result<u32, WireError> {
        self.array().map(u32::from_be_bytes)
    }

    /// Reads eight bytes, big-endian.
    pub fn u64(&mut self) -> Result<u64, WireError> {
        self.array().map(u64::from_be_bytes)
    }

    /// Reads and copies a fixed number of bytes.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let (head, rest) = self.bytes.split_first_chunk::<N>().ok_or(WireError::Truncated)?;
        self.bytes = rest;
        Ok(*head)
    }

    /// Reads a variable-length integer (RFC 9000 §16) in any of its encodings; it is at most
    /// [`MAX_VARINT`].
    #[inline]
    pub fn varint(&mut self) -> Result<u64, WireError> {
        // Usually eight bytes are left. Read them at once and shift out those that are not part of
        // the integer.
        if let Some((head, _)) = self.bytes.split_first_chunk::<8>() {
            let length = 1 << (head[0] >> 6);
            let value = (u64::from_be_bytes(*head) & MAX_VARINT) >> (64 - 8 * length);
            self.bytes = self.bytes.get(length..).unwrap_or_default();
            return Ok(value);
        }
        self.short_varint()
    }

    /// Reads a variable-length integer if fewer than eight bytes are left.
    fn short_varint(&mut self) -> Result<u64, WireError> {
        let first = *self.bytes.first().ok_or(WireError::Truncated)?;
        match first >> 6 {
            0 => self.u8().map(u64::from),
            1 => self.u16().map(|value| u64::from(value & 0x3fff)),
            2 => self.u32().map(|value| u64::from(value & 0x3fff_ffff)),
            _ => self.u64().map(|value| value & MAX_VARINT),
        }
    }

    /// Reads a variable-length integer that must not exceed `max`; `field` is its name in the
    /// error.
    #[inline]
    pub fn varint_up_to(&mut self, max: u64, field: &'static str) -> Result<u64, WireError> {
        let start = *self;
        let value = self.varint()?;
        if value > max {
            *self = start;
            return Err(WireError::Value(field));
        }
        Ok(value)
    }

    /// Reads the next `count` bytes.
    #[inline]
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], WireError> {
        let (head, rest) = self.bytes.split_at_checked(count).ok_or(WireError::Truncated)?;
        self.bytes = rest;
        Ok(head)
    }

    /// Reads a length (varint) and then that many bytes.
    #[inline]
    pub fn prefixed(&mut self) -> Result<&'a [u8], WireError> {
        let start = *self;
        let length = usize::try_from(self.varint()?).map_err(|_| WireError::Truncated);
        let result = length.and_then(|length| self.bytes(length));
        if result.is_err() {
            *self = start;
        }
        result
    }

    /// Reads all remaining bytes. It never fails; it returns a `Result` like the other reads so
    /// that calls can be chained.
    pub fn rest(&mut self) -> Result<&'a [u8], WireError> {
        Ok(core::mem::take(&mut self.bytes))
    }
}

/// Writes to a byte slice from its front. A failed write does not change the position.
#[derive(Debug)]
pub struct Writer<'a> {
    bytes: &'a mut [u8],
    position: usize,
}

impl<'a> Writer<'a> {
    /// Creates a writer at the start of `bytes`.
    pub const fn new(bytes: &'a mut [u8]) -> Self {
        Writer { bytes, position: 0 }
    }

    /// Bytes written so far.
    pub const fn position(&self) -> usize {
        self.position
    }

    /// Bytes that can still be written.
    pub const fn remaining(&self) -> usize {
        self.bytes.len() - self.position
    }

    /// Bytes written so far.
    pub fn written(&self) -> &[u8] {
        self.bytes.get(..self.position).unwrap_or_default()
    }

    /// Advances over the next `count` bytes and returns them, so that the caller can fill them in
    /// place.
    #[inline]
    pub fn reserve(&mut self, count: usize) -> Result<&mut [u8], NoSpace> {
        let start = self.position;
        let end = start.checked_add(count).ok_or(NoSpace)?;
        let target = self.bytes.get_mut(start..end).ok_or(NoSpace)?;
        self.position = end;
        Ok(target)
    }

    /// Writes bytes unchanged.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<(), NoSpace> {
        self.reserve(bytes.len())?.copy_from_slice(bytes);
        Ok(())
    }

    /// Writes one byte.
    #[inline]
    pub fn u8(&mut self, value: u8) -> Result<(), NoSpace> {
        self.bytes(&[value])
    }

    /// Writes two bytes, big-endian.
    pub fn u16(&mut self, value: u16) -> Result<(), NoSpace> {
        self.bytes(&value.to_be_bytes())
    }

    /// Writes four bytes, big-endian.
    pub fn u32(&mut self, value: u32) -> Result<(), NoSpace> {
        self.bytes(&value.to_be_bytes())
    }

    /// Writes eight bytes, big-endian.
    pub fn u64(&mut self, value: u64) -> Result<(), NoSpace> {
        self.bytes(&value.to_be_bytes())
    }

    /// Writes a variable-length integer in its shortest encoding (RFC 9000 §16).
    #[inline]
    pub fn varint(&mut self, value: u64) -> Result<(), NoSpace> {
        match varint_len(value) {
            1 => self.u8(value as u8),
            2 => self.u16(value as u16 | 0x4000),
            4 => self.u32(value as u32 | 0x8000_0000),
            _ if value > MAX_VARINT => Err(NoSpace),
            _ => self.u64(value | 0xc000_0000_0000_0000),
        }
    }

    /// Writes a length (varint) and then the bytes.
    pub fn prefixed(&mut self, bytes: &[u8]) -> Result<(), NoSpace> {
        self.whole(|writer| {
            writer.varint(bytes.len() as u64)?;
            writer.bytes(bytes)
        })
    }

    /// Runs `write`, and undoes all that it has written if it fails.
    #[inline]
    pub fn whole<T>(
        &mut self,
        write: impl FnOnce(&mut Self) -> Result<T, NoSpace>,
    ) -> Result<T, NoSpace> {
        let start = self.position;
        let result = write(self);
        if result.is_err() {
            self.position = start;
        }
        result
    }

    /// Overwrites a byte written earlier, for example a count that is known only after the items.
    pub(crate) fn patch(&mut self, position: usize, value: u8) {
        if position < self.position
            && let Some(byte) = self.bytes.get_mut(position)
        {
            *byte = value;
        }
    }
}
