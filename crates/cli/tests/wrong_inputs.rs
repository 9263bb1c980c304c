//! Wrong usage of every command: one line that says what to do, and the right exit code.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// A command line, its exit code, and a text that the line on standard error must contain. `KEY` is a public key. The
/// directory holds `file`, the secret keys `key` and `open` (`open` is readable by others), and `bad`, which is not a
/// key, a configuration or a scenario; nothing in it is called `none`.
const WRONG: &[(&str, i32, &str)] = &[
    ("bogus", 2, "unrecognized subcommand 'bogus'"),
    ("--bogus", 2, "unexpected argument '--bogus'"),
    ("bench client", 2, "--peer <PUBKEY>"),
    ("bench client --loopback --time 0", 2, "seconds from 0.1 to 3600"),
    ("bench client --loopback --time -1", 2, "seconds from 0.1 to 3600"),
    ("bench client --loopback --bytes 1XB", 2, "write it like 10MB"),
    ("bench client --loopback --interval -1", 2, "write 0, or seconds"),
    ("bench client --loopback --omit -1", 2, "seconds from 0 to 60"),
    ("bench client --loopback --parallel 999", 2, "1..=128"),
    ("bench client --loopback --payload 100", 2, "1200..=65507"),
    ("bench client --loopback --bitrate fast", 2, "such as 20mbit"),
    ("bench client --loopback --profile nosuch", 2, "known: anabranch"),
    ("bench client --loopback --set nosuch=x", 2, "known: congestion"),
    ("bench client --loopback --set scheduler=nosuch", 2, "known: earliest"),
    ("bench client 127.0.0.1 --peer KEY", 2, "write HOST:PORT"),
    ("bench client 127.0.0.1:99999 --peer KEY", 2, "write HOST:PORT"),
    ("bench client 127.0.0.1:4433 --peer short", 2, "44 characters of base64"),
    ("bench client 127.0.0.1:4433 --peer KEY --path", 2, "a value is required"),
    (
        "bench client 127.0.0.1:4433 --peer KEY --path lo,cc=nosuch",
        2,
        "allowed: a congestion control",
    ),
    ("bench client 127.0.0.1:4433 --peer KEY --key none", 2, "keygen --out FILE"),
    ("bench client 127.0.0.1:4433 --peer KEY --key bad", 1, "44 characters of base64"),
    ("bench server", 2, "--anyone"),
    ("bench server --anyone --listen nonsense", 2, "such as 0.0.0.0:4433"),
    ("bench server --anyone --key open", 1, "run chmod 600"),
    ("bench codes nosuch", 2, "known: reed-solomon"),
    ("bench codes --loss 2", 2, "such as 10%"),
    ("send", 2, "<FILE>"),
    ("send none", 2, "cannot read none"),
    ("send file --to 127.0.0.1:1", 2, "--peer <PUBKEY>"),
    ("send file --to 127.0.0.1:1 --peer KEY --key none", 2, "keygen --out FILE"),
    ("send file --to 127.0.0.1 --peer KEY --key key", 2, "write HOST:PORT"),
    ("send file --bwlimit 10", 2, "such as 20mbit"),
    ("send file --exclude a{b", 2, "as in .gitignore"),
    ("send file --exclude file", 2, "nothing is left to send"),
    ("send file --name a/../b", 2, "the part '.' or '..'"),
    ("send file anabranch1AAAA", 2, "not copied completely"),
    ("send file --allow KEY", 2, "--key <FILE>"),
    ("send file --expires 0", 2, "from 1s to 168h"),
    ("send file --timeout never", 2, "from 1s to 168h"),
    ("send file --qlog file", 2, "name a directory"),
    ("send file --qlog file/below", 2, "name another"),
    ("send file --key-log .", 2, "name a file that can be written"),
    ("send file --key-log file", 1, "lets others read"),
    ("send file --key key", 2, "--key needs --allow PUBKEY"),
    ("recv --out file", 1, "name a directory"),
    ("recv --out file/below", 1, "name a directory"),
    ("recv --expires 1y", 2, "from 1s to 168h"),
    ("recv --listen 300.1.1.1", 1, "neither an address nor an interface"),
    ("recv --key key", 2, "--key needs --allow PUBKEY"),
    ("recv --preshared-key key", 2, "needs --allow PUBKEY"),
    ("recv --allow KEY", 2, "--key <FILE>"),
    ("recv --once", 2, "--allow <PUBKEY>"),
    ("recv extra", 2, "unexpected argument 'extra'"),
    ("get", 2, "give a ticket"),
    ("get ../file", 2, "the part '.' or '..'"),
    ("get anabranch1AAAA", 2, "not copied completely"),
    ("get --from 127.0.0.1:1", 2, "--peer <PUBKEY>"),
    ("get --from 127.0.0.1:1 --peer KEY --key bad", 1, "44 characters of base64"),
    ("serve", 2, "--listen 0.0.0.0:4433"),
    ("serve --allow KEY --announce 0.0.0.0", 2, "clients reach this machine"),
    ("serve --allow KEY --announce home.example", 2, "such as 198.51.100.7:4433"),
    ("serve --allow KEY --max-memory 1", 2, "from 64MB to 1000GB"),
    ("connect 127.0.0.1:1 --max-memory 2TB", 2, "from 64MB to 1000GB"),
    ("serve --config none", 2, "that it exists"),
    ("serve --config .", 2, "cannot read ."),
    ("serve --listen 127.0.0.1 --allow KEY --key none", 2, "keygen --out FILE"),
    ("serve --listen 127.0.0.1 --allow KEY --key key --permit /run/", 2, "/run/app.sock"),
    (
        "serve --listen 127.0.0.1 --allow KEY --key key --permit-udp /a",
        2,
        "UDP leads to no Unix socket",
    ),
    ("serve --config bad", 2, "bad:1:"),
    ("connect", 2, "--peer PUBKEY"),
    ("connect 127.0.0.1:1 --peer KEY --key key -L 80", 2, "[BIND:]PORT:HOST:PORT"),
    ("connect 127.0.0.1:1 --peer KEY --key key -L 99999:localhost:80", 2, "[BIND:]PORT:HOST:PORT"),
    ("connect --config none", 2, "cannot read none"),
    ("connect 127.0.0.1:1 --peer KEY --key none", 2, "keygen --out FILE"),
    ("connect 127.0.0.1:1 --peer KEY --key key --preshared-key none", 2, "genpsk --out FILE"),
    ("connect 127.0.0.1:1 --peer KEY --key key --qlog file", 2, "name a directory"),
    (
        "connect 127.0.0.1:1 --peer KEY --key key -U 53",
        2,
        ">': write [BIND:]PORT:HOST:PORT, such as 5353:localhost:53",
    ),
    ("connect 127.0.0.1:1 --peer KEY --key key -U 53:/run/a.sock", 2, "such as 5353:localhost:53"),
    ("connect 127.0.0.1:1 --peer KEY --key key -L 80:/run/../a", 2, "8080:/run/app.sock"),
    ("connect 127.0.0.1:1 --peer KEY --key key -L no/a.sock:localhost:80", 1, "create it, or name"),
    ("connect 127.0.0.1:1 --peer KEY --key key -D a.sock", 2, "such as 1080"),
    ("status --bogus", 2, "unexpected argument '--bogus'"),
    ("demo --path rate=10mbit", 2, "delay is missing"),
    ("demo --path rate=10mbit,delay=soon", 2, "such as 40ms"),
    ("demo --path delay=10ms", 2, "rate is missing"),
    ("demo --path rate=10mbit,delay=10ms,loss=150%", 2, "a loss such as 5%"),
    ("demo --file none", 2, "that it exists"),
    ("demo --file .", 2, "regular file"),
    ("demo --time 0", 2, "seconds from 0.1 to 3600"),
    ("demo --profile nosuch", 2, "known: anabranch"),
    ("doctor 127.0.0.1:1", 2, "--peer <PUBKEY>"),
    ("keygen --out file", 1, "--force"),
    ("keygen --out no/such/key", 2, "mkdir -p"),
    ("keygen --out file/key", 2, "name another file"),
    ("genpsk --out no/such/key", 2, "mkdir -p"),
    ("pubkey none", 2, "none: No such file"),
    ("pubkey .", 2, "directory"),
    ("pubkey bad", 1, "44 characters of base64"),
    ("pubkey open", 1, "run chmod 600"),
    ("genpsk --out file", 1, "--force"),
    ("profiles nosuch", 2, "unexpected argument 'nosuch'"),
    ("policies nosuch", 2, "possible values: congestion"),
    ("repro nosuch", 2, "there is no 'nosuch'"),
    ("repro --shard 5/2", 2, "there is no part 5 of 2"),
    ("sim run", 2, "<FILE>"),
    ("sim run none", 2, "that it exists"),
    ("sim run .", 2, "directory"),
    ("sim run bad", 2, "bad:1:"),
    ("sim run bad --seeds 0", 2, "at least one seed"),
    ("sim check bad", 2, "bad:1:"),
    ("sim plan none", 2, "that it exists"),
    ("sim check none", 2, "that it exists"),
    ("sim plot none", 2, "give another directory"),
    ("sim plot .", 2, "give another directory"),
    ("sim plot file", 2, "give another directory"),
    ("sim merge", 2, "<DIR>"),
    ("sim merge none --out x", 2, "give another directory"),
    ("sim merge file --out x", 2, "give another directory"),
    ("sim merge . none --out x", 2, "give another directory"),
    ("why", 2, "<FILE>"),
    ("why none", 2, "that it exists"),
    ("why .", 2, "cannot read ."),
    ("why file", 1, "anabranch demo --record FILE"),
    ("completions nosuch", 2, "possible values: bash"),
    ("man", 2, "<DIRECTORY>"),
    ("man file", 1, "cannot write into file"),
];

