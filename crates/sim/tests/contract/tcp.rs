//! The data stream over TCP subflows as a rig. A chunk is a block.

use std::collections::BTreeMap;

use anabranch_policy::{CongestionController, PolicySpec, recovery};
use anabranch_tcp::meta::{MetaConfig, MetaReceiver, MetaSender};
use anabranch_tcp::{Config, Segment};
use anabranch_types::Time;
use core::time::Duration;

use crate::control::Fixed;
use crate::rig::{Departure, MakeScheduler, Rig, Setting};

const MSS: u64 = 1000;

struct Tcp {
    sender: MetaSender,
    receiver: MetaReceiver,
    setting: Setting,
    dark: u16,
    /// Segments in flight, by arrival time and order: whether each goes to the receiver, its path,
    /// and the segment.
    flying: BTreeMap<(Time, u64), (bool, usize, Segment)>,
    order: u64,
    sent: Vec<Departure>,
    now: Time,
}

pub fn make(setting: Setting, scheduler: MakeScheduler, recovery: &PolicySpec) -> Box<dyn Rig> {
    let subflow = Config { mss: MSS as u32, ..Config::default() };
    let mut config = MetaConfig::new(subflow);
    if let Some(symbols) = setting.receive {
        config.receive_buffer = symbols * MSS;
    }
    config.read_at_once = setting.reads;
    let controls: Vec<Box<dyn CongestionController>> = setting
        .delays
        .iter()
        .map(|_| -> Box<dyn CongestionController> { Box::new(Fixed::new(setting.cwnd, MSS)) })
        .collect();
    let recovery = recovery::build(recovery).expect("it exists");
    let mut tcp = Tcp {
        sender: MetaSender::with_policies(&config, controls, scheduler(), recovery),
        receiver: MetaReceiver::new(&config, setting.delays.len()),
        setting,
        dark: 0,
        flying: BTreeMap::new(),
        order: 0,
        sent: Vec::new(),
        now: Time::from_millis(1),
    };
    tcp.run(500);
    Box::new(tcp)
}

impl Tcp {
    fn post(&mut self, to_receiver: bool, index: usize, segment: Segment) {
        if self.dark & (1 << index) == 0 {
            let arrival = self.now + Duration::from_millis(self.setting.delays[index]);
            self.order += 1;
            self.flying.insert((arrival, self.order), (to_receiver, index, segment));
        }
    }

    fn send(&mut self) {
        let before = self.sent.len();
        while let Some((index, segment)) = self.sender.poll_transmit(self.now) {
            if segment.len > 0 {
                let (path, symbol) = (index as u32, segment.data / MSS);
                self.sent.push(Departure { path, symbol, at: self.now });
                assert!(self.sent.len() < before + 10_000, "the sender does not stop");
            }
            self.post(true, index, segment);
        }
        while let Some((index, segment)) = self.receiver.poll_transmit(self.now) {
            self.post(false, index, segment);
        }
        let due = self.sender.next_timeout();
        assert!(due.is_none_or(|time| time > self.now), "{due:?} is not dealt with");
    }
}

impl Rig for Tcp {
    fn now(&self) -> Time {
        self.now
    }

    fn write(&mut self, symbols: u64) {
        assert_eq!(self.sender.write(symbols * MSS), symbols * MSS);
        self.send();
    }

    fn step(&mut self) {
        self.now += Duration::from_millis(1);
        while let Some(entry) = self.flying.first_entry()
            && entry.key().0 <= self.now
        {
            let (to_receiver, index, segment) = entry.remove();
            if to_receiver {
                self.receiver.handle_segment(self.now, index, &segment, false);
            } else {
                self.sender.handle_segment(self.now, index, &segment);
            }
        }
        self.sender.handle_timeout(self.now);
        self.receiver.handle_timeout(self.now);
        self.send();
    }

    fn darken(&mut self, path: u32, dark: bool) {
        self.dark = (self.dark & !(1 << path)) | (u16::from(dark) << path);
    }

    fn departures(&self) -> Vec<Departure> {
        self.sent.clone()
    }

    fn delivered(&self) -> u64 {
        self.receiver.delivered() / MSS
    }

    fn cwnd(&mut self, path: u32) -> u64 {
        self.sender.subflow(path as usize).expect("it exists").cwnd() / MSS
    }
}
