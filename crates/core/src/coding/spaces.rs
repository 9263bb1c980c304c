//! The symbol spaces of a connection: that of the main code, and that of live data if both ends
//! want one.

use core::ops::{Index, IndexMut};

use anabranch_policy::view::{BlockView, SymbolSpace, TrafficClass};

use super::code;
use super::receive::{CodingViolation, ReceiveBlocks};
use super::send::{SendBlocks, Totals};

/// Symbol spaces that a side sends. The index is the space; without a live space, `Live` is the
/// main one.
#[derive(Debug)]
pub struct SendSpaces {
    main: SendBlocks,
    live: Option<Box<SendBlocks>>,
    /// For [`Self::views`]; reused.
    views: Vec<BlockView>,
}

impl SendSpaces {
    /// `live` holds live data, if it has its own space.
    pub fn new(main: SendBlocks, live: Option<SendBlocks>) -> Self {
        SendSpaces { main, live: live.map(Box::new), views: Vec::new() }
    }

    /// The space that data of a class goes into.
    #[inline]
    pub fn of_class(&self, class: TrafficClass) -> SymbolSpace {
        match class {
            TrafficClass::Live if self.live.is_some() => SymbolSpace::Live,
            _ => SymbolSpace::Main,
        }
    }

    /// The classes of which data goes into a space.
    #[inline]
    pub fn classes(&self, space: SymbolSpace) -> impl Iterator<Item = TrafficClass> + '_ {
        TrafficClass::ALL.into_iter().filter(move |class| self.of_class(*class) == space)
    }

    /// All spaces, the main one first.
    pub fn iter(&self) -> impl Iterator<Item = &SendBlocks> {
        core::iter::once(&self.main).chain(self.live.as_deref())
    }

    /// All spaces, mutably, the main one first.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut SendBlocks> {
        core::iter::once(&mut self.main).chain(self.live.as_deref_mut())
    }

    /// Whether live data has a space.
    #[inline]
    pub fn has_live(&self) -> bool {
        self.live.is_some()
    }

    /// The names of all spaces.
    pub fn names(&self) -> impl Iterator<Item = SymbolSpace> + use<> {
        SymbolSpace::ALL.into_iter().take(1 + usize::from(self.has_live()))
    }

    /// The blocks of all spaces that are not recovered, by rising id.
    #[inline]
    pub fn views(&mut self) -> &[BlockView] {
        match &self.live {
            Some(live) if !live.is_empty() => {
                self.views.clear();
                self.views.extend_from_slice(self.main.views());
                self.views.extend_from_slice(live.views());
                &self.views
            }
            _ => self.main.views(),
        }
    }

    /// The totals of all spaces added up.
    pub fn totals(&self) -> Totals {
        self.iter().map(SendBlocks::totals).fold(Totals::default(), |sum, totals| sum + totals)
    }

    /// Whether everything sent has been recovered.
    pub fn is_empty(&self) -> bool {
        self.iter().all(SendBlocks::is_empty)
    }

    /// A bound on the length of every symbol of any space that is still needed.
    #[inline]
    pub fn widest(&self) -> u16 {
        self.iter().map(SendBlocks::widest).max().unwrap_or_default()
    }

    /// Makes [`widest`](Self::widest) exact, and returns it.
    pub fn measure(&mut self) -> u16 {
        self.iter_mut().map(SendBlocks::measure).max().unwrap_or_default()
    }
}

impl Index<SymbolSpace> for SendSpaces {
    type Output = SendBlocks;

    #[inline]
    fn index(&self, space: SymbolSpace) -> &SendBlocks {
        match (space, &self.live) {
            (SymbolSpace::Live, Some(live)) => live,
            _ => &self.main,
        }
    }
}

impl IndexMut<SymbolSpace> for SendSpaces {
    #[inline]
    fn index_mut(&mut self, space: SymbolSpace) -> &mut SendBlocks {
        match (space, &mut self.live) {
            (SymbolSpace::Live, Some(live)) => live,
            _ => &mut self.main,
        }
    }
}

