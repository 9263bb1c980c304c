//! `serve` and `connect` as processes, on loopback addresses.

#[allow(dead_code, reason = "shared by the tests, each of which uses its part")]
#[path = "common/echo.rs"]
mod echo;
#[allow(dead_code, reason = "shared by the tests, each of which uses its part")]
#[path = "common/tunnel.rs"]
mod processes;
#[allow(dead_code, reason = "shared by the tests, each of which uses its part")]
#[path = "common/relay.rs"]
mod relay;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use echo::{echo, exchange};
use processes::{PATIENCE, PROGRAM, Running, free_port, get, key, run, serving};
use relay::Relay;

#[test]
fn forwards_lead_both_ways_over_two_paths_and_figures_are_told() {
    let directory = tempfile::tempdir().unwrap();
    let (server, address, public, key) =
        serving(directory.path(), &["--permit-listen", "loopback"]);
    let echo = echo().port();
    let local = format!("0:127.0.0.1:{echo}");
    let metrics = free_port();
    let args = [
        "connect",
        &address,
        "--peer",
        &public,
        "--key",
        &key,
        "--path",
        "127.0.0.1",
        "--path",
        "127.0.0.1",
        "-L",
        &local,
        "-R",
        &local,
        "--metrics",
        &metrics,
        "--json",
    ];
    let client = Running::start(&args);
    let near = client.wait_for("listening", "address");
    let far = server.wait_for("listening", "address");
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|n| (n * 7) as u8).collect();
    assert!(exchange(near.as_str().unwrap(), &bytes) == bytes, "through -L");
    assert!(exchange(far.as_str().unwrap(), &bytes[..1000]) == bytes[..1000], "through -R");
    let figures = String::from_utf8(get(&metrics, "/metrics")).unwrap();
    let page = include_str!("../../../docs/guide/watch.md");
    for kind in figures.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let name = kind.split(' ').next().unwrap();
        assert!(
            page.contains(&format!("| `{name}`")) || page.contains(&format!("`, `{name}`")),
            "{name}"
        );
    }
    assert!(figures.starts_with("HTTP/1.1 200"), "{figures}");
    for path in ["lo", "lo@127.0.0.1"] {
        let up = format!("connection=\"1\",path=\"{path}\"}} 1\n");
        assert!(figures.contains(&up), "{figures}");
    }
    assert!(figures.contains("anabranch_path_rtt_seconds{peer="), "{figures}");
    let peers = format!("anabranch_peer_connections{{peer=\"{public}\"}} 1\n");
    assert!(figures.contains(&peers), "{figures}");
    assert!(figures.contains("anabranch_forwards_opened_total 2\n"), "{figures}");
    assert!(get(&metrics, "/").starts_with(b"HTTP/1.1 404"));
    let query = get(&metrics, "/metrics?x=1");
    assert!(query.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&query));
}

/// With the limit reached, a further connection waits until one closes. An event reports the wait.
#[test]
fn connections_beyond_the_limit_wait_and_are_told() {
    let directory = tempfile::tempdir().unwrap();
    let (_server, address, public, key) = serving(directory.path(), &["--max-forwarded", "70"]);
    let (forward, metrics) = (format!("0:127.0.0.1:{}", echo().port()), free_port());
    let mut args = vec!["connect", &address, "--peer", &public, "--key", &key, "--json"];
    args.extend(["-L", &forward, "--metrics", &metrics]);
    let client = Running::start(&args);
    let near = client.wait_for("listening", "address");
    let near = near.as_str().unwrap();
    // Many connections come and go beside many that stay: none has to wait.
    let mut open: Vec<TcpStream> = (0..69).map(|_| TcpStream::connect(near).unwrap()).collect();
    for _ in 0..20 {
        assert_eq!(exchange(near, b"there and back"), b"there and back");
    }
    open.push(TcpStream::connect(near).unwrap());
    let mut late = TcpStream::connect(near).unwrap();
    late.write_all(b"late").unwrap();
    client.wait_for("stream-limit", "target");
    let figures = String::from_utf8(get(&metrics, "/metrics")).unwrap();
    let line = figures.lines().find(|line| line.starts_with("anabranch_streams_waiting{"));
    assert!(line.is_some_and(|line| line.ends_with("} 1")), "{figures}");
    open.pop();
    late.shutdown(Shutdown::Write).unwrap();
    late.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut back = Vec::new();
    late.read_to_end(&mut back).unwrap();
    assert_eq!(back, b"late");
}

