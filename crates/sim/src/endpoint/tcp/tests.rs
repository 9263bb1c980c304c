use core::time::Duration;
use std::sync::Arc;

use anabranch_policy::PolicySpec;
use anabranch_tcp::meta::MetaConfig;
use anabranch_tcp::{Config, TimerConfig};
use anabranch_types::{Bitrate, Time};

use super::*;
use crate::endpoint::testing::parallel;
use crate::endpoint::{Completion, Flow};
use crate::engine::Engine;
use crate::traffic::Traffic;

fn reno() -> PolicySpec {
    "reno:initial=2".parse().unwrap()
}

/// A run over parallel links with clean reverse links. The sender starts at 10 ms.
struct Run {
    engine: Engine,
    flow: TcpFlow,
}

impl Run {
    fn new(links: &[&str], protocol: TcpProtocol, traffic: Traffic, seconds: u64) -> Self {
        let protocol = Arc::new(protocol);
        let sender = TcpSender::new(&protocol, traffic.clone(), 1, "flow").unwrap();
        let size = match traffic {
            Traffic::Transfers { size, .. } | Traffic::Poisson { size, .. } => size,
            _ => 0,
        };
        let receiver = TcpReceiver::new(&protocol).with_transfers_of(size);
        let (mut engine, sender, receiver) = parallel(links, Box::new(sender), Box::new(receiver));
        engine.run_until(Time::from_secs(seconds));
        Run { engine, flow: TcpFlow { sender, receiver } }
    }

    fn sender(&self) -> &TcpSender {
        self.engine.agent_as(self.flow.sender).unwrap()
    }

    fn receiver(&self) -> &TcpReceiver {
        self.engine.agent_as(self.flow.receiver).unwrap()
    }

    fn times(&self) -> impl Iterator<Item = Duration> {
        let completions = self.flow.completions(&self.engine).into_iter();
        completions.map(|Completion { opened, ended }| ended.since(opened))
    }
}

fn once(size: u64) -> Traffic {
    Traffic::Transfers { size, repeat: 1 }
}

#[test]
fn a_transfer_ends_when_its_last_byte_is_acknowledged() {
    let protocol = TcpProtocol::new(Config::default(), reno());
    let mut run = Run::new(&["rate=10mbit,delay=20ms,loss=1%"], protocol, once(1_000_000), 60);
    assert_eq!(run.sender().acknowledged(), 1_000_000);
    assert!(run.sender().finished().is_some_and(|at| at < Time::from_secs(20)));
    assert_eq!(run.receiver().delivered(), 1_000_000);
    assert_eq!(run.engine.packets_in_flight(), 0);
    assert_eq!(run.engine.next_event(), None);
}

#[test]
fn notices_keep_the_window_up_under_loss_where_the_control_heeds_them() {
    let run = |control: &str, loss_notices| {
        let protocol = TcpProtocol::new(Config::default(), control.parse().unwrap());
        let protocol = TcpProtocol { loss_notices, ..protocol };
        let run = Run::new(&["rate=10mbit,delay=20ms,loss=2%"], protocol, Traffic::Bulk, 60);
        (run.sender().acknowledged(), run.sender().statistics().loss_notices)
    };
    let (plain, told) = (run("eln:initial=2", false), run("eln:initial=2", true));
    assert_eq!(plain.1, 0);
    assert!(told.1 > 500, "{told:?}");
    assert!(told.0 > 3 * plain.0, "{told:?} against {plain:?}");
    assert_eq!(run("reno:initial=2", true), plain, "Reno does not listen");
}

