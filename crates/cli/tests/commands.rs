//! Keys, lists, completions, help, and wrong usage.

mod common;

use common::{Ran, anabranch, with_input};
use serde_json::Value;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The line on standard error, if the run ended with `code` and printed nothing else.
fn failed(ran: Ran, code: i32) -> String {
    assert_eq!(ran.code, Some(code), "{}", ran.stderr);
    assert_eq!(ran.stdout, "");
    let lines: Vec<&str> = ran.stderr.lines().collect();
    assert_eq!(lines.len(), 1, "{}", ran.stderr);
    assert!(lines[0].starts_with("anabranch: "), "{}", ran.stderr);
    lines[0].to_owned()
}

#[test]
fn a_key_and_its_public_key_belong_together() {
    let secret = anabranch("keygen").succeeded();
    assert_eq!(secret.trim_end().len(), 44);
    let public = with_input("pubkey", &secret).succeeded();
    assert_eq!(public.trim_end().len(), 44);
    assert_ne!(public, secret);
    let both = json(&anabranch("keygen --json").succeeded());
    let again = with_input("pubkey --json -", both["secret_key"].as_str().unwrap()).succeeded();
    assert_eq!(json(&again)["public_key"], both["public_key"]);
    assert!(json(&again).get("secret_key").is_none());
}

#[test]
fn a_key_file_is_not_replaced_unasked() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("key");
    let path = path.display();
    let public = anabranch(&format!("keygen --out {path}")).succeeded();
    assert_eq!(anabranch(&format!("pubkey {path}")).succeeded(), public);
    let line = failed(anabranch(&format!("keygen --out {path}")), 1);
    assert!(line.contains("--force"), "{line}");
    assert_eq!(anabranch(&format!("pubkey {path}")).succeeded(), public);
    let other = anabranch(&format!("keygen --out {path} --force")).succeeded();
    assert_ne!(other, public);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn what_is_no_key_is_refused() {
    for input in ["", "nonsense", "AAAA", "\u{0}\u{1}"] {
        failed(with_input("pubkey", input), 1);
    }
    let line = failed(anabranch("pubkey /no/such/file"), 2);
    assert!(line.contains("/no/such/file"), "{line}");
    failed(anabranch("keygen --out /no/such/directory/key"), 2);
}

#[test]
fn lists_name_what_can_be_named() {
    let text = anabranch("profiles").succeeded();
    assert!(text.contains("anabranch") && text.contains("mplot"), "{text}");
    let profiles = json(&anabranch("profiles --json").succeeded());
    assert_eq!(profiles[0]["default"], true);
    assert!(profiles[0]["axes"]["scheduler"].is_string());
    let text = anabranch("policies scheduler --options").succeeded();
    assert!(text.contains("min-rtt"), "{text}");
    let policies = json(&anabranch("policies --json").succeeded());
    let rows = policies.as_array().unwrap();
    assert!(rows.iter().any(|row| row["axis"] == "code" && row["name"] == "reed-solomon"));
    assert!(failed(anabranch("policies colour"), 2).contains("scheduler"));
}

#[test]
fn completions_know_the_commands() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = anabranch(&format!("completions {shell}")).succeeded();
        assert!(script.contains("keygen"), "{shell}");
    }
    failed(anabranch("completions cmd"), 2);
}

#[test]
fn every_command_has_a_manual_page() {
    let directory = tempfile::tempdir().unwrap();
    let pages = directory.path().join("man1");
    anabranch(&format!("man {}", pages.display())).succeeded();
    let overview = std::fs::read_to_string(pages.join("anabranch.1")).unwrap();
    assert!(overview.contains("anabranch\\-demo(1)"), "{overview}");
    let demo = std::fs::read_to_string(pages.join("anabranch-demo.1")).unwrap();
    assert!(demo.starts_with(".") && demo.contains("ack\\-loss"), "{demo}");
    std::fs::write(directory.path().join("file"), "").unwrap();
    failed(anabranch(&format!("man {}", directory.path().join("file").display())), 1);
}

#[test]
fn every_command_has_help_with_an_example_or_exit_codes() {
    for command in [
        "", "demo", "send", "recv", "get", "keygen", "pubkey", "genpsk", "profiles", "policies",
        "why",
    ] {
        let help = anabranch(&format!("{command} --help")).succeeded();
        assert!(help.contains("Examples:"), "{command}");
        assert!(help.contains("Exit codes"), "{command}");
    }
    assert!(anabranch("--version").succeeded().starts_with("anabranch "));
}

#[test]
fn wrong_questions_get_one_line_and_code_two() {
    for (line, part) in [
        ("dance", "dance"),
        ("demo --profile tcp", "known:"),
        ("demo --set scheduler=fastest", "known:"),
        ("demo --set congestion=cubic:speed=1", "speed"),
        ("demo --path rate=1mbit", "delay is missing"),
        ("serve --config /no/such/file", "/no/such/file"),
        ("serve --listen eth0", "0.0.0.0:4433"),
        ("send /dev/null anabranch1AAAA", "ticket"),
        ("demo --path rate=1mbit,delay=10ms,colour=red", "colour"),
        ("demo --path rate=-1mbit,delay=10ms", "rate"),
        ("demo --path rate=12,delay=10ms", "rate"),
        ("demo --path rate=1mbit,delay=99999s", "delay"),
        ("demo --path rate=1mbit,delay=10ms,loss=101%", "loss"),
        ("demo --time -1", "seconds"),
        ("demo --time 1e30", "seconds"),
        ("demo --size 10", "unit"),
        ("demo --size 999999GB", "100GB"),
        ("demo --ack-loss 200%", "5%"),
        ("demo --max-overhead 0.2", "20%"),
        ("demo --profile mplot --max-overhead 20%", "budget"),
        ("demo --seed x", "seed"),
        ("keygen --force", "--out"),
        ("why", "FILE"),
    ] {
        let text = failed(anabranch(line), 2);
        assert!(text.contains(part), "{line}: {text}");
    }
}

#[test]
fn without_a_command_the_help_is_shown() {
    for line in ["", "bench"] {
        let ran = anabranch(line);
        assert_eq!(ran.code, Some(2));
        assert!(ran.stderr.contains("Commands:"), "{}", ran.stderr);
    }
}

#[test]
fn manual_pages_are_written_where_the_directory_can_be_made() {
    let place = tempfile::tempdir().unwrap();
    let ran = anabranch(&format!("man {}/a/b", place.path().display()));
    assert_eq!((ran.code, place.path().join("a").exists()), (Some(1), false), "{}", ran.stderr);
    let told = anabranch(&format!("man {}/a", place.path().display())).succeeded();
    let page = told.trim().strip_prefix("Read them with: man ").unwrap();
    assert!(std::fs::read_to_string(page).unwrap().contains("anabranch"));
}

#[test]
fn files_that_cannot_be_used_are_named() {
    for (line, code) in [
        ("demo --file /no/such/file", 2),
        ("demo --file /", 2),
        ("demo --time 1 --record /no/such/directory/run", 2),
        ("why /no/such/file", 2),
        ("why /", 2),
        ("why /dev/null", 1),
    ] {
        let text = failed(anabranch(line), code);
        assert!(text.contains(line.split_whitespace().last().unwrap()), "{line}: {text}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_reported() {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_anabranch"));
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = command.arg("policies").stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("standard output"));
    // The device must not be replaced by a file.
    let run = anabranch("demo --time 1 --record /dev/full");
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    assert!(run.stderr.contains("/dev/full"), "{}", run.stderr);
    assert!(!std::fs::metadata("/dev/full").unwrap().is_file());
}
