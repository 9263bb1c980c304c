use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use super::echo::{echo, exchange};
use super::processes::{PATIENCE, Running, free_port, get};
use super::{Served, refused, reloaded, replace};

/// A client with a file of settings, and the path of that file.
fn connected(served: &Served, lines: &str) -> (Running, String) {
    let file = served.home.path().join("connect.toml");
    write(served, lines);
    let file = file.to_str().unwrap().to_owned();
    (Running::start(&["connect", "--config", &file, "--json"]), file)
}

fn write(served: &Served, lines: &str) {
    let text = format!(
        "[interface]\nprivate-key-file = \"0.key\"\n[[peer]]\npublic-key = \"{}\"\nendpoint = \"{}\"\n{lines}\n",
        served.public, served.address
    );
    replace(&served.home.path().join("connect.toml"), &text);
}

/// A server that sends one byte to every client.
fn saying(byte: u8) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut tcp in listener.incoming().map_while(Result::ok) {
            let _ = tcp.write_all(&[byte]);
        }
    });
    port
}

/// The byte that a connection to `address` receives.
fn said(address: &str) -> u8 {
    let mut tcp = TcpStream::connect(address).unwrap();
    tcp.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut byte = [0];
    tcp.read_exact(&mut byte).unwrap();
    byte[0]
}

#[test]
fn forwards_come_lead_elsewhere_and_go_and_what_they_carry_goes_on() {
    let served = Served::new(1);
    served.write(&[(0, "permit-listen = [\"loopback\"]")]);
    let server = served.serve(&[]);
    let (echo, a, b) = (echo().port(), saying(b'a'), saying(b'b'));
    let (one, two, far) = (free_port(), free_port(), free_port());
    let (client, _) = connected(
        &served,
        &format!("local-forward = [\"{one}:127.0.0.1:{echo}\", \"{two}:127.0.0.1:{a}\"]"),
    );
    client.wait_for("connected", "peer");
    let mut open = TcpStream::connect(&one).unwrap();
    open.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut works = || {
        open.write_all(b"x").unwrap();
        open.read_exact(&mut [0]).unwrap();
    };
    works();
    assert_eq!(said(&two), b'a');
    // The first forward is removed, the second gets another target, and one of each other kind is
    // added.
    let socks = free_port();
    write(
        &served,
        &format!(
            "local-forward = [\"{two}:127.0.0.1:{b}\"]\nremote-forward = [\"{far}:127.0.0.1:{echo}\"]\n\
             dynamic-forward = [\"{socks}\"]\nname = \"home\""
        ),
    );
    let (changes, kept) = reloaded(&client);
    let to = |way: &str, bind: &str, port: u16| format!("{way} {bind} to 127.0.0.1:{port}");
    let expected = [
        to("local-forward", &two, b) + " added",
        format!("dynamic-forward {socks} added"),
        to("remote-forward", &far, echo) + " added",
        to("local-forward", &one, echo) + " removed",
        to("local-forward", &two, a) + " removed",
        format!("peer {}: name is home", served.public),
    ];
    assert_eq!((changes.as_slice(), kept.as_slice()), (&expected[..], &[][..]));
    works();
    assert_eq!(said(&two), b'b');
    assert!(TcpStream::connect(&one).is_err());
    assert!(TcpStream::connect(&socks).is_ok());
    assert_eq!(server.wait_for("listening", "address"), far);
    assert_eq!(exchange(&far, b"from there"), b"from there");
    write(&served, "");
    assert_eq!(reloaded(&client).0.len(), 4);
    let begun = std::time::Instant::now();
    while TcpStream::connect(&far).is_ok() {
        assert!(begun.elapsed() < PATIENCE, "the peer still listens");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(TcpStream::connect(&two).is_err());
    works();
}

#[test]
fn a_mistake_leaves_all_as_it_was() {
    let served = Served::new(1);
    served.write(&[(0, "")]);
    let _server = served.serve(&[]);
    let (one, echo) = (free_port(), echo().port());
    let first = format!("local-forward = [\"{one}:127.0.0.1:{echo}\"]");
    let (client, _) = connected(&served, &first);
    client.wait_for("connected", "peer");
    let taken = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let _taken = TcpListener::bind(taken).unwrap();
    for (lines, part) in [
        ("local-forward = [\"80\"]".to_owned(), "connect.toml:6:17: '80' is not accepted"),
        (
            format!("local-forward = [\"{taken}:127.0.0.1:{echo}\"]"),
            "another program has this port",
        ),
        ("endpint = \"x:1\"".to_owned(), "unknown field"),
    ] {
        write(&served, &lines);
        let why = refused(&client);
        assert!(why.contains(part), "{why}");
        assert_eq!(exchange(&one, b"as before"), b"as before");
    }
    // The next settings without a mistake are applied, and changes for the next connection are
    // reported as such.
    write(&served, &format!("{first}\npersistent-keepalive = 7\n[[path]]\nlocal = \"127.0.0.1\""));
    let (changes, kept) = reloaded(&client);
    assert_eq!(changes, ["path is 127.0.0.1 from the next connection on"]);
    assert_eq!(kept, ["persistent-keepalive stays 15 s until a restart, and is then 7 s"]);
    assert_eq!(exchange(&one, b"as before"), b"as before");
}

#[test]
fn the_counters_of_a_removed_forward_are_served_no_longer() {
    let served = Served::new(1);
    served.write(&[(0, "permit-udp = [\"loopback\"]")]);
    let _server = served.serve(&[]);
    let (metrics, socks, gone, new) = (free_port(), free_port(), free_port(), free_port());
    let forwards = |near: &str| {
        format!("udp-forward = [\"{near}:127.0.0.1:9\"]\ndynamic-forward = [\"{socks}\"]")
    };
    write(&served, &forwards(&gone));
    let file = served.home.path().join("connect.toml");
    let args = ["connect", "--config", file.to_str().unwrap(), "--json", "--metrics", &metrics];
    let client = Running::start(&args);
    client.wait_for("connected", "peer");
    let counted = || {
        let text = String::from_utf8(get(&metrics, "/metrics")).unwrap();
        [&gone, &new, &socks].map(|near| text.contains(&format!("forward=\"{near}")))
    };
    assert_eq!(counted(), [true, false, true]);
    write(&served, &forwards(&new));
    reloaded(&client);
    assert_eq!(counted(), [false, true, true]);
}
