//! Text from peers is treated as data, and peers learn no more than they should.

use std::net::SocketAddr;
use std::time::Duration;

use anabranch::{Config, Endpoint, PathSpec, PublicKey, SecretKey, TrafficClass};
use anabranch_transfer::{Code, Entry, Frame, Kind, Modified, Name, Preface, Role, Ticket};
use ring::digest::{SHA256, digest};
use tokio::time::timeout;

use super::process::Running;
use super::{Sides, as_holder};

/// Escape sequences, a line break, an override of the text direction, a C1 control, and a lot of
/// text.
fn nasty() -> String {
    let text = "\u{1b}]0;owned\u{7}\r\nanabranch: all is well \u{202e}gpj.exe\u{2066}\u{9b}31m";
    text.to_owned() + &"A".repeat(900)
}

/// Whether a text may appear on a terminal: no control characters but line ends, and nothing invisible.
fn is_plain(text: &str) -> bool {
    let hidden = |c: char| matches!(c, '\u{80}'..='\u{9f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !text.chars().any(|c| (c.is_control() && c != '\n') || hidden(c))
}

/// Connects, sends `bytes`, and closes with `reason` if there is one; returns what was received meanwhile.
async fn say(
    config: Config,
    (peer, remote): (PublicKey, SocketAddr),
    bytes: Vec<u8>,
    reason: Option<&str>,
) -> Vec<u8> {
    let local: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let endpoint = Endpoint::bind(config, [local]).unwrap();
    let paths = [PathSpec { local, remote }];
    let connection = endpoint.connect(peer, &paths[..]).await.unwrap();
    let (mut send, mut receive) = connection.open_bi(TrafficClass::Bulk).await.unwrap();
    send.write_all(&bytes).await.unwrap();
    let mut heard = Vec::new();
    let mut buffer = [0; 4096];
    // Reads until the peer has said nothing for a while.
    while let Ok(Ok(Some(count))) = timeout(Duration::from_secs(2), receive.read(&mut buffer)).await
    {
        heard.extend_from_slice(&buffer[..count]);
    }
    if let Some(reason) = reason {
        connection.close(7, reason);
    }
    let _ = timeout(Duration::from_secs(5), connection.closed()).await;
    let _ = timeout(Duration::from_secs(2), endpoint.wait_idle()).await;
    heard
}

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

fn frames(frames: &[Frame]) -> Vec<u8> {
    let mut bytes = Preface { role: Role::Offers }.encode().to_vec();
    frames.iter().for_each(|frame| frame.encode(&mut bytes));
    bytes
}

fn offer(name: &str, size: u64) -> Vec<u8> {
    let (name, modified) = (Name::new(name).unwrap(), Modified::default());
    let entry = Entry { name, kind: Kind::File, mode: 0o644, size, modified, target: None };
    frames(&[Frame::Entry(entry), Frame::OfferEnd { entries: 1 }])
}

fn ticket(sides: &Sides) -> (Running, Ticket) {
    let mut receiver = Running::start("recv --json --listen 127.0.0.1 --out", &[&sides.to()]);
    let (text, _) = receiver.ticket();
    (receiver, Ticket::parse(&text).unwrap())
}

#[test]
fn no_hash_of_what_is_here_is_sent() {
    let sides = Sides::new();
    std::fs::write(sides.to().join("diary"), b"dear diary").unwrap();
    let (receiver, ticket) = ticket(&sides);
    let to = (ticket.peer, ticket.addresses[0]);
    let heard = run(say(as_holder(&ticket), to, offer("diary", 10), None));
    receiver.kill();
    assert!(heard.len() > 8, "{heard:?}");
    let sum = digest(&SHA256, b"dear diary");
    assert!(!heard.windows(32).any(|window| window == sum.as_ref()), "the hash was told");
}

#[test]
fn a_failure_that_a_peer_tells_is_one_plain_line() {
    let sides = Sides::new();
    let (server_key, server) = sides.key("server");
    let (client_key, client) = sides.key("client");
    let line = format!("recv --json --quiet --listen 127.0.0.1 --allow {client} --key");
    let mut receiver = Running::start(&line, &[&server_key, "--out".as_ref(), &sides.to()]);
    let event = receiver.event();
    let remote = event["addresses"][0].as_str().unwrap().parse().unwrap();
    let peer = server.parse::<PublicKey>().unwrap();
    let key = SecretKey::load(&client_key).unwrap();
    let failed = Frame::Failed { code: Code::Storage, text: nasty().into() };
    run(say(Config::new(key), (peer, remote), frames(&[failed]), None));
    let stderr = receiver.interrupted().stderr;
    assert!(is_plain(&stderr), "{stderr:?}");
    assert_eq!(stderr.lines().count(), 1, "{stderr:?}");
    assert!(stderr.contains("all is well") && stderr.contains("\\u{202e}"), "{stderr:?}");
}

#[test]
fn a_reason_to_close_is_one_plain_line() {
    let sides = Sides::new();
    let (receiver, ticket) = ticket(&sides);
    let to = (ticket.peer, ticket.addresses[0]);
    run(say(as_holder(&ticket), to, offer("a", 5), Some(&nasty())));
    let stderr = receiver.interrupted().stderr;
    assert!(is_plain(&stderr), "{stderr:?}");
    assert!(stderr.contains("all is well"), "{stderr:?}");
    assert!(!stderr.lines().any(|line| line.starts_with("anabranch: all is well")), "{stderr:?}");
}

/// An offer of a file called `a` and a link, encoded by hand, since an honest sender cannot send
/// it.
fn offer_with_link(name: &str, target: &str, further: &str) -> Vec<u8> {
    let mut bytes = Preface { role: Role::Offers }.encode().to_vec();
    let mut entry = |kind: u8, size: usize, text: &str| {
        let mut payload = vec![kind, 0, 0];
        payload.extend((size as u64).to_be_bytes());
        payload.extend([0; 12]);
        payload.extend(text.as_bytes());
        bytes.push(3);
        bytes.extend((payload.len() as u32).to_be_bytes());
        bytes.extend(payload);
    };
    entry(0, 1, "a");
    entry(3, target.len(), &format!("{name}{target}"));
    if !further.is_empty() {
        entry(0, 1, further);
    }
    let entries = if further.is_empty() { 2 } else { 3 };
    Frame::OfferEnd { entries }.encode(&mut bytes);
    bytes
}

#[test]
fn links_that_lead_out_are_refused_before_anything_is_stored() {
    for (link, target, further, word) in [
        ("l", "/etc/passwd", "", "absolute"),
        ("l", "..", "", "the part '.' or '..'"),
        ("l", "../secret", "", "whose target is not on offer"),
        ("d/l", "../../secret", "", "whose target is not on offer"),
        ("l", "a/../../secret", "", "the part '.' or '..'"),
        ("l", "mine", "", "whose target is not on offer"),
        ("l", "l", "", "whose target is not on offer"),
        ("l", ".anabranch-0.part", "", "reserved for partial files"),
        ("l", "a", "l/x", "both as a file and as a directory"),
        ("l", "a", "l", "two entries have the name"),
        ("../l", "a", "", "the part '.' or '..'"),
    ] {
        let sides = Sides::new();
        std::fs::write(sides.to().join("mine"), b"mine").unwrap();
        std::fs::write(sides.to().with_file_name("secret"), b"secret").unwrap();
        let (receiver, ticket) = ticket(&sides);
        let to = (ticket.peer, ticket.addresses[0]);
        run(say(as_holder(&ticket), to, offer_with_link(link, target, further), None));
        let line = receiver.end().failed(1);
        assert!(line.contains("broke the protocol") && line.contains(word), "{target}: {line}");
        assert_eq!(sides.names(), ["mine"], "{target}");
    }
}

#[test]
fn a_link_over_a_file_is_refused() {
    let sides = Sides::new();
    std::fs::write(sides.to().join("mine"), b"mine").unwrap();
    std::fs::write(sides.to().join("a"), b"x").unwrap();
    let (receiver, ticket) = ticket(&sides);
    let to = (ticket.peer, ticket.addresses[0]);
    let mut bytes = offer_with_link("mine", "a", "");
    let sum = digest(&SHA256, b"x").as_ref().try_into().unwrap();
    Frame::Sum { index: 0, offset: 1, sum }.encode(&mut bytes);
    run(say(as_holder(&ticket), to, bytes, None));
    let line = receiver.end().failed(1);
    assert!(line.contains("mine exists already"), "{line}");
    assert_eq!(sides.arrived("mine"), b"mine");
    assert!(!sides.to().join("mine").is_symlink());
}

#[test]
fn a_name_is_shown_as_data() {
    let sides = Sides::new();
    std::fs::write(sides.to().join("a\u{202e}gpj.exe"), b"mine").unwrap();
    let (receiver, ticket) = ticket(&sides);
    let to = (ticket.peer, ticket.addresses[0]);
    run(say(as_holder(&ticket), to, offer("a\u{202e}gpj.exe", 5), None));
    let ended = receiver.end();
    assert!(is_plain(&ended.stderr), "{:?}", ended.stderr);
    assert!(ended.failed(1).contains("a\\u{202e}gpj.exe"));
}
