//! Applications over two or three paths in virtual time.

mod random;

use anabranch_policy::congestion;
use anabranch_types::{Rng, Time};

use super::*;
use crate::config::{PersistTimer, WindowUpdates};
use crate::segment::{Flags, Segment};
use crate::testing::Underway;

/// One path with its rate, one-way delay, and loss of data and of acknowledgements. Its queue holds
/// 50 packets.
#[derive(Clone, Copy, Debug)]
struct Path {
    kbps: u64,
    delay: Duration,
    loss: f64,
    ack_loss: f64,
    busy_until: Time,
    /// Nothing passes in either direction from the first time to the second.
    dark: (Time, Time),
}

fn path(kbps: u64, delay_ms: u64) -> Path {
    let delay = Duration::from_millis(delay_ms);
    let dark = (Time::MAX, Time::MAX);
    Path { kbps, delay, loss: 0.0, ack_loss: 0.0, busy_until: Time::ZERO, dark }
}

impl Path {
    fn is_dark(&self, now: Time) -> bool {
        now >= self.dark.0 && now < self.dark.1
    }

    fn service(&self, segment: &Segment) -> Duration {
        Duration::from_nanos(u64::from(segment.len + 60) * 8_000_000 / self.kbps)
    }
}

/// The applications and the paths between them.
struct Run {
    sender: StripingSender,
    receiver: StripingReceiver,
    paths: Vec<Path>,
    rng: Rng,
    underway: Underway,
    now: Time,
    /// For each path, when data was last sent, and the longest time without sending.
    sent: Vec<(Time, Duration)>,
}

impl Run {
    fn new(config: &StripingConfig, connection: &Config, paths: &[Path], seed: u64) -> Self {
        let control = "reno:initial=2".parse().expect("a policy");
        let controller =
            |_| congestion::build(&control, u64::from(connection.mss)).expect("a controller");
        let controllers = (0..paths.len()).map(controller).collect();
        Run {
            sender: StripingSender::new(config, connection, controllers),
            receiver: StripingReceiver::new(config, connection, paths.len()),
            paths: paths.to_vec(),
            rng: Rng::new(seed),
            underway: Underway::default(),
            now: Time::ZERO,
            sent: vec![(Time::ZERO, Duration::ZERO); paths.len()],
        }
    }

    fn post(&mut self, at: Time, to_receiver: bool, index: usize, segment: Segment) {
        self.underway.post(at, (to_receiver, index, segment));
    }

    fn drain(&mut self) {
        while let Some((index, segment)) = self.sender.poll_transmit(self.now) {
            if segment.len > 0 {
                let (last, pause) = &mut self.sent[index];
                *pause = (*pause).max(self.now.since(*last));
                *last = self.now;
            }
            let path = &mut self.paths[index];
            let service = path.service(&segment);
            if path.is_dark(self.now) || path.busy_until.since(self.now) > 50 * service {
                continue;
            }
            path.busy_until = path.busy_until.max(self.now) + service;
            let (at, loss) = (path.busy_until + path.delay, path.loss);
            if !self.rng.chance(loss) {
                self.post(at, true, index, segment);
            }
        }
        while let Some((index, segment)) = self.receiver.poll_transmit(self.now) {
            let path = self.paths[index];
            if !path.is_dark(self.now) && !self.rng.chance(path.ack_loss) {
                self.post(self.now + path.delay, false, index, segment);
            }
        }
    }

    /// Sends all segments that may leave, then processes the next event. Returns false if there is
    /// none.
    fn step(&mut self) -> bool {
        self.drain();
        let timers = [self.sender.next_timeout(), self.receiver.next_timeout()];
        match self.underway.step(&mut self.now, timers) {
            None => return false,
            Some(None) => {}
            Some(Some((true, index, segment))) => {
                self.receiver.handle_segment(self.now, index, &segment, false);
            }
            Some(Some((false, index, segment))) => {
                self.sender.handle_segment(self.now, index, &segment);
            }
        }
        self.sender.handle_timeout(self.now);
        self.receiver.handle_timeout(self.now);
        true
    }

