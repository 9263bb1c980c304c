//! Algorithm 1: allocating runs of packets gives the same picks as allocating packet by packet; and the paper's
//! theorems.

use super::*;
use crate::redundancy::{self, RedundancyPolicy, RedundancyView};
use crate::scheduler::expected_arrival::{delivery, response};
use crate::view::LossView;

/// The state of a connection.
struct State {
    paths: Vec<PathView>,
    blocks: Vec<BlockView>,
    symbols: u32,
    /// Class of these symbols, and the number of bulk symbols after them.
    class: TrafficClass,
    beyond: u32,
    redundancy: Box<dyn RedundancyPolicy>,
}

const MOMENT: Time = Time::from_millis(10_000);

impl State {
    fn look<R>(&self, look: impl FnOnce(&SchedulerView<'_>) -> R) -> R {
        let surroundings = RedundancyView {
            now: MOMENT,
            paths: &self.paths,
            loss: LossView::default(),
            max_symbols: 255,
            max_symbol_size: 1400,
            flushing: false,
            class: TrafficClass::Bulk,
            slides: false,
            sources_sent: 0,
            repairs_unneeded: 0,
        };
        let demand = Demand::of(self.redundancy.as_ref(), &surroundings);
        let view = view(&self.paths, &self.blocks, self.symbols);
        let fresh = FreshView { class: self.class, beyond: self.beyond, ..view.fresh };
        look(&SchedulerView { now: MOMENT, demand, fresh, ..view })
    }

    /// Work that the path is told to send, with counts of symbols.
    fn picks(&self, spec: &str, path: u32) -> Vec<(Work, u16)> {
        self.look(|view| {
            let mut picks = Vec::new();
            let answer = scheduler(spec).pull(PathId(path), view, &mut picks);
            assert_eq!(picks.is_empty(), matches!(answer, Pull::Idle(_)));
            picks.iter().map(|pick| (pick.work, pick.count)).collect()
        })
    }
}

/// Work that a block needs next after `handed` were given, where `join` of the waiting new symbols
/// join the block. Gives this work to the path in `slot`.
fn need(
    view: &SchedulerView<'_>,
    (block, join): (&BlockView, u32),
    handed: &mut [u16; MAX_PATHS],
    slot: u8,
) -> Option<Work> {
    let question = BlockView {
        sources: block.sources + join as u16,
        closed: true,
        due: 0,
        proactive_left: 0,
        ..*block
    };
    let sent: u32 = handed.iter().map(|n| u32::from(*n)).sum();
    let fills = join > 0 && sent < block.takeable() + join;
    if !fills && view.demand.still_needed(&question, handed) == 0 {
        return None;
    }
    let work = if sent < block.takeable() {
        Work::Repair(block.id)
    } else if sent < block.takeable() + join {
        Work::Fresh
    } else if block.closed {
        Work::Repair(block.id)
    } else if question.sources >= block.planned {
        Work::Ahead
    } else {
        return None;
    };
    handed[usize::from(slot)] += 1;
    Some(work)
}

/// Gives a symbol of the first block that is not complete to the path in `slot`. Blocks that are
/// still to be opened are included, and the more urgent class comes first.
fn first_in_need(
    view: &SchedulerView<'_>,
    planned: u16,
    handed: &mut [[u16; MAX_PATHS]],
    slot: u8,
) -> Option<Work> {
    let mut opened = view.blocks.len();
    for class in TrafficClass::ALL {
        let next = view.fresh.class == class;
        let mut fresh = if next { view.fresh.symbols } else { 0 };
        if class == TrafficClass::Bulk {
            fresh += view.fresh.beyond;
        }
        let mut joins = |block: &BlockView, joins: bool| {
            let room = block.planned.saturating_sub(block.sources);
            let join = if joins && !block.closed { fresh.min(room.into()) } else { 0 };
            fresh -= join;
            join
        };
        for (place, block) in view.blocks.iter().enumerate().filter(|(_, b)| b.class == class) {
            let join = joins(block, next);
            if let Some(work) = need(view, (block, join), &mut handed[place], slot) {
                return Some(work);
            }
        }
        while opened < 127 {
            let all = if next && view.fresh.beyond > 0 { view.fresh.symbols } else { u32::MAX };
            let mut block =
                BlockView { planned: u32::from(planned).min(all) as u16, ..BlockView::default() };
            let join = joins(&block, true);
            if join == 0 {
                break;
            }
            if next && view.fresh.beyond > 0 {
                block.planned = block.planned.min(join as u16);
            }
            if let Some(work) = need(view, (&block, join), &mut handed[opened], slot) {
                return Some(work);
            }
            opened += 1;
        }
    }
    None
}

/// Algorithm 1 as printed, with the corrections of table B: one path, one packet and one symbol at
/// a time, and for every symbol all blocks are examined from the first on. Returns what is sent,
/// and after how many new symbols of other paths; `None` if nothing is sent.
fn plain(asking: PathId, view: &SchedulerView<'_>) -> Option<(u32, Work)> {
    let planned = view.blocks.last().map_or(1, |block| block.planned);
    let mut given = [0_u64; MAX_PATHS];
    let (mut cut, mut handed) = (0_u32, vec![[0_u16; MAX_PATHS]; 128]);
    loop {
        let arrival = |path: &PathView| {
            let Some(waiting) = given[usize::from(path.slot)].checked_sub(path.free_packets())
            else {
                return delivery(path);
            };
            let age = path.oldest_unacked.map_or(0.0, |sent| view.now.since(sent).as_secs_f64());
            let first = (response(path) - age).max(0.0);
            delivery(path) + first + (waiting / path.cwnd_packets()) as f64 * response(path)
        };
        let ordinary = view.paths.iter().any(|path| path.usable() && !path.backup);
        let path = view
            .paths
            .iter()
            .filter(|path| path.usable() && !(ordinary && path.backup))
            .filter(|path| path.id == asking || path.free_packets() > 0 || path.bytes_in_flight > 0)
            .min_by(|a, b| {
                arrival(a).total_cmp(&arrival(b)).then((a.id != asking).cmp(&(b.id != asking)))
            })?;
        let work = first_in_need(view, planned, &mut handed, path.slot)?;
        if path.id == asking {
            return Some((cut, work));
        }
        cut += u32::from(work == Work::Fresh);
        given[usize::from(path.slot)] += 1;
    }
}

fn bounded(spec: &str) -> Box<dyn RedundancyPolicy> {
    redundancy::build(&spec.parse().unwrap()).unwrap()
}

fn state(paths: Vec<PathView>, blocks: Vec<BlockView>, symbols: u32) -> State {
    let redundancy = bounded("delta-complete");
    State { paths, blocks, symbols, class: TrafficClass::Bulk, beyond: 0, redundancy }
}

/// A path with a window of which `flying` packets are in use.
fn used(id: u32, window: u64, flying: u64, rtt: u64, p: f64) -> PathView {
    let mut path = path(id, window, rtt);
    path.bytes_in_flight = flying * path.packet_size;
    path.rto = Duration::from_millis(rtt + 100);
    path.loss.mean = p;
    path.oldest_unacked = (flying > 0).then(|| MOMENT - Duration::from_millis(rtt / 2));
    path
}

#[test]
fn a_slow_path_is_given_what_comes_after_the_quick_ones_share() {
    // While a packet crosses the slow path, the quick path sends a window of four when its packets
    // in flight are acknowledged (10 ms from now), and another every 20 ms from then on. Its fifth
    // window would arrive at 100 ms.
    let paths = vec![used(0, 4, 4, 20, 0.0), used(1, 9, 0, 200, 0.0)];
    let open = BlockView { id: BlockId(7), planned: 10, sources: 3, in_flight: 3, ..block(7, 0) };
    let open = BlockView { closed: false, in_flight_on: on(0, 3), ..open };
    let state = state(paths, vec![open], 1000);
    assert_eq!(state.picks("expected-arrival", 0), [(Work::Fresh, 1)]);
    // Windows that arrive at 20, 40, 60 and 80 ms come before 100 ms; at 100 ms, the asking path
    // comes first.
    assert_eq!(state.picks("expected-arrival", 1), [(Work::Ahead, 16), (Work::Fresh, 1)]);
    assert_eq!(state.picks("expected-arrival:scheduling=off", 1), [(Work::Fresh, 1)]);
}

fn on(slot: usize, symbols: u16) -> [u16; MAX_PATHS] {
    core::array::from_fn(|i| if i == slot { symbols } else { 0 })
}

#[test]
fn a_path_that_leaves_a_message_to_a_quicker_one_goes_on_with_bulk() {
    // The quick path's window is full for another 10 ms.
    let paths = vec![used(0, 4, 4, 20, 0.0), used(1, 9, 0, 200, 0.0)];
    let open = BlockView { id: BlockId(7), planned: 10, sources: 3, in_flight: 3, ..block(7, 0) };
    let open = BlockView { closed: false, in_flight_on: on(0, 3), ..open };
    let mut state = state(paths, vec![open], 1);
    (state.class, state.beyond) = (TrafficClass::Interactive, 1000);
    // The message is cut for any path that asks, and then the slow path asks again.
    assert_eq!(state.picks("expected-arrival", 1), [(Work::Ahead, 1)]);
    state.blocks[0].closed = true;
    let message = BlockView { sources: 1, due: 1, planned: 10, ..block(8, 1) };
    state.blocks.push(BlockView { class: TrafficClass::Interactive, ..message });
    (state.class, state.symbols, state.beyond) = (TrafficClass::Bulk, 1000, 0);
    assert_eq!(state.picks("expected-arrival", 1), [(Work::Ahead, 15), (Work::Fresh, 1)]);
    // Symbols of the older block are due too, but the message comes first.
    state.blocks[0].due = 7;
    assert_eq!(state.picks("expected-arrival", 0), [(Work::Repair(BlockId(8)), 1)]);
}

#[test]
fn complete_blocks_get_nothing_though_something_is_due() {
    let flying = |id, due| BlockView { in_flight: 10, in_flight_on: on(0, 10), ..block(id, due) };
    let paths = vec![used(0, 40, 20, 20, 0.0)];
    let blocks = vec![flying(0, 3), BlockView { proactive_left: 2, ..flying(1, 0) }, block(2, 0)];
    let mut state = state(paths, blocks, 0);
    assert_eq!(state.picks("expected-arrival", 0), [(Work::Repair(BlockId(2)), 1)]);
    // All of ten packets arrive with a chance of .904 at 1 % loss.
    state.paths[0].loss.mean = 0.01;
    assert_eq!(state.picks("expected-arrival", 0), [(Work::Repair(BlockId(0)), 1)]);
    state.blocks.pop();
    state.paths[0].loss.mean = 0.0;
    assert_eq!(state.picks("expected-arrival", 0), []);
}

#[test]
fn no_more_blocks_are_opened_than_may_be_pending() {
    let complete = |id| BlockView { in_flight: 10, in_flight_on: on(0, 10), ..block(id, 0) };
    let blocks = |count| (0..count).map(complete).collect();
    let all = |count| state(vec![used(0, 2000, 1300, 20, 0.0)], blocks(count), 9);
    assert_eq!(all(126).picks("expected-arrival", 0), [(Work::Fresh, 1)]);
    assert_eq!(all(127).picks("expected-arrival", 0), []);
    assert_eq!(all(2).picks("expected-arrival:pending=3", 0), [(Work::Fresh, 1)]);
    assert_eq!(all(3).picks("expected-arrival:pending=3", 0), []);
}

#[test]
fn without_repairs_lost_symbols_go_where_they_arrive_first() {
    let paths = [used(0, 10, 2, 20, 0.0), used(1, 10, 0, 200, 0.0)];
    let flying = BlockView { in_flight: 10, in_flight_on: on(0, 10), ..block(0, 0) };
    let lost = BlockView { in_flight: 6, in_flight_on: on(0, 6), due: 4, ..block(1, 0) };
    let blocks = [flying, lost];
    // Nothing is added for possible losses.
    let pulls = pulls("expected-arrival", &view(&paths, &blocks, 0));
    assert_eq!(pulls, [of(1), None]);
}

#[test]
fn a_path_for_which_nothing_is_expected_holds_up_no_other() {
    // The quick path admits nothing and has nothing in flight.
    let paths = vec![used(0, 0, 0, 20, 0.0), used(1, 10, 0, 200, 0.0)];
    let state = state(paths, vec![block(0, 0)], 5);
    assert_eq!(state.picks("expected-arrival", 1), [(Work::Repair(BlockId(0)), 1)]);
}

fn any_loss() -> impl Strategy<Value = f64> {
    prop_oneof![6 => 0.0..0.6_f64, 1 => Just(0.0), 1 => Just(1.0), 1 => Just(f64::NAN)]
}

fn any_path() -> impl Strategy<Value = PathView> {
    let windows = (prop_oneof![9 => 1..40_u64, 1 => Just(0)], 0..50_u64);
    let times = (0..300_u64, 0..1000_u64, prop_oneof![9 => 0..400_u64, 1 => 5000..9000_u64]);
    let states = prop_oneof![8 => Just(PathState::Active), 1 => Just(PathState::Suspect)];
    (windows, times, any_loss(), states, prop::bool::weighted(0.1)).prop_map(
        |((window, flying), (rtt, rto, age), p, state, backup)| {
            let mut path = used(0, window, flying, rtt, p);
            path.rto = Duration::from_millis(rto);
            path.oldest_unacked = (flying > 0).then(|| MOMENT - Duration::from_millis(age));
            PathView { state, backup, ..path }
        },
    )
}

fn any_block() -> impl Strategy<Value = BlockView> {
    let counts = proptest::collection::vec(0..6_u16, MAX_PATHS);
    (1..30_u16, 0..30_u16, 0..3_u16, 0..3_u16, counts, any_class()).prop_map(
        |(sources, received, due, proactive_left, counts, class)| {
            let received = received.min(sources);
            let mut block = BlockView { sources, planned: sources, received, ..block(0, 0) };
            block.class = class;
            let mut left = (sources + 3 - received).min(20);
            for (slot, count) in counts.into_iter().enumerate() {
                block.in_flight_on[slot] = count.min(left);
                left -= count.min(left);
            }
            block.in_flight = block.in_flight_on.iter().sum();
            BlockView { due, proactive_left, ..block }
        },
    )
}

fn any_class() -> impl Strategy<Value = TrafficClass> {
    prop_oneof![4 => Just(TrafficClass::Bulk), 1 => Just(TrafficClass::Live), 1 => Just(TrafficClass::Interactive)]
}

fn any_state() -> impl Strategy<Value = State> {
    let specs = prop_oneof![
        Just("delta-complete"),
        Just("delta-complete:append=2"),
        Just("delta-complete:failure=0.4"),
        Just("mean-sigma:round=lit"),
        Just("none"),
    ];
    let paths = proptest::collection::vec(any_path(), 1..9);
    let blocks = proptest::collection::vec(any_block(), 0..6);
    let fresh = (0..200_u32, any_class(), 0..200_u32);
    (paths, blocks, fresh, 0..6_u16, specs).prop_map(
        |(mut paths, mut blocks, (symbols, class, beyond), open, spec)| {
            for (id, path) in paths.iter_mut().enumerate() {
                (path.id, path.slot) = (PathId(id as u32), id as u8);
            }
            for (id, block) in blocks.iter_mut().enumerate() {
                block.id = BlockId(id as u64);
            }
            if let Some(last) = blocks.last_mut().filter(|_| open > 0) {
                (last.closed, last.planned) = (false, last.sources + open);
            }
            // The next symbols are of the most urgent class that has any.
            let behind = symbols > 0 && class != TrafficClass::Bulk;
            let beyond = if behind { beyond } else { 0 };
            State { paths, blocks, symbols, class, beyond, redundancy: bounded(spec) }
        },
    )
}

impl core::fmt::Debug for State {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:?} {:?}\n{:#?}\n{:#?}", self.redundancy, self.symbols, self.paths, self.blocks)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn the_picks_are_those_of_the_plain_form(state in any_state()) {
        for path in state.paths.iter().filter(|path| path.usable()) {
            let backup = path.backup && state.paths.iter().any(|path| path.usable() && !path.backup);
            let expected = if backup { None } else { state.look(|view| plain(path.id, view)) };
            let expected: Vec<(Work, u16)> = match expected {
                None => vec![],
                Some((0, work)) | Some((_, work @ Work::Repair(_))) => vec![(work, 1)],
                Some((cut, _)) if state.beyond > 0 && cut >= state.symbols => {
                    vec![(Work::Ahead, state.symbols as u16)]
                }
                Some((cut, Work::Ahead)) => vec![(Work::Ahead, cut as u16)],
                Some((cut, work)) => vec![(Work::Ahead, cut as u16), (work, 1)],
            };
            prop_assert_eq!(state.picks("expected-arrival", path.id.0), expected, "path {}", path.id.0);
        }
    }

