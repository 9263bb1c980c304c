//! The connection of `anabranch-core` as a rig. Cases run it uncoded with one symbol per block.
//! Sketches of coded protocols use profiles of their own.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use anabranch_core::config::TransportConfig;
use anabranch_core::endpoint::EndpointConfig;
use anabranch_core::handshake::Permitted;
use anabranch_core::observe::{Observation, Observer};
use anabranch_core::path::received::Ecn;
use anabranch_core::profiles::Profile;
use anabranch_core::testing::{Pair, Sent, endpoint};
use anabranch_policy::registry::{Entry, Options};
use anabranch_policy::{Axis, CongestionController, PolicySpec};
use anabranch_types::Time;
use core::time::Duration;

use crate::control::Fixed;
use crate::rig::{Departure, MakeScheduler, Rig, Setting};

/// Stream bytes that, with their headers, nearly fill a symbol.
pub const SYMBOL: u64 = 1100;

/// The sender's packets with at least this many bytes carry a symbol.
const CARRIES_SYMBOL: usize = 800;

type Carry = Box<dyn FnMut(&Sent<'_>) -> Option<(Time, Ecn)>>;

/// Decides whether the next packet with a symbol on a path is lost.
pub type Lose = Box<dyn FnMut(u32) -> bool>;

/// Faults of the network, which a case can change at any time.
#[derive(Default)]
struct Trouble {
    dark: u16,
    lose: Option<Lose>,
}

/// The connection and its network.
pub struct Core {
    pair: Pair<Carry>,
    trouble: Rc<RefCell<Trouble>>,
    log: Log,
    reads: bool,
}

#[derive(Clone, Debug, Default)]
struct Log(Arc<Mutex<Vec<(Time, Observation)>>>);

impl Observer for Log {
    fn observe(&mut self, at: Time, observation: &Observation) {
        self.0.lock().expect("no case goes on after a panic").push((at, *observation));
    }
}

/// The name under which the cases register their policies.
pub const CASE: Entry = Entry { name: "case", summary: "", source: "", options: &[] };

pub fn make(setting: Setting, scheduler: MakeScheduler, recovery: &PolicySpec) -> Box<dyn Rig> {
    let mut profile = Profile::named("uncoded").expect("built in");
    profile.set(Axis::Redundancy, "none:sources=1").expect("it exists");
    profile.set(Axis::Recovery, &recovery.to_string()).expect("it exists");
    profile.register(&CASE, move |_| Ok(scheduler())).expect("a new name");
    profile.set(Axis::Scheduler, CASE.name).expect("registered");
    Box::new(Core::with(setting, profile, Fixed::new))
}

impl Core {
    /// A connection with `profile`, all paths up, and congestion windows that neither losses nor
    /// timeouts cut.
    pub fn new(setting: Setting, profile: &Profile) -> Self {
        Core::with(setting, profile.clone(), Fixed::still)
    }

    /// A connection with `profile` but another congestion control, and all paths up.
    fn with(setting: Setting, mut profile: Profile, control: fn(u64, u64) -> Fixed) -> Self {
        let fixed = move |options: &Options<'_>| -> Result<Box<dyn CongestionController>, _> {
            Ok(Box::new(control(setting.cwnd, options.packet_size())))
        };
        profile.register(&CASE, fixed).expect("a new name");
        profile.set(Axis::Congestion, CASE.name).expect("registered");
        let mut other = Profile::named("uncoded").expect("built in");
        let ack = profile.policy(Axis::Ack).to_string();
        other.set(Axis::Ack, &ack).expect("it exists");
        let mut config = EndpointConfig::new(other);
        config.transport = TransportConfig { mtu_limit: None, ..config.transport };
        config.responder.permitted = Permitted::Anyone;
        if let Some(symbols) = setting.receive {
            config.transport.streams.max_data = symbols * SYMBOL;
            config.transport.streams.max_stream_data = symbols * SYMBOL;
            config.transport.streams.growth = 1;
        }
        let trouble = Rc::new(RefCell::new(Trouble::default()));
        let seen = Rc::clone(&trouble);
        let carry: Carry = Box::new(move |sent| {
            let mut trouble = seen.borrow_mut();
            let carries = sent.side == 0 && sent.payload.len() >= CARRIES_SYMBOL;
            let lost = trouble.dark & (1 << sent.path) != 0
                || carries && trouble.lose.as_mut().is_some_and(|lose| lose(sent.path));
            let delay = Duration::from_millis(setting.delays[sent.path as usize]);
            (!lost).then(|| (sent.now + delay, sent.ecn))
        });
        let ends = [1, 2].map(|seed| endpoint(seed, config.clone()));
        let mut pair = Pair::of(ends, &profile, carry);
        pair.connect(setting.delays.len() as u32);
        let mut core = Core { pair, trouble, log: Log::default(), reads: setting.reads };
        core.run(500);
        let log = Box::new(core.log.clone());
        core.pair.ends[0].connection().expect("connected").set_observer(Some(log));
        core
    }

    /// From now on, asks `lose` about every packet that carries a symbol.
    pub fn lose(&mut self, lose: impl FnMut(u32) -> bool + 'static) {
        self.trouble.borrow_mut().lose = Some(Box::new(lose));
    }

    /// Observations of the sender since the last call.
    pub fn observed(&mut self) -> Vec<(Time, Observation)> {
        core::mem::take(&mut self.log.0.lock().expect("no case goes on after a panic"))
    }
}

impl Rig for Core {
    fn now(&self) -> Time {
        self.pair.now
    }

    fn write(&mut self, symbols: u64) {
        self.pair.write(0, symbols * SYMBOL);
        self.pair.send();
    }

    fn step(&mut self) {
        self.pair.advance(Duration::from_millis(1));
        self.pair.news();
        if self.reads {
            self.pair.read(1, usize::MAX);
        }
        self.pair.send();
    }

    fn darken(&mut self, path: u32, dark: bool) {
        let all = &mut self.trouble.borrow_mut().dark;
        *all = (*all & !(1 << path)) | (u16::from(dark) << path);
    }

    fn departures(&self) -> Vec<Departure> {
        let log = self.log.0.lock().expect("no case goes on after a panic");
        let departure = |(at, observation): &(Time, Observation)| match observation {
            Observation::Scheduled { path, symbol, .. } => {
                Some(Departure { path: path.0, symbol: symbol.ordinal(), at: *at })
            }
            _ => None,
        };
        log.iter().filter_map(departure).collect()
    }

    fn delivered(&self) -> u64 {
        self.pair.ends[1].read / SYMBOL
    }

    fn cwnd(&mut self, path: u32) -> u64 {
        let stats = self.pair.ends[0].connection().expect("connected").stats();
        let path = &stats.paths[path as usize];
        path.cwnd / (u64::from(path.mtu))
    }
}
