use super::Repair;
use crate::gf256;
use crate::kernel::Kernel;

/// Unknown sources that the equations reach over: from the first one on, so many numbers.
const SPAN: usize = 512;

/// A combination of missing sources: their coefficients, by number modulo [`SPAN`], and its bytes.
#[derive(Debug)]
struct Equation {
    factors: [u8; SPAN],
    /// The lowest unknown in it, whose factor is 1, and which no other equation contains.
    pivot: u64,
    bytes: Box<[u8]>,
    /// Bytes that may differ from zero.
    length: usize,
}

impl Equation {
    fn factor(&self, number: u64) -> u8 {
        self.factors[number as usize % SPAN]
    }

    /// Adds `factor` times the source `number`, which so falls out.
    fn take_out(&mut self, number: u64, source: &[u8]) {
        let factor = core::mem::take(&mut self.factors[number as usize % SPAN]);
        self.add_bytes(factor, source);
    }

    fn add_bytes(&mut self, factor: u8, bytes: &[u8]) {
        let length = bytes.len().min(self.bytes.len());
        if factor == 0 || length == 0 {
            return;
        }
        self.length = self.length.max(length);
        Kernel::best().multiply_add(
            &[&bytes[..length]],
            &mut [&mut self.bytes[..length]],
            |_, _| factor,
        );
    }

    /// Adds a multiple of `other`, such that its pivot falls out.
    fn eliminate(&mut self, other: &Equation) {
        let factor = self.factor(other.pivot);
        if factor != 0 {
            Kernel::best().multiply_add(&[&other.factors], &mut [&mut self.factors], |_, _| factor);
            self.add_bytes(factor, &other.bytes[..other.length]);
        }
    }

    fn scale(&mut self, factor: u8) {
        for byte in self.factors.iter_mut().chain(&mut self.bytes[..self.length]) {
            *byte = gf256::mul(*byte, factor);
        }
    }

    /// Whether no unknown is in it but its pivot.
    fn is_solved(&self) -> bool {
        let at = self.pivot as usize % SPAN;
        let words = self.factors.chunks_exact(8).enumerate();
        words.into_iter().all(|(index, word)| {
            let mut word: [u8; 8] = word.try_into().unwrap_or_default();
            if index == at / 8 {
                word[at % 8] = 0;
            }
            u64::from_ne_bytes(word) == 0
        })
    }
}

/// The repairs that a receiver holds, as equations in the sources that it misses. No equation contains the
/// pivot of another.
///
/// Memory is bounded by 512 equations of a symbol's length and 600 bytes more; a symbol that arrives costs
/// at most an addition of every equation to every other's place once.
#[derive(Debug)]
pub struct Decoder {
    /// No unknown is below.
    base: u64,
    equations: Vec<Equation>,
    spare: Vec<Box<[u8]>>,
    symbol_length: usize,
}

impl Decoder {
    /// Nothing has arrived yet; symbols have at most `symbol_length` bytes.
    pub fn new(symbol_length: usize) -> Self {
        Decoder { base: 0, equations: Vec::new(), spare: Vec::new(), symbol_length }
    }

    /// Sources that are missing and occur in an equation, less the equations: so many more are needed
    /// for all of them. At least 1 as long as there are equations.
    pub fn deficit(&self) -> usize {
        let mut occurs = [0_u8; SPAN];
        for equation in &self.equations {
            for (entry, factor) in occurs.iter_mut().zip(equation.factors) {
                *entry |= factor;
            }
        }
        let unknowns = occurs.iter().filter(|entry| **entry != 0).count();
        unknowns.saturating_sub(self.equations.len())
    }

    /// All sources below `base` are known or given up.
    pub fn advance(&mut self, base: u64) {
        self.base = self.base.max(base);
    }

