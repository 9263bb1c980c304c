//! The loop that the vector kernels share. Each instruction set implements [`Vector`].
//!
//! Everything here is `inline(always)`: the code only becomes vector instructions once it has been
//! inlined into a function that enables them.

#![expect(
    clippy::needless_range_loop,
    reason = "loops over rows and lanes have constant bounds, to be unrolled until every sum has a \
              register; indices show best which sum meets which vector"
)]

use super::{Job, Start};

/// A vector register of bytes, each an element of GF(2^8).
///
/// # Safety
/// Every method requires that the processor has the instructions the implementation uses and that
/// the calling function, after inlining, enables them. Methods that take a pointer say how many
/// bytes must be valid there; no alignment is needed.
pub(super) trait Vector: Copy {
    /// Bytes in the register.
    const WIDTH: usize;
    /// A factor made ready to multiply whole vectors.
    type Factor: Copy;
    /// An input vector made ready to be multiplied.
    type Operand: Copy;

    /// All bytes zero.
    unsafe fn zero() -> Self;
    /// Reads `WIDTH` bytes at `from`.
    unsafe fn load(from: *const u8) -> Self;
    /// Reads `count` bytes at `from`, 1 to `WIDTH`, then zeros.
    #[inline(always)]
    unsafe fn load_first(from: *const u8, count: usize) -> Self {
        const { assert!(Self::WIDTH <= Buffer::LEN) };
        // SAFETY: the caller guarantees `count` valid bytes; the buffer has room for a whole vector.
        unsafe { Self::load(Buffer::read(from, count).as_ptr()) }
    }
    /// Writes `WIDTH` bytes at `to`.
    unsafe fn store(self, to: *mut u8);
    /// Writes the first `count` bytes at `to`, 1 to `WIDTH`.
    #[inline(always)]
    unsafe fn store_first(self, to: *mut u8, count: usize) {
        const { assert!(Self::WIDTH <= Buffer::LEN) };
        let mut buffer = Buffer::default();
        // SAFETY: the caller guarantees `count` valid bytes; the buffer has room for a whole vector.
        unsafe {
            self.store(buffer.as_mut_ptr());
            buffer.write(to, count);
        }
    }
    /// Prepares `factor`.
    unsafe fn factor(factor: u8) -> Self::Factor;
    /// Prepares the vector for several multiplications.
    unsafe fn operand(self) -> Self::Operand;
    /// `self + factor · operand`.
    unsafe fn add_product(self, operand: Self::Operand, factor: Self::Factor) -> Self;

    /// Whether reading and writing part of a vector is about as fast as reading and writing all of
    /// it.
    const MASKS: bool = false;

    /// Whether [`Vector::add_two_products`] is faster than two single steps, and there are enough registers for the
    /// operands of two inputs.
    const PAIRS: bool = false;

    /// `self + factors[0] · operands[0] + factors[1] · operands[1]`.
    #[inline(always)]
    unsafe fn add_two_products(
        self,
        operands: [Self::Operand; 2],
        factors: [Self::Factor; 2],
    ) -> Self {
        // SAFETY: guaranteed by the caller.
        unsafe { self.add_product(operands[0], factors[0]).add_product(operands[1], factors[1]) }
    }
}

/// Computes a job of exactly `ROWS` outputs, `LANES` vectors at a time.
///
/// # Safety
/// The job must be as [`Job`] demands, and `V`'s instructions enabled in the caller.
#[inline(always)]
pub(super) unsafe fn rows<V: Vector, const ROWS: usize, const LANES: usize>(job: &mut Job<'_, '_>) {
    debug_assert_eq!(job.outputs.len(), ROWS);
    let length = job.outputs.first().map_or(0, |output| output.len());
    let mut outputs = [core::ptr::null_mut(); ROWS];
    for (pointer, output) in outputs.iter_mut().zip(job.outputs.iter_mut()) {
        *pointer = output.as_mut_ptr();
    }
    let mut addends = [core::ptr::null(); ROWS];
    match job.start {
        Start::Zero => {}
        Start::Outputs => addends = outputs.map(<*mut u8>::cast_const),
        Start::Addends(rows) => {
            for (pointer, row) in addends.iter_mut().zip(rows) {
                *pointer = row.as_ptr();
            }
        }
    }
    let adds = !matches!(job.start, Start::Zero);
    let tile = Tile {
        addends: adds.then_some(&addends),
        coefficients: job.coefficients,
        inputs: job.inputs,
    };
    let whole = LANES * V::WIDTH;
    let mut offset = 0;
    // SAFETY: `outputs` holds `ROWS` pointers to `length` bytes each, and so do the addends if
    // sums start from them; inputs are no longer than that and are other memory than the outputs
    // (they are shared, the outputs exclusive borrows); each call stays below `length`.
    unsafe {
        while length - offset >= whole {
            tile.stretch::<V, LANES, false>(&outputs, offset, V::WIDTH);
            offset += whole;
        }
        if !V::MASKS && length - offset >= V::WIDTH {
            let count = (length - offset) / V::WIDTH * V::WIDTH;
            tile.rest::<V, LANES, false>(&outputs, offset, count);
            offset += count;
        }
        if offset < length && V::MASKS {
            tile.rest::<V, LANES, true>(&outputs, offset, length - offset);
        } else if offset < length {
            tile.stretch::<V, 1, true>(&outputs, offset, length - offset);
        }
    }
}