    /// Processes all events before `end`.
    fn run_until(&mut self, end: Time) {
        while self.now < end && self.step() {}
        self.drain();
    }

    /// Sends `bytes`, and waits until they are acknowledged. Returns the seconds it took.
    fn transfer(&mut self, bytes: u64) -> f64 {
        assert_eq!(self.sender.write(bytes), bytes);
        self.sender.finish();
        for _ in 0..3_000_000 {
            if self.sender.is_drained() {
                return self.now.as_secs_f64();
            }
            assert!(self.step(), "nothing will ever happen");
        }
        panic!("stuck at {} of {bytes}", self.sender.acknowledged());
    }

    /// Rate of delivery between `from` and `to`, Mb/s, while the application always has more to
    /// send.
    fn goodput(&mut self, from: Time, to: Time) -> f64 {
        self.sender.write(1 << 50);
        self.run_until(from);
        let before = self.receiver.delivered();
        self.run_until(to);
        (self.receiver.delivered() - before) as f64 * 8e-6 / to.since(from).as_secs_f64()
    }

    fn persist(&self, index: usize) -> (f64, u64) {
        let sender = self.sender.socket(index).expect("it exists");
        (sender.persist_time(self.now).as_secs_f64(), sender.statistics().window_probes)
    }
}

/// A connection of the paper: buffers of 64 KB on each side, and the paper's persist timer.
fn connection() -> Config {
    let (initial, most) = (Duration::from_secs(5), Duration::from_secs(60));
    let persist = Some(PersistTimer { initial, most });
    let timers = crate::TimerConfig { persist, ..crate::TimerConfig::default() };
    let (receive_buffer, send_buffer) = (65_536, 65_536);
    Config { mss: 1000, timers, receive_buffer, send_buffer, ..Config::default() }
}

fn unaware() -> StripingConfig {
    StripingConfig::new(Striping::UntilFull)
}

fn smart(source: RateSource) -> StripingConfig {
    let interval = Duration::from_secs(10);
    StripingConfig::new(Striping::ByRate(Estimate { interval, source, within_buffers: false }))
}

/// The smart application, which is told these rates at the start.
fn told(kbps: &[u64]) -> StripingConfig {
    let rates = kbps.iter().map(|rate| Bitrate::from_bps(rate * 1000)).collect();
    smart(RateSource::Told(Arc::new(vec![rates])))
}

fn s(seconds: u64) -> Time {
    Time::from_secs(seconds)
}

/// The two paths of the paper's figure 7; the second is `ratio` times as fast as the first.
fn pipes(ratio: u64) -> [Path; 2] {
    [path(500, 200), path(500 * ratio, 50)]
}

#[test]
fn equal_paths_add_up_for_both() {
    for config in [unaware(), told(&[1, 1])] {
        let paths = [path(2000, 50), path(2000, 50)];
        let mut run = Run::new(&config, &connection(), &paths, 1);
        let mbps = run.goodput(s(5), s(60));
        assert!((3.5..3.85).contains(&mbps), "{mbps} of 4 Mb/s");
    }
}

#[test]
fn the_unaware_application_stays_at_its_slow_path_and_the_smart_one_does_not() {
    let goodput =
        |config, ratio| Run::new(&config, &connection(), &pipes(ratio), 1).goodput(s(10), s(100));
    let (two, six, ten) = (goodput(unaware(), 2), goodput(unaware(), 6), goodput(unaware(), 10));
    assert!((1.2..1.5).contains(&two), "{two}");
    assert!((six - two).abs() < 0.3 && (ten - six).abs() < 0.1, "{two}, {six}, {ten}");
    let smart = goodput(told(&[500, 3000]), 6);
    assert!((3.1..3.5).contains(&smart), "{smart} of 3.5 Mb/s");
}