    /// In any state, if symbols are needed, a path sends, or a full path has packets in flight for
    /// whose fate the others wait.
    #[test]
    fn the_paths_do_not_wait_for_one_another(state in any_state()) {
        let usable = || state.paths.iter().filter(|path| path.usable());
        let ordinary = usable().any(|path| !path.backup);
        let carriers = || usable().filter(move |path| !(ordinary && path.backup));
        let asking = || carriers().filter(|path| path.free_packets() > 0);
        let wanted = asking().any(|path| !state.picks("expected-arrival:scheduling=off", path.id.0).is_empty());
        let sends = asking().any(|path| !state.picks("expected-arrival", path.id.0).is_empty());
        let flying = carriers().any(|path| path.free_packets() == 0 && path.bytes_in_flight > 0);
        prop_assert!(!wanted || sends || flying);
    }

    /// Theorem 2: symbols that path i has lost do not move to a path that is expected to deliver
    /// later, if i has window for them.
    #[test]
    fn losses_do_not_move_to_worse_paths(
        mut state in any_state(),
        lost in 1..5_u16,
    ) {
        // The first block has lost symbols on path 0, which has room for all symbols that the block
        // needs.
        let class = TrafficClass::Interactive;
        let head = BlockView { id: BlockId(0), due: lost, class, ..block(0, 0) };
        let head = BlockView { received: 10 - lost, planned: 10, carried_on: 1, lost_on: 1, ..head };
        state.blocks.insert(0, head);
        for (id, block) in state.blocks.iter_mut().enumerate() {
            block.id = BlockId(id as u64);
        }
        let own = &mut state.paths[0];
        (own.state, own.backup) = (PathState::Active, false);
        own.cwnd = own.bytes_in_flight + 200 * own.packet_size;
        let own = delivery(&state.paths[0]);
        for path in state.paths.iter().filter(|path| path.usable() && delivery(path) > own) {
            let picks = state.picks("expected-arrival", path.id.0);
            prop_assert!(!picks.contains(&(Work::Repair(BlockId(0)), 1)), "{:?}", picks);
        }
    }