/// The job's parts that stay the same from one stretch of bytes to the next.
struct Tile<'a, const ROWS: usize> {
    /// Initial values of the sums, as many bytes as the outputs have; `None`: zero. They may be the outputs
    /// themselves.
    addends: Option<&'a [*const u8; ROWS]>,
    coefficients: &'a [u8],
    inputs: &'a [&'a [u8]],
}

impl<const ROWS: usize> Tile<'_, ROWS> {
    /// Computes `count` bytes of each row from byte `offset`, in one pass over the inputs. `count` is 1 to the bytes
    /// of `MOST` vectors, and a multiple of `V::WIDTH` unless `PART`.
    ///
    /// # Safety
    /// As [`stretch`](Self::stretch).
    #[inline(always)]
    unsafe fn rest<V: Vector, const MOST: usize, const PART: bool>(
        &self,
        outputs: &[*mut u8; ROWS],
        offset: usize,
        count: usize,
    ) {
        let last = (count - 1) % V::WIDTH + 1;
        macro_rules! by_lanes {
            ($($lanes:literal)*) => {
                match count.div_ceil(V::WIDTH) {
                    // SAFETY: guaranteed by the caller; there are as many lanes as `count` needs.
                    $($lanes if $lanes <= MOST => unsafe {
                        self.stretch::<V, $lanes, PART>(outputs, offset, last);
                    },)*
                    _ => unreachable!("more lanes than a stretch has"),
                }
            };
        }
        by_lanes!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16);
    }

    /// Computes `LANES` vectors of each row from byte `offset`. If `PART`, only the first `last` bytes of the last
    /// vector, 1 to `V::WIDTH`, are computed; otherwise `last` must be `V::WIDTH`.
    ///
    /// # Safety
    /// `outputs` and addends must be valid up to the last of these bytes, no input longer than the outputs, there
    /// must be `ROWS` coefficients per input, and `V`'s instructions must be enabled in the caller.
    #[inline(always)]
    unsafe fn stretch<V: Vector, const LANES: usize, const PART: bool>(
        &self,
        outputs: &[*mut u8; ROWS],
        offset: usize,
        last: usize,
    ) {
        let end = offset + (LANES - 1) * V::WIDTH + last;
        // SAFETY: reads of addends and writes of outputs lie within the bytes that the caller guarantees. Inputs are
        // read up to `end` only where they reach it; elsewhere `load_up_to` stays inside them. The coefficient
        // pointer advances by `ROWS` per input, and the caller guarantees `ROWS` coefficients for every input.
        unsafe {
            let mut sums = [[V::zero(); LANES]; ROWS];
            if let Some(addends) = self.addends {
                for row in 0..ROWS {
                    sums[row] = load_lanes::<V, LANES, PART>(addends[row].add(offset), last);
                }
            }
            let mut inputs = self.inputs;
            let mut column = self.coefficients.as_ptr();
            while let [first, rest @ ..] = inputs {
                if let [second, rest @ ..] = rest
                    && V::PAIRS
                    && first.len().min(second.len()) >= end
                {
                    let vectors = [
                        load_lanes::<V, LANES, PART>(first.as_ptr().add(offset), last),
                        load_lanes::<V, LANES, PART>(second.as_ptr().add(offset), last),
                    ];
                    add_two_products::<V, ROWS, LANES>(&mut sums, vectors, column);
                    inputs = rest;
                    column = column.add(2 * ROWS);
                    continue;
                }
                if first.len() >= end {
                    let vectors = load_lanes::<V, LANES, PART>(first.as_ptr().add(offset), last);
                    add_products::<V, ROWS, LANES>(&mut sums, vectors, column);
                } else if first.len() > offset {
                    let mut vectors = [V::zero(); LANES];
                    for lane in 0..LANES {
                        vectors[lane] = load_up_to(first, offset + lane * V::WIDTH);
                    }
                    add_products::<V, ROWS, LANES>(&mut sums, vectors, column);
                }
                inputs = rest;
                column = column.add(ROWS);
            }
            for row in 0..ROWS {
                store_lanes::<V, LANES, PART>(sums[row], outputs[row].add(offset), last);
            }
        }
    }
}

/// Adds `vectors`, times the row's factor at `column`, to each row's sums.
///
/// # Safety
/// `ROWS` bytes must be valid at `column`, and `V`'s instructions enabled in the caller.
#[inline(always)]
unsafe fn add_products<V: Vector, const ROWS: usize, const LANES: usize>(
    sums: &mut [[V; LANES]; ROWS],
    vectors: [V; LANES],
    column: *const u8,
) {
    // SAFETY: the caller guarantees `column` and the CPU features.
    unsafe {
        let mut operands = [vectors[0].operand(); LANES];
        for lane in 1..LANES {
            operands[lane] = vectors[lane].operand();
        }
        for (row, sums) in sums.iter_mut().enumerate() {
            let factor = V::factor(*column.add(row));
            for lane in 0..LANES {
                sums[lane] = sums[lane].add_product(operands[lane], factor);
            }
        }
    }
}

