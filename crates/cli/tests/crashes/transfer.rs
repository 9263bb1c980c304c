//! `send`, `recv` and `get`, killed.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::process::{Dice, Home, Running, free_address, instants, wait_until};

/// From the return of what was killed until bytes are stored again, at most.
const RECOVERED: Duration = Duration::from_secs(2);
/// How long each life is, at most.
const LIFE: Duration = Duration::from_millis(400);
/// The longest that a screen may show nothing new.
const SILENCE: Duration = Duration::from_secs(3);
const BYTES: u32 = 100_000_000;

/// The side that listens takes or has the files, and the sides know each other by ticket or by keys.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    SendTicket,
    SendKeys,
    GetTicket,
    GetKeys,
}

/// A transfer, and the commands of its two sides.
struct Transfer {
    kind: Kind,
    home: Home,
    listen: String,
    source: PathBuf,
    out: PathBuf,
    /// What the side that listens has printed.
    ticket: Option<String>,
}

impl Transfer {
    fn new(kind: Kind) -> Self {
        let home = Home::new();
        let (source, out) = (home.file("film"), home.file("out"));
        let bytes: Vec<u8> =
            (0..BYTES).map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect();
        fs::write(&source, bytes).unwrap();
        Transfer { kind, home, listen: free_address(), source, out, ticket: None }
    }

    fn takes_here(&self) -> bool {
        matches!(self.kind, Kind::SendTicket | Kind::SendKeys)
    }

    fn has_ticket(&self) -> bool {
        matches!(self.kind, Kind::SendTicket | Kind::GetTicket)
    }

    /// Starts the side that listens. A ticket has to be the same each time.
    fn listener(&mut self) -> Running {
        let (source, out) = (self.source.to_str().unwrap(), self.out.to_str().unwrap());
        let Home { server, client, .. } = &self.home;
        let mut words =
            if self.takes_here() { vec!["recv", "--out", out] } else { vec!["send", source] };
        if self.has_ticket() {
            words.extend(["--listen", "127.0.0.1"]);
        } else {
            words.extend(["--listen", &self.listen, "--key", &server.0, "--allow", &client.1]);
            words.push("--once");
        }
        words.push("--json");
        let running = Running::start(self.home.path(), &words);
        if self.has_ticket() {
            let event = running.wait_for("ticket");
            let ticket = event["ticket"].as_str().unwrap().to_owned();
            assert_eq!(self.ticket.get_or_insert(ticket.clone()), &ticket);
        } else {
            running.wait_for("listening");
        }
        running
    }

    /// Starts the side that connects.
    fn connector(&self) -> Running {
        let (source, out) = (self.source.to_str().unwrap(), self.out.to_str().unwrap());
        let Home { server, client, .. } = &self.home;
        let mut words = if self.takes_here() { vec!["send", source] } else { vec!["get"] };
        if let Some(ticket) = &self.ticket {
            words.push(ticket);
        } else {
            let to = if self.takes_here() { "--to" } else { "--from" };
            words.extend([to, &self.listen, "--peer", &server.1, "--key", &client.0]);
        }
        if !self.takes_here() {
            words.extend(["--out", out]);
        }
        words.push("--json");
        Running::start(self.home.path(), &words)
    }

    /// What there is of the file at the receiver: under a name of its own, or as a part.
    fn stored(&self) -> Option<(String, u64, std::time::SystemTime)> {
        let items = fs::read_dir(&self.out).ok()?.filter_map(Result::ok);
        let item = items.filter(|item| {
            let name = item.file_name().into_string().unwrap();
            name == "film" || name.ends_with(".part")
        });
        let item = item.last()?;
        let metadata = item.metadata().ok()?;
        let name = item.file_name().into_string().unwrap();
        Some((name, metadata.len(), metadata.modified().ok()?))
    }

    /// Whether the file has its name: the side that takes it may be gone by now.
    fn is_complete(&self) -> bool {
        self.out.join("film").exists()
    }

    /// Kills one side at an instant and starts it again; true if the transfer was still under way.
    fn trial(&mut self, kills_listener: bool, instant: Duration) -> bool {
        let mut sides = (self.listener(), self.connector());
        std::thread::sleep(instant);
        let killed = if kills_listener { &mut sides.0 } else { &mut sides.1 };
        killed.kill();
        if self.is_complete() {
            drop(sides);
            self.check();
            return false;
        }
        let (before, begun) = (self.stored(), Instant::now());
        if kills_listener {
            sides.0 = self.listener();
        } else {
            sides.1 = self.connector();
        }
        self.recovers(&before, begun, instant);
        sides.1.succeeded();
        // Whoever had all the bytes already needs nobody to offer them again.
        if self.takes_here() || !kills_listener {
            sides.0.succeeded();
        }
        self.check();
        true
    }

