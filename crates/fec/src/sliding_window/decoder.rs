use super::Repair;
use super::columns::{self, Columns};
use super::equation::{Equation, eliminate};
use super::work::Budget;
use crate::gf256;
use crate::kernel::MAX_INPUTS;

/// The repairs that a receiver holds, as equations in its missing sources. No equation contains the
/// pivot of another.
///
/// The equations contain at most 512 sources, so there are at most 512 equations, each of a symbol's length plus 600
/// bytes. Work is bounded by a multiple of the bytes that arrive. Repairs beyond either bound are dropped, as if they
/// had been lost.
#[derive(Debug)]
pub struct Decoder {
    /// All sources below this are known or given up.
    base: u64,
    columns: Columns,
    equations: Vec<Equation>,
    /// Rows of zeros for equations.
    spare: Vec<Box<[u8]>>,
    symbol_length: usize,
    work: Budget,
    /// A search found no solved equation, and no equation has changed since.
    searched: bool,
    /// Equations were dropped, so some columns may belong to sources that no equation contains any
    /// more.
    stale: bool,
}

impl Decoder {
    /// A decoder to which nothing has arrived yet, for symbols of at most `symbol_length` bytes.
    pub fn new(symbol_length: usize) -> Self {
        Decoder {
            base: 0,
            columns: Columns::new(),
            equations: Vec::new(),
            spare: Vec::new(),
            symbol_length,
            work: Budget::new(),
            searched: true,
            stale: false,
        }
    }

    /// Sets the decoder's work budget to `work`.
    #[cfg(test)]
    pub(super) fn with_work(self, work: u64) -> Self {
        Decoder { work: Budget::of(work), ..self }
    }

    /// How many more symbols are needed to determine all missing sources that occur in equations:
    /// the number of these sources minus the number of equations. It is at least 1 while an
    /// equation is unsolved.
    pub fn deficit(&self) -> usize {
        let unknowns = if self.stale {
            occurring(&self.equations).iter().filter(|entry| **entry != 0).count()
        } else {
            self.columns.len()
        };
        unknowns.saturating_sub(self.equations.len())
    }

    /// Whether an equation contains the source.
    pub fn contains(&self, number: u64) -> bool {
        let column = self.columns.of(number);
        column.is_some_and(|column| self.equations.iter().any(|one| one.factor(column) != 0))
    }

    /// Notes that all sources below `base` are known or given up.
    pub fn advance(&mut self, base: u64) {
        self.base = self.base.max(base);
    }

