//! A hostile peer with a permitted key beside a well-behaved one.

use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use anabranch::SecretKey;

use crate::Failure;
use crate::attacks::{ATTACKS, Attack, HONEST};
use crate::hostile::Hostile;
use crate::newcomer::Newcomer;
use crate::receiver::{self, Receiver};
use crate::sender::{self, now};
use crate::stretch::Stretch;

/// A newcomer has to be connected within this time.
const ADMITTED: Duration = Duration::from_secs(5);
/// Packets of the hostile peer are sent in bunches at this interval.
const TICK: Duration = Duration::from_millis(1);
/// Time for a transfer to get going.
const WARM_UP: Duration = Duration::from_secs(2);
/// The longest stretch with or without an attack. The two alternate, so that other load of the machine affects both.
const STRETCH: Duration = Duration::from_secs(1);

/// Parameters of the measurement.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How long each attack lasts.
    pub time: Duration,
    /// Packets of the hostile peer a second.
    pub rate: u64,
    /// Bytes that the well-behaved peer sends a second; as fast as it can, if `None`.
    pub pace: Option<u64>,
    /// The least share of its goodput that the well-behaved peer has to keep, compared with its goodput while nobody
    /// reads the hostile peer's packets.
    pub least: f64,
    /// Attacks with one of these in their names; all if there are none.
    pub only: Vec<String>,
}

impl Plan {
    fn has(&self, attack: &Attack) -> bool {
        self.only.is_empty() || self.only.iter().any(|text| attack.name.contains(text))
    }
}

/// Two stretches, one after the other.
#[derive(Clone, Copy)]
struct Pair {
    /// While the hostile peer sends to a socket that nobody reads.
    alone: Stretch,
    /// While the hostile peer sends to the receiver.
    attacked: Stretch,
}

/// Prints the measurements, and keeps the worst of them.
struct Table<'a> {
    plan: &'a Plan,
    newcomer: Newcomer,
    /// The well-behaved peer's goodput beside a busy peer, bytes per second.
    beside: f64,
    worst: f64,
    memory: u64,
    longest: Duration,
}

/// Runs each attack.
pub fn run(plan: &Plan) -> Result<(), Failure> {
    let [neighbour, hostile, busy, newcomer] = keys()?;
    let known = [&neighbour, &hostile, &busy, &newcomer].map(SecretKey::public_key);
    let mut receiver = Receiver::start(&known)?;
    let _sender = sender::start(neighbour, receiver.key, receiver.address, plan.pace)?;
    std::thread::sleep(WARM_UP);
    let bound = receiver.ask()?.resident + receiver::most_memory() / 1000;
    let beside = beside_busy(&mut receiver, busy, plan)?;
    println!("beside a busy peer that keeps to the rules: {:.1} MB/s\n", beside / 1e6);
    println!(
        "{:<36} {:>11} {:>11} {:>13} {:>6} {:>9} {:>10} {:>9} {:>11}",
        "attack",
        "alone",
        "attacked",
        "ratio",
        "fair",
        "processor",
        "memory",
        "newcomer",
        "connections"
    );
    let newcomer = Newcomer::start(newcomer, receiver.key, receiver.address)?;
    let (worst, longest) = (f64::INFINITY, Duration::ZERO);
    let mut table = Table { plan, newcomer, beside, worst, memory: 0, longest };
    let chosen = ATTACKS.iter().filter(|attack| plan.has(attack));
    for attack in [&HONEST].into_iter().chain(chosen) {
        let peer = Hostile::new(hostile.clone(), receiver.key, receiver.address)?;
        let ratio = table.add(&mut receiver, peer, attack)?;
        if attack.name != HONEST.name {
            table.worst = table.worst.min(ratio);
        }
    }
    println!(
        "\nRatio: beside the hostile peer over beside one that sends the same to a socket that nobody reads, in turns of a \
         second, with twice its standard error. Fair: over beside a busy peer. Processor: what the hostile peer takes of \
         one at the receiver, beside what the bytes that are read cost. The goal is a ratio of 0.9. The most memory was {} kB, of {bound} kB that the limits allow; \
         a newcomer was in within {:.1} s.",
        table.memory,
        table.longest.as_secs_f64()
    );
    if table.worst < plan.least {
        return Err(format!("the well-behaved peer keeps {:.3} of its goodput", table.worst).into());
    }
    if table.memory > bound || table.longest > ADMITTED {
        return Err("too much memory, or newcomers wait too long".into());
    }
    Ok(())
}

fn keys() -> Result<[SecretKey; 4], Failure> {
    let one = SecretKey::generate;
    Ok([one()?, one()?, one()?, one()?])
}