    /// Waits until something is stored, within the time allowed.
    fn recovers(
        &self,
        before: &Option<(String, u64, std::time::SystemTime)>,
        begun: Instant,
        instant: Duration,
    ) {
        wait_until(|| self.stored() != *before, || format!("{:?}: nothing is stored", self.kind));
        let took = begun.elapsed();
        println!("{:?} killed after {instant:?}: {took:?}", self.kind);
        assert!(took <= RECOVERED, "{:?} killed after {instant:?}: {took:?}", self.kind);
    }

    /// Every byte has arrived, and nothing else is left.
    fn check(&mut self) {
        let (sent, arrived) = (fs::read(&self.source).unwrap(), fs::read(self.out.join("film")));
        assert!(arrived.unwrap() == sent, "{:?}: the bytes differ", self.kind);
        assert_eq!(fs::read_dir(&self.out).unwrap().count(), 1);
        fs::remove_dir_all(&self.out).unwrap();
        self.ticket = None;
    }
}

fn kill(kind: Kind, kills_listener: bool, seed: u64) {
    let (mut transfer, mut dice) = (Transfer::new(kind), Dice::new(seed));
    let most = instants(2);
    let (mut hits, mut tries) = (0, 0);
    while hits < most && tries < 3 * most {
        hits += usize::from(transfer.trial(kills_listener, dice.time(LIFE)));
        tries += 1;
    }
    assert!(hits > 0, "{kind:?}: every transfer was over before it was killed");
    println!("{kind:?}: {hits} killed of {tries}");
}

#[test]
fn a_sender_is_killed() {
    kill(Kind::SendTicket, false, 1);
    kill(Kind::SendKeys, false, 2);
}

#[test]
fn a_receiver_is_killed() {
    kill(Kind::SendTicket, true, 3);
    kill(Kind::SendKeys, true, 4);
}

#[test]
fn a_getter_is_killed() {
    kill(Kind::GetTicket, false, 5);
    kill(Kind::GetKeys, false, 6);
}

#[test]
fn a_sender_that_offers_is_killed() {
    kill(Kind::GetTicket, true, 7);
    kill(Kind::GetKeys, true, 8);
}

/// Both sides say within three seconds that the other one is gone, and what they wait for.
#[test]
fn no_screen_is_silent_while_the_other_side_is_gone() {
    for kills_listener in [false, true] {
        let mut transfer = Transfer::new(Kind::SendTicket);
        let (listener, connector) = (transfer.listener(), transfer.connector());
        wait_until(|| transfer.stored().is_some(), || "nothing is stored".to_owned());
        let (mut killed, other) =
            if kills_listener { (listener, connector) } else { (connector, listener) };
        killed.kill();
        let took = other.wait_until_said("waiting for");
        assert!(took <= SILENCE, "{took:?}: {}", other.said());
        let said = other.said().len();
        let begun = Instant::now();
        wait_until(|| other.said().len() > said, || "it says no more".to_owned());
        assert!(begun.elapsed() <= SILENCE, "{:?}", begun.elapsed());
    }
}

#[test]
fn who_waits_for_nobody_says_so_and_ends_when_asked() {
    let home = Home::new();
    let file = home.file("film");
    fs::write(&file, [1; 1000]).unwrap();
    let nobody = free_address();
    let words = ["send", file.to_str().unwrap(), "--to", &nobody, "--peer", &home.server.1];
    let send = Running::start(home.path(), &[&words[..], &["--key", &home.client.0]].concat());
    let took = send.wait_until_said(&format!("waiting for {nobody}"));
    assert!(took <= SILENCE, "{took:?}");
    let begun = Instant::now();
    send.interrupt();
    let (code, said) = send.end();
    assert_eq!(code, Some(130), "{said}");
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
}

/// A ticket stands for one transfer; Ctrl-C and the same command do not change that, and `--new-ticket` does.
#[test]
fn a_ticket_is_taken_up_again_unless_a_new_one_is_asked_for() {
    let mut transfer = Transfer::new(Kind::SendTicket);
    transfer.listener().interrupt();
    let listener = transfer.listener();
    listener.interrupt();
    let (code, said) = listener.end();
    assert_eq!(code, Some(130), "{said}");
    let out = transfer.out.to_str().unwrap();
    let words = ["recv", "--out", out, "--listen", "127.0.0.1", "--json", "--new-ticket"];
    let other = Running::start(transfer.home.path(), &words);
    let ticket = other.wait_for("ticket")["ticket"].as_str().unwrap().to_owned();
    assert_ne!(Some(ticket), transfer.ticket);
}

/// Whoever comes with the ticket while another transfer with it is alive is told so.
#[test]
fn a_ticket_in_use_is_refused_with_the_reason() {
    let mut transfer = Transfer::new(Kind::SendTicket);
    let _listener = transfer.listener();
    let _first = transfer.connector();
    wait_until(|| transfer.stored().is_some(), || "nothing is stored".to_owned());
    let (code, said) = transfer.connector().end();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("the ticket is in use"), "{said}");
}
