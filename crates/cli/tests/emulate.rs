//! Programs over emulated links. Making namespaces needs root and TUN devices; where these are missing, the tests say
//! that they were skipped, and why.
#![cfg(target_os = "linux")]

mod common;

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::anabranch;
use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_anabranch");
/// Longest wait for what has to happen soon.
const PATIENCE: Duration = Duration::from_secs(20);
const PATH: &str = "--path name=a,rate=10mbit,delay=10ms";

/// Whether namespaces can be made here; prints why not.
fn can_emulate() -> bool {
    let why = if !nix::unistd::Uid::effective().is_root() {
        "network namespaces need root"
    } else if !Path::new("/dev/net/tun").exists() {
        "the kernel has no TUN devices"
    } else {
        return true;
    };
    println!("skipped: {why}");
    false
}

/// Whether the programs that serve and fetch a page are installed; prints which is not.
fn can_fetch() -> bool {
    let missing = |program: &&str| Command::new(program).arg("--version").output().is_err();
    let missing = ["python3", "curl"].into_iter().find(missing);
    missing.iter().for_each(|program| println!("skipped: {program} is not installed"));
    missing.is_none()
}

/// The command that fetches `page` from port 8000 of `host`, as soon as that answers.
fn fetch(into: &Path, host: &str) -> String {
    let into = into.display();
    format!(
        "curl -sS --retry 20 --retry-delay 1 --retry-connrefused -o {into} http://{host}:8000/page"
    )
}

