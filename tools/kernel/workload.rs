//! The measurements besides the goodput: short flows, the pause when a path fails, and the delay of messages. Each is
//! the same for every transport, which only has to make connections.

use std::io;
use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

/// A transport between the two sides.
pub trait Transport {
    /// A stream both ways.
    type Stream: AsyncRead + AsyncWrite + Unpin;
    /// A value that has to be kept as long as the stream is used.
    type Guard;

    /// A new connection to the receiver, with one stream.
    async fn open(&self) -> Result<(Self::Stream, Self::Guard), String>;

    /// The next stream that the sender opened.
    async fn accept(&self) -> Result<(Self::Stream, Self::Guard), String>;

    /// Waits until the other side has been told that connections are over.
    async fn end(&self) {}
}

/// One of the measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// The longest pause between deliveries of a bulk stream while the first path goes dark.
    Gap,
    /// [`FLOWS`] times 100 KB, one after the other, each in a connection of its own.
    Flows,
    /// A message of 1000 bytes every 20 ms: how long each takes to arrive.
    Messages,
}

/// Flows, and the bytes of one.
pub const FLOWS: usize = 20;
const FLOW: usize = 100_000;
/// Time between two messages, and the bytes of one.
const EVERY: Duration = Duration::from_millis(20);
const MESSAGE: usize = 1000;
/// Pauses count only from this time of a connection on, when it has found its rate. A silence at the end that is
/// shorter than this counts as resumed.
const SETTLED: Duration = Duration::from_secs(1);
/// How long the last messages are waited for.
const GRACE: Duration = Duration::from_secs(2);
/// How long the sender goes on at most after the receiver's time is over, and how long it tries to connect.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes written and read at a time.
const PIECE: usize = 1 << 16;

impl Workload {
    /// Every workload.
    pub const ALL: [Workload; 3] = [Workload::Flows, Workload::Gap, Workload::Messages];

    /// The workload's name in options and arguments.
    pub fn name(self) -> &'static str {
        match self {
            Workload::Gap => "gap",
            Workload::Flows => "flows",
            Workload::Messages => "messages",
        }
    }

    /// The workload of this name.
    pub fn named(name: &str) -> Option<Self> {
        Workload::ALL.into_iter().find(|it| it.name() == name)
    }

    /// The longest time that the workload takes once it is connected.
    pub fn time(self) -> Duration {
        Duration::from_secs(match self {
            Workload::Gap => 10,
            Workload::Flows => 20,
            Workload::Messages => 8,
        })
    }

    /// The sender's part; returns what it saw.
    ///
    /// # Errors
    /// In words, when a connection fails.
    pub async fn send(self, transport: &impl Transport) -> Result<Value, String> {
        match self {
            Workload::Gap => pour(transport, self.time()).await,
            Workload::Flows => flows(transport, self.time()).await,
            Workload::Messages => messages(transport, self.time()).await,
        }
    }

    /// The receiver's part; returns what it saw.
    ///
    /// # Errors
    /// In words, when a connection fails.
    pub async fn receive(self, transport: &impl Transport) -> Result<Value, String> {
        match self {
            Workload::Gap => pauses(transport, self.time()).await,
            Workload::Flows => answer(transport, self.time()).await,
            Workload::Messages => delays(transport, self.time()).await,
        }
    }
}

/// Opens a connection; tries again while nobody listens yet.
async fn open<T: Transport>(transport: &T) -> Result<(T::Stream, T::Guard), String> {
    let begun = Instant::now();
    loop {
        match transport.open().await {
            Err(_) if begun.elapsed() < PATIENCE => sleep(Duration::from_millis(10)).await,
            done => return done,
        }
    }
}

/// Writes until the receiver has enough.
async fn pour(transport: &impl Transport, time: Duration) -> Result<Value, String> {
    let end = Instant::now() + 2 * time + PATIENCE;
    if let Ok(opened) = timeout_at(end, open(transport)).await {
        let ((mut stream, _guard), piece) = (opened?, [0x5a; PIECE]);
        while let Ok(Ok(_)) = timeout_at(end, stream.write(&piece)).await {}
    }
    Ok(json!({}))
}