/// The well-behaved peer's goodput beside a peer that sends as fast as it may and keeps to the rules.
fn beside_busy(receiver: &mut Receiver, busy: SecretKey, plan: &Plan) -> Result<f64, Failure> {
    let busy = sender::start(busy, receiver.key, receiver.address, None)?;
    std::thread::sleep(WARM_UP);
    let (stretch, ()) = Stretch::measure(receiver, || {
        std::thread::sleep(plan.time);
        Ok(())
    })?;
    drop(busy);
    std::thread::sleep(WARM_UP);
    Ok(stretch.goodput())
}

impl Table<'_> {
    fn add(
        &mut self,
        receiver: &mut Receiver,
        mut peer: Hostile,
        attack: &Attack,
    ) -> Result<f64, Failure> {
        let (plan, nobody) = (self.plan, UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?);
        peer.speak(attack.code);
        if !peer.connect()? {
            return Err("a permitted key got no connection".into());
        }
        self.newcomer.longest();
        let rounds = plan.time.div_duration_f64(STRETCH).ceil() as u32;
        let mut strike =
            Strike { attack, rate: plan.rate, time: plan.time / rounds, in_connection: [0; 2] };
        let mut pairs = Vec::new();
        for round in 0..rounds {
            let mut stretch = |attacks: bool| {
                peer.turn_to(if attacks { receiver.address } else { nobody.local_addr()? });
                Stretch::measure(receiver, || strike.go(&mut peer, attacks))
            };
            // The order alternates from round to round.
            let attacked_first = round % 2 == 1;
            let [(first, ()), (second, ())] = [stretch(attacked_first)?, stretch(!attacked_first)?];
            let (alone, attacked) = if attacked_first { (second, first) } else { (first, second) };
            pairs.push(Pair { alone, attacked });
        }
        let alone = mean(&pairs, |pair| pair.alone.goodput());
        let attacked = mean(&pairs, |pair| pair.attacked.goodput());
        let processor = mean(&pairs, |pair| pair.attacked.extra_share(&pair.alone));
        let (ratio, fair) = (attacked / alone, attacked / self.beside);
        let (memory, longest) = (receiver.ask()?.resident, self.newcomer.longest());
        println!(
            "{:<36} {:>6.1} MB/s {:>6.1} MB/s {ratio:>6.3} ±{:<5.3} {fair:>6.3} {:>7.1} % {memory:>7} kB {:>7.2} s {:>11}",
            attack.name,
            alone / 1e6,
            attacked / 1e6,
            error(&pairs, ratio) / alone,
            100.0 * processor,
            longest.as_secs_f64(),
            peer.connections(),
        );
        self.memory = self.memory.max(memory);
        self.longest = self.longest.max(longest);
        Ok(ratio)
    }
}

fn mean(pairs: &[Pair], of: impl Fn(&Pair) -> f64) -> f64 {
    pairs.iter().map(of).sum::<f64>() / pairs.len() as f64
}

/// Twice the standard error of the mean residual, attacked less `ratio` times alone; bytes per second.
fn error(pairs: &[Pair], ratio: f64) -> f64 {
    let square =
        mean(pairs, |pair| (pair.attacked.goodput() - ratio * pair.alone.goodput()).powi(2));
    2.0 * (square / (pairs.len() as f64 - 1.0).max(1.0)).sqrt()
}

/// An attack in progress.
struct Strike<'a> {
    attack: &'a Attack,
    /// Packets a second.
    rate: u64,
    /// How long each stretch of it lasts.
    time: Duration,
    /// Packets since the last connection began: sent to nobody, and to the receiver.
    in_connection: [u64; 2],
}

impl Strike<'_> {
    /// Attacks for a stretch. The peer reconnects when its connection is closed or its credit is used up; where nobody
    /// reads its packets, it only spends the same effort.
    fn go(&mut self, peer: &mut Hostile, listens: bool) -> Result<(), Failure> {
        let (start, mut sent) = (now(), 0);
        let in_connection = &mut self.in_connection[usize::from(listens)];
        while start.elapsed() < self.time {
            let due = (start.elapsed().as_secs_f64() * self.rate as f64) as u64;
            while sent < due && start.elapsed() < self.time {
                if *in_connection >= self.attack.lasts || (listens && peer.is_closed()) {
                    *in_connection = 0;
                    if !listens {
                        peer.connect_to_nobody()?;
                    } else if !peer.connect()? {
                        // The receiver refuses connections for now.
                        break;
                    }
                }
                (self.attack.strike)(peer, *in_connection)?;
                sent += 1;
                *in_connection += 1;
            }
            peer.listen()?;
            std::thread::sleep(TICK);
        }
        Ok(())
    }
}
