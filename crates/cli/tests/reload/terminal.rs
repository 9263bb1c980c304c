//! Cases in which SIGHUP ends the program: without a settings file, and when the terminal closes.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::Served;
use super::processes::{PATIENCE, PROGRAM};

#[test]
fn without_a_file_it_ends_the_process() {
    let directory = tempfile::tempdir().unwrap();
    let (key, public) = super::key(directory.path(), "a.key");
    // SIGHUP may be ignored where this test runs, as under nohup.
    let mut command = Command::new("env");
    command.args(["--default-signal=HUP", PROGRAM, "serve", "--listen", "127.0.0.1:0", "--json"]);
    command.args(["--allow", &public, "--key", &key]).stdout(Stdio::piped());
    let mut server = command.spawn().unwrap();
    let mut said = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut said).unwrap();
    assert!(said.contains("serving"), "{said}");
    let pid = nix::unistd::Pid::from_raw(server.id() as i32);
    nix::sys::signal::kill(pid, Signal::SIGHUP).unwrap();
    assert_eq!(server.wait().unwrap().signal(), Some(Signal::SIGHUP as i32));
}

#[test]
fn a_terminal_that_is_closed_ends_what_runs_on_it() {
    let served = Served::new(1);
    served.write(&[(0, "")]);
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let screen = File::options().write(true).open(name.to_str().unwrap()).unwrap();
    let mut command = Command::new(PROGRAM);
    command.args(["serve", "--config"]).arg(served.file()).stdin(Stdio::null()).stderr(screen);
    let mut server = command.stdout(Stdio::null()).spawn().unwrap();
    drop(command);
    let mut said = Vec::new();
    while !String::from_utf8_lossy(&said).contains("serving on") {
        let mut bytes = [0; 512];
        let count = rustix::io::read(&terminal, &mut bytes).unwrap();
        said.extend(&bytes[..count]);
    }
    // The kernel sends SIGHUP to the terminal's session only. The server is not in it, so the test
    // sends it.
    drop(terminal);
    let pid = nix::unistd::Pid::from_raw(server.id() as i32);
    nix::sys::signal::kill(pid, Signal::SIGHUP).unwrap();
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = server.try_wait().unwrap() {
            break status;
        }
        assert!(begun.elapsed() < PATIENCE, "it goes on");
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(status.success(), "{status}");
}
