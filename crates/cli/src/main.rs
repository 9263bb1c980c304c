//! The `anabranch` program.

fn main() -> std::process::ExitCode {
    anabranch_cli::main()
}
