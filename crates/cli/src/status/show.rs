//! Prints the state of running commands.

use std::fmt::Write;
use std::time::Duration;

use super::{Path, Peer, State};
use crate::format;

/// State of the running commands as of `now`, with the rates since `before`, `seconds` earlier.
pub(super) fn text(before: &[State], now: &[State], seconds: f64) -> String {
    let mut text = String::new();
    for state in now {
        let earlier = before.iter().find(|earlier| earlier.pid == state.pid);
        if !text.is_empty() {
            text.push('\n');
        }
        one(&mut text, earlier.unwrap_or(state), state, seconds);
    }
    text
}

fn one(text: &mut String, before: &State, now: &State, seconds: f64) {
    let _ = writeln!(text, "{} (process {})", now.command, now.pid);
    let _ = writeln!(text, "  public key: {}", now.public_key);
    if !now.listening.is_empty() {
        let listening: Vec<String> = now.listening.iter().map(ToString::to_string).collect();
        let _ = writeln!(text, "  listening: {}", listening.join(", "));
    }
    let of = &now.forwards;
    if of.opened + of.failed > 0 {
        let _ = writeln!(
            text,
            "  forwarded: {} opened, {} done, {} failed",
            format::count(of.opened),
            format::count(of.closed),
            format::count(of.failed)
        );
    }
    for peer in &now.peers {
        let same = |earlier: &&Peer| {
            earlier.public_key == peer.public_key && earlier.connection == peer.connection
        };
        about_peer(text, before.peers.iter().find(same).unwrap_or(peer), peer, seconds);
    }
}

fn about_peer(text: &mut String, before: &Peer, now: &Peer, seconds: f64) {
    let name = now.name.as_ref().map_or_else(String::new, |name| format!("{name} "));
    let _ = writeln!(text, "\n  peer: {name}{}", now.public_key);
    let Some(heard) = now.last_heard_seconds else {
        let _ = writeln!(text, "    not connected");
        return;
    };
    let heard = format::millis(Duration::try_from_secs_f64(heard).unwrap_or_default());
    let _ = writeln!(text, "    last heard: {heard} ago");
    for path in &now.paths {
        let same = |earlier: &&Path| earlier.name == path.name;
        about_path(text, before.paths.iter().find(same).unwrap_or(path), path, seconds);
    }
}

fn about_path(text: &mut String, before: &Path, now: &Path, seconds: f64) {
    let rate = |before: u64, now: u64| match seconds > 0.0 {
        true => now.saturating_sub(before) as f64 * 8e-6 / seconds,
        false => 0.0,
    };
    let rtt = now.rtt_ms.map_or_else(
        || "-".to_owned(),
        |ms| format::millis(Duration::try_from_secs_f64(ms * 1e-3).unwrap_or_default()),
    );
    let _ = writeln!(
        text,
        "    {:<10} {:<7}  ↑ {:>5} Mb/s  ↓ {:>5} Mb/s  RTT {rtt:>6}  loss {}",
        now.name,
        now.state,
        format::mbps(rate(before.sent_bytes, now.sent_bytes)),
        format::mbps(rate(before.received_bytes, now.received_bytes)),
        format::percent(now.loss),
    );
    let local = now.local.map_or_else(|| "-".to_owned(), |local| local.to_string());
    let _ = writeln!(
        text,
        "               {local} → {}, {} sent, {} received",
        now.remote,
        format::bytes(now.sent_bytes),
        format::bytes(now.received_bytes)
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::Forwards;

    fn state(sent_bytes: u64) -> State {
        let path = Path {
            name: "wan0".to_owned(),
            state: "up".to_owned(),
            local: Some("192.0.2.1:5".parse().unwrap()),
            remote: "198.51.100.1:4433".parse().unwrap(),
            rtt_ms: Some(31.4),
            loss: 0.01,
            sent_bytes,
            received_bytes: 1000,
        };
        let (name, key) = (Some("home".to_owned()), "hSDw=".to_owned());
        let connected = Peer {
            connection: Some(1),
            last_heard_seconds: Some(0.2),
            paths: vec![path],
            ..Peer::absent(name, key)
        };
        let forwards = Forwards { opened: 3, closed: 1, ..Forwards::default() };
        State {
            command: "serve".to_owned(),
            version: "1".to_owned(),
            pid: 7,
            public_key: "0gVq=".to_owned(),
            listening: Vec::new(),
            peers: vec![connected, Peer::absent(None, "Bqss=".to_owned())],
            forwards,
        }
    }

    #[test]
    fn what_runs_is_shown_with_rates() {
        let shown = text(&[state(1_000_000)], &[state(2_000_000)], 0.5);
        let expected = "\
serve (process 7)
  public key: 0gVq=
  forwarded: 3 opened, 1 done, 0 failed

  peer: home hSDw=
    last heard: 200 ms ago
    wan0       up       ↑  16.0 Mb/s  ↓   0.0 Mb/s  RTT  31 ms  loss 1.0 %
               192.0.2.1:5 → 198.51.100.1:4433, 2.0 MB sent, 1.0 kB received

  peer: Bqss=
    not connected
";
        assert_eq!(shown, expected);
        let other = State { pid: 8, ..state(0) };
        assert!(text(&[other], &[state(9)], 0.5).contains("↑   0.0 Mb/s"), "nothing before");
    }

    #[test]
    fn a_state_survives_the_socket() {
        let state = state(5);
        let there = serde_json::to_string(&state).unwrap();
        assert_eq!(serde_json::from_str::<State>(&there).unwrap(), state);
    }
}
