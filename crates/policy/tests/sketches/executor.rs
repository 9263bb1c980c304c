//! Carries out decisions over synthetic views: no time passes but what a sketch lets pass.

use std::collections::VecDeque;

use anabranch_policy::redundancy::{RedundancyPolicy, RedundancyView};
use anabranch_policy::scheduler::{Pick, Pull, Scheduler, Work};
use anabranch_policy::view::{
    Blocked, Demand, FreshView, LossView, PathView, SchedulerView, SymbolId, TrafficClass,
    WindowId, WindowView,
};
use anabranch_types::{PathId, Time};
use core::time::Duration;

/// One symbol that left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    pub path: u32,
    pub work: Work,
    /// The source symbol, for new data.
    pub symbol: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Bound {
    pick: Pick,
    symbol: Option<u64>,
}

/// Paths, windows and waiting data, and the policies that act on them.
#[derive(Debug)]
pub struct World {
    pub now: Time,
    pub paths: Vec<PathView>,
    pub windows: Vec<WindowView>,
    pub fresh: u32,
    /// Symbols the receiver still accepts.
    pub window: u32,
    pub loss: LossView,
    pub scheduler: Box<dyn Scheduler>,
    pub redundancy: Box<dyn RedundancyPolicy>,
    pub departures: Vec<Departure>,
    bound: Vec<VecDeque<Bound>>,
    next_symbol: u64,
    planned: u16,
}

/// A path of `packets` full packets and `rtt` milliseconds.
pub fn path(id: u32, packets: u64, rtt: u64) -> PathView {
    let mut path = PathView::unknown(PathId(id));
    path.cwnd = packets * path.packet_size;
    path.rtt.smoothed = Duration::from_millis(rtt);
    path.rtt.min = path.rtt.smoothed;
    path.rto = path.rtt.smoothed * 2;
    path
}

impl World {
    pub fn new(
        paths: Vec<PathView>,
        scheduler: Box<dyn Scheduler>,
        redundancy: Box<dyn RedundancyPolicy>,
    ) -> Self {
        let count = paths.len();
        World {
            now: Time::ZERO,
            paths,
            windows: Vec::new(),
            fresh: 0,
            window: 10_000,
            loss: LossView::default(),
            scheduler,
            redundancy,
            departures: Vec::new(),
            bound: vec![VecDeque::new(); count],
            next_symbol: 0,
            planned: 0,
        }
    }

