//! A hostile peer with a permitted key beside a well-behaved one.

use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use anabranch::{PublicKey, SecretKey};

use crate::Failure;
use crate::attacks::{ATTACKS, Attack};
use crate::hostile::Hostile;
use crate::receiver::{self, Receiver};
use crate::sender::{self, now};

/// Of its goodput the well-behaved peer keeps at least this.
const LEAST: f64 = 0.9;
/// Application bytes that it sends a second.
const RATE: u64 = 10_000_000;
/// Packets of the hostile peer are sent in bunches at this interval.
const TICK: Duration = Duration::from_millis(1);

/// Runs each attack for `seconds`, with `rate` packets a second.
pub fn run(seconds: u64, rate: u64) -> Result<(), Failure> {
    let (neighbour, hostile) = (SecretKey::generate()?, SecretKey::generate()?);
    let keys = [neighbour.public_key(), hostile.public_key()];
    let mut receiver = Receiver::start(&keys)?;
    let _sender = sender::start(neighbour, receiver.key, receiver.address, Some(RATE))?;
    std::thread::sleep(Duration::from_secs(2));
    // Half of the time the hostile peer sends the same to a socket that nobody reads.
    let nobody = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let bound = receiver.ask()?.resident + receiver::most_memory() / 1000;
    let time = Duration::from_secs(seconds);
    println!("{:<36} {:>11} {:>11} {:>6} {:>10}", "attack", "alone", "attacked", "ratio", "memory");
    let mut worst = f64::INFINITY;
    let mut most = 0;
    for attack in ATTACKS {
        let mut peer = Hostile::new(hostile.clone(), receiver.key, receiver.address)?;
        peer.connect()?;
        peer.turn_to(nobody.local_addr()?);
        let alone = goodput(&mut receiver, || strike(&mut peer, attack, rate, time, None))?;
        peer.turn_to(receiver.address);
        let key = receiver.key;
        let under = goodput(&mut receiver, || strike(&mut peer, attack, rate, time, Some(key)))?;
        let (ratio, memory) = (under / alone, receiver.ask()?.resident);
        println!(
            "{:<36} {:>6.1} MB/s {:>6.1} MB/s {ratio:>6.3} {memory:>7} kB",
            attack.name,
            alone / 1e6,
            under / 1e6,
        );
        worst = worst.min(ratio);
        most = most.max(memory);
    }
    println!("\nThe most memory was {most} kB, of {bound} kB that the limits allow.");
    if worst < LEAST || most > bound {
        return Err(format!("the well-behaved peer keeps {worst:.3} of its goodput").into());
    }
    Ok(())
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

/// Attacks for a time; where there is a victim, in connections of their own.
fn strike(
    peer: &mut Hostile,
    attack: &Attack,
    rate: u64,
    time: Duration,
    victim: Option<PublicKey>,
) -> Result<(), Failure> {
    let (start, mut sent, mut in_connection) = (now(), 0, 0);
    while start.elapsed() < time {
        let due = (start.elapsed().as_secs_f64() * rate as f64) as u64;
        while sent < due {
            if in_connection >= attack.lasts && victim.is_some() {
                peer.connect()?;
            }
            in_connection = if in_connection >= attack.lasts { 0 } else { in_connection };
            (attack.strike)(peer, in_connection)?;
            sent += 1;
            in_connection += 1;
        }
        peer.drain()?;
        std::thread::sleep(TICK);
    }
    Ok(())
}
