//! Questions to a person at a terminal.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::process::run;
use super::{Sides, text};

/// A running `anabranch` with a terminal for standard input and error.
struct Seated {
    child: Child,
    keyboard: File,
    screen: Arc<Mutex<String>>,
    ticket: String,
}

impl Seated {
    /// A receiver into `to`.
    fn start(to: &Path, options: &str) -> Self {
        let main = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&main).unwrap();
        unlockpt(&main).unwrap();
        let name = ptsname(&main, Vec::new()).unwrap();
        let tty = OpenOptions::new().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_anabranch"))
            .args(["recv", "--listen", "127.0.0.1", "--out", text(to)])
            .args(options.split_whitespace())
            .stdin(Stdio::from(tty.try_clone().unwrap()))
            .stderr(Stdio::from(tty))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut keyboard = File::from(main);
        let (screen, mut eyes) = (Arc::<Mutex<String>>::default(), keyboard.try_clone().unwrap());
        let seen = Arc::clone(&screen);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = eyes.read(&mut bytes) {
                seen.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        });
        // Input typed before a question is not an answer to it.
        keyboard.write_all(b"y\n").unwrap();
        let mut stdout = std::io::BufReader::new(child.stdout.take().unwrap());
        let mut ticket = String::new();
        std::io::BufRead::read_line(&mut stdout, &mut ticket).unwrap();
        Seated { child, keyboard, screen, ticket: ticket.trim().to_owned() }
    }

    /// Waits until the screen shows `text` for the `count`th time.
    fn sees(&self, text: &str, count: usize) {
        for _ in 0..1500 {
            if self.screen.lock().unwrap().matches(text).count() >= count {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("no {text} on the screen: {}", self.screen.lock().unwrap());
    }

    fn types(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
    }

    fn end(mut self) -> (Option<i32>, String) {
        let code = self.child.wait().unwrap().code();
        std::thread::sleep(Duration::from_millis(100));
        (code, self.screen.lock().unwrap().clone())
    }
}

const QUESTION: &str = "[y/n/l] ";

#[test]
fn a_person_sees_what_is_offered_and_says_yes() {
    let sides = Sides::new();
    let script = sides.write("home/run.sh", b"#!/bin/sh");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    sides.write("home/.profile", b"sent");
    (0..30).for_each(|n| drop(sides.write(&format!("home/{n}"), b"x")));
    std::fs::create_dir(sides.to().join("home")).unwrap();
    std::fs::write(sides.to().join("home/7"), b"mine, and longer").unwrap();
    let mut receiver = Seated::start(&sides.to(), "");
    let (home, ticket) = (sides.from("home"), receiver.ticket.clone());
    let sending = std::thread::spawn(move || run(&format!("send {} {ticket}", text(&home)), &[]));
    receiver.sees(QUESTION, 1);
    for part in ["32 files and 1 directory", "home/.profile", "home/run.sh", "home/7", "13 more"] {
        receiver.sees(part, 1);
    }
    assert!(!sides.to().join("home/.profile").exists(), "it was asked after the fact");
    receiver.types("what?\n");
    receiver.sees(QUESTION, 2);
    receiver.types("l\n");
    receiver.sees(QUESTION, 3);
    receiver.sees("home/29", 1);
    // The sender is told what it waits for.
    std::thread::sleep(Duration::from_millis(2500));
    receiver.types("y\n");
    let sent = sending.join().unwrap();
    assert!(sent.stderr.contains("waiting for the other side to accept"), "{}", sent.stderr);
    sent.succeeded();
    let (code, screen) = receiver.end();
    assert_eq!(code, Some(0), "{screen}");
    assert_eq!(sides.arrived("home/.profile"), b"sent");
    assert_eq!(sides.arrived("home/7"), b"x");
    let mode = std::fs::metadata(sides.to().join("home/run.sh")).unwrap().permissions().mode();
    assert_eq!(mode & 0o100, 0o100);
}

#[test]
fn a_person_says_no() {
    let sides = Sides::new();
    let file = sides.write("a", b"sent");
    let mut receiver = Seated::start(&sides.to(), "");
    let (ticket, file) = (receiver.ticket.clone(), text(&file).to_owned());
    let sending = std::thread::spawn(move || run(&format!("send {file} {ticket}"), &[]));
    receiver.sees(QUESTION, 1);
    receiver.types("n\n");
    let line = sending.join().unwrap().failed(1);
    assert!(line.contains("does not want"), "{line}");
    let (code, screen) = receiver.end();
    assert_eq!((code, sides.names()), (Some(1), Vec::new()), "{screen}");
}

#[test]
fn yes_asks_nobody_and_allows_no_more() {
    let sides = Sides::new();
    let file = sides.write("a", b"sent");
    let receiver = Seated::start(&sides.to(), "--yes");
    run(&format!("send {} {}", text(&file), receiver.ticket), &[]).succeeded();
    let (code, screen) = receiver.end();
    assert_eq!(code, Some(0), "{screen}");
    assert!(!screen.contains(QUESTION), "{screen}");
    let hidden = sides.write(".a", b"sent");
    let receiver = Seated::start(&sides.to(), "--yes --new-ticket");
    run(&format!("send {} {}", text(&hidden), receiver.ticket), &[]).failed(1);
    let (code, screen) = receiver.end();
    assert!(code == Some(1) && screen.contains("--allow-hidden"), "{screen}");
}
