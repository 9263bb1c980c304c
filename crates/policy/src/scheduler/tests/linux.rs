//! Linux's own scheduler, in cases computed by hand.

use super::*;

/// A path with this window in packets, RTT in ms, and numbers of packets of 1000 bytes in flight
/// and queued.
fn holding(id: u32, window: u64, rtt: u64, in_flight: u64, queued: u64) -> PathView {
    let mut path = path(id, window, rtt);
    let size = 1000;
    (path.packet_size, path.cwnd, path.ssthresh) = (size, window * size, size);
    (path.bytes_in_flight, path.bytes_queued) = (in_flight * size, queued * size);
    path
}

/// The path to which a pull of path 0 gives new data, and how many symbols.
fn given(scheduler: &mut dyn Scheduler, paths: &[PathView], symbols: u32) -> Option<(u32, u16)> {
    let view = view(paths, &[], symbols);
    let mut picks = Vec::new();
    let answer = scheduler.pull(PathId(0), &view, &mut picks);
    assert_eq!(matches!(answer, Pull::Send(_)), !picks.is_empty());
    picks.first().map(|pick| (pick.path.0, pick.count))
}

#[test]
fn a_burst_goes_to_the_path_that_empties_first() {
    // Rates are 1.2 · cwnd/RTT. Each case has path 0 and path 1 by window, RTT, packets in flight
    // and queued; the number of waiting symbols; and the path that gets symbols, with their number.
    for (first, second, symbols, expected) in [
        // No path holds anything: the first path gets all symbols, whatever its RTT.
        ((40, 100, 0, 0), (40, 10, 0, 0), 9, Some((0, 9))),
        // 20 kB at 480 kB/s take 42 ms; 40 kB at 4.8 MB/s take 8 ms: path 1 gets a burst of 64 KiB
        // although its window is full.
        ((40, 100, 20, 0), (40, 10, 40, 0), 99, Some((1, 66))),
        // 232 packets, 8 fewer than six windows, take 48 ms at 4.8 MB/s; 40 kB at 480 kB/s take 83
        // ms.
        ((40, 100, 40, 0), (40, 10, 40, 192), 99, Some((1, 8))),
        // With six windows, path 1's buffer is full, but at 50 ms it is still the first to empty:
        // no path gets anything.
        ((40, 100, 40, 0), (40, 10, 40, 200), 99, None),
        // 20 kB at 480 kB/s take 42 ms: now the slow path is first.
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
    // Both paths have 1.2 MB/s at first. The mean does not change if the rate does not.
    let mut paths = [holding(0, 100, 100, 10, 0), holding(1, 100, 100, 20, 0)];
    assert_eq!(given(scheduler, &paths, 10), Some((0, 10)));
    // Path 0 falls to a tenth of its rate. The data that it holds takes 8 ms at the old mean; after
    // one burst 15 ms, at the mean of 10 kB at 1.2 MB/s and 10 kB at .12 MB/s; after the next burst
    // 26 ms. Path 1 takes 17 ms.
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
    // A symbol that is due again although path 1 has it goes, before new data, to path 0 only if
    // that holds nothing, or if path 1 is not usable.
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
