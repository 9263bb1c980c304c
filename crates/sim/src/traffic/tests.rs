use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn started(traffic: Traffic) -> Source {
    let mut source = Source::new(traffic, 1, "x");
    source.start(Time::ZERO);
    source
}

/// Runs a source for this many seconds, and calls `each` after every event.
fn run(source: &mut Source, seconds: u64, mut each: impl FnMut(&mut Source, Time)) {
    while let Some(next) = source.next_event().filter(|next| *next <= Time::from_secs(seconds)) {
        source.handle(next);
        each(source, next);
    }
}

#[test]
fn bulk_is_one_transfer_without_end() {
    let mut source = started(Traffic::Bulk);
    let transfer = Transfer { number: 0, bytes: None, opened: Time::ZERO };
    assert_eq!(source.next_transfer(), Some(transfer));
    assert_eq!((source.next_transfer(), source.offered()), (None, u64::MAX));
    assert!(!source.is_done() && source.next_event().is_none());
}

#[test]
fn transfers_follow_each_other() {
    let mut source = started(Traffic::Transfers { size: 5, repeat: 2 });
    assert_eq!(source.next_transfer().map(|transfer| transfer.bytes), Some(Some(5)));
    assert_eq!(source.next_transfer(), None);
    source.complete(Time::from_secs(3));
    let second = Transfer { number: 1, bytes: Some(5), opened: Time::from_secs(3) };
    assert_eq!(source.next_transfer(), Some(second));
    assert!(!source.is_done());
    source.complete(Time::from_secs(4));
    assert_eq!(source.next_transfer(), None);
    assert!(source.is_done());
}

#[test]
fn poisson_transfers_come_at_their_rate_and_pile_up() {
    let mut source = started(Traffic::Poisson { size: 7, interval: SECOND / 10 });
    let mut times = Vec::new();
    run(&mut source, 1000, |source, now| {
        let transfer = source.next_transfer().unwrap();
        assert_eq!((transfer.opened, transfer.bytes), (now, Some(7)));
        times.push(now);
    });
    // 10 000 transfers are expected; five standard deviations are 500.
    assert!((9500..10_500).contains(&times.len()), "{}", times.len());
    // The gaps of a Poisson process have a standard deviation equal to their mean.
    let gaps: Vec<f64> =
        times.windows(2).map(|pair| pair[1].since(pair[0]).as_secs_f64()).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let square = gaps.iter().map(|gap| gap * gap).sum::<f64>() / gaps.len() as f64;
    assert!((square / (mean * mean) - 2.0).abs() < 0.2, "{}", square / (mean * mean));
}

#[test]
fn an_on_off_source_keeps_to_its_rate_and_its_shares() {
    let rate = Bitrate::from_mbps(2.0);
    let (on, off) = (SECOND / 2, SECOND / 4);
    let mut source = started(Traffic::OnOff { on, off, rate: Some(rate) });
    let mut bytes = 0;
    run(&mut source, 1000, |source, _| {
        bytes += source.offered();
        source.take(source.offered());
    });
    // The source sends at 250 000 B/s for two thirds of the time. With about 1333 cycles, the
    // standard deviation is about 3 %.
    let expected = 1000.0 * 250_000.0 * 2.0 / 3.0;
    assert!((bytes as f64 / expected - 1.0).abs() < 0.1, "{bytes}");
}

#[test]
fn an_on_off_source_without_a_rate_offers_all_or_nothing() {
    let mut source = started(Traffic::OnOff { on: SECOND, off: SECOND, rate: None });
    let mut seen = Vec::new();
    run(&mut source, 20, |source, _| {
        source.take(1000);
        seen.push(source.offered());
    });
    assert!(seen.len() > 5);
    let alternating =
        |(at, offered): (usize, &u64)| *offered == if at % 2 == 0 { u64::MAX } else { 0 };
    assert!(seen.iter().enumerate().all(alternating), "{seen:?}");
}

#[test]
fn start_jitter_stays_in_its_bounds() {
    let mut source = Source::new(Traffic::Bulk, 1, "x");
    let draws: Vec<Duration> = (0..1000).map(|_| source.start_jitter(SECOND)).collect();
    assert!(draws.iter().all(|draw| *draw <= SECOND));
    assert!(draws.iter().any(|draw| *draw > SECOND * 9 / 10));
    assert_eq!(source.start_jitter(Duration::ZERO), Duration::ZERO);
}