#[test]
fn room_beyond_the_gap_lets_the_fast_path_go_on() {
    let goodput = |config: &StripingConfig| {
        Run::new(config, &connection(), &pipes(6), 1).goodput(s(10), s(100))
    };
    let plain = goodput(&unaware());
    let receive = Some(6 * 65_536);
    let buffers = vec![SocketBuffers::default(), SocketBuffers { receive, send: None }];
    let larger = goodput(&StripingConfig { buffers, ..unaware() });
    let resequencing = goodput(&StripingConfig { resequencing_buffer: 5 * 65_536, ..unaware() });
    assert!(plain < 2.0 && larger > 3.0 && resequencing > 3.0, "{plain}, {larger}, {resequencing}");
}

#[test]
fn a_dark_path_stalls_the_smart_application() {
    let mut paths = [path(2000, 200), path(5000, 50)];
    paths[0].dark = (s(25), s(50));
    let mut run = Run::new(&told(&[2000, 5000]), &connection(), &paths, 1);
    run.goodput(s(10), s(24));
    run.sent[1] = (run.now, Duration::ZERO);
    run.goodput(s(30), s(70));
    // The pause begins shortly after the outage begins. It lasts until the outage is over and the
    // timer has fired.
    let pause = run.sent[1].1.as_secs_f64();
    assert!((24.0..40.0).contains(&pause), "{pause}");
}

#[test]
fn a_window_update_that_is_lost_costs_a_persist_interval() {
    let goodput = |window_updates, ack_loss| {
        let mut paths = pipes(6);
        paths[1].ack_loss = ack_loss;
        let connection = Config { window_updates, ..connection() };
        let mut run = Run::new(&unaware(), &connection, &paths, 1);
        (run.goodput(s(10), s(400)), run.persist(1))
    };
    let (clean, (time, probes)) = goodput(WindowUpdates::Opening, 0.0);
    assert_eq!(probes, 0);
    assert!(time > 2.0, "it waited for windows for {time} s");
    // If each step of the window is announced, the next update makes up for a lost one.
    let (repeated, _) = goodput(WindowUpdates::Each, 0.3);
    let (single, (_, probes)) = goodput(WindowUpdates::Opening, 0.3);
    assert!(repeated > 0.9 * clean, "{repeated} after {clean}");
    assert!(single < 0.7 * clean && probes > 10, "{single} after {clean}, {probes} probes");
}

#[test]
fn windows_tell_the_rates_but_what_was_acknowledged_only_tells_what_was_given() {
    let goodput =
        |source| Run::new(&smart(source), &connection(), &pipes(6), 1).goodput(s(60), s(160));
    let (windows, acknowledged) = (goodput(RateSource::Window), goodput(RateSource::Acknowledged));
    assert!(windows > 2.6, "{windows} of 3.5 Mb/s");
    // The application begins with equal shares, and its measurements confirm them.
    assert!((0.9..1.1).contains(&acknowledged), "{acknowledged}");
}

#[test]
fn a_rate_may_count_only_as_far_as_the_buffers_let_it_be_used() {
    // The first path can use half of its 2 Mb/s: 65 kB in 520 ms. The second gets packets in the
    // ratio of the rates.
    let paths = [path(2000, 260), path(2000, 50)];
    let goodput = |within_buffers| {
        let told = told(&[2000, 2000]);
        let Striping::ByRate(estimate) = told.striping else { panic!("it is told rates") };
        let striping = Striping::ByRate(Estimate { within_buffers, ..estimate });
        let config = StripingConfig { striping, resequencing_buffer: 1 << 20, ..unaware() };
        Run::new(&config, &connection(), &paths, 1).goodput(s(10), s(100))
    };
    let (equal, in_ratio) = (goodput(false), goodput(true));
    assert!((1.8..2.1).contains(&equal), "{equal}");
    assert!((2.7..3.0).contains(&in_ratio), "{in_ratio} of 3 Mb/s");
}

