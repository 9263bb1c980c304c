//! `status` with commands that run on loopback.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

/// Checks, a tenth of a second apart, within which the other side has to appear.
const TURNS: u32 = 300;

fn anabranch(place: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    command.args(args).env("XDG_RUNTIME_DIR", place);
    command
}

fn run(place: &Path, args: &[&str]) -> Output {
    anabranch(place, args).output().unwrap()
}

/// A running command, ended when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Output of `status --json`, a value for each command that runs.
fn states(place: &Path) -> Vec<Value> {
    let output = run(place, &["status", "--json"]);
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn what_runs_tells_of_its_peers_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let key = |name: &str| {
        let file = place.join(name).to_str().unwrap().to_owned();
        let output = run(place, &["keygen", "--out", &file]);
        (file, String::from_utf8(output.stdout).unwrap().trim().to_owned())
    };
    let ((_, server), (client_file, client)) = (key("server"), key("client"));
    let config = place.join("serve.toml");
    let text = format!(
        "[interface]\nprivate-key-file = \"server\"\nlisten = [\"127.0.0.1:0\"]\n\
         [[peer]]\nname = \"laptop\"\npublic-key = \"{client}\"\n"
    );
    std::fs::write(&config, text).unwrap();
    let nobody = run(place, &["status"]);
    assert_eq!(nobody.status.code(), Some(1));
    let told = String::from_utf8(nobody.stderr).unwrap();
    assert!(told.starts_with("anabranch: nothing runs: no `anabranch serve`"), "{told}");
    let serve = ["serve", "--json", "--config", config.to_str().unwrap()];
    let mut child = anabranch(place, &serve).stdout(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    let serving = Running(child);
    let first: Value = serde_json::from_str(&first).unwrap();
    let address = first["addresses"][0].as_str().unwrap();
    let alone = states(place);
    assert_eq!(alone[0]["peers"][0]["name"], "laptop", "{alone:?}");
    assert_eq!(alone[0]["peers"][0]["connection"], Value::Null, "{alone:?}");
    let connect = ["connect", address, "--peer", &server, "--key", &client_file, "-q"];
    let connecting = Running(anabranch(place, &connect).spawn().unwrap());
    let both = (0..TURNS).find_map(|_| {
        std::thread::sleep(Duration::from_millis(100));
        let states = states(place);
        let up = |state: &Value| state["peers"][0]["paths"][0]["state"] == "up";
        (states.len() == 2 && states.iter().all(up)).then_some(states)
    });
    let both = both.unwrap_or_else(|| panic!("{:?}", states(place)));
    let of = |command: &str| both.iter().find(|state| state["command"] == command).unwrap();
    assert_eq!(of("serve")["peers"][0]["paths"][0]["name"], "127.0.0.1", "{both:?}");
    assert_eq!(of("connect")["peers"][0]["paths"][0]["name"], "lo", "{both:?}");
    assert!(of("connect")["peers"][0]["last_heard_seconds"].is_number(), "{both:?}");
    let shown = String::from_utf8(run(place, &["status"]).stdout).unwrap();
    assert!(shown.contains(&format!("  peer: laptop {client}\n")), "{shown}");
    // A killed command leaves its socket behind, which does not count as a command that runs.
    drop((serving, connecting));
    let gone = run(place, &["status"]);
    assert_eq!(gone.status.code(), Some(1), "{}", String::from_utf8_lossy(&gone.stderr));
    assert_eq!(place.join("anabranch").read_dir().unwrap().count(), 0);
}

/// Several `status` run at once where killed commands have left sockets. The later ones find these
/// gone, and report nothing about them.
#[test]
fn who_asks_at_once_with_others_is_not_told_of_what_they_removed() {
    let directory = tempfile::tempdir().unwrap();
    let sockets = directory.path().join("anabranch");
    std::fs::create_dir(&sockets).unwrap();
    for n in 1..500 {
        drop(UnixListener::bind(sockets.join(format!("serve-{n}.sock"))).unwrap());
    }
    let ask = || anabranch(directory.path(), &["status"]).stderr(Stdio::piped()).spawn().unwrap();
    let asking: Vec<Child> = (0..6).map(|_| ask()).collect();
    for child in asking {
        let told = String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap();
        assert!(told.starts_with("anabranch: nothing runs"), "{told}");
    }
}

/// A compromised process may answer the `status` of root. Its text must not reach the terminal
/// unescaped, and it must not block `status`.
#[test]
fn what_an_answer_says_is_data_and_silence_ends() {
    let directory = tempfile::tempdir().unwrap();
    let sockets = directory.path().join("anabranch");
    std::fs::create_dir(&sockets).unwrap();
    let evil = UnixListener::bind(sockets.join("serve-1.sock")).unwrap();
    let text = "\u{1b}]0;owned\u{7}\u{9b}2J\u{202e}\nserve";
    let name = serde_json::to_string(text).unwrap();
    let peer = format!(
        "{{\"name\":{name},\"public_key\":{name},\"connection\":1,\"last_heard_seconds\":1,\"paths\":[{{\"name\":{name},\
         \"state\":{name},\"local\":null,\"remote\":\"192.0.2.1:1\",\"rtt_ms\":1,\"loss\":0,\"sent_bytes\":1,\
         \"received_bytes\":1}}]}}"
    );
    let answer = format!(
        "{{\"command\":{name},\"version\":{name},\"pid\":1,\"public_key\":{name},\"listening\":[],\"peers\":[{peer}],\
         \"forwards\":{{\"opened\":0,\"closed\":0,\"failed\":0,\"sent_bytes\":0,\"received_bytes\":0}}}}"
    );
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = evil.accept() {
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    for words in [&["status"][..], &["status", "--json"]] {
        let shown = String::from_utf8(run(directory.path(), words).stdout).unwrap();
        let obeyed = |c: char| c.is_control() && c != '\n' || c == '\u{202e}';
        assert!(shown.contains("owned") && !shown.contains(obeyed), "{shown:?}");
    }
    // A stopped process accepts nobody, and its queue is full.
    let stopped = sockets.join("serve-2.sock");
    let listener = UnixListener::bind(&stopped).unwrap();
    socket2::SockRef::from(&listener).listen(0).unwrap();
    let _queued = UnixStream::connect(&stopped).unwrap();
    let mut child = anabranch(directory.path(), &["status"]).stdout(Stdio::null()).spawn().unwrap();
    let ended = (0..TURNS).any(|_| {
        std::thread::sleep(Duration::from_millis(100));
        child.try_wait().unwrap().is_some()
    });
    drop(Running(child));
    assert!(ended, "it waits for one that does not answer");
}
