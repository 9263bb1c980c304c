use core::time::Duration;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anabranch_types::{Ecn, Time};
use nix::poll::{PollFd, PollFlags};

use crate::clock::Clock;
use crate::joined::Joined;
use crate::network::Network;
use crate::wait::wait;

/// Reads and sends the packets of a worker, over sockets or devices.
///
/// Ports come in pairs, the two ends of a path. A packet that comes in at port n takes route n and
/// goes out at the other port of the pair.
pub(crate) trait Wires: Send + 'static {
    /// A socket or a device.
    type Port: AsFd + Send + 'static;

    /// The shortest sleep. All packets that fall due during a sleep are sent at its end.
    const GRANULARITY: Duration;

    /// Reads some of the packets that wait at `port` into `network`. Returns whether more may be
    /// waiting.
    fn receive(
        &mut self,
        port: &Self::Port,
        number: usize,
        clock: Clock,
        network: &mut Network,
    ) -> io::Result<bool>;

    /// Sends a packet, now or at the next [`flush`](Self::flush). Returns how many packets could
    /// not be sent.
    fn send(&mut self, port: &Self::Port, number: usize, ecn: Ecn, bytes: &mut [u8]) -> u64;

    /// Sends all packets that [`send`](Self::send) has held back. Returns how many could not be
    /// sent.
    fn flush(&mut self, port: &Self::Port, number: usize) -> u64;
}

/// A thread that carries packets over a network. Dropping this value ends the thread.
#[derive(Debug)]
pub(crate) struct Worker {
    shared: Arc<Shared>,
    /// Dropping this end of the stream wakes and ends the thread.
    _stop: UnixStream,
    thread: Joined,
}

/// State that the thread and the handle share.
#[derive(Debug)]
struct Shared {
    clock: Clock,
    network: Mutex<Network>,
}

/// The longest sleep.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);
/// Most calls of [`Wires::receive`] for one port before the next port gets its turn.
const READS_PER_TURN: usize = 4;

impl Worker {
    /// Starts the thread; the time of `network` begins now.
    pub(crate) fn start<W: Wires>(
        network: Network,
        wires: W,
        ports: Vec<W::Port>,
    ) -> io::Result<Self> {
        let (stop, stopped) = UnixStream::pair()?;
        let shared = Arc::new(Shared { clock: Clock::start(), network: Mutex::new(network) });
        let carrier = Carrier { shared: Arc::clone(&shared), wires };
        let thread = Joined::start("links", move || carrier.run(&ports, &stopped))?;
        Ok(Worker { shared, _stop: stop, thread })
    }

    /// The time since the thread was started.
    pub(crate) fn now(&self) -> Time {
        self.shared.clock.now()
    }

    /// The network; while the guard is held, the thread waits.
    pub(crate) fn network(&self) -> MutexGuard<'_, Network> {
        self.shared.lock()
    }

    /// Whether the thread still runs. It ends early only when polling or reading a port fails.
    pub(crate) fn is_running(&self) -> bool {
        self.thread.is_running()
    }
}

impl Shared {
    /// Locks the network and ignores poisoning: statistics can be read even after a panic of the
    /// thread.
    fn lock(&self) -> MutexGuard<'_, Network> {
        self.network.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread's state. The thread sleeps until a packet arrives or falls due, whichever is first.
struct Carrier<W> {
    shared: Arc<Shared>,
    wires: W,
}

impl<W: Wires> Carrier<W> {
    /// Carries packets until the other end of `stopped` is closed or a port fails for good.
    fn run(mut self, ports: &[W::Port], stopped: &UnixStream) {
        prefer();
        let mut fds = vec![PollFd::new(stopped.as_fd(), PollFlags::POLLIN)];
        fds.extend(ports.iter().map(|port| PollFd::new(port.as_fd(), PollFlags::POLLIN)));
        loop {
            let sleep = self.release(ports);
            match wait(&mut fds, sleep) {
                Ok(true) => {}
                Ok(false) => continue,
                Err(_) => return,
            }
            let [stopped, fds @ ..] = fds.as_slice() else { return };
            if is_ready(stopped) || self.read(ports, fds).is_err() {
                return;
            }
        }
    }

    /// Sends all packets that are due. Returns the time to sleep until the next link event.
    fn release(&mut self, ports: &[W::Port]) -> Duration {
        let Carrier { shared, wires } = self;
        let mut network = shared.lock();
        network.advance(shared.clock.now());
        for route in 0..ports.len() {
            let end = route ^ 1;
            let Some(port) = ports.get(end) else { continue };
            let mut unsent = 0;
            while let Some(mut due) = network.next_due(route, || shared.clock.now()) {
                unsent += wires.send(port, end, due.ecn, &mut due.bytes);
                network.recycle(due.bytes);
            }
            unsent += wires.flush(port, end);
            network.add_unsent(route, unsent);
        }
        let next = network.next_event().since(shared.clock.now());
        next.clamp(W::GRANULARITY, LONGEST_SLEEP)
    }

    /// Reads packets from all ports that are ready.
    fn read(&mut self, ports: &[W::Port], fds: &[PollFd<'_>]) -> io::Result<()> {
        let Carrier { shared, wires } = self;
        let mut network = shared.lock();
        for (number, (port, fd)) in ports.iter().zip(fds).enumerate() {
            let reads = if is_ready(fd) { READS_PER_TURN } else { 0 };
            for _ in 0..reads {
                if !wires.receive(port, number, shared.clock, &mut network)? {
                    break;
                }
            }
        }
        Ok(())
    }
}

/// Whether a descriptor can be read, has failed or has been closed at its other end.
fn is_ready(fd: &PollFd<'_>) -> bool {
    fd.revents().is_none_or(|events| !events.is_empty())
}

/// Gives this thread real-time priority, or else the highest priority that the system allows, so
/// that packets leave when they are due. [`Lateness`](crate::Lateness) measures how well this
/// works.
fn prefer() {
    #[cfg(target_os = "linux")]
    {
        use thread_priority::{
            RealtimeThreadSchedulePolicy, ThreadPriority, ThreadPriorityValue,
            ThreadSchedulePolicy, set_thread_priority_and_policy, thread_native_id,
        };
        let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
        let priority = ThreadPriorityValue::try_from(1).map(ThreadPriority::Crossplatform);
        let is_set = priority.is_ok_and(|priority| {
            set_thread_priority_and_policy(thread_native_id(), priority, policy).is_ok()
        });
        if !is_set {
            let _ = rustix::process::setpriority_process(None, -20);
        }
        let _ = nix::sys::prctl::set_timerslack(1);
    }
}
