//! The repository's own commands: `cargo xtask test`, `cargo xtask ci`, `cargo xtask bless`.

mod aarch64;
mod book;
mod check;
mod ci;
mod demo;
mod dist;
mod golden;
mod lanes;
mod macos;
mod miri;
mod perf;
mod process;
mod python;
mod semver;
mod suite;
mod wasm;
mod workspace;

use std::process::ExitCode;

use workspace::Workspace;

const HELP: &str = "\
Commands of the Anabranch repository

Usage: cargo xtask <command>

  test                    run every test of the workspace, documentation tests included: those that
                          compute beside those that wait
  test ARGS [-- ARGS]     run `cargo test` with ARGS, those after `--` for the test programs
  ci [--only STEP]...     run the longer checks and print a table; fails if any step failed
  ci --list               name the steps of `ci`
  oracle [FILE] [ARGS]    compare our TCP with measurements of other simulators; `oracle --help`
  perf net [ARGS]         throughput over loopback beside quinn's; `perf net --help`
  perf sim [ARGS]         the simulator's speed beside ns-2's and ns-3's; `perf sim --help`
  roads [ARGS]            links as on the road with several congestion controls; `roads --help`
  kernel [ARGS]           our transport beside the kernel's TCP and MPTCP over emulated links; `kernel --help`
  parity [ARGS]           the demo over real sockets beside itself in virtual time; `parity --help`
  abuse [ARGS]            floods of forged first messages, or a hostile peer, beside a transfer; `abuse --help`
  work [CASE]...          what a packet of an honest and of a hostile peer costs; `work --help`
  python [ARGS]           build the Python package, and check it in environments below target/python;
                          ARGS are pytest's, such as -k NAME
  soak [ARGS]             run random fault schedules in virtual time, in a release build: --connections N of them
                          (100,000), --after the first M
  miri                    run the portable kernel and the codecs under Miri, for three processors
  dist [--wheels]         pack a static program for Linux, its pages and units, in one archive; or build
                          the Python package for Linux on x86-64 and AArch64
  semver [REVISION]       the library's interface beside the last release's, by cargo-semver-checks
  book                    the pages as a book in target/book, by mdBook
  bless                   rewrite the golden traces from the present behaviour
  help                    print this text
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&args) {
        Ok(code) => code,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(args: &[String]) -> Result<ExitCode, String> {
    let (command, rest) = match args.split_first() {
        Some((command, rest)) => (command.as_str(), rest),
        None => return Err(format!("no command given\n\n{HELP}")),
    };
    match command {
        "help" | "--help" | "-h" => {
            print!("{HELP}");
            Ok(ExitCode::SUCCESS)
        }
        "test" => suite::test(&Workspace::locate()?, rest),
        "abuse" => process::program(&Workspace::locate()?, "abuse", rest),
        "work" => process::program(&Workspace::locate()?, "work", rest),
        "soak" => suite::soak(&Workspace::locate()?, rest),
        "miri" => miri::run(&Workspace::locate()?, rest),
        "bless" if rest.is_empty() => golden::bless(&Workspace::locate()?),
        "bless" => Err("`bless` takes no arguments".into()),
        "oracle" => process::program(&Workspace::locate()?, "oracle", rest),
        "perf" => perf::run(&Workspace::locate()?, rest),
        "roads" => process::program(&Workspace::locate()?, "roads", rest),
        "python" => python::run(&Workspace::locate()?, rest),
        "dist" => dist::run(&Workspace::locate()?, rest).map(|()| ExitCode::SUCCESS),
        "parity" | "kernel" => demo::compare(&Workspace::locate()?, command, rest),
        "semver" => semver::run(&Workspace::locate()?, rest),
        "book" => book::run(&Workspace::locate()?, rest),
        "ci" => ci::run(&Workspace::locate()?, rest),
        other => Err(format!("unknown command `{other}`\n\n{HELP}")),
    }
}
