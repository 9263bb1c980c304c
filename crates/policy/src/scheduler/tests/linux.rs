//! Linux's own scheduler, in cases worked out by hand.

use super::*;

/// A path with this window in packets, RTT in ms, and packets of 1000 bytes in flight and queued.
fn holding(id: u32, window: u64, rtt: u64, in_flight: u64, queued: u64) -> PathView {
    let mut path = path(id, window, rtt);
    let size = 1000;
    (path.packet_size, path.cwnd, path.ssthresh) = (size, window * size, size);
    (path.bytes_in_flight, path.bytes_queued) = (in_flight * size, queued * size);
    path
}

/// To whom a pull of path 0 gives new data, and how many symbols.
fn given(scheduler: &mut dyn Scheduler, paths: &[PathView], symbols: u32) -> Option<(u32, u16)> {
    let view = view(paths, &[], symbols);
    let mut picks = Vec::new();
    let answer = scheduler.pull(PathId(0), &view, &mut picks);
    assert_eq!(matches!(answer, Pull::Send(_)), !picks.is_empty());
    picks.first().map(|pick| (pick.path.0, pick.count))
}

#[test]
fn a_burst_goes_to_the_path_that_empties_first() {
    // Rates 1.2 · cwnd/RTT. Path 0 and path 1 by window, RTT, in flight, queued; symbols that wait; the path that
    // gets symbols, and how many.
    for (first, second, symbols, expected) in [
        // Nothing held: the first of equals, whatever its RTT, with as much as there is.
        ((40, 100, 0, 0), (40, 10, 0, 0), 9, Some((0, 9))),
        // 20 kB at 480 kB/s are 42 ms; 40 kB at 4.8 MB/s are 8 ms: a burst of 64 KiB ahead of a window that is full.
        ((40, 100, 20, 0), (40, 10, 40, 0), 99, Some((1, 66))),
        // 232 packets at 4.8 MB/s are 48 ms, 8 short of six windows; 40 kB at 480 kB/s are 83 ms.
        ((40, 100, 40, 0), (40, 10, 40, 192), 99, Some((1, 8))),
        // With six windows the buffer is full, though at 50 ms still the first to empty: no path is given anything.
        ((40, 100, 40, 0), (40, 10, 40, 200), 99, None),
        // 20 kB at 480 kB/s are 42 ms: now the slow path is first.
        ((40, 100, 20, 0), (40, 10, 40, 200), 99, Some((0, 66))),
        // A window of 2 packets has a buffer for six windows of ten.
        ((2, 10, 2, 56), (40, 100, 40, 200), 99, Some((0, 2))),
    ] {
        let paths = [first, second].map(|(w, rtt, flying, queued)| (w, rtt, flying, queued));
        let paths: Vec<_> =
            (0..).zip(paths).map(|(id, (w, r, f, q))| holding(id, w, r, f, q)).collect();
        let scheduler = &mut *scheduler("linux");
        assert_eq!(given(scheduler, &paths, symbols), expected, "{first:?} {second:?}");
    }
}

#[test]
fn rates_are_remembered_by_the_bytes_under_them() {
    let scheduler = &mut *scheduler("linux");
    // 1.2 MB/s and 1.2 MB/s at first: the mean stays when nothing is held but the burst itself.
    let mut paths = [holding(0, 100, 100, 10, 0), holding(1, 100, 100, 20, 0)];
    assert_eq!(given(scheduler, &paths, 10), Some((0, 10)));
    // Path 0 falls to a tenth of its rate. What it holds takes 8 ms by the mean before that; 15 ms by the mean of 10 kB
    // at 1.2 MB/s and as much at .12, once a burst has gone there; 26 ms after the next. Path 1 takes 17 ms.
    paths[0].cwnd = 10_000;
    assert_eq!(given(scheduler, &paths, 10), Some((0, 10)));
    assert_eq!(given(scheduler, &paths, 10), Some((0, 10)));
    assert_eq!(given(scheduler, &paths, 10), Some((1, 10)));
}

#[test]
fn backups_and_idle_paths() {
    let mut paths = [holding(0, 40, 10, 0, 0), holding(1, 40, 10, 0, 0)];
    paths[0].backup = true;
    assert_eq!(given(&mut *scheduler("linux"), &paths, 9), None, "not while another works");
    paths[1].state = PathState::Suspect;
    assert_eq!(given(&mut *scheduler("linux"), &paths, 9), Some((0, 9)));
    // A symbol that is due again though path 1 has it goes to a path with nothing under way, before new data; if path
    // 1 is not usable, it goes there anyway.
    let due = Work::Block(BlockId(3));
    for (in_flight, queued, state, expected) in [
        (0, 0, PathState::Active, due),
        (1, 0, PathState::Active, Work::Fresh),
        (0, 1, PathState::Active, Work::Fresh),
        (1, 0, PathState::Suspect, due),
    ] {
        let mut blocks = [BlockView { due: 1, sources: 1, planned: 1, ..block(3, 0) }];
        blocks[0].queued_on[1] = 1;
        let paths = [
            holding(0, 40, 10, in_flight, queued),
            PathView { state, ..holding(1, 40, 10, 40, 40) },
        ];
        let view = view(&paths, &blocks, 9);
        let mut picks = Vec::new();
        scheduler("linux").pull(PathId(0), &view, &mut picks);
        assert_eq!(picks[0].work, expected, "{in_flight} in flight, {queued} queued");
    }
}
