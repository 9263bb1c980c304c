//! The task that moves datagrams between the core and the sockets.

use crate::shared::{Core, Shared};
use crate::socket::{MAX_BATCH, ReceiveBuffers, Run, Socket};
use anabranch_core::connection::Transmit;
use anabranch_core::endpoint::Datagram;
use anabranch_core::path::received::Ecn;
use anabranch_types::Time;
use core::time::Duration;
use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::time::{Instant, Sleep};
use tracing::debug;

/// Receive batches taken from one socket before the others and the sending get their turn.
const RECEIVE_TURN: usize = 4;
/// Rounds of receiving and sending before the other tasks of the runtime get their turn.
const ROUNDS: usize = 16;
/// How long a socket that reports an error is left alone.
const ERROR_PAUSE: Duration = Duration::from_millis(100);
/// A timer that is due already waits this long at least, so that no error can make the task spin.
const LEAST_SLEEP: Duration = Duration::from_micros(100);

/// Owns the sockets; ends when the application has let go of the endpoint and all connections.
#[derive(Debug)]
pub(crate) struct Driver {
    shared: Arc<Shared>,
    slots: Vec<Slot>,
    buffers: ReceiveBuffers,
    batch: Box<[u8]>,
    planned: Vec<Planned>,
    /// Room that the core needs for one datagram.
    datagram_room: usize,
    timer: Pin<Box<Sleep>>,
}

/// A socket and what it could not send yet.
#[derive(Debug)]
struct Slot {
    socket: Socket,
    waiting: VecDeque<Waiting>,
    /// Receiving failed; not to be tried again before.
    pause: Option<Time>,
}

/// A run that a full kernel buffer refused.
#[derive(Debug)]
struct Waiting {
    remote: SocketAddr,
    source: Option<IpAddr>,
    ecn: u8,
    segment: usize,
    bytes: Vec<u8>,
}

/// A datagram in the batch buffer.
#[derive(Clone, Copy, Debug)]
struct Planned {
    slot: usize,
    source: Option<IpAddr>,
    transmit: Transmit,
}

/// What came of asking the core for datagrams.
enum Plan {
    /// There are some to send, and perhaps more.
    Send,
    /// There are new sockets to take first.
    Adopt,
    /// There are none until this time, or until something happens.
    Sleep(Option<Time>),
    /// There will be none any more.
    End,
}

impl Driver {
    pub(crate) fn new(shared: Arc<Shared>, largest_datagram: usize) -> Self {
        let datagram_room = largest_datagram.max(1500);
        Driver {
            shared,
            slots: Vec::new(),
            buffers: ReceiveBuffers::new(),
            batch: vec![0; MAX_BATCH.max(datagram_room)].into_boxed_slice(),
            planned: Vec::new(),
            datagram_room,
            timer: Box::pin(tokio::time::sleep(Duration::ZERO)),
        }
    }

    /// One round of everything.
    fn round(&mut self, cx: &mut Context<'_>) -> (bool, Plan) {
        self.adopt_sockets();
        let more = self.receive(cx);
        self.send_waiting(cx);
        let plan = self.plan(cx);
        self.send_planned(cx);
        (more, plan)
    }

    fn adopt_sockets(&mut self) {
        let mut core = self.shared.lock();
        for (index, socket) in core.new_sockets.drain(..) {
            let slot = Slot { socket, waiting: VecDeque::new(), pause: None };
            match self.slots.get_mut(index) {
                Some(replaced) => *replaced = slot,
                None => self.slots.push(slot),
            }
        }
    }

    /// Passes what has arrived to the core; true if there may be more.
    fn receive(&mut self, cx: &mut Context<'_>) -> bool {
        let mut more = false;
        for (index, slot) in self.slots.iter_mut().enumerate() {
            if slot.pause.is_some_and(|until| self.shared.clock.now() < until) {
                continue;
            }
            slot.pause = None;
            for turn in 0..RECEIVE_TURN {
                match slot.socket.poll_recv(cx, &mut self.buffers) {
                    Poll::Pending => break,
                    Poll::Ready(Ok(())) => {
                        hand_over(&self.shared, index, &mut self.buffers);
                        more |= turn + 1 == RECEIVE_TURN;
                    }
                    Poll::Ready(Err(error)) => {
                        debug!(local = %slot.socket.local_addr(), %error, "cannot receive");
                        slot.pause = Some(self.shared.clock.now() + ERROR_PAUSE);
                        break;
                    }
                }
            }
        }
        more
    }