    /// Lemma 1: if EDT₂/EDT₁ is more than (3 − p₁)/(1 + p₁), losses of path 2 go to path 1, even if
    /// its window is full. As in the paper, the RTO equals the RTT. At most a window of path 1 is
    /// lost.
    #[test]
    fn losses_move_to_a_path_that_is_much_better(
        window in 4..40_u64,
        flying in 0..60_u64,
        age in 0..2000_u64,
        (p1, p2) in (0.0..0.5_f64, 0.0..0.9_f64),
        (r1, r2) in (10..500_u64, 10..5000_u64),
        lost in 1..3_u16,
    ) {
        let mut paths = vec![used(0, window, flying, r1, p1), used(1, 30, 0, r2, p2)];
        for path in &mut paths {
            path.rto = path.rtt.smoothed;
        }
        paths[0].oldest_unacked = (flying > 0).then(|| MOMENT - Duration::from_millis(age));
        let m = delivery(&paths[1]) / delivery(&paths[0]);
        prop_assume!(m > crate::analysis::fountain::move_threshold(p1) && (flying > 0 || window > 0));
        let head = BlockView { received: 10 - lost, due: lost, lost_on: 2, ..block(0, 0) };
        let mut state = state(paths, vec![head], 0);
        state.redundancy = bounded("delta-complete:append=0");
        prop_assert_eq!(state.picks("expected-arrival", 1), []);
    }
}