    /// A repair has arrived. `known` gives the bytes of sources that are held. False if nothing new can be
    /// learnt from it: the others imply it, or it reaches too far beyond the first missing source.
    pub fn repair<'a>(
        &mut self,
        repair: Repair,
        bytes: &[u8],
        known: impl Fn(u64) -> Option<&'a [u8]>,
    ) -> bool {
        let end = repair.first.saturating_add(repair.count as u64);
        if repair.count > super::MAX_COVERAGE
            || bytes.len() > self.symbol_length
            || end > self.base.saturating_add(SPAN as u64)
            || self.equations.len() >= SPAN
        {
            return false;
        }
        let mut equation = self.blank();
        equation.add_bytes(1, bytes);
        let coefficients = repair.coefficients();
        for (number, coefficient) in (repair.first..end).zip(coefficients) {
            match known(number) {
                // A repair is as long as the longest source in it: the rest is zero, or contradicts it.
                Some(source) => {
                    equation.add_bytes(coefficient, source.get(..bytes.len()).unwrap_or(source));
                }
                None if number >= self.base => {
                    equation.factors[number as usize % SPAN] = coefficient;
                }
                // Given up, or forgotten: nothing can be made of the rest.
                None => return self.discard(equation),
            }
        }
        for other in &self.equations {
            equation.eliminate(other);
        }
        self.insert(equation)
    }

    /// The source `number` is known.
    pub fn source(&mut self, number: u64, bytes: &[u8]) {
        self.remove(number, Some(bytes));
    }

    /// The source `number` will never be known: what can only be said with it is not said any more.
    pub fn give_up(&mut self, number: u64) {
        self.remove(number, None);
    }

    /// Takes out a source that the equations determine; returns its number. Its bytes are written to `out`,
    /// as far as they are not zero, and the rest of `out` is cleared. To be called until it has no more.
    pub fn take_recovered(&mut self, out: &mut [u8]) -> Option<(u64, usize)> {
        let at = self.equations.iter().position(Equation::is_solved)?;
        let equation = self.equations.swap_remove(at);
        let (number, length) = (equation.pivot, equation.length.min(out.len()));
        let (used, rest) = out.split_at_mut(length);
        used.copy_from_slice(&equation.bytes[..length]);
        rest.fill(0);
        self.discard(equation);
        Some((number, length))
    }

    fn blank(&mut self) -> Equation {
        let length = self.symbol_length;
        let bytes = self.spare.pop().unwrap_or_else(|| vec![0; length].into_boxed_slice());
        Equation { factors: [0; SPAN], pivot: 0, bytes, length: 0 }
    }

    /// Keeps the room of an equation; false, for callers that learnt nothing from it.
    fn discard(&mut self, mut equation: Equation) -> bool {
        equation.bytes[..equation.length].fill(0);
        self.spare.push(equation.bytes);
        false
    }

    /// Adds an equation without the pivots of the others. False if it has no unknowns.
    fn insert(&mut self, mut equation: Equation) -> bool {
        let mut numbers = self.base..self.base.saturating_add(SPAN as u64);
        let Some(pivot) = numbers.find(|number| equation.factor(*number) != 0) else {
            return self.discard(equation);
        };
        equation.pivot = pivot;
        if let Some(inverse) = gf256::inverse(equation.factor(pivot)) {
            equation.scale(inverse);
        }
        for other in &mut self.equations {
            other.eliminate(&equation);
        }
        self.equations.push(equation);
        true
    }

    fn remove(&mut self, number: u64, source: Option<&[u8]>) {
        if number < self.base || number - self.base >= SPAN as u64 {
            return;
        }
        if let Some(at) = self.equations.iter().position(|equation| equation.pivot == number) {
            // No other contains it.
            let mut equation = self.equations.swap_remove(at);
            match source {
                Some(bytes) => {
                    equation.take_out(number, bytes);
                    self.insert(equation);
                }
                None => {
                    self.discard(equation);
                }
            }
            return;
        }
        match source {
            Some(bytes) => {
                self.equations.iter_mut().for_each(|equation| equation.take_out(number, bytes));
            }
            None => self.eliminate(number),
        }
    }

    /// Spends one equation on freeing the others of an unknown.
    fn eliminate(&mut self, number: u64) {
        let contains = |equation: &Equation| equation.factor(number) != 0;
        let Some(at) = self.equations.iter().position(contains) else { return };
        let mut spent = self.equations.swap_remove(at);
        if let Some(inverse) = gf256::inverse(spent.factor(number)) {
            spent.scale(inverse);
        }
        spent.pivot = number;
        self.equations.iter_mut().for_each(|equation| equation.eliminate(&spent));
        self.discard(spent);
    }
}