/// Symbol spaces that a side receives.
#[derive(Debug)]
pub struct ReceiveSpaces {
    main: ReceiveBlocks,
    /// The space of live data, which is made when the first frame about it arrives.
    live: Option<Box<ReceiveBlocks>>,
    symbol_capacity: usize,
    /// Live symbols that the peer may send according to the initial announcement; 0 if there is no
    /// live space.
    live_announced: u64,
    /// The most live symbols that are held. The credit may grow before the first of them arrives.
    live_credit: u64,
}

impl ReceiveSpaces {
    /// Initially accepts `live_credit` live symbols of at most `symbol_capacity` bytes; with 0,
    /// there is no live space.
    pub fn new(main: ReceiveBlocks, symbol_capacity: usize, live_credit: u64) -> Self {
        let (live, live_announced) = (None, live_credit);
        ReceiveSpaces { main, live, symbol_capacity, live_announced, live_credit }
    }

    /// The main space.
    pub fn main(&self) -> &ReceiveBlocks {
        &self.main
    }

    /// A space, unless it is that of live data and no frame about it has arrived.
    #[inline]
    pub fn get_mut(&mut self, space: SymbolSpace) -> Option<&mut ReceiveBlocks> {
        match space {
            SymbolSpace::Main => Some(&mut self.main),
            SymbolSpace::Live => self.live.as_deref_mut(),
        }
    }

    /// The space of a frame that has arrived; the first such frame creates the live space.
    ///
    /// # Errors
    /// If this side accepts no symbols of that space.
    #[inline]
    pub fn open(&mut self, space: SymbolSpace) -> Result<&mut ReceiveBlocks, CodingViolation> {
        match space {
            SymbolSpace::Main => Ok(&mut self.main),
            SymbolSpace::Live if self.live_announced == 0 => Err(CodingViolation::Credit),
            SymbolSpace::Live => Ok(self.live.get_or_insert_with(|| {
                let (code, announced) = (code::of_live_data(), self.live_announced);
                let blocks = ReceiveBlocks::new(code, self.symbol_capacity, announced);
                let mut blocks = blocks.in_space(space);
                // The credit gained since the start is announced next.
                blocks.raise_credit(self.live_credit);
                Box::new(blocks)
            })),
        }
    }

    /// The main space, and that of live data once a frame about it has arrived.
    pub fn iter(&self) -> impl Iterator<Item = &ReceiveBlocks> {
        core::iter::once(&self.main).chain(self.live.as_deref())
    }

    /// The spaces of [`Self::iter`], mutably.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut ReceiveBlocks> {
        core::iter::once(&mut self.main).chain(self.live.as_deref_mut())
    }

    /// Raises the limits to `main` symbols held in the main space and `live` in the live space;
    /// limits never fall.
    pub fn raise_credit(&mut self, main: u64, live: u64) {
        self.main.raise_credit(main);
        self.live_credit = self.live_credit.max(live);
        if let Some(blocks) = &mut self.live {
            blocks.raise_credit(live);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sender knows only the initial credit. If the grown credit counted as announced, the next
    /// limit would be announced only when a quarter of it is free, which may never happen.
    #[test]
    fn credit_that_grew_before_the_first_live_symbol_is_announced() {
        let main = ReceiveBlocks::new(code::none(), 100, 4000);
        let mut spaces = ReceiveSpaces::new(main, 100, 1000);
        spaces.raise_credit(16_000, 4000);
        let live = spaces.open(SymbolSpace::Live).unwrap();
        assert_eq!(live.limit(), 1000);
        assert_eq!(live.new_limit(), Some(4000));
        assert_eq!(live.new_limit(), None);
    }

    #[test]
    fn a_space_that_was_not_offered_is_not_opened() {
        let main = ReceiveBlocks::new(code::none(), 100, 4000);
        let mut spaces = ReceiveSpaces::new(main, 100, 0);
        spaces.raise_credit(16_000, 0);
        assert_eq!(spaces.open(SymbolSpace::Live).err(), Some(CodingViolation::Credit));
        assert_eq!(spaces.iter().count(), 1);
    }
}
