//! A sliding-window code: a repair after every few sources, over the newest symbols only.

use anabranch_policy::code::Coverage;
use anabranch_policy::redundancy::{RedundancyPolicy, RedundancyView, WindowShape};
use anabranch_policy::scheduler;
use anabranch_policy::scheduler::Work;
use anabranch_policy::view::{MAX_PATHS, SymbolId, WindowView};

use crate::executor::{World, path};

/// One repair after each `every` sources, over the last `span` of them.
#[derive(Debug)]
struct Sliding {
    every: u64,
    span: u16,
}

impl RedundancyPolicy for Sliding {
    /// Windows are only for bookkeeping here; repairs reach across them.
    fn next_window(&mut self, view: &RedundancyView<'_>) -> WindowShape {
        WindowShape { sources: 10, repairs: 0, symbol_size: view.max_symbol_size }
    }

    fn proactive(&mut self, _: &WindowView, _: &RedundancyView<'_>) -> u16 {
        0
    }

    fn after_source(&mut self, window: &WindowView, _: &RedundancyView<'_>) -> u16 {
        let newest = window.first.0 + u64::from(window.sources);
        u16::from(newest.is_multiple_of(self.every))
    }

    fn coverage(&self, window: &WindowView) -> Coverage {
        let end = window.first.0 + u64::from(window.sources);
        let first = end.saturating_sub(u64::from(self.span));
        Coverage { first: SymbolId(first), count: (end - first) as u16 }
    }

    fn still_needed(
        &self,
        window: &WindowView,
        _: &[u16; MAX_PATHS],
        _: &RedundancyView<'_>,
    ) -> u16 {
        window.shortfall()
    }
}

#[test]
fn repairs_follow_their_sources_and_cover_the_newest() {
    let blind = scheduler::build(&"blind".parse().unwrap()).unwrap();
    let sliding = Box::new(Sliding { every: 4, span: 8 });
    let mut world = World::new(vec![path(0, 100, 40)], blind, sliding);
    world.fresh = 14;
    world.run();
    let order: String = world
        .departures
        .iter()
        .map(|sent| if sent.work == Work::Fresh { 's' } else { 'r' })
        .collect();
    assert_eq!(order, "ssssrssssrssssrss");
    // The newest repair of the second window reaches back into the first.
    let window = world.windows[1];
    assert_eq!((window.first, window.sources, window.closed), (SymbolId(10), 4, false));
    assert_eq!(world.redundancy.coverage(&window), Coverage { first: SymbolId(6), count: 8 });
    // A loss in an open window is made good at once.
    world.resolve(0, 1, 2, false);
    assert_eq!(world.windows[1].due, 1);
}
