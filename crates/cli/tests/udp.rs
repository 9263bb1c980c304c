//! `connect -U` and `serve --permit-udp` as processes, on loopback addresses.
#![allow(clippy::disallowed_methods, reason = "tests wait for real time")]

#[allow(dead_code, reason = "shared by the tests, each of which uses its part")]
#[path = "common/tunnel.rs"]
mod processes;

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use processes::{PATIENCE, Running, free_port, get, serving};

/// A UDP socket that gives back what comes, and its address.
fn echo() -> SocketAddr {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut buffer = [0; 65_535];
        while let Ok((len, from)) = socket.recv_from(&mut buffer) {
            let _ = socket.send_to(&buffer[..len], from);
        }
    });
    address
}

fn client(near: &str) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(near).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    socket
}

/// The answer to a datagram, which is sent until one comes.
fn asked(socket: &UdpSocket, bytes: &[u8]) -> Vec<u8> {
    let begun = Instant::now();
    let mut buffer = [0; 65_535];
    while begun.elapsed() < PATIENCE {
        socket.send(bytes).unwrap();
        if let Ok(len) = socket.recv(&mut buffer) {
            return buffer[..len].to_vec();
        }
    }
    panic!("nothing comes back");
}

/// The value of a metric, written with its labels.
fn figure(metrics: &str, name: &str) -> u64 {
    let text = String::from_utf8(get(metrics, "/metrics")).unwrap();
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value.unwrap_or_else(|| panic!("{name}: {text}")).parse().unwrap()
}

#[test]
fn datagrams_lead_there_and_back_and_are_counted() {
    let directory = tempfile::tempdir().unwrap();
    let (of_server, of_client) = (free_port(), free_port());
    let extra = ["--permit-udp", "loopback", "--metrics", &of_server];
    let (_server, address, public, key) = serving(directory.path(), &extra);
    let target = echo();
    let forward = format!("0:{target}");
    let mut args = vec!["connect", &address, "--peer", &public, "--key", &key, "--json"];
    args.extend(["--path", "127.0.0.1", "--path", "127.0.0.1"]);
    args.extend(["-U", &forward, "--metrics", &of_client]);
    let running = Running::start(&args);
    let event = running.event("listening");
    assert_eq!((&event["protocol"], &event["target"]), (&"udp".into(), &target.to_string().into()));
    let near = event["address"].as_str().unwrap().to_owned();
    let (one, other) = (client(&near), client(&near));
    for n in 0..100_u8 {
        assert_eq!(asked(&one, &[1, n]), [1, n]);
        assert_eq!(asked(&other, &[2, n]), [2, n]);
    }
    let forward = format!("forward=\"127.0.0.1:0 to {target}\"");
    let own = get(&of_server, "/metrics");
    let own = String::from_utf8(own).unwrap();
    let peer = own.lines().find_map(|line| line.strip_prefix("anabranch_udp_flows{")).unwrap();
    let peer = peer.split('}').next().unwrap();
    for (metrics, label) in [(&of_client, &*forward), (&of_server, peer)] {
        assert_eq!(figure(metrics, &format!("anabranch_udp_flows{{{label}}}")), 2);
        for direction in ["send", "receive"] {
            let label = format!("{label},direction=\"{direction}\"");
            assert!(figure(metrics, &format!("anabranch_udp_datagrams_total{{{label}}}")) >= 200);
            assert!(figure(metrics, &format!("anabranch_udp_bytes_total{{{label}}}")) >= 400);
        }
    }
    // The datagram is longer than any packet.
    assert_eq!(asked(&one, &[7; 5000]), [7; 5000]);
}

#[test]
fn nothing_is_sent_where_nothing_is_permitted() {
    let directory = tempfile::tempdir().unwrap();
    // Permission for TCP does not cover UDP.
    let (mut server, address, public, key) = serving(directory.path(), &["--permit", "any"]);
    let target = UdpSocket::bind("127.0.0.1:0").unwrap();
    target.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let forward = format!("0:{}", target.local_addr().unwrap());
    let metrics = free_port();
    let mut args = vec!["connect", &address, "--peer", &public, "--key", &key, "--json"];
    args.extend(["-U", &forward, "--metrics", &metrics]);
    let running = Running::start(&args);
    let near = running.wait_for("listening", "address");
    let reason = running.wait_for("failed", "reason");
    assert!(reason.as_str().unwrap().contains("--permit-udp"), "{reason}");
    client(near.as_str().unwrap()).send(b"x").unwrap();
    assert!(target.recv(&mut [0]).is_err());
    let label = format!("forward=\"127.0.0.1:0 to {}\"", target.local_addr().unwrap());
    let dropped = format!("anabranch_udp_dropped_total{{{label},reason=\"not-connected\"}}");
    assert_eq!(figure(&metrics, &dropped), 1);
    // The server is asked again every two seconds, and reports the refusal once.
    std::thread::sleep(Duration::from_secs(5));
    server.child.kill().unwrap();
    let failed = server.rest().into_iter().filter(|event| event["event"] == "failed");
    assert_eq!(failed.count(), 1);
}

/// A server that comes back is asked again, and a sender's flow goes on.
#[cfg(unix)]
#[test]
fn a_server_that_restarts_is_asked_again() {
    use nix::sys::signal::Signal;
    let directory = tempfile::tempdir().unwrap();
    let (server, address, public, key) = serving(directory.path(), &["--permit-udp", "loopback"]);
    let forward = format!("0:{}", echo());
    let args = ["connect", &address, "--peer", &public, "--key", &key, "--json", "-U", &forward];
    let running = Running::start(&args);
    let near = running.wait_for("listening", "address");
    let socket = client(near.as_str().unwrap());
    assert_eq!(asked(&socket, b"one"), b"one");
    server.signal(Signal::SIGTERM);
    running.wait_for("disconnected", "reason");
    drop(server);
    let own = processes::run(&["pubkey", &key]);
    let own = String::from_utf8(own.stdout).unwrap();
    let server_key = directory.path().join("server.key");
    let mut args = vec!["serve", "--listen", &address, "--permit-udp", "loopback", "--json"];
    args.extend(["--allow", own.trim(), "--key", server_key.to_str().unwrap()]);
    let _server = Running::start(&args);
    assert_eq!(asked(&socket, b"two"), b"two");
}
