//! A relay of UDP datagrams for one client. Like any program that forwards payloads instead of packets, it removes
//! congestion marks; it can also drop every n-th datagram in each direction.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// Interval at which the threads check whether they have to end.
const TURN: Duration = Duration::from_millis(100);

/// A running relay. Its two threads end when this is dropped.
pub struct Relay {
    /// Address at which the relay listens.
    pub address: SocketAddr,
    carried: Arc<Mutex<Vec<Vec<u8>>>>,
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Relay {
    /// Relays what arrives at `at` to `to`, and the answers to the last sender.
    pub fn start(at: &str, to: SocketAddr, drop_each: Option<u64>) -> Relay {
        let (outer, inner) = (UdpSocket::bind(at).unwrap(), UdpSocket::bind("0.0.0.0:0").unwrap());
        inner.connect(to).unwrap();
        for socket in [&outer, &inner] {
            socket.set_read_timeout(Some(TURN)).unwrap();
        }
        let address = outer.local_addr().unwrap();
        let carried = Arc::new(Mutex::new(Vec::new()));
        let over = Arc::new(AtomicBool::new(false));
        let client = Arc::new(Mutex::new(None));
        let passes = move |count: u64| drop_each.is_none_or(|each| count % each != each - 1);
        let out = {
            let (over, client) = (Arc::clone(&over), Arc::clone(&client));
            let carried = Arc::clone(&carried);
            let (outer, inner) = (outer.try_clone().unwrap(), inner.try_clone().unwrap());
            std::thread::spawn(move || {
                let (mut buffer, mut count) = (vec![0; 1 << 16], 0);
                while !over.load(Ordering::Relaxed) {
                    let Ok((length, from)) = outer.recv_from(&mut buffer) else { continue };
                    *client.lock().unwrap() = Some(from);
                    if passes(count) {
                        carried.lock().unwrap().push(buffer[..length].to_vec());
                        let _ = inner.send(&buffer[..length]);
                    }
                    count += 1;
                }
            })
        };
        let back = {
            let (over, carried) = (Arc::clone(&over), Arc::clone(&carried));
            std::thread::spawn(move || {
                let (mut buffer, mut count) = (vec![0; 1 << 16], 0);
                while !over.load(Ordering::Relaxed) {
                    let Ok(length) = inner.recv(&mut buffer) else { continue };
                    let client: Option<SocketAddr> = *client.lock().unwrap();
                    if let Some(client) = client.filter(|_| passes(count)) {
                        carried.lock().unwrap().push(buffer[..length].to_vec());
                        let _ = outer.send_to(&buffer[..length], client);
                    }
                    count += 1;
                }
            })
        };
        Relay { address, carried, over, threads: vec![out, back] }
    }

    /// The datagrams of both directions that were passed on, in order.
    pub fn carried(&self) -> Vec<Vec<u8>> {
        self.carried.lock().unwrap().clone()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