    fn surroundings(&self) -> RedundancyView<'_> {
        RedundancyView {
            now: self.now,
            paths: &self.paths,
            loss: self.loss,
            max_symbols: 255,
            max_symbol_size: 1150,
            waiting_bytes: u64::from(self.fresh) * 1150,
            flushing: false,
            class: TrafficClass::Bulk,
            sources_sent: self.next_symbol,
            repairs_sent: 0,
            repairs_unneeded: 0,
        }
    }

    /// Calls `ask` with the scheduler and what it may look at.
    fn ask<T>(&mut self, ask: impl FnOnce(&mut dyn Scheduler, &SchedulerView<'_>) -> T) -> T {
        let mut scheduler = core::mem::replace(
            &mut self.scheduler,
            anabranch_policy::scheduler::build(&"blind".parse().unwrap()).unwrap(),
        );
        let symbols = self.fresh.min(self.window);
        let fresh = FreshView {
            symbols,
            more: false,
            class: TrafficClass::Bulk,
            symbol_size: 1150,
            blocked: (symbols == 0).then_some(Blocked::Application),
            window: self.window,
        };
        let surroundings = self.surroundings();
        let demand = Demand::of(self.redundancy.as_ref(), &surroundings);
        let (now, paths, windows) = (self.now, &self.paths[..], &self.windows[..]);
        let answer = ask(&mut *scheduler, &SchedulerView { now, paths, windows, fresh, demand });
        self.scheduler = scheduler;
        answer
    }

    /// Asks on behalf of a path without carrying anything out.
    pub fn pull(&mut self, path: PathId, picks: &mut Vec<Pick>) -> Pull {
        self.ask(|scheduler, view| scheduler.pull(path, view, picks))
    }

    fn bind(&mut self, pick: Pick) {
        let slot = pick.path.index();
        for _ in 0..pick.count {
            let symbol = (pick.work == Work::Fresh).then(|| self.cut());
            self.bound[slot].push_back(Bound { pick, symbol });
            self.paths[slot].bytes_queued += self.paths[slot].packet_size;
        }
    }

    fn holder(&mut self, symbol: u64) -> &mut WindowView {
        self.windows
            .iter_mut()
            .find(|w| (w.first.0..w.first.0 + u64::from(w.sources)).contains(&symbol))
            .unwrap()
    }

    /// Cuts the next source symbol into the open window, opening and closing windows as needed.
    fn cut(&mut self) -> u64 {
        assert!(self.fresh > 0, "new data that does not exist");
        self.fresh -= 1;
        self.window -= 1;
        if self.windows.last().is_none_or(|window| window.closed) {
            let mut redundancy = self.take_redundancy();
            self.planned = redundancy.next_window(&self.surroundings()).sources;
            self.redundancy = redundancy;
            let id = WindowId(self.windows.last().map_or(0, |window| window.id.0 + 1));
            let first = SymbolId(self.next_symbol);
            self.windows.push(WindowView { id, first, ..WindowView::default() });
        }
        let symbol = self.next_symbol;
        self.next_symbol += 1;
        let mut redundancy = self.take_redundancy();
        let mut window = *self.windows.last().unwrap();
        window.sources += 1;
        window.due += redundancy.after_source(&window, &self.surroundings());
        if window.sources >= self.planned {
            window.closed = true;
            window.proactive_left = redundancy.proactive(&window, &self.surroundings());
        }
        self.redundancy = redundancy;
        *self.windows.last_mut().unwrap() = window;
        symbol
    }

    fn take_redundancy(&mut self) -> Box<dyn RedundancyPolicy> {
        let none = anabranch_policy::redundancy::build(&"none".parse().unwrap()).unwrap();
        core::mem::replace(&mut self.redundancy, none)
    }

    fn depart(&mut self, slot: usize, work: Work, symbol: Option<u64>) {
        let id = match (work, symbol) {
            (Work::Window(id) | Work::Copy(id), _) => id,
            (Work::Fresh, Some(symbol)) => self.holder(symbol).id,
            (Work::Fresh, None) => panic!("new data without a symbol"),
        };
        let window = self.windows.iter_mut().find(|window| window.id == id).unwrap();
        match work {
            Work::Window(_) => {
                assert!(window.has_work(), "{id:?} has no work");
                if window.due > 0 {
                    window.due -= 1;
                } else {
                    window.proactive_left -= 1;
                }
                window.in_flight += 1;
            }
            Work::Fresh => window.in_flight += 1,
            Work::Copy(_) => assert!(window.in_flight_on[slot] < window.in_flight),
        }
        window.in_flight_on[slot] += 1;
        let path = &mut self.paths[slot];
        path.bytes_in_flight += path.packet_size;
        let path = path.id.0;
        self.departures.push(Departure { path, work, symbol });
    }

    /// Sends one thing on the path, from its queue or by asking. False if it sends nothing.
    fn step(&mut self, slot: usize) -> bool {
        let path = &self.paths[slot];
        if path.bytes_in_flight + path.packet_size > path.cwnd {
            return false;
        }
        let due = self.bound[slot].iter().position(|bound| bound.pick.not_before <= self.now);
        if let Some(bound) = due.and_then(|index| self.bound[slot].remove(index)) {
            self.paths[slot].bytes_queued -= self.paths[slot].packet_size;
            self.depart(slot, bound.pick.work, bound.symbol);
            return true;
        }
        let mut picks = Vec::new();
        let id = self.paths[slot].id;
        let answer = self.ask(|scheduler, view| scheduler.pull(id, view, &mut picks));
        for pick in &picks {
            self.bind(*pick);
        }
        matches!(answer, Pull::Send(_))
    }

    /// Asks path after path until none sends any more at this time.
    pub fn run(&mut self) {
        let mut busy = true;
        while busy {
            busy = false;
            for slot in 0..self.paths.len() {
                for path in &mut self.paths {
                    path.ready = path.bytes_in_flight + path.packet_size <= path.cwnd;
                }
                busy |= self.step(slot);
            }
            assert!(self.departures.len() < 10_000, "a scheduler never stops");
        }
    }

    /// Lets the fate of `count` symbols of a window on a path become known; losses that leave it
    /// short are made due as the redundancy policy says.
    pub fn resolve(&mut self, path: u32, window: u64, count: u16, arrived: bool) {
        let slot = path as usize;
        self.paths[slot].bytes_in_flight -= u64::from(count) * self.paths[slot].packet_size;
        let index = self.windows.iter().position(|view| view.id.0 == window).unwrap();
        let view = &mut self.windows[index];
        view.in_flight -= count;
        view.in_flight_on[slot] -= count;
        if arrived {
            view.received += count;
        } else {
            view.lost_on |= 1 << slot;
        }
        let view = self.windows[index];
        let needed = self.redundancy.still_needed(&view, &[0; 16], &self.surroundings());
        self.windows[index].due += needed;
    }
}
