use core::time::Duration;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use anabranch_sim::endpoint::PathChange;
use anabranch_sim::scenario::EventPlan;
use anabranch_types::Time;

use super::interfaces::Interface;
use super::space::Space;
use crate::clock::Clock;
use crate::joined::Joined;

/// A thread that carries out the plan's events on the client's interfaces. Dropping this value ends
/// it.
#[derive(Debug)]
pub(super) struct Events {
    /// Dropping this sender ends the thread.
    _stop: Sender<()>,
    _thread: Joined,
    failure: Arc<Mutex<Option<String>>>,
}

/// The thread's state.
struct Player {
    clock: Clock,
    plan: Vec<EventPlan>,
    interfaces: Vec<Interface>,
    client: Arc<Space>,
}

impl Events {
    /// Starts the thread if there is an event to carry out. Events that only simulated endpoints
    /// notice are left out.
    pub(super) fn start(
        plan: &[EventPlan],
        interfaces: &[Interface],
        client: &Arc<Space>,
    ) -> io::Result<Option<Self>> {
        let plan: Vec<EventPlan> =
            plan.iter().filter(|event| is_emulated(event.change)).cloned().collect();
        if plan.is_empty() {
            return Ok(None);
        }
        let client = Arc::clone(client);
        let player =
            Player { clock: Clock::start(), plan, interfaces: interfaces.to_vec(), client };
        let (stop, stopped) = channel();
        let failure = Arc::new(Mutex::new(None));
        let told = Arc::clone(&failure);
        let play = move || {
            if let Err(why) = player.play(&stopped) {
                *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
            }
        };
        let thread = Joined::start("events", play)?;
        Ok(Some(Events { _stop: stop, _thread: thread, failure }))
    }

    pub(super) fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Whether the emulator can make this change to an interface.
pub(super) fn is_emulated(change: PathChange) -> bool {
    matches!(change, PathChange::Down | PathChange::Up | PathChange::Move)
}

impl Player {
    /// Carries out each event when it is due, until all are done or `stopped` is closed.
    fn play(mut self, stopped: &Receiver<()>) -> Result<(), String> {
        for event in core::mem::take(&mut self.plan) {
            let wait = (Time::ZERO + event.at).since(self.clock.now());
            if stopped.recv_timeout(wait) == Err(RecvTimeoutError::Disconnected) {
                return Ok(());
            }
            self.apply(&event).map_err(|error| {
                let at: Duration = event.at;
                format!("the event at {} s on path '{}': {error}", at.as_secs_f64(), event.path)
            })?;
        }
        Ok(())
    }

    fn apply(&mut self, event: &EventPlan) -> io::Result<()> {
        let known = self.interfaces.iter_mut().find(|interface| interface.name == event.path);
        let Some(place) = known else { return Ok(()) };
        let (mut interface, change) = (place.clone(), event.change);
        *place = self.client.run(move |inside| {
            let netlink = &inside.netlink;
            inside.wait_for(async {
                match change {
                    PathChange::Down => interface.unplug(netlink).await?,
                    PathChange::Up => interface.plug(netlink).await?,
                    PathChange::Move => {
                        let next = interface.addresses.next();
                        interface.readdress(netlink, next).await?;
                    }
                    PathChange::Backup
                    | PathChange::Regular
                    | PathChange::Rebind
                    | PathChange::StripOptions
                    | PathChange::PassOptions => {}
                }
                Ok(interface)
            })
        })??;
        Ok(())
    }
}
