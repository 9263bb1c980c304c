//! `send`, `recv` and `get` are killed.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::place::{Place, Side};
use super::process::{Dice, Home, Running, free_address, instants, wait_until};

/// The longest that a screen may show nothing new.
const SILENCE: Duration = Duration::from_secs(3);

/// Whether the side that listens takes or has the files, and whether the sides know each other by
/// ticket or by keys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    SendTicket,
    SendKeys,
    GetTicket,
    GetKeys,
}

/// Bytes to be transferred, which takes about a second.
fn size(place: &Place) -> u32 {
    if place.is_apart() { 10_000_000 } else { 100_000_000 }
}

/// The longest time from the start until one side is killed.
fn life(place: &Place) -> Duration {
    Duration::from_millis(if place.is_apart() { 1200 } else { 400 })
}

/// A transfer, and the commands of its two sides.
struct Transfer<'a> {
    kind: Kind,
    place: &'a Place,
    home: Home,
    listen: String,
    source: PathBuf,
    out: PathBuf,
    /// Ticket that the listening side has printed.
    ticket: Option<String>,
}

impl<'a> Transfer<'a> {
    fn new(kind: Kind, place: &'a Place) -> Self {
        let home = Home::new();
        let (source, out) = (home.file("film"), home.file("out"));
        let bytes: Vec<u8> =
            (0..size(place)).map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect();
        fs::write(&source, bytes).unwrap();
        Transfer { kind, place, home, listen: place.free_address(), source, out, ticket: None }
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
            words.extend(["--listen", self.place.server()]);
        } else {
            words.extend(["--listen", &self.listen, "--key", &server.0, "--allow", &client.1]);
            words.push("--once");
        }
        words.push("--json");
        let running = self.place.start(Side::Server, self.home.path(), &words);
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
        self.place.start(Side::Client, self.home.path(), &words)
    }

    /// Name, length and time of the file at the receiver: the final file, or the partial one.
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

    /// Whether the file has its final name, which shows completion even if the receiving side has ended.
    fn is_complete(&self) -> bool {
        self.out.join("film").exists()
    }

    /// Kills what is to be killed at an instant and starts it again. If the transfer was still
    /// under way, returns how long it took until something was stored.
    fn trial(&mut self, kill: Kill, instant: Duration) -> Option<Duration> {
        let mut sides = (self.listener(), self.connector());
        std::thread::sleep(instant);
        if kill.listener {
            sides.0.kill();
        }
        if kill.connector {
            sides.1.kill();
        }
        if self.is_complete() {
            drop(sides);
            self.check();
            return None;
        }
        if kill.loses_a_link {
            self.place.silence(true);
        }
        std::thread::sleep(kill.away);
        let (before, begun) = (self.stored(), Instant::now());
        if kill.listener {
            sides.0 = self.listener();
        }
        if kill.connector {
            sides.1 = self.connector();
        }
        wait_until(|| self.stored() != before, || format!("{:?}: nothing is stored", self.kind));
        let took = begun.elapsed();
        println!("{:?} killed after {instant:?}: {took:?}", self.kind);
        if took > self.place.recovered() {
            println!("listener: {}\nconnector: {}", sides.0.said(), sides.1.said());
        }
        sides.1.succeeded();
        // A receiver that already had all the bytes does not need the sender again.
        if self.takes_here() || !kill.listener {
            sides.0.succeeded();
        }
        if kill.loses_a_link {
            self.place.silence(false);
        }
        self.check();
        Some(took)
    }

    /// Checks that every byte has arrived, and that nothing else is left.
    fn check(&mut self) {
        let (sent, arrived) = (fs::read(&self.source).unwrap(), fs::read(self.out.join("film")));
        assert!(arrived.unwrap() == sent, "{:?}: the bytes differ", self.kind);
        assert_eq!(fs::read_dir(&self.out).unwrap().count(), 1);
        fs::remove_dir_all(&self.out).unwrap();
        self.ticket = None;
    }
}