/// Adds the `vectors` of two inputs, times the row's factors at `column` and at `ROWS` bytes further, to
/// each row's sums.
///
/// # Safety
/// `2 * ROWS` bytes must be valid at `column`, and `V`'s instructions enabled in the caller.
#[inline(always)]
unsafe fn add_two_products<V: Vector, const ROWS: usize, const LANES: usize>(
    sums: &mut [[V; LANES]; ROWS],
    vectors: [[V; LANES]; 2],
    column: *const u8,
) {
    // SAFETY: the caller guarantees `column` and the CPU features.
    unsafe {
        let mut operands = [[vectors[0][0].operand(), vectors[1][0].operand()]; LANES];
        for lane in 1..LANES {
            operands[lane] = [vectors[0][lane].operand(), vectors[1][lane].operand()];
        }
        for row in 0..ROWS {
            let factors = [V::factor(*column.add(row)), V::factor(*column.add(ROWS + row))];
            for lane in 0..LANES {
                sums[row][lane] = sums[row][lane].add_two_products(operands[lane], factors);
            }
        }
    }
}

/// Reads `LANES` vectors at `from`; if `PART`, only the first `last` bytes of the last vector.
///
/// # Safety
/// The bytes that are read at `from` must be valid, `last` must be 1 to `V::WIDTH`, and `V`'s instructions must
/// be enabled in the caller.
#[inline(always)]
unsafe fn load_lanes<V: Vector, const LANES: usize, const PART: bool>(
    from: *const u8,
    last: usize,
) -> [V; LANES] {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut vectors = [V::zero(); LANES];
        for lane in 0..LANES {
            let from = from.add(lane * V::WIDTH);
            vectors[lane] =
                if lane + 1 < LANES || !PART { V::load(from) } else { V::load_first(from, last) };
        }
        vectors
    }
}

/// Writes `LANES` vectors to `to`; if `PART`, only the first `last` bytes of the last vector.
///
/// # Safety
/// As [`load_lanes`].
#[inline(always)]
unsafe fn store_lanes<V: Vector, const LANES: usize, const PART: bool>(
    vectors: [V; LANES],
    to: *mut u8,
    last: usize,
) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        for lane in 0..LANES {
            let to = to.add(lane * V::WIDTH);
            if lane + 1 < LANES || !PART {
                vectors[lane].store(to);
            } else {
                vectors[lane].store_first(to, last);
            }
        }
    }
}

/// Reads up to a vector of `input` from byte `start`, then zeros; all zeros past its end.
///
/// # Safety
/// `V`'s instructions must be enabled in the caller.
#[inline(always)]
unsafe fn load_up_to<V: Vector>(input: &[u8], start: usize) -> V {
    let available = input.len().saturating_sub(start);
    // SAFETY: `available` bytes lie between `start` and the end of `input`.
    unsafe {
        if available >= V::WIDTH {
            V::load(input.as_ptr().add(start))
        } else if available > 0 {
            V::load_first(input.as_ptr().add(start), available)
        } else {
            V::zero()
        }
    }
}

/// Space for one vector of up to 32 bytes, for instruction sets without masked reads and writes.
#[derive(Default)]
#[repr(align(32))]
struct Buffer([u8; Buffer::LEN]);

impl Buffer {
    const LEN: usize = 32;

    /// The `count <= 32` bytes at `from`, then zeros.
    ///
    /// # Safety
    /// `count` bytes must be valid at `from`, and `count` at most 32.
    #[inline(always)]
    unsafe fn read(from: *const u8, count: usize) -> Self {
        let mut buffer = Buffer::default();
        // SAFETY: the caller guarantees `count` valid bytes and `count <= 32`; the buffer is a local, so the ranges
        // do not overlap.
        unsafe { core::ptr::copy_nonoverlapping(from, buffer.as_mut_ptr(), count) };
        buffer
    }

    /// Writes the first `count` bytes at `to`.
    ///
    /// # Safety
    /// `count` bytes must be valid at `to`, and `count` at most 32.
    #[inline(always)]
    unsafe fn write(&self, to: *mut u8, count: usize) {
        // SAFETY: the caller guarantees `count` valid bytes and `count <= 32`; the buffer is a local, so the ranges
        // do not overlap.
        unsafe { core::ptr::copy_nonoverlapping(self.as_ptr(), to, count) };
    }

    /// The first byte, aligned to 32.
    #[inline(always)]
    fn as_ptr(&self) -> *const u8 {
        self.0.as_ptr()
    }

    /// The first byte, aligned to 32.
    #[inline(always)]
    fn as_mut_ptr(&mut self) -> *mut u8 {
        self.0.as_mut_ptr()
    }
}
