//! An application over TCP: every transfer is a connection of its own between the same two ports.

mod receiver;

#[cfg(test)]
mod tests;

use anabranch_policy::{PolicyError, PolicySpec, congestion};
use anabranch_tcp::{Config, Sender, SenderStatistics};
use anabranch_types::Time;

pub use receiver::TcpTransfersReceiver;

use super::tcp::send;
use crate::engine::{Agent, Arrival, Outbox, Payload, PortId};
use crate::traffic::{Source, Traffic, Transfer};

/// The sending ends of the connections that an application opens, short flows in particular.
///
/// A connection's state is made when its transfer opens and dropped when the last byte is
/// acknowledged. A transfer waits while 4096 are under way.
#[derive(Debug)]
pub struct TcpTransfers {
    config: Config,
    control: PolicySpec,
    source: Source,
    port: Option<PortId>,
    started: bool,
    slots: Vec<Slot>,
    free: Vec<u32>,
    transfers: Vec<(u32, Transfer)>,
    /// Counters of the connections that are gone, and the bytes they carried.
    past: SenderStatistics,
    past_acknowledged: u64,
}

/// Room for a connection.
#[derive(Debug)]
struct Slot {
    /// How many connections were here before.
    generation: u32,
    current: Option<Current>,
}

/// A connection under way.
#[derive(Debug)]
struct Current {
    sender: Box<Sender>,
    /// Whether its transfer has an end.
    finite: bool,
    /// Bytes written.
    written: u64,
}

/// The low bits of a stream number name the slot, those above it the generation.
const SLOT_BITS: u32 = 12;
const MAX_SLOTS: usize = 1 << SLOT_BITS;

impl TcpTransfers {
    /// Senders of this configuration, each with a controller of its own as `control` says. Random
    /// draws are the substream of `seed` called `traffic.<name>`.
    ///
    /// # Errors
    /// When there is no such congestion controller, or an option of it is wrong.
    pub fn new(
        config: &Config,
        control: &PolicySpec,
        traffic: Traffic,
        seed: u64,
        name: &str,
    ) -> Result<Self, PolicyError> {
        congestion::build(control, u64::from(config.mss))?;
        Ok(TcpTransfers {
            config: config.clone(),
            control: control.clone(),
            source: Source::new(traffic, seed, name),
            port: None,
            started: false,
            slots: Vec::new(),
            free: Vec::new(),
            transfers: Vec::new(),
            past: SenderStatistics::default(),
            past_acknowledged: 0,
        })
    }

    /// Every transfer opened so far, with the number under which the receiver knows it.
    pub fn transfers(&self) -> &[(u32, Transfer)] {
        &self.transfers
    }

    /// Transfers whose last byte was acknowledged.
    pub fn completed(&self) -> u64 {
        self.source.completed()
    }

    /// Whether everything that the application will ever send was acknowledged.
    pub fn is_done(&self) -> bool {
        self.source.is_done()
    }

    /// Connections under way.
    pub fn senders(&self) -> impl Iterator<Item = &Sender> {
        self.slots.iter().filter_map(|slot| Some(&*slot.current.as_ref()?.sender))
    }

    /// Bytes acknowledged, of all connections.
    pub fn acknowledged(&self) -> u64 {
        self.past_acknowledged + self.senders().map(Sender::acknowledged).sum::<u64>()
    }

    /// Counters of all connections together.
    pub fn statistics(&self) -> SenderStatistics {
        let mut sum = self.past;
        self.senders().for_each(|sender| sum += *sender.statistics());
        sum
    }

    fn drive(&mut self, now: Time, out: &mut Outbox<'_>) {
        if !self.started {
            return;
        }
        self.source.handle(now);
        loop {
            self.open();
            let mut completed = false;
            for index in 0..self.slots.len() {
                completed |= self.drive_slot(now, index, out);
            }
            // The end of one transfer may be the beginning of the next.
            if !completed {
                break;
            }
        }
    }