/// Sides to kill, for how long, and what happens meanwhile.
#[derive(Clone, Copy)]
pub struct Kill {
    pub listener: bool,
    pub connector: bool,
    /// Time until what was killed is started again.
    pub away: Duration,
    /// The first link carries nothing from then on.
    pub loses_a_link: bool,
    /// How often, if `ANABRANCH_KILLS` does not say.
    pub few: usize,
}

impl Kill {
    pub const CONNECTOR: Kill = Kill {
        listener: false,
        connector: true,
        away: Duration::ZERO,
        loses_a_link: false,
        few: 2,
    };
    pub const LISTENER: Kill = Kill { listener: true, connector: false, ..Kill::CONNECTOR };
}

fn kill_one(place: &Place, kind: Kind, kill: Kill, seed: u64) {
    let (mut transfer, mut dice) = (Transfer::new(kind, place), Dice::new(seed));
    let most = instants(kill.few);
    let mut took = Vec::new();
    for _ in 0..3 * most {
        took.extend(transfer.trial(kill, dice.time(life(place))));
        if took.len() == most {
            break;
        }
    }
    let slowest = took.iter().max();
    let slowest = slowest.expect("every transfer was over before it was killed");
    println!("{kind:?}: {} killed, the slowest was back after {slowest:?}", took.len());
    assert!(*slowest <= place.recovered(), "{kind:?}: {slowest:?}");
}

/// [`kill_all`] with one side killed.
fn kill_each(place: Option<Place>, kinds: [Kind; 2], kills_listener: bool, seed: u64) {
    kill_all(place, kinds, if kills_listener { Kill::LISTENER } else { Kill::CONNECTOR }, seed);
}

/// [`kill_one`] with tickets and with keys.
pub fn kill_all(place: Option<Place>, kinds: [Kind; 2], kill: Kill, seed: u64) {
    let Some(place) = place else { return };
    for (seed, kind) in (seed..).zip(kinds) {
        kill_one(&place, kind, kill, seed);
    }
}

pub const SEND: [Kind; 2] = [Kind::SendTicket, Kind::SendKeys];
pub const GET: [Kind; 2] = [Kind::GetTicket, Kind::GetKeys];

#[test]
fn a_sender_is_killed() {
    kill_each(Some(Place::loopback()), SEND, false, 1);
}

#[test]
fn a_receiver_is_killed() {
    kill_each(Some(Place::loopback()), SEND, true, 3);
}

#[test]
fn a_getter_is_killed() {
    kill_each(Some(Place::loopback()), GET, false, 5);
}

#[test]
fn a_sender_that_offers_is_killed() {
    kill_each(Some(Place::loopback()), GET, true, 7);
}

#[test]
fn a_sender_is_killed_beyond_links() {
    kill_each(Place::apart("kse"), SEND, false, 11);
}

#[test]
fn a_receiver_is_killed_beyond_links() {
    kill_each(Place::apart("kre"), SEND, true, 13);
}

#[test]
fn a_getter_is_killed_beyond_links() {
    kill_each(Place::apart("kge"), GET, false, 15);
}

#[test]
fn a_sender_that_offers_is_killed_beyond_links() {
    kill_each(Place::apart("kof"), GET, true, 17);
}

/// Both sides say within three seconds that the other one is gone, and what they wait for.
#[test]
fn no_screen_is_silent_while_the_other_side_is_gone() {
    let place = Place::loopback();
    for kills_listener in [false, true] {
        let mut transfer = Transfer::new(Kind::SendTicket, &place);
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
    let place = Place::loopback();
    let mut transfer = Transfer::new(Kind::SendTicket, &place);
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

/// A second holder of a ticket gets the reason if another transfer with the ticket is still
/// running.
#[test]
fn a_ticket_in_use_is_refused_with_the_reason() {
    let place = Place::loopback();
    let mut transfer = Transfer::new(Kind::SendTicket, &place);
    let _listener = transfer.listener();
    let _first = transfer.connector();
    wait_until(|| transfer.stored().is_some(), || "nothing is stored".to_owned());
    let (code, said) = transfer.connector().end();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("the ticket is in use"), "{said}");
}