fn anabranch(directory: &Path, line: &str) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_anabranch"))
        .args(line.split_whitespace())
        .current_dir(directory)
        .env("XDG_STATE_HOME", directory)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn each_is_one_line_that_says_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    for (name, mode, text) in [("file", 0o644, "hello"), ("bad", 0o600, "x = [")] {
        fs::write(at(name), text).unwrap();
        fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    for (name, mode) in [("key", 0o600), ("open", 0o644)] {
        let (code, stderr) = anabranch(directory.path(), &format!("keygen --out {name}"));
        assert_eq!(code, Some(0), "{stderr}");
        fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    let public = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=";
    let mut wrong = Vec::new();
    for (line, expected, word) in WRONG {
        let (code, stderr) = anabranch(directory.path(), &line.replace("KEY", public));
        let is_one = stderr.lines().count() == 1 && stderr.starts_with("anabranch: ");
        if code != Some(*expected) || !is_one || !stderr.contains(word) {
            wrong.push(format!("{line}: {code:?} {stderr}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Only the directory where files usually go was made.
    let left = fs::read_dir(directory.path()).unwrap().map(|item| item.unwrap().file_name());
    let mut left: Vec<_> = left.map(|name| name.into_string().unwrap()).collect();
    left.sort();
    left.retain(|name| name != "anabranch");
    assert_eq!(left, ["anabranch-received", "bad", "file", "key", "open"]);
}