    /// Makes a connection for each transfer that is due.
    fn open(&mut self) {
        while let Some(transfer) = self.source.next_transfer() {
            let slot = self.free.pop().or_else(|| {
                let slot = self.slots.len();
                let new = Slot { generation: 0, current: None };
                (slot < MAX_SLOTS).then(|| self.slots.push(new)).map(|()| slot as u32)
            });
            let (Some(index), Ok(controller)) =
                (slot, congestion::build(&self.control, u64::from(self.config.mss)))
            else {
                return self.source.put_back(transfer);
            };
            let mut sender = Box::new(Sender::new(&self.config, controller));
            let written = sender.write(transfer.bytes.unwrap_or(0));
            if transfer.bytes.is_some() {
                sender.finish();
            }
            if let Some(slot) = self.slots.get_mut(index as usize) {
                self.transfers.push((stream(index, slot.generation), transfer));
                slot.current = Some(Current { sender, finite: transfer.bytes.is_some(), written });
            }
        }
    }

    /// Sends what a connection has to send; says whether its transfer is complete.
    fn drive_slot(&mut self, now: Time, index: usize, out: &mut Outbox<'_>) -> bool {
        let Some(slot) = self.slots.get_mut(index) else { return false };
        let (Some(current), Some(port)) = (&mut slot.current, self.port) else { return false };
        if !current.finite {
            current.supply(&mut self.source);
        }
        let number = stream(index as u32, slot.generation);
        while let Some(segment) = current.sender.poll_transmit(now) {
            send(out, port, number, &self.config.wire, segment);
        }
        while current.sender.poll_event().is_some() {}
        let over = current.finite && current.sender.is_drained() || current.sender.has_failed();
        if over {
            self.past += *current.sender.statistics();
            self.past_acknowledged += current.sender.acknowledged();
            slot.current = None;
            slot.generation = slot.generation.wrapping_add(1);
            self.free.push(index as u32);
            self.source.complete(now);
        }
        over
    }
}

impl Current {
    /// Writes what the application offers; of an endless offer what the window lets out at once and a
    /// segment more, so that next to nothing remains when the offer ends.
    fn supply(&mut self, source: &mut Source) {
        let bytes = match source.offered() {
            u64::MAX => {
                let unsent = self.written - self.sender.sent();
                let room = self.sender.window().saturating_sub(self.sender.in_flight());
                (room + u64::from(self.sender.config().mss)).saturating_sub(unsent)
            }
            bytes => bytes,
        };
        let taken = self.sender.write(bytes);
        self.written += taken;
        source.take(taken);
    }
}

/// The number of the connection that is in a slot.
fn stream(slot: u32, generation: u32) -> u32 {
    generation << SLOT_BITS | slot
}

/// The slot of a connection's number, and its generation as far as the number has room for it.
fn slot_of(stream: u32) -> (usize, u32) {
    (stream as usize % MAX_SLOTS, stream >> SLOT_BITS)
}

impl Agent for TcpTransfers {
    fn attach(&mut self, port: PortId) {
        self.port = self.port.or(Some(port));
    }

    fn handle_packet(&mut self, arrival: Arrival<'_>, out: &mut Outbox<'_>) {
        let Payload::Segment(segment) = arrival.payload else { return };
        let (index, generation) = slot_of(arrival.stream);
        if let Some(slot) = self.slots.get_mut(index)
            && slot_of(stream(0, slot.generation)).1 == generation
            && let Some(current) = &mut slot.current
        {
            current.sender.handle_segment(arrival.now, segment);
            self.drive(arrival.now, out);
        }
    }

    fn handle_timer(&mut self, now: Time, out: &mut Outbox<'_>) {
        if !self.started {
            self.started = true;
            self.source.start(now);
        }
        for current in self.slots.iter_mut().filter_map(|slot| slot.current.as_mut()) {
            if current.sender.next_timeout().is_some_and(|due| due <= now) {
                current.sender.handle_timeout(now);
            }
        }
        self.drive(now, out);
    }

    fn next_timer(&self) -> Option<Time> {
        let timeouts = self.senders().filter_map(Sender::next_timeout);
        timeouts.chain(self.source.next_event()).min()
    }
}