    /// Asks the core for datagrams until the batch buffer is full.
    fn plan(&mut self, cx: &mut Context<'_>) -> Plan {
        self.planned.clear();
        let shared = Arc::clone(&self.shared);
        let mut guard = shared.lock();
        let now = shared.clock.now();
        let core: &mut Core = &mut guard;
        if core.endpoint.next_timeout().is_some_and(|(due, _)| due <= now) {
            core.endpoint.handle_timeout(now);
        }
        shared.dispatch(core, now);
        let (endpoint, ports) = (&mut core.endpoint, &core.ports);
        let slots = &self.slots;
        let mut end = 0;
        while let Some(room) = self.batch.get_mut(end..).filter(|r| r.len() >= self.datagram_room) {
            let writable = |id| {
                let slot = ports.get(id).and_then(|port| slots.get(port.socket));
                slot.is_some_and(|slot| slot.waiting.is_empty())
            };
            let Some(transmit) = endpoint.poll_transmit(now, &writable, room) else { break };
            end += transmit.len;
            if let Some(port) = ports.get(transmit.socket) {
                let (slot, source) = (port.socket, port.source);
                self.planned.push(Planned { slot, source, transmit });
            }
        }
        // Sending changes what the core has to say, as when it gives a connection up.
        shared.dispatch(core, now);
        if !self.planned.is_empty() {
            return Plan::Send;
        }
        if core.released && core.connections.is_empty() {
            return Plan::End;
        }
        if !core.new_sockets.is_empty() {
            // Added since this round took those there were, when nobody could be woken yet.
            return Plan::Adopt;
        }
        if core.driver.as_ref().is_none_or(|waker| !waker.will_wake(cx.waker())) {
            core.driver = Some(cx.waker().clone());
        }
        let pauses = self.slots.iter().filter_map(|slot| slot.pause);
        let timeout = core.endpoint.next_timeout().map(|(time, _)| time);
        Plan::Sleep(pauses.chain(timeout).min())
    }

    /// Sends the batch, in runs as long as segmentation allows.
    fn send_planned(&mut self, cx: &mut Context<'_>) {
        let mut bytes = &self.batch[..];
        let mut planned = &self.planned[..];
        while let Some(first) = planned.first() {
            let Some(slot) = self.slots.get_mut(first.slot) else { return };
            let (count, len) = run_of(planned, slot.socket.max_segments());
            let Some((head, tail)) = bytes.split_at_checked(len) else { return };
            slot.send_or_keep(cx, first, head);
            (planned, bytes) = (&planned[count..], tail);
        }
    }

    /// Tries again what full kernel buffers refused.
    fn send_waiting(&mut self, cx: &mut Context<'_>) {
        for slot in &mut self.slots {
            while let Some(waiting) = slot.waiting.front() {
                if slot.socket.poll_send_ready(cx).is_pending() {
                    break;
                }
                if slot.socket.send(waiting.as_run()).is_ok() {
                    slot.waiting.pop_front();
                }
            }
        }
    }

