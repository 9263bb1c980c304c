//! Symbol buffers that are used again: after the first round trip nothing is allocated.

/// A stack of free buffers of one size.
#[derive(Debug)]
pub struct Pool {
    free: Vec<Box<[u8]>>,
    size: usize,
}

impl Pool {
    /// Buffers of `size` bytes.
    pub fn new(size: usize) -> Self {
        Pool { free: Vec::new(), size }
    }

    /// Bytes in each buffer.
    pub fn size(&self) -> usize {
        self.size
    }

    /// A buffer; its content is whatever it last held.
    pub fn take(&mut self) -> Box<[u8]> {
        self.free.pop().unwrap_or_else(|| vec![0; self.size].into_boxed_slice())
    }

    /// Gives a buffer back.
    pub fn put(&mut self, buffer: Box<[u8]>) {
        if buffer.len() == self.size {
            self.free.push(buffer);
        }
    }
}