#[test]
fn a_socket_that_was_full_is_written_to_again_at_its_low_water_mark() {
    let config = Config { handshake: false, send_buffer: 10_000, ..connection() };
    let application = StripingConfig { low_water: 4000, ..unaware() };
    let mut run = Run::new(&application, &config, &[path(500, 10)], 1);
    run.sender.write(1 << 20);
    let mut acknowledge = |upto: u64| {
        let ack = Segment { flags: Flags::ACK, ack: upto, window: 65_000, ..Segment::EMPTY };
        run.sender.handle_segment(Time::from_millis(upto), 0, &ack);
        while run.sender.poll_transmit(Time::from_millis(upto)).is_some() {}
        run.sender.socket(0).expect("it exists").written()
    };
    assert_eq!(
        [0, 1000, 3000, 4000, 5000].map(&mut acknowledge),
        [10_000, 10_000, 10_000, 14_000, 14_000]
    );
}

#[test]
fn a_segment_carries_one_packet_and_its_sequence_number() {
    let config = Config { handshake: false, timestamps: false, ..connection() };
    let mut run = Run::new(&unaware(), &config, &[path(500, 10), path(500, 10)], 1);
    run.sender.write(131_500);
    run.sender.finish();
    let leaving = |run: &mut Run, now| -> Vec<(usize, u64, u32)> {
        core::iter::from_fn(|| run.sender.poll_transmit(now))
            .inspect(|(_, segment)| assert!(segment.flags.has(Flags::MAPPED)))
            .map(|(path, segment)| (path, segment.data, segment.len))
            .collect()
    };
    // A send buffer holds 65 packets.
    let sent = leaving(&mut run, Time::ZERO);
    assert_eq!(sent, [(0, 0, 1000), (0, 1000, 1000), (1, 65_000, 1000), (1, 66_000, 1000)]);
    assert_eq!((run.sender.sent(), run.sender.acknowledged()), (2000, 0));
    let ack = Segment { flags: Flags::ACK, ack: 2000, window: 65_000, ..Segment::EMPTY };
    run.sender.handle_segment(Time::from_millis(100), 1, &ack);
    let sent = leaving(&mut run, Time::from_millis(100));
    assert_eq!(sent.first(), Some(&(1, 67_000, 1000)));
    assert_eq!((run.sender.sent(), run.sender.acknowledged()), (2000, 0));
}

#[test]
fn a_full_resequencing_buffer_is_passed_by_what_is_next_in_sequence() {
    let config = Config { handshake: false, timestamps: false, ..connection() };
    let application = StripingConfig { resequencing_buffer: 2000, ..unaware() };
    let mut receiver = StripingReceiver::new(&application, &config, 2);
    let mut arrives = |path, seq: u64, data: u64| {
        let (flags, len) = (Flags::MAPPED, 1000);
        let segment = Segment { seq, len, data, flags, ..Segment::EMPTY };
        receiver.handle_segment(Time::ZERO, path, &segment, false);
        let unread = |path| receiver.socket(path).expect("it exists").readable();
        (receiver.delivered(), receiver.peak_held(), unread(0), unread(1))
    };
    // The first socket's packets lie beyond a gap: two are read, and the third stays in the socket.
    assert_eq!(arrives(0, 0, 2000), (0, 1000, 0, 0));
    assert_eq!(arrives(0, 1000, 3000), (0, 2000, 0, 0));
    assert_eq!(arrives(0, 2000, 5000), (0, 2000, 1000, 0));
    // The second socket's first packet is the next in sequence. Its second one arrives last, is
    // then the next in sequence, and frees the buffer.
    assert_eq!(arrives(1, 0, 0), (1000, 2000, 1000, 0));
    assert_eq!(arrives(1, 2000, 4000), (1000, 2000, 1000, 0));
    assert_eq!(arrives(1, 1000, 1000), (6000, 2000, 0, 0));
    assert_eq!(receiver.out_of_order(), 4);
}