    fn sleep(&mut self, until: Option<Time>, cx: &mut Context<'_>) -> Poll<()> {
        let now = self.shared.clock.now();
        let Some(instant) = until.and_then(|t| self.shared.clock.instant(t.max(now + LEAST_SLEEP)))
        else {
            return Poll::Pending;
        };
        if self.timer.deadline() != instant || self.timer.is_elapsed() {
            self.timer.as_mut().reset(instant.max(Instant::now()));
        }
        self.timer.as_mut().poll(cx)
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let driver = self.get_mut();
        for _ in 0..ROUNDS {
            let (more, plan) = driver.round(cx);
            match plan {
                Plan::End => return Poll::Ready(()),
                Plan::Sleep(until) if !more => {
                    if driver.sleep(until, cx).is_pending() {
                        return Poll::Pending;
                    }
                }
                Plan::Sleep(_) | Plan::Send | Plan::Adopt => {}
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.shared.stop();
    }
}

impl Slot {
    fn send_or_keep(&mut self, cx: &mut Context<'_>, first: &Planned, bytes: &[u8]) {
        let run = Run {
            remote: first.transmit.remote,
            source: first.source,
            ecn: first.transmit.ecn.bits(),
            segment: first.transmit.len,
            bytes,
        };
        while self.waiting.is_empty() {
            if self.socket.send(run).is_ok() {
                return;
            }
            // Refused: wait for the socket, unless it became ready in between.
            if self.socket.poll_send_ready(cx).is_pending() {
                break;
            }
        }
        self.waiting.push_back(Waiting {
            remote: run.remote,
            source: run.source,
            ecn: run.ecn,
            segment: run.segment,
            bytes: bytes.to_vec(),
        });
    }
}

impl Waiting {
    fn as_run(&self) -> Run<'_> {
        Run {
            remote: self.remote,
            source: self.source,
            ecn: self.ecn,
            segment: self.segment,
            bytes: &self.bytes,
        }
    }
}

/// How many of the first datagrams make one run, and their bytes: same socket, destination and mark,
/// same length but for a shorter last one. A probe of the MTU goes alone: it may well be refused.
fn run_of(planned: &[Planned], most: usize) -> (usize, usize) {
    let Some(first) = planned.first() else { return (0, 0) };
    let segment = first.transmit.len;
    let mut len = 0;
    for (count, next) in planned.iter().enumerate() {
        let fits = next.slot == first.slot
            && next.source == first.source
            && next.transmit.remote == first.transmit.remote
            && next.transmit.ecn == first.transmit.ecn
            && next.transmit.len <= segment
            && len + next.transmit.len <= MAX_BATCH
            && !first.transmit.mtu_probe
            && !next.transmit.mtu_probe;
        if count > 0 && (!fits || count >= most) {
            return (count, len);
        }
        len += next.transmit.len;
        if next.transmit.len < segment {
            return (count + 1, len);
        }
    }
    (planned.len(), len)
}

fn hand_over(shared: &Shared, index: usize, buffers: &mut ReceiveBuffers) {
    let now = shared.clock.now();
    let mut guard = shared.lock();
    let core: &mut Core = &mut guard;
    let mut port = None;
    for received in buffers.datagrams() {
        // Mostly all of a batch were sent to one address.
        let socket = match port {
            Some((local, socket)) if local == received.local => socket,
            _ => {
                let Some(socket) = core.ports.of_address(index, received.local) else { return };
                port = Some((received.local, socket));
                socket
            }
        };
        core.endpoint.handle_datagram(
            now,
            Datagram {
                socket,
                remote: received.remote,
                ecn: Ecn::from_bits(received.ecn),
                payload: received.payload,
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Endpoint, Profile, SecretKey, SocketSpec};
    use anabranch_core::path::SocketId;
    use std::task::Waker;

    fn planned(slot: usize, port: u16, ecn: Ecn, len: usize) -> Planned {
        let remote = SocketAddr::from(([127, 0, 0, 1], port));
        let socket = SocketId(slot as u32);
        let transmit = Transmit { socket, remote, ecn, len, mtu_probe: false };
        Planned { slot, source: None, transmit }
    }

    #[tokio::test]
    async fn a_socket_added_within_a_round_is_taken_before_any_sleep() {
        let config =
            Config::new(SecretKey::generate().unwrap(), Profile::named("anabranch").unwrap());
        let endpoint = Endpoint::bind(config, std::iter::empty::<SocketSpec>()).unwrap();
        let mut driver = Driver::new(Arc::clone(endpoint.shared()), 1500);
        let cx = &mut Context::from_waker(Waker::noop());
        driver.adopt_sockets();
        endpoint.add_socket(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        assert!(matches!(driver.plan(cx), Plan::Adopt));
        let (_, plan) = driver.round(cx);
        assert!(matches!(plan, Plan::Sleep(None)));
        assert_eq!(driver.slots.len(), 1);
    }

    #[test]
    fn runs_end_where_anything_changes() {
        let a = planned(0, 1, Ecn::Ect0, 1200);
        let shorter = planned(0, 1, Ecn::Ect0, 100);
        assert_eq!(run_of(&[], 64), (0, 0));
        assert_eq!(run_of(&[a; 5], 64), (5, 6000));
        assert_eq!(run_of(&[a; 5], 3), (3, 3600));
        assert_eq!(run_of(&[a; 5], 1), (1, 1200));
        assert_eq!(run_of(&[a; 60], 64), (54, 64_800));
        assert_eq!(run_of(&[a, a, shorter, a], 64), (3, 2500));
        assert_eq!(run_of(&[shorter, a], 64), (1, 100));
        let mut probe = a;
        probe.transmit.mtu_probe = true;
        assert_eq!(run_of(&[probe, a], 64), (1, 1200));
        assert_eq!(run_of(&[a, probe, a], 64), (1, 1200));
        for other in [
            planned(1, 1, Ecn::Ect0, 1200),
            planned(0, 2, Ecn::Ect0, 1200),
            planned(0, 1, Ecn::NotEct, 1200),
        ] {
            assert_eq!(run_of(&[a, other, a], 64), (1, 1200));
        }
    }
}
