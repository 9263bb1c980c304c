//! The connection of `anabranch-core` as a rig: uncoded, a symbol a window.

use std::sync::{Arc, Mutex};

use anabranch_core::config::TransportConfig;
use anabranch_core::endpoint::EndpointConfig;
use anabranch_core::handshake::Permitted;
use anabranch_core::observe::{Observation, Observer};
use anabranch_core::path::received::Ecn;
use anabranch_core::profiles::Profile;
use anabranch_core::testing::{Pair, Sent, endpoint};
use anabranch_policy::recovery::RecoveryPolicy;
use anabranch_policy::scheduler::Scheduler;
use anabranch_types::Time;
use core::time::Duration;

use crate::control::Fixed;
use crate::rig::{Departure, Rig, Setting};

/// Bytes of a stream that fill a symbol less than wholly, headers included.
const SYMBOL: u64 = 1100;

type Carry = Box<dyn FnMut(&Sent<'_>) -> Option<(Time, Ecn)>>;

struct Core {
    pair: Pair<Carry>,
    dark: Arc<Mutex<u16>>,
    sent: Log,
    reads: bool,
}

#[derive(Clone, Debug, Default)]
struct Log(Arc<Mutex<Vec<Departure>>>);

impl Observer for Log {
    fn observe(&mut self, at: Time, observation: &Observation) {
        if let Observation::Scheduled { path, symbol, .. } = observation {
            let departure = Departure { path: path.0, symbol: *symbol, at };
            self.0.lock().expect("no case goes on after a panic").push(departure);
        }
    }
}

/// A policy that a profile's factory hands out once.
fn once<T: Send + 'static>(policy: T) -> impl Fn() -> Option<T> + Send + Sync {
    let policy = Mutex::new(Some(policy));
    move || policy.lock().expect("no case goes on after a panic").take()
}

pub fn make(
    setting: Setting,
    scheduler: Box<dyn Scheduler>,
    recovery: Box<dyn RecoveryPolicy>,
) -> Box<dyn Rig> {
    let mut profile = Profile::named("uncoded").expect("built in");
    profile.set("redundancy", "none:sources=1").expect("it exists");
    profile.set_congestion("fixed", move |packet| Box::new(Fixed::new(setting.window, packet)));
    let (scheduler, recovery) = (once(scheduler), once(recovery));
    profile.set_scheduler("case", move || scheduler().expect("one connection"));
    profile.set_recovery("case", move || recovery().expect("one connection"));
    let mut config = EndpointConfig::new(Profile::named("uncoded").expect("built in"));
    config.transport = TransportConfig { mtu_limit: None, ..config.transport };
    config.responder.permitted = Permitted::Anyone;
    if let Some(symbols) = setting.receive {
        config.transport.streams.max_data = symbols * SYMBOL;
        config.transport.streams.max_stream_data = symbols * SYMBOL;
    }
    let dark = Arc::new(Mutex::new(0_u16));
    let seen = Arc::clone(&dark);
    let carry: Carry = Box::new(move |sent| {
        let lost = *seen.lock().expect("no case goes on after a panic") & (1 << sent.path) != 0;
        let delay = Duration::from_millis(setting.delays[sent.path as usize]);
        (!lost).then(|| (sent.now + delay, sent.ecn))
    });
    let ends = [1, 2].map(|seed| endpoint(seed, config.clone()));
    let mut pair = Pair::of(ends, &profile, carry);
    pair.connect(setting.delays.len() as u32);
    let mut core = Core { pair, dark, sent: Log::default(), reads: setting.reads };
    core.run(500);
    let log = Box::new(core.sent.clone());
    core.pair.ends[0].connection().expect("connected").set_observer(Some(log));
    Box::new(core)
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
        let mut all = self.dark.lock().expect("no case goes on after a panic");
        *all = (*all & !(1 << path)) | (u16::from(dark) << path);
    }

    fn departures(&self) -> Vec<Departure> {
        self.sent.0.lock().expect("no case goes on after a panic").clone()
    }

    fn delivered(&self) -> u64 {
        self.pair.ends[1].read / SYMBOL
    }

    fn window(&mut self, path: u32) -> u64 {
        let stats = self.pair.ends[0].connection().expect("connected").stats();
        let path = &stats.paths[path as usize];
        path.window / (u64::from(path.mtu))
    }
}