    /// A repair has arrived. `known` gives the bytes of sources that are held. Returns whether the
    /// repair is kept. It is dropped if the others imply it, if it contains a source below the base
    /// that is not held, if the equations would contain too many sources, or if it takes too much
    /// work.
    pub fn repair<'a>(
        &mut self,
        repair: Repair,
        bytes: &[u8],
        known: impl Fn(u64) -> Option<&'a [u8]>,
    ) -> bool {
        let end = repair.first.saturating_add(repair.count as u64);
        if repair.count > super::MAX_COVERAGE || bytes.len() > self.symbol_length {
            return false;
        }
        self.work.earn(bytes.len());
        // Work starts only if the budget covers the worst case, so most repairs of a flood are
        // dropped here.
        let (held, size) = (self.equations.len(), Equation::row_length(self.symbol_length));
        if !self.work.affords(Budget::price_among(2 * held, repair.count + 2 * held + 2, size)) {
            return false;
        }
        let mut equation = Equation::new(self.row());
        equation.add_known(&[1], &[bytes]);
        let (mut factors, mut sources) = ([0; MAX_INPUTS], [&[][..]; MAX_INPUTS]);
        let mut count = 0;
        for (number, coefficient) in (repair.first..end).zip(repair.coefficients()) {
            match known(number) {
                // A repair is as long as its longest source, so an honest sender's sources have
                // only zeros beyond the repair's length.
                Some(source) => {
                    factors[count] = coefficient;
                    sources[count] = source.get(..bytes.len()).unwrap_or(source);
                    count += 1;
                }
                None => match self.column(number, &equation) {
                    Some(column) => equation.add_unknown(column, coefficient),
                    None => return self.discard(equation),
                },
            }
        }
        let pivots = self.equations.iter().filter(|other| equation.factor(other.pivot) != 0);
        let eliminations: u64 = pivots.map(|other| Budget::price(1, other.size())).sum();
        let own = Budget::price_among(held, count, bytes.len()) + eliminations;
        if !self.work.pay(own) {
            return self.discard(equation);
        }
        equation.add_known(&factors[..count], &sources[..count]);
        equation.eliminate_pivots(&self.equations);
        self.insert(equation)
    }

    /// The source `number` is known.
    pub fn source(&mut self, number: u64, bytes: &[u8]) {
        self.work.earn(bytes.len());
        let Some(column) = self.columns.of(number) else { return };
        if let Some(mut equation) = self.take_pivot(column) {
            if self.work.spend(1, bytes.len()) {
                equation.take_out(column, bytes);
                self.insert(equation);
            } else {
                self.discard(equation);
            }
        } else {
            self.retain_with(column, |work, equation| {
                let affordable = work.spend(1, bytes.len());
                if affordable {
                    equation.take_out(column, bytes);
                }
                affordable
            });
        }
        self.columns.release(number);
    }

    /// The source `number` will never be known: it is eliminated, which uses up one of the equations that contain it.
    pub fn give_up(&mut self, number: u64) {
        let Some(column) = self.columns.of(number) else { return };
        let contains = |equation: &Equation| equation.factor(column) != 0;
        if let Some(equation) = self.take_pivot(column) {
            self.discard(equation);
        } else if let Some(at) = self.equations.iter().position(contains) {
            let spent = self.equations.swap_remove(at);
            if let Some(spent) = self.eliminate(spent, column) {
                self.discard(spent);
            } else {
                self.retain_with(column, |_, _| false);
            }
        }
        self.columns.release(number);
    }

    /// Takes out a source that the equations determine; returns its number and how many bytes were
    /// written to `out`. Trailing zeros of the source may be left out; the rest of `out` is
    /// cleared. Callers repeat the call until it returns `None`.
    pub fn take_recovered(&mut self, out: &mut [u8]) -> Option<(u64, usize)> {
        if self.searched {
            return None;
        }
        let Some(at) = self.equations.iter().position(Equation::is_solved) else {
            self.searched = true;
            return None;
        };
        let equation = self.equations.swap_remove(at);
        let number = self.columns.source(equation.pivot)?;
        self.columns.release(number);
        let bytes = equation.bytes();
        let length = bytes.len().min(out.len());
        let (used, rest) = out.split_at_mut(length);
        used.copy_from_slice(&bytes[..length]);
        rest.fill(0);
        self.spare.push(equation.into_row());
        Some((number, length))
    }

    /// A row of zeros.
    fn row(&mut self) -> Box<[u8]> {
        let length = Equation::row_length(self.symbol_length);
        self.spare.pop().unwrap_or_else(|| vec![0; length].into_boxed_slice())
    }

    /// The column of a missing source for `equation`, an equation that is not kept yet. `None` if
    /// no column is free, or if the source is below `base`: it has been given up or is no longer
    /// held.
    fn column(&mut self, number: u64, equation: &Equation) -> Option<u16> {
        if number < self.base {
            return None;
        }
        let column = self.columns.take(number);
        // The search for columns that no equation uses costs as much work as one addition to each
        // equation.
        let price = Budget::price(self.equations.len(), columns::MOST);
        if column.is_some() || !self.stale || !self.work.pay(price) {
            return column;
        }
        let occurs = occurring(&self.equations);
        let in_use = |column| equation.factor(column) != 0 || occurs[usize::from(column)] != 0;
        self.columns.retain(in_use);
        self.stale = false;
        self.columns.take(number)
    }

    /// Drops an equation, whose columns may then be stale. Returns false, for callers that report whether it is kept.
    fn discard(&mut self, equation: Equation) -> bool {
        self.stale = true;
        self.spare.push(equation.into_row());
        false
    }

    /// Keeps an equation that contains no pivot of the others. Returns false if it contains no unknowns either, or if
    /// keeping it takes too much work.
    fn insert(&mut self, equation: Equation) -> bool {
        // The pivot is the oldest unknown, which is the least likely to arrive: if a pivot arrives,
        // the equation needs another.
        let pivot = self.columns.iter().find(|(_, column)| equation.factor(*column) != 0);
        let Some((_, pivot)) = pivot else {
            self.spare.push(equation.into_row());
            return false;
        };
        let Some(equation) = self.eliminate(equation, pivot) else { return false };
        self.equations.push(equation);
        true
    }

    /// Makes the unknown in `column` the pivot of an equation and eliminates it from the others. Drops the equation
    /// if that takes too much work.
    fn eliminate(&mut self, equation: Equation, column: u16) -> Option<Equation> {
        let others = self.equations.iter().filter(|other| other.factor(column) != 0).count();
        let inverse = gf256::inverse(equation.factor(column));
        let price = Budget::price_among(self.equations.len(), others + 2, equation.size());
        let Some(inverse) = inverse.filter(|_| self.work.pay(price)) else {
            self.discard(equation);
            return None;
        };
        let scaled = equation.with_pivot(column, inverse, self.row());
        self.spare.push(equation.into_row());
        eliminate(&scaled, &mut self.equations);
        self.searched = false;
        Some(scaled)
    }

    /// Takes out the equation that has this pivot; no other contains it.
    fn take_pivot(&mut self, column: u16) -> Option<Equation> {
        let at = self.equations.iter().position(|equation| equation.pivot == column)?;
        Some(self.equations.swap_remove(at))
    }

    /// Drops the equations that contain the unknown in `column` and for which `keep` returns false.
    fn retain_with(
        &mut self,
        column: u16,
        mut keep: impl FnMut(&mut Budget, &mut Equation) -> bool,
    ) {
        let mut at = 0;
        while let Some(equation) = self.equations.get_mut(at) {
            if equation.factor(column) == 0 || keep(&mut self.work, equation) {
                at += 1;
            } else {
                let equation = self.equations.swap_remove(at);
                self.discard(equation);
            }
        }
        self.searched = false;
    }
}

/// By column: not zero if an equation contains the unknown.
fn occurring(equations: &[Equation]) -> [u8; columns::MOST] {
    let mut occurs = [0; columns::MOST];
    for equation in equations {
        for (entry, factor) in occurs.iter_mut().zip(equation.factors()) {
            *entry |= *factor;
        }
    }
    occurs
}
