//! Starts the program and sends it SIGINT.

use std::io::Read;
use std::process::{Child, Command, Stdio};

pub fn start(args: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anabranch"));
    command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Interrupts the program; returns what it has printed since, and its exit code.
pub fn interrupt(mut child: Child, out: &mut impl Read) -> (String, Option<i32>) {
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let mut text = String::new();
    out.read_to_string(&mut text).unwrap();
    (text, child.wait().unwrap().code())
}