/// The longest time in which nothing arrived.
async fn pauses(transport: &impl Transport, time: Duration) -> Result<Value, String> {
    let Ok(accepted) = timeout(2 * time, transport.accept()).await else {
        return Ok(json!({ "gap_ms": null, "resumed": false }));
    };
    let ((mut stream, _guard), mut buffer) = (accepted?, vec![0; PIECE]);
    let begun = Instant::now();
    let (mut last, mut longest) = (begun + SETTLED, Duration::ZERO);
    let end = begun + time;
    while let Ok(read) = timeout_at(end, stream.read(&mut buffer)).await {
        if read.map_err(|error| format!("cannot receive: {error}"))? == 0 {
            return Err("the sender ended too early".to_owned());
        }
        let at = Instant::now();
        longest = longest.max(at.saturating_duration_since(last));
        last = last.max(at);
    }
    let silent = end.saturating_duration_since(last);
    let gap_ms = longest.max(silent).as_secs_f64() * 1e3;
    Ok(json!({ "gap_ms": gap_ms, "resumed": silent < SETTLED }))
}

/// Sends flow after flow, and measures each; one before them is not counted, since the receiver may not be there yet.
async fn flows(transport: &impl Transport, time: Duration) -> Result<Value, String> {
    let failed = |error: io::Error| format!("a flow: {error}");
    timeout(time, flow(transport)).await.unwrap_or(Ok(())).map_err(failed)?;
    let end = Instant::now() + time;
    let (mut took, mut finished) = (Vec::new(), true);
    while finished && took.len() < FLOWS {
        let begun = Instant::now();
        match timeout_at(end, flow(transport)).await {
            Ok(done) => done.map_err(failed)?,
            Err(_) => finished = false,
        }
        took.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    Ok(json!({ "flows_ms": took, "finished": finished }))
}

/// Sends one flow in a new connection; returns when the receiver is known to have everything.
async fn flow(transport: &impl Transport) -> io::Result<()> {
    let (mut stream, _guard) = open(transport).await.map_err(io::Error::other)?;
    stream.write_all(&[0x5a; FLOW]).await?;
    stream.shutdown().await?;
    while stream.read(&mut [0]).await? > 0 {}
    Ok(())
}

/// Reads each flow to its end and confirms it by ending the way back.
async fn answer(transport: &impl Transport, time: Duration) -> Result<Value, String> {
    let (end, mut buffer, mut done) =
        (Instant::now() + 2 * time + PATIENCE, vec![0; PIECE], Vec::new());
    while let Ok(accepted) = timeout_at(end, transport.accept()).await {
        let (mut stream, guard) = accepted?;
        // A flow that the sender gave up ends this loop too.
        while let Ok(1..) = stream.read(&mut buffer).await {}
        let _ = stream.shutdown().await;
        // Dropping the stream now would cut off its end, which is still being delivered.
        done.push((stream, guard));
    }
    Ok(json!({}))
}

/// Sends a message every 20 ms; each begins with the time at which it was due.
async fn messages(transport: &impl Transport, time: Duration) -> Result<Value, String> {
    let end = Instant::now() + 2 * time + PATIENCE;
    let Ok(opened) = timeout_at(end, open(transport)).await else { return Ok(json!({})) };
    let (mut stream, _guard) = opened?;
    let (begun, stamp) = (Instant::now(), clock()?);
    for number in 0..number_of_messages(time) {
        let after = EVERY * number;
        sleep_until(begun + after).await;
        let mut message = [0x5a; MESSAGE];
        let due = stamp + u64::try_from(after.as_nanos()).unwrap_or(u64::MAX);
        message.iter_mut().zip(due.to_be_bytes()).for_each(|(place, byte)| *place = byte);
        match timeout_at(end, stream.write_all(&message)).await {
            Ok(Ok(())) => {}
            // The receiver has stopped waiting.
            _ => return Ok(json!({})),
        }
        let _ = stream.flush().await;
    }
    let _ = timeout_at(end, stream.read(&mut [0])).await;
    Ok(json!({}))
}

fn number_of_messages(time: Duration) -> u32 {
    time.div_duration_f64(EVERY) as u32
}

/// Measures the delay of each message; a message that is missing at the end counts with the time
/// until then.
async fn delays(transport: &impl Transport, time: Duration) -> Result<Value, String> {
    let Ok(accepted) = timeout(2 * time, transport.accept()).await else {
        return Ok(json!({ "delays_ms": [], "missing": number_of_messages(time) }));
    };
    let ((mut stream, _guard), end) = (accepted?, Instant::now() + time + GRACE);
    let (mut first, mut took, mut message) = (clock()?, Vec::new(), [0; MESSAGE]);
    let expected = number_of_messages(time);
    for number in 0..expected {
        let Ok(read) = timeout_at(end, stream.read_exact(&mut message)).await else { break };
        read.map_err(|error| format!("cannot receive: {error}"))?;
        let stamp = message.first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes));
        if number == 0 {
            first = stamp;
        }
        took.push(millis(clock()?.saturating_sub(stamp)));
    }
    let arrived = u32::try_from(took.len()).unwrap_or(expected);
    let over = clock()?;
    let due = |number| first + u64::try_from((EVERY * number).as_nanos()).unwrap_or(0);
    took.extend((arrived..expected).map(|number| millis(over.saturating_sub(due(number)))));
    Ok(json!({ "delays_ms": took, "missing": expected - arrived }))
}

