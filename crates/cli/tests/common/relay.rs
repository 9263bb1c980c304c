//! A relay of UDP datagrams for one client. Like any program that forwards payloads instead of packets, it removes
//! congestion marks; it can also drop every n-th datagram in each direction.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// How soon the threads notice that they shall end.
const TURN: Duration = Duration::from_millis(100);

/// Two threads, ended when dropped.
pub struct Relay {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Relay {
    /// Relays what arrives at `at` to `to`, and answers to whoever sent last.
    pub fn start(at: &str, to: SocketAddr, drop_each: Option<u64>) -> Relay {
        let (outer, inner) = (UdpSocket::bind(at).unwrap(), UdpSocket::bind("0.0.0.0:0").unwrap());
        inner.connect(to).unwrap();
        for socket in [&outer, &inner] {
            socket.set_read_timeout(Some(TURN)).unwrap();
        }
        let over = Arc::new(AtomicBool::new(false));
        let client = Arc::new(Mutex::new(None));
        let passes = move |count: u64| drop_each.is_none_or(|each| count % each != each - 1);
        let out = {
            let (over, client) = (Arc::clone(&over), Arc::clone(&client));
            let (outer, inner) = (outer.try_clone().unwrap(), inner.try_clone().unwrap());
            std::thread::spawn(move || {
                let (mut buffer, mut count) = (vec![0; 1 << 16], 0);
                while !over.load(Ordering::Relaxed) {
                    let Ok((length, from)) = outer.recv_from(&mut buffer) else { continue };
                    *client.lock().unwrap() = Some(from);
                    if passes(count) {
                        let _ = inner.send(&buffer[..length]);
                    }
                    count += 1;
                }
            })
        };
        let back = {
            let over = Arc::clone(&over);
            std::thread::spawn(move || {
                let (mut buffer, mut count) = (vec![0; 1 << 16], 0);
                while !over.load(Ordering::Relaxed) {
                    let Ok(length) = inner.recv(&mut buffer) else { continue };
                    let client: Option<SocketAddr> = *client.lock().unwrap();
                    if let Some(client) = client.filter(|_| passes(count)) {
                        let _ = outer.send_to(&buffer[..length], client);
                    }
                    count += 1;
                }
            })
        };
        Relay { over, threads: vec![out, back] }
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