#[test]
fn standard_input_and_output_are_carried_and_refusals_told() {
    let directory = tempfile::tempdir().unwrap();
    let echo = echo().port();
    let only = format!("127.0.0.1:{echo}");
    let (_server, address, public, key) = serving(directory.path(), &["--permit", &only]);
    let pipe = |target: &str| {
        let mut child = Command::new(PROGRAM)
            .args(["connect", &address, "--peer", &public, "--key", &key])
            .args(["--stdio", target])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(b"as ssh would").unwrap();
        child.wait_with_output().unwrap()
    };
    let output = pipe(&only);
    assert_eq!(output.stdout, b"as ssh would", "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success());
    let output = pipe("127.0.0.1:9");
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains("--permit") && text.lines().count() == 1, "{text}");
}

#[test]
fn a_file_says_the_same_as_options() {
    let directory = tempfile::tempdir().unwrap();
    let (_, client) = key(directory.path(), "client.key");
    let (_, server) = key(directory.path(), "server.key");
    let write = |name: &str, text: String| {
        let file = directory.path().join(name);
        std::fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let text = format!(
        "[interface]\nprivate-key-file = \"server.key\"\nlisten = [\"127.0.0.1:0\"]\n\
         [[peer]]\npublic-key = \"{client}\"\n"
    );
    let serve = Running::start(&["serve", "--config", &write("serve.toml", text), "--json"]);
    let addresses = serve.wait_for("serving", "addresses");
    let echo = echo().port();
    let text = format!(
        "[interface]\nprivate-key-file = \"client.key\"\n[[peer]]\npublic-key = \"{server}\"\n\
         endpoint = {}\nlocal-forward = [\"0:127.0.0.1:{echo}\"]\n[[path]]\nlocal = \"127.0.0.1\"\n",
        addresses[0]
    );
    let connect = Running::start(&["connect", "--config", &write("connect.toml", text), "--json"]);
    let near = connect.wait_for("listening", "address");
    assert_eq!(exchange(near.as_str().unwrap(), b"by file"), b"by file");
}

/// The connection is made again when the server comes back; what listens goes on listening. A path's
/// own destination may be a name.
#[test]
fn a_server_that_restarts_is_found_again() {
    let directory = tempfile::tempdir().unwrap();
    let (server_key, server) = key(directory.path(), "server.key");
    let (client_key, client) = key(directory.path(), "client.key");
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let args = ["serve", "--listen", &port, "--key", &server_key, "--allow", &client, "--json"];
    let first = Running::start(&args);
    first.wait_for("serving", "addresses");
    let forward = format!("0:127.0.0.1:{}", echo().port());
    let connect = Running::start(&[
        "connect",
        &port,
        "--peer",
        &server,
        "--key",
        &client_key,
        "--path",
        "127.0.0.1@localhost",
        "-L",
        &forward,
        "--json",
    ]);
    let near = connect.wait_for("listening", "address");
    assert_eq!(exchange(near.as_str().unwrap(), b"one"), b"one");
    // A server that is ended by SIGTERM tells its peer.
    #[cfg(unix)]
    {
        use nix::sys::signal::{Signal, kill};
        kill(nix::unistd::Pid::from_raw(first.child.id() as i32), Signal::SIGTERM).unwrap();
    }
    connect.wait_for("disconnected", "reason");
    drop(first);
    let again = Running::start(&args);
    again.wait_for("serving", "addresses");
    assert_eq!(exchange(near.as_str().unwrap(), b"two"), b"two");
}

/// The client knows one address of the server. When that address goes silent for good, open connections continue at
/// another one, which the server has announced. After a restart of the server the client connects to that one again.
#[test]
fn a_server_is_found_at_the_address_that_it_has_announced() {
    let directory = tempfile::tempdir().unwrap();
    let free = || UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let (known, other) = (free(), free());
    let (server_key, server) = key(directory.path(), "server.key");
    let (client_key, client) = key(directory.path(), "client.key");
    let serve = || {
        let keys = ["--key", &server_key, "--allow", &client];
        let there = ["--listen", "127.0.0.1:0", "--listen", &other, "--announce", &other];
        Running::start(&[&["serve", "--json"], &keys[..], &there].concat())
    };
    let running = serve();
    let addresses = running.wait_for("serving", "addresses");
    let relay = Relay::start(&known, addresses[0].as_str().unwrap().parse().unwrap(), None);
    let forward = format!("0:127.0.0.1:{}", echo().port());
    let args = ["connect", &known, "--peer", &server, "--key", &client_key, "-L", &forward];
    let client = Running::start(&[&args[..], &["--json"]].concat());
    let near = client.wait_for("listening", "address");
    let connect = || {
        let tcp = TcpStream::connect(near.as_str().unwrap()).unwrap();
        tcp.set_read_timeout(Some(PATIENCE)).unwrap();
        tcp
    };
    let works = |mut tcp: &TcpStream, text: &[u8; 5]| {
        let mut back = [0; 5];
        tcp.write_all(text).unwrap();
        tcp.read_exact(&mut back).unwrap();
        assert_eq!(&back, text);
    };
    let tcp = connect();
    works(&tcp, b"first");
    drop(relay);
    works(&tcp, b"later");
    drop(running);
    let _again = serve();
    client.event("disconnected");
    assert_eq!(client.wait_for("connecting", "remote"), known.as_str());
    assert_eq!(client.wait_for("connecting", "remote"), other.as_str());
    client.event("connected");
    works(&connect(), b"again");
}

#[test]
fn who_waits_for_standard_output_is_told_what_was_missing() {
    let directory = tempfile::tempdir().unwrap();
    let (file, public) = key(directory.path(), "a.key");
    let output =
        run(&["connect", "nosuch.invalid:1", "--peer", &public, "--key", &file, "--stdio", "a:1"]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{text}");
    assert!(text.contains("cannot find nosuch.invalid") && text.lines().count() == 1, "{text}");
}

/// A preshared secret, given as an option on one side and in a file on the other: with it the peers
/// connect, and with another or with none they do not.
#[test]
fn a_shared_secret_lets_in_who_has_it() {
    let directory = tempfile::tempdir().unwrap();
    let (server_file, server) = key(directory.path(), "server.key");
    let (client_file, client) = key(directory.path(), "client.key");
    let secret = |name: &str| {
        let file = directory.path().join(name).to_str().unwrap().to_owned();
        assert!(run(&["genpsk", "--out", &file]).status.success());
        file
    };
    let (shared, other) = (secret("shared.psk"), secret("other.psk"));
    let config = directory.path().join("serve.toml");
    let text = format!(
        "[interface]\nprivate-key-file = \"server.key\"\nlisten = [\"127.0.0.1:0\"]\n[[peer]]\n\
         public-key = \"{client}\"\npreshared-key-file = \"shared.psk\"\n"
    );
    std::fs::write(&config, text).unwrap();
    assert!(Path::new(&server_file).exists());
    let serve = Running::start(&["serve", "--config", config.to_str().unwrap(), "--json"]);
    let to = serve.wait_for("serving", "addresses");
    let to = to[0].as_str().unwrap();
    let echo = echo().to_string();
    let ask = |rest: &[&str], patience: u64| {
        let usual = ["connect", to, "--peer", &server, "--key", &client_file, "--stdio", &echo];
        let mut child = Command::new(PROGRAM)
            .args(usual.iter().chain(rest))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(b"psst").unwrap();
        let mut out = child.stdout.take().unwrap();
        let (send, said) = mpsc::channel();
        std::thread::spawn(move || {
            let mut text = String::new();
            let _ = out.read_to_string(&mut text);
            let _ = send.send(text);
        });
        let text = said.recv_timeout(Duration::from_secs(patience)).unwrap_or_default();
        let _ = child.kill();
        let _ = child.wait();
        text
    };
    assert_eq!(ask(&["--preshared-key", &other], 2), "");
    assert_eq!(ask(&[], 2), "");
    assert_eq!(ask(&["--preshared-key", &shared], PATIENCE.as_secs()), "psst");
}

#[test]
fn wrong_input_is_one_line_that_says_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let (file, public) = key(directory.path(), "a.key");
    let config = directory.path().join("c.toml");
    std::fs::write(&config, "[interface]\nlissten = []\n").unwrap();
    let config = config.to_str().unwrap();
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let any = "127.0.0.1:0";
    let tcp = TcpListener::bind(any).unwrap();
    let busy = &tcp.local_addr().unwrap().to_string();
    let forward = format!("{busy}:localhost:80");
    let cases: &[(&[&str], i32, &str)] = &[
        (&["serve"], 2, "--listen"),
        (&["serve", "--listen", "127.0.0.1:0"], 2, "--allow"),
        (&["serve", "--listen", "127.0.0.1:0", "--allow", &public], 2, "keygen"),
        (&["serve", "--listen", "here", "--allow", &public], 2, "--listen"),
        (&["serve", "--listen", &taken, "--allow", &public, "--key", &file], 1, "another program"),
        (&["serve", "--listen", "192.0.2.1:1", "--allow", &public, "--key", &file], 1, "of this"),
        (&["serve", "--listen", any, "--allow", &public, "--key", "/"], 2, "/: is a directory"),
        (
            &["serve", "--listen", any, "--allow", &public, "--key", &file, "--metrics", busy],
            1,
            "name",
        ),
        (&["connect", "host:1", "--peer", &public, "--key", &file, "-L", &forward], 1, "name"),
        (
            &["connect", "host:1", "--peer", &public, "--key", &file, "--preshared-key", "/none"],
            2,
            "genpsk",
        ),
        (&["serve", "--listen", any, "--preshared-key", &file, "--key", &file], 2, "--allow"),
        (&["serve", "--config", "/dev/zero"], 2, "too long"),
        (&["serve", "--config", config], 2, ":2:1: unknown field `lissten`"),
        (&["serve", "--config", "/nonexistent/c.toml"], 2, "/nonexistent/c.toml"),
        (&["serve", "--permit", "everything"], 2, "loopback, any"),
        (&["connect", "host"], 2, "HOST:PORT"),
        (&["connect", "host:1"], 2, "--peer"),
        (&["connect", "host:1", "--peer", "x"], 2, "--peer"),
        (&["connect", "host:1", "--peer", &public], 2, "keygen"),
        (&["connect", "host:1", "--peer", &public, "--key", "/none"], 2, "/none"),
        (&["connect", "host:1", "-L", "80"], 2, "[BIND:]PORT:HOST:PORT"),
        (&["connect", "host:1", "-D", "::1:1080"], 2, "[BIND:]PORT, such as 1080, [::1]:1080"),
        (&["connect", "host:1", "-D", "80:localhost:80"], 2, "[BIND:]PORT, such as 1080"),
        (&["connect", "host:1", "--peer", &public, "--key", &file, "-D", busy], 1, "another port"),
        (&["connect", "host:1", "--stdio", "a:1", "-D", "1"], 2, "cannot be used with"),
        (&["connect", "host:1", "--path", "wlan0,always"], 2, "backup, metered or cc=POLICY"),
        (&["connect", "host:1", "--stdio", "a:1", "-L", "1:a:1"], 2, "cannot be used with"),
    ];
    for (args, code, part) in cases {
        let output = run(args);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(*code), "{args:?}: {text}");
        assert!(text.contains(part), "{args:?}: {text}");
        assert_eq!(text.lines().count(), 1, "{args:?}: {text}");
    }
}