/// Starts `emulate` with the words of `options` and then `more`.
fn start(options: &str, more: &[&str]) -> Child {
    let mut command = Command::new(PROGRAM);
    command.arg("emulate").args(options.split_whitespace()).args(more);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The code, standard output and standard error of a run.
fn run(options: &str, more: &[&str]) -> (Option<i32>, String, String) {
    let output = start(options, more).wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[allow(clippy::disallowed_methods, reason = "programs take real time")]
fn now() -> Instant {
    Instant::now()
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let start = now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The processes whose command line has `mark` in it.
fn marked(mark: &str) -> Vec<u32> {
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    let all = fs::read_dir("/proc").unwrap().flatten().filter_map(number);
    let has = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(mark)
    };
    all.filter(has).collect()
}

/// Whether any process lives in the network namespace that `/proc/PID/ns/net` names.
fn is_inhabited(namespace: &Path) -> bool {
    let all = fs::read_dir("/proc").unwrap().flatten();
    all.filter_map(|entry| fs::read_link(entry.path().join("ns/net")).ok())
        .any(|link| link == namespace)
}

#[test]
fn wrong_words_are_one_line_each() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = directory.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let link = "[[path]]\nname = \"lte\"\nrate = \"9mbit\"\ndelay = \"40ms\"\n";
    let (good, empty) = (file("good.toml", link), file("empty.toml", ""));
    let broken = file("broken.toml", &link.replace("40ms", "soon"));
    let duplicate = file("faults.toml", &format!("{link}faults = {{ duplicate = \"1%\" }}\n"));
    let long = file("long.toml", &link.replace("lte", "sixteen-letters-"));
    let cases = [
        (String::new(), "SCENARIO"),
        (PATH.to_owned(), "COMMAND"),
        (format!("{good} --set path.lte.rate=fast -- true"), "path.lte.rate"),
        (format!("{broken} -- true"), "delay"),
        (format!("{empty} -- true"), "nothing to emulate"),
        (format!("{duplicate} -- true"), "faults"),
        (format!("{long} -- true"), "15 characters"),
        (format!("{good} {PATH} -- true"), "--path"),
        ("--path rate=fast,delay=1ms -- true".to_owned(), "rate"),
        (format!("{PATH} {PATH} -- true"), "two paths"),
        (format!("{PATH} --pcap b=file -- true"), "no link 'b'"),
        (format!("{PATH} --pcap b -- true"), "LINK=FILE"),
        (format!("{PATH} --late soon -- true"), "--late"),
        (format!("{PATH} --seed one -- true"), "--seed"),
        (format!("{PATH} --shell --client true"), "--shell"),
        (format!("{PATH} --client true -- true"), "--client"),
    ];
    for (line, part) in cases {
        let ran = anabranch(&format!("emulate {line}"));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{line}: {}", ran.stderr);
        let one = ran.stderr.lines().count() == 1 && ran.stderr.starts_with("anabranch: ");
        assert!(one && ran.stderr.contains(part), "{line}: {}", ran.stderr);
    }
    let ran = anabranch("emulate /no/such/file.toml -- true");
    assert_eq!((ran.code, ran.stderr.lines().count()), (Some(2), 1), "{}", ran.stderr);
}

#[test]
fn the_command_says_how_it_ends() {
    if !can_emulate() {
        return;
    }
    for (command, expected) in [("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 143)] {
        let (code, out, errors) = run(PATH, &["--quiet", "--", "sh", "-c", command]);
        assert_eq!((code, out.as_str(), errors.as_str()), (Some(expected), "", ""), "{command}");
    }
    let (code, _, errors) = run(PATH, &["--quiet", "--", "/no/such/program"]);
    assert_eq!((code, errors.lines().count()), (Some(127), 1), "{errors}");
    // A server without a client decides the exit code, and its standard output is passed on
    // unchanged.
    let (code, out, _) = run(PATH, &["--server", "echo here; exit 3"]);
    assert_eq!((code, out.as_str()), (Some(3), "here\n"));
}

#[test]
fn a_name_that_the_kernel_refuses_is_an_error_and_leaves_no_capture() {
    if !can_emulate() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let pcap = format!("all={}", directory.path().join("all.pcapng").display());
    let more = ["--pcap", &pcap, "--", "true"];
    let (code, out, errors) = run("--path name=all,rate=1mbit,delay=1ms", &more);
    assert_eq!((code, out.as_str(), errors.lines().count()), (Some(1), "", 1), "{errors}");
    assert!(errors.contains("TUN device 'all'"), "{errors}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn nothing_is_left_after_a_kill() {
    if !can_emulate() {
        return;
    }
    let mark = format!("86400.{}", std::process::id());
    let command = format!("sleep {mark} & setsid sleep {mark} & sleep {mark}");
    let mut child = start(PATH, &["--server", &command, "--client", &command]);
    wait_until("six sleep", || {
        let names = marked(&mark).into_iter();
        let comm = |pid| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        names.filter(|pid| comm(*pid) == "sleep\n").count() == 6
    });
    let namespaces: Vec<_> = marked(&mark)
        .into_iter()
        .filter(|pid| *pid != child.id())
        .map(|pid| fs::read_link(format!("/proc/{pid}/ns/net")).unwrap())
        .collect();
    assert!(namespaces.iter().all(|space| is_inhabited(space)));
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("all processes end", || marked(&mark).is_empty());
    assert!(!namespaces.iter().any(|space| is_inhabited(space)));
    let named = Command::new("ip").args(["netns", "list"]).output();
    let named = named.map(|output| output.stdout).unwrap_or_default();
    assert!(!String::from_utf8_lossy(&named).contains("anabranch"));
}

#[test]
fn an_interrupt_ends_the_commands_and_shows_the_links() {
    if !can_emulate() {
        return;
    }
    let mark = format!("86401.{}", std::process::id());
    let child = start(PATH, &["--json", "--server", "sleep 86402", "--", "sleep", &mark]);
    wait_until("it sleeps", || marked(&mark).len() >= 3);
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(143));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["exit_code"], 143);
    assert!(marked(&mark).is_empty());
}

/// Runs `bench` between the namespaces over the given paths with this `--late`; returns the report of the links.
fn bench(paths: &str, locals: &[&str], late: &str) -> Value {
    let directory = tempfile::tempdir().unwrap();
    let key = directory.path().join("key");
    let public = anabranch(&format!("keygen --out {}", key.display())).succeeded();
    let server = format!(
        "{PROGRAM} bench server --listen 0.0.0.0:5000 --key {} --anyone --once",
        key.display()
    );
    let locals: String = locals.iter().map(|local| format!(" --path {local}")).collect();
    let client = format!(
        "sleep 1; {PROGRAM} bench client 10.77.1.2:5000 --peer {} --bytes 3MB{locals}",
        public.trim()
    );
    let more = ["--json", "--late", late, "--server", &server, "--client", &client];
    let (code, out, errors) = run(paths, &more);
    assert_eq!(code, Some(0), "{errors}");
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
}

#[test]
fn a_transfer_uses_two_emulated_links() {
    if !can_emulate() {
        return;
    }
    let paths =
        "--path name=lte,rate=12mbit,delay=20ms,loss=1% --path name=sat,rate=8mbit,delay=30ms";
    for (locals, late) in [(&["10.77.1.1", "10.77.2.1"], "1s"), (&["lte", "sat"], "1us")] {
        let report = bench(paths, locals, late);
        // The second run allows less lateness than any machine achieves.
        let why = report["unusable_because"].as_str().unwrap_or("usable");
        assert!(why.contains(if late == "1s" { "usable" } else { "late" }), "{report}");
        assert_eq!(report["usable"], late == "1s", "{report}");
        let links = report["links"].as_array().unwrap();
        for (link, name) in links.iter().zip(["lte", "lte.reverse", "sat", "sat.reverse"]) {
            assert_eq!(link["name"], name);
            // All acknowledgements may come back over one of the two links.
            let least = if name.ends_with("reverse") { 100 } else { 500_000 };
            assert!(link["bytes_delivered"].as_u64().unwrap() > least, "{locals:?}: {report}");
        }
        assert!(links[0]["lost_random"].as_u64().unwrap() > 0, "{report}");
        let waits = ["queue_mean_ms", "queue_p95_ms"].map(|key| links[0][key].as_f64().unwrap());
        assert!(0.0 < waits[0] && waits[0] < waits[1] && waits[1] < 1e3, "{report}");
    }
}

#[test]
fn ordinary_programs_cross_the_links() {
    if !can_emulate() || !can_fetch() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (at, page) = (directory.path().display(), file(&directory.path().join("page"), 400_000));
    let capture = directory.path().join("a.pcapng");
    let server = format!("cd {at} && exec python3 -m http.server --bind 10.77.1.2 8000");
    let client = fetch(&directory.path().join("got"), "10.77.1.2");
    let pcap = format!("a.reverse={}", capture.display());
    let more =
        ["--json", "--pcap", &pcap, "--late", "1s", "--server", &server, "--client", &client];
    let (code, out, errors) = run("--path name=a,rate=10mbit,delay=10ms,reverse.loss=1%", &more);
    assert_eq!(code, Some(0), "{errors}");
    assert!(fs::read(directory.path().join("got")).unwrap() == page);
    let report: Value = serde_json::from_str(&out).unwrap();
    let back = &report["links"][1];
    let count = |key: &str| back[key].as_u64().unwrap();
    assert!(count("bytes_delivered") > 400_000, "{report}");
    let left = count("packets_delivered") + count("lost_random") + count("dropped_full");
    // 500 kB at 10 Mb/s take at least a third of a second.
    assert!(report["seconds"].as_f64().unwrap() > 0.33, "{report}");
    let (packets, comments) = packets_of(&fs::read(capture).unwrap());
    assert_eq!(packets as u64, left);
    assert_eq!(comments as u64, left - count("packets_delivered"));
}

/// Options for two paths. The lateness limit is large, because only the contents of packets matter.
const TWO: &str = "--late 1s --path name=lte,rate=12mbit,delay=20ms,loss=1% --path name=sat,rate=8mbit,delay=30ms";

/// Writes a file of `length` pseudo-random bytes, and returns them.
fn file(path: &Path, length: u32) -> Vec<u8> {
    let bytes: Vec<u8> = (0..length).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    fs::write(path, &bytes).unwrap();
    bytes
}

/// Whether both links of [`TWO`] carried a good part of 3 MB.
fn used_both(report: &str) {
    let report: Value = serde_json::from_str(report).unwrap();
    for link in [0, 2] {
        let bytes = report["links"][link]["bytes_delivered"].as_u64().unwrap();
        assert!(bytes > 500_000, "{report}");
    }
}

#[test]
fn a_file_is_sent_with_a_ticket_over_all_links() {
    if !can_emulate() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (at, sent) = (directory.path().display(), file(&directory.path().join("big"), 3_000_000));
    let server = format!("cd {at} && exec {PROGRAM} recv --yes --out got > ticket");
    // The ticket is complete once the end of its line has been written.
    let client = format!(
        "cd {at}; while [ $(wc -l < ticket) -lt 1 ]; do sleep 0.1; done; {PROGRAM} send big $(cat ticket)"
    );
    fs::write(directory.path().join("ticket"), "").unwrap();
    let more = ["--json", "--server", &server, "--client", &client];
    let (code, out, errors) = run(TWO, &more);
    assert_eq!(code, Some(0), "{errors}");
    assert!(fs::read(directory.path().join("got/big")).unwrap() == sent);
    used_both(&out);
}

#[test]
fn a_file_is_sent_over_ipv6() {
    if !can_emulate() {
        return;
    }
    if !Path::new("/proc/sys/net/ipv6").exists() {
        println!("skipped: the kernel has no IPv6");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (at, sent) = (directory.path().display(), file(&directory.path().join("big"), 3_000_000));
    let key = |name: &str| {
        let line = format!("keygen --out {at}/{name}");
        anabranch(&line).succeeded().trim().to_owned()
    };
    let (here, there) = (key("client"), key("server"));
    let server = format!(
        "cd {at} && exec {PROGRAM} recv --listen [::]:5000 --key server --allow {here} --once --yes --out got"
    );
    let client = format!(
        "cd {at}; sleep 1; {PROGRAM} send big --to [fd77:0:0:1::2]:5000 --peer {there} --key client \
         --path lte --path sat"
    );
    let more = ["--json", "--server", &server, "--client", &client];
    let (code, out, errors) = run(TWO, &more);
    assert_eq!(code, Some(0), "{errors}");
    assert!(fs::read(directory.path().join("got/big")).unwrap() == sent);
    used_both(&out);
    let report: Value = serde_json::from_str(&out).unwrap();
    let path = &report["paths"][1];
    assert_eq!(
        (&path["server"], &path["server_ipv6"]),
        (&"10.77.2.2".into(), &"fd77:0:0:2::2".into())
    );
}

#[test]
fn plain_tcp_crosses_in_both_families() {
    if !can_emulate() || !can_fetch() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (at, page) = (directory.path().display(), file(&directory.path().join("page"), 300_000));
    let server = format!("cd {at} && exec python3 -m http.server --bind :: 8000");
    let get = |name: &str, host: &str| fetch(&directory.path().join(name), host);
    let client = format!("{} && {}", get("a", "10.77.1.2"), get("b", "[fd77:0:0:2::2]"));
    let (code, out, errors) = run(TWO, &["--json", "--server", &server, "--client", &client]);
    assert_eq!(code, Some(0), "{errors}");
    for name in ["a", "b"] {
        assert!(fs::read(directory.path().join(name)).unwrap() == page, "{name}");
    }
    // Each transfer took the path of its address.
    let report: Value = serde_json::from_str(&out).unwrap();
    for link in [1, 3] {
        let bytes = report["links"][link]["bytes_delivered"].as_u64().unwrap();
        assert!((300_000..360_000).contains(&bytes), "{report}");
    }
}

/// Counts the packets of a pcapng file, and those with a comment.
fn packets_of(mut file: &[u8]) -> (usize, usize) {
    let (mut packets, mut comments) = (0, 0);
    while file.len() >= 12 {
        let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
        let (kind, length) = (word(0), word(4) as usize);
        if kind == 6 {
            packets += 1;
            let captured = word(20) as usize;
            assert_eq!(file[28] >> 4, 4, "not IPv4");
            // The options behind the padded packet begin with a comment, or end.
            comments += usize::from(word(28 + captured.next_multiple_of(4)) as u16 == 1);
        }
        file = &file[length..];
    }
    (packets, comments)
}
