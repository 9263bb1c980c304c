//! A hostile peer with a permitted key beside a well-behaved one.

use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use anabranch::SecretKey;

use crate::Failure;
use crate::attacks::{ATTACKS, Attack};
use crate::hostile::Hostile;
use crate::newcomer::Newcomer;
use crate::receiver::{self, Receiver};
use crate::sender::{self, now};

/// The longest time in which a newcomer is connected.
const ADMITTED: Duration = Duration::from_secs(5);
/// Packets of the hostile peer are sent in bunches at this interval.
const TICK: Duration = Duration::from_millis(1);
/// Time for a transfer to get going.
const WARM_UP: Duration = Duration::from_secs(2);

/// What is measured, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// How long each attack lasts.
    pub time: Duration,
    /// Packets of the hostile peer a second.
    pub rate: u64,
    /// Bytes that the well-behaved peer sends a second; as fast as it can, if `None`.
    pub pace: Option<u64>,
    /// The least share of its goodput that the well-behaved peer has to keep, compared with a hostile peer whose packets
    /// nobody reads.
    pub least: f64,
}

/// The measurements, and the worst of them.
struct Table {
    plan: Plan,
    newcomer: Newcomer,
    /// Goodput beside a busy peer.
    beside: f64,
    worst: f64,
    memory: u64,
    longest: Duration,
}

/// Runs each attack.
pub fn run(plan: Plan) -> Result<(), Failure> {
    let [neighbour, hostile, busy, newcomer] = keys()?;
    let known = [&neighbour, &hostile, &busy, &newcomer].map(SecretKey::public_key);
    let mut receiver = Receiver::start(&known)?;
    let _sender = sender::start(neighbour, receiver.key, receiver.address, plan.pace)?;
    std::thread::sleep(WARM_UP);
    let bound = receiver.ask()?.resident + receiver::most_memory() / 1000;
    let beside = beside_busy(&mut receiver, busy, plan)?;
    println!("beside a busy peer that keeps to the rules: {:.1} MB/s\n", beside / 1e6);
    println!(
        "{:<36} {:>11} {:>11} {:>6} {:>6} {:>10} {:>9} {:>11}",
        "attack", "alone", "attacked", "ratio", "fair", "memory", "newcomer", "connections"
    );
    let newcomer = Newcomer::start(newcomer, receiver.key, receiver.address)?;
    let (worst, longest) = (f64::INFINITY, Duration::ZERO);
    let mut table = Table { plan, newcomer, beside, worst, memory: 0, longest };
    for attack in ATTACKS {
        let peer = Hostile::new(hostile.clone(), receiver.key, receiver.address)?;
        table.add(&mut receiver, peer, attack)?;
    }
    println!(
        "\nRatio: beside the hostile peer over beside one that sends the same to a socket that nobody reads. Fair: over \
         beside a busy peer. The goal is a ratio of 0.9. The most memory was {} kB, of {bound} kB that the limits allow; \
         a newcomer was in within {:.1} s.",
        table.memory,
        table.longest.as_secs_f64()
    );
    if table.worst < plan.least {
        return Err(format!("the well-behaved peer keeps {:.3} of its goodput", table.worst).into());
    }
    if table.memory > bound || table.longest > ADMITTED {
        return Err("memory or newcomers suffer".into());
    }
    Ok(())
}

fn keys() -> Result<[SecretKey; 4], Failure> {
    let one = SecretKey::generate;
    Ok([one()?, one()?, one()?, one()?])
}

/// Goodput beside a peer that sends as fast as it may, and keeps to the rules.
fn beside_busy(receiver: &mut Receiver, busy: SecretKey, plan: Plan) -> Result<f64, Failure> {
    let busy = sender::start(busy, receiver.key, receiver.address, None)?;
    std::thread::sleep(WARM_UP);
    let beside = goodput(receiver, || {
        std::thread::sleep(plan.time);
        Ok(())
    })?;
    drop(busy);
    std::thread::sleep(WARM_UP);
    Ok(beside)
}

impl Table {
    fn add(
        &mut self,
        receiver: &mut Receiver,
        mut peer: Hostile,
        attack: &Attack,
    ) -> Result<(), Failure> {
        let Table { plan, ref newcomer, .. } = *self;
        peer.speak(attack.code);
        if !peer.connect()? {
            return Err("a permitted key got no connection".into());
        }
        // Half of the time the hostile peer sends the same to a socket that nobody reads.
        let nobody = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        peer.turn_to(nobody.local_addr()?);
        let alone = goodput(receiver, || strike(&mut peer, attack, plan, false))?;
        peer.turn_to(receiver.address);
        newcomer.longest();
        let under = goodput(receiver, || strike(&mut peer, attack, plan, true))?;
        let (ratio, fair) = (under / alone, under / self.beside);
        let (memory, longest) = (receiver.ask()?.resident, newcomer.longest());
        println!(
            "{:<36} {:>6.1} MB/s {:>6.1} MB/s {ratio:>6.3} {fair:>6.3} {memory:>7} kB {:>7.2} s {:>11}",
            attack.name,
            alone / 1e6,
            under / 1e6,
            longest.as_secs_f64(),
            peer.connections(),
        );
        self.worst = self.worst.min(ratio);
        self.memory = self.memory.max(memory);
        self.longest = self.longest.max(longest);
        Ok(())
    }
}

fn goodput(
    receiver: &mut Receiver,
    meanwhile: impl FnOnce() -> Result<(), Failure>,
) -> Result<f64, Failure> {
    let (before, start) = (receiver.ask()?.read, now());
    meanwhile()?;
    let read = receiver.ask()?.read - before;
    Ok(read as f64 / start.elapsed().as_secs_f64())
}

/// Attacks for a time. Where the victim receives it, the peer connects anew when its connection is closed or its credit
/// is used up.
fn strike(peer: &mut Hostile, attack: &Attack, plan: Plan, listens: bool) -> Result<(), Failure> {
    let (start, mut sent, mut in_connection) = (now(), 0, 0);
    while start.elapsed() < plan.time {
        let due = (start.elapsed().as_secs_f64() * plan.rate as f64) as u64;
        while sent < due {
            let used_up = in_connection >= attack.lasts;
            if used_up || peer.is_closed() {
                in_connection = 0;
                if listens && !peer.connect()? {
                    // It is refused for now.
                    break;
                }
            }
            (attack.strike)(peer, in_connection)?;
            sent += 1;
            in_connection += 1;
        }
        peer.listen()?;
        std::thread::sleep(TICK);
    }
    Ok(())
}
