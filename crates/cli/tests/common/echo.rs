//! A TCP echo server and its client.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// The longest wait for bytes.
const PATIENCE: Duration = Duration::from_secs(40);

/// Starts a server that sends back all that it reads, until the process ends.
pub fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut tcp in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || {
                let mut bytes = [0; 4096];
                while let Ok(count @ 1..) = tcp.read(&mut bytes) {
                    if tcp.write_all(&bytes[..count]).is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

/// Sends bytes to a server, and returns all that comes back.
pub fn exchange(address: &str, bytes: &[u8]) -> Vec<u8> {
    let mut tcp = TcpStream::connect(address).unwrap();
    tcp.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut writer = tcp.try_clone().unwrap();
    std::thread::scope(|scope| {
        // Both directions at once: neither side may wait for the other with its buffers full.
        scope.spawn(move || {
            writer.write_all(bytes).unwrap();
            writer.shutdown(Shutdown::Write).unwrap();
        });
        let mut back = Vec::new();
        tcp.read_to_end(&mut back).unwrap();
        back
    })
}
