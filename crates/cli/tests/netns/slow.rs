//! Links with delay and loss. Few kernels have netem, so the router passes the packets of such a link through a tunnel
//! device; a thread reads them there, drops some, delays the rest and writes them back.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::time::Instant;
use tokio_tun::Tun;

use crate::lab::Lab;

/// Datagrams are no longer than the links' MTU.
const LONGEST: usize = 2048;

/// Delay and loss of every link of a lab, undone when dropped.
pub struct Slow {
    runtime: Option<Runtime>,
}

impl Slow {
    /// Gives the links of `lab`, in their order, a delay and a loss in packets per thousand, each
    /// in both directions. Without tunnel devices in the kernel, prints that and returns `None`.
    pub fn new(lab: &Lab, links: &[(Duration, u32)]) -> Option<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        for (link, (delay, per_mille)) in (1..).zip(links) {
            let name = format!("t{link}");
            let made = lab.inside("r", |_| {
                let _inside = runtime.enter();
                Tun::builder().name(&name).up().build()
            });
            let Ok(mut devices) = made else {
                println!("skipped: the kernel has no tunnel devices");
                return None;
            };
            let device = devices.pop().unwrap();
            lab.ip("r", &["link", "set", &name, "txqueuelen", "2000"]);
            divert(lab, link, &name);
            runtime.spawn(carry(device, *delay, *per_mille, link.into()));
        }
        Some(Slow { runtime: Some(runtime) })
    }
}

/// The router's packets from and to a link go to a device first.
fn divert(lab: &Lab, link: u8, device: &str) {
    let table = format!("{}", 100 + u32::from(link));
    lab.ip("r", &["route", "add", "default", "dev", device, "table", &table]);
    let (from, to) = (format!("r{link}"), format!("10.77.{link}.0/24"));
    lab.ip("r", &["rule", "add", "pref", "20", "iif", &from, "lookup", &table]);
    lab.ip("r", &["rule", "add", "pref", "20", "iif", "rs", "to", &to, "lookup", &table]);
}

/// Writes each packet from the device back after `delay`, until the device is gone.
async fn carry(device: Tun, delay: Duration, per_mille: u32, seed: u64) {
    let mut held: VecDeque<(Instant, Vec<u8>)> = VecDeque::new();
    let (mut buffer, mut dice) = ([0; LONGEST], seed);
    loop {
        let due = held.front().map(|(due, _)| *due);
        tokio::select! {
            read = device.recv(&mut buffer) => {
                let Ok(length) = read else { return };
                dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                if (dice >> 33) % 1000 >= per_mille.into() {
                    held.push_back((Instant::now() + delay, buffer[..length].to_vec()));
                }
            }
            () = tokio::time::sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                while held.front().is_some_and(|(due, _)| *due <= Instant::now()) {
                    let (_, packet) = held.pop_front().unwrap();
                    // A packet for which the device has no room is lost.
                    let _ = device.try_send(&packet);
                }
            }
        }
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