fn millis(nanoseconds: u64) -> f64 {
    nanoseconds as f64 * 1e-6
}

/// A clock that both sides share, since they are on one machine: nanoseconds.
fn clock() -> Result<u64, String> {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).map_err(|error| error.to_string())?;
    u64::try_from(Duration::from(time).as_nanos()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::collections::VecDeque;

    use tokio::io::{DuplexStream, duplex};

    use super::*;

    /// Streams within this process; the receiver gets the nth only after some time.
    struct Within {
        waiting: RefCell<VecDeque<DuplexStream>>,
        opened: Cell<u32>,
        hold: Duration,
    }

    impl Transport for Within {
        type Stream = DuplexStream;
        type Guard = ();

        async fn open(&self) -> Result<(DuplexStream, ()), String> {
            let (ours, theirs) = duplex(1 << 20);
            self.waiting.borrow_mut().push_back(theirs);
            self.opened.set(self.opened.get() + 1);
            Ok((ours, ()))
        }

        async fn accept(&self) -> Result<(DuplexStream, ()), String> {
            loop {
                let next = self.waiting.borrow_mut().pop_front();
                match next {
                    Some(stream) => {
                        sleep(self.hold).await;
                        return Ok((stream, ()));
                    }
                    None => sleep(Duration::from_millis(1)).await,
                }
            }
        }
    }

    /// Runs both sides of a workload; time advances at once where both wait.
    fn run(workload: Workload, hold: Duration) -> (Value, Value, u32) {
        let builder = tokio::runtime::Builder::new_current_thread().enable_time().build();
        builder.expect("a runtime").block_on(async {
            let transport = Within { waiting: RefCell::default(), opened: Cell::new(0), hold };
            let sending = workload.send(&transport);
            let receiving = async {
                let most = workload.time() + Duration::from_secs(4);
                timeout(most, workload.receive(&transport)).await.unwrap_or(Ok(Value::Null))
            };
            let (sent, received) = if workload == Workload::Flows {
                tokio::select! {
                    sent = sending => (sent.expect("sends"), Value::Null),
                    _ = receiving => panic!("the receiver of flows waits for more"),
                }
            } else {
                tokio::select! {
                    received = receiving => (Value::Null, received.expect("receives")),
                    _ = async { let _ = sending.await; std::future::pending::<()>().await } => {
                        unreachable!()
                    }
                }
            };
            (sent, received, transport.opened.get())
        })
    }

    #[test]
    fn flows_take_as_long_as_they_are_held_up() {
        let (sent, _, opened) = run(Workload::Flows, Duration::from_millis(30));
        let flows = sent["flows_ms"].as_array().expect("flows");
        assert_eq!((flows.len(), opened), (FLOWS, 1 + FLOWS as u32));
        assert!(flows.iter().all(|took| (30.0..200.0).contains(&took.as_f64().expect("number"))));
        assert_eq!(sent["finished"], true);
    }

    #[test]
    fn messages_take_longer_while_nobody_reads() {
        let (_, received, _) = run(Workload::Messages, Duration::from_millis(500));
        let took: Vec<f64> = received["delays_ms"]
            .as_array()
            .expect("delays")
            .iter()
            .map(|it| it.as_f64().expect("number"))
            .collect();
        assert_eq!((took.len(), &received["missing"]), (400, &json!(0)));
        assert!((450.0..700.0).contains(&took[0]), "{took:?}");
        assert!(took[399] < 100.0, "{took:?}");
    }

    #[test]
    fn names_are_those_of_options() {
        for workload in Workload::ALL {
            assert_eq!(Workload::named(workload.name()), Some(workload));
        }
        assert_eq!(Workload::named("speed"), None);
    }
}