#[test]
fn a_notice_comes_no_later_than_what_shows_the_loss() {
    // Many round trips are shorter than the smoothed round-trip time. A notice that took the
    // smoothed time would arrive after three duplicate acknowledgements had cut the window. The
    // receive buffer is small enough that the link's queue does not overflow.
    let eln = "eln:initial=2".parse().unwrap();
    let timers = TimerConfig { min_rto: Duration::from_secs(1), ..TimerConfig::default() };
    let config = Config { timers, receive_buffer: 64 << 10, ..Config::default() };
    let protocol = TcpProtocol { loss_notices: true, ..TcpProtocol::new(config, eln) };
    let link = "rate=10mbit,delay=40ms,jitter=40ms,loss=1%";
    let run = Run::new(&[link], protocol, Traffic::Bulk, 60);
    let statistics = run.sender().statistics();
    assert!(statistics.loss_notices > 100, "{statistics:?}");
    assert_eq!(statistics.cwnd_reductions, 0, "{statistics:?}");
}

#[test]
fn the_same_seed_gives_the_same_packets() {
    let digest = || {
        let protocol = TcpProtocol::new(Config::default(), reno());
        Run::new(&["rate=10mbit,delay=20ms,loss=1%"], protocol, Traffic::Bulk, 5).engine.digest()
    };
    assert_eq!(digest(), digest());
}

#[test]
fn a_stream_over_two_links_uses_both() {
    let links = ["rate=8mbit,delay=10ms", "rate=4mbit,delay=40ms"];
    let protocol = TcpProtocol::over_several(MetaConfig::new(Config::default()), reno());
    let run = Run::new(&links, protocol, once(6_000_000), 20);
    assert_eq!(run.sender().acknowledged(), 6_000_000);
    // 48 Mbit take 4 s at 12 Mb/s; the fast link alone would take 6 s.
    let finished = run.sender().finished();
    assert!(finished.is_some_and(|at| at < Time::from_millis(5500)), "{finished:?}");
    assert_eq!(run.receiver().delivered(), 6_000_000);
}

#[test]
fn transfers_follow_each_other() {
    let traffic = Traffic::Transfers { size: 50_000, repeat: 20 };
    let protocol = TcpProtocol::new(Config::default(), reno());
    let run = Run::new(&["rate=8mbit,delay=10ms,loss=3%"], protocol, traffic, 60);
    assert!(run.sender().finished().is_some());
    assert_eq!((run.sender().acknowledged(), run.receiver().delivered()), (1_000_000, 1_000_000));
    assert!(run.sender().statistics().retransmissions > 10);
    assert_eq!(run.receiver().completed().len(), 20);
    // The handshake and slow start over 35 segments take at least four round trips of 20 ms.
    assert!(run.times().all(|time| time > Duration::from_millis(70)));
}

#[test]
fn short_flows_overlap_and_leave_nothing_behind() {
    let traffic = Traffic::Poisson { size: 20_000, interval: Duration::from_millis(40) };
    let protocol = TcpProtocol::new(Config::default(), "reno".parse().unwrap());
    let run = Run::new(&["rate=8mbit,delay=10ms,loss=1%"], protocol, traffic, 100);
    let opened = run.sender().opened().len();
    assert!((2250..2750).contains(&opened), "{opened}");
    let completed = run.receiver().completed();
    assert!(completed.len() + 20 > opened, "{}", completed.len());
    let numbers: std::collections::BTreeSet<u32> = completed.iter().map(|done| done.0).collect();
    assert_eq!(numbers.len(), completed.len(), "each once");
    let open = run.sender().senders(None).count();
    assert!(open <= opened - completed.len() + 20, "{open} connections are still there");
}

#[test]
fn an_on_off_application_keeps_to_its_rate_or_to_its_bursts() {
    let (on, off) = (Duration::from_millis(300), Duration::from_millis(300));
    for (rate, expected) in [(Some(Bitrate::from_mbps(1.0)), 0.5), (None, 4.0)] {
        let traffic = Traffic::OnOff { on, off, rate };
        let protocol = TcpProtocol::new(Config::default(), "reno".parse().unwrap());
        let run = Run::new(&["rate=8mbit,delay=2ms,buffer=20p"], protocol, traffic, 200);
        let mbps = run.receiver().delivered() as f64 * 8.0 / 200e6;
        // The queue empties only after each burst, which adds 10 ms or more to 300 ms.
        assert!((0.8 * expected..1.2 * expected).contains(&mbps), "{mbps} of {expected}");
    }
}
