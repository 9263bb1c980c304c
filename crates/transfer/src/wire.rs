//! Reading big-endian fields from a payload.

use super::frame::FrameError;

/// The rest of a payload that has not been read yet.
#[derive(Debug)]
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], FrameError> {
        let (head, rest) = self.0.split_first_chunk().ok_or(FrameError::Length)?;
        self.0 = rest;
        Ok(*head)
    }

    pub(super) fn u8(&mut self) -> Result<u8, FrameError> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(super) fn u16(&mut self) -> Result<u16, FrameError> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, FrameError> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, FrameError> {
        self.array().map(u64::from_be_bytes)
    }

    pub(super) fn i64(&mut self) -> Result<i64, FrameError> {
        self.array().map(i64::from_be_bytes)
    }

    /// All that is left, as text.
    pub(super) fn text(&mut self) -> Result<&'a str, FrameError> {
        let rest = core::mem::take(&mut self.0);
        core::str::from_utf8(rest).map_err(|_| FrameError::Text)
    }

    pub(super) fn end(&self) -> Result<(), FrameError> {
        if self.0.is_empty() { Ok(()) } else { Err(FrameError::Length) }
    }
}
