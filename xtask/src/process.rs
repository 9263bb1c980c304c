//! Running other programs.

use std::ffi::OsStr;
use std::io::{PipeReader, Read};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::workspace::Workspace;

/// Runs `command` with our own input and output.
///
/// # Errors
/// If it cannot be started or exits non-zero.
pub fn run(command: &mut Command) -> Result<(), String> {
    let shown = show(command);
    eprintln!("$ {shown}");
    let status = command.status().map_err(|error| format!("`{shown}`: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("`{shown}`: {status}")) }
}

/// Runs `command` and returns its standard output; standard error stays ours.
///
/// # Errors
/// If it cannot be started or exits non-zero.
pub fn capture(command: &mut Command) -> Result<String, String> {
    let shown = show(command);
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("`{shown}`: {error}"))?;
    if !output.status.success() {
        return Err(format!("`{shown}`: {}", output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Starts `command` with one pipe for both of its outputs, which keeps headings in front of what they announce.
///
/// # Errors
/// If there can be no pipe, or it cannot be started.
pub fn piped(mut command: Command) -> std::io::Result<(PipeReader, Child)> {
    let (reader, writer) = std::io::pipe()?;
    let child = command.stdout(writer.try_clone()?).stderr(writer).spawn()?;
    // Dropping the command here closes its write ends, which would keep the pipe open for ever.
    Ok((reader, child))
}

/// Runs `command` to its end; returns both of its outputs, and how it ended.
///
/// # Errors
/// If it cannot be started.
pub fn capture_all(command: Command) -> Result<(Vec<u8>, ExitStatus), String> {
    let shown = show(&command);
    let failed = |error: std::io::Error| format!("`{shown}`: {error}");
    let (mut reader, mut child) = piped(command).map_err(failed)?;
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).map_err(failed)?;
    Ok((bytes, child.wait().map_err(failed)?))
}

/// Like [`capture`], but kills the program once `limit` has passed. On a non-zero exit the error
/// carries what was printed.
///
/// # Errors
/// As for [`capture`], and if the limit was reached.
pub fn capture_within(command: &mut Command, limit: Duration) -> Result<String, String> {
    let shown = show(command);
    let failed = |error: std::io::Error| format!("`{shown}`: {error}");
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().map_err(failed)?;
    let stdout = child.stdout.take();
    let reader = thread::spawn(move || {
        let mut bytes = Vec::new();
        stdout.map_or(Ok(0), |mut pipe| pipe.read_to_end(&mut bytes)).map(|_| bytes)
    });
    let start = now();
    let status = loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            break status;
        }
        if start.elapsed() > limit {
            child.kill().and_then(|()| child.wait()).map_err(failed)?;
            return Err(format!("`{shown}`: still running after {} s", limit.as_secs()));
        }
        thread::sleep(Duration::from_millis(20));
    };
    let bytes = reader.join().map_err(|_| format!("`{shown}`: reader failed"))?.map_err(failed)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    if status.success() { Ok(text) } else { Err(format!("`{shown}`: {status}: {}", text.trim())) }
}

/// Programs of `ci` that are built as users build them: `work` judges the instructions of such a build, and the
/// interpreter in `wasm-run` relies on tail calls, which only such a build turns into jumps that need no stack.
const AS_SHIPPED: [&str; 4] =
    ["--package=anabranch-tools", "--features=wasm,work", "--bin=wasm-run", "--bin=work"];
/// Programs of `ci` that judge no speed.
const QUICKLY_BUILT: [&str; 7] = [
    "--package=anabranch-cli",
    "--package=wasm-digest",
    "--package=anabranch-tools",
    "--features=anabranch-tools/abuse",
    "--bin=abuse",
    "--bin=anabranch",
    "--bin=wasm-digest",
];

/// A command that runs one of the programs of `ci`, optimised. Several are built together, since each program alone
/// would ask for other features of their common crates, which would then be built again for each program.
///
/// # Errors
/// If they do not build.
pub fn optimised(workspace: &Workspace, name: &str) -> Result<Command, String> {
    let mut build = workspace.cargo(&["build", "--release", "--locked"]);
    if AS_SHIPPED.contains(&format!("--bin={name}").as_str()) {
        build.args(AS_SHIPPED);
    } else {
        quickly_optimised(&mut build).args(QUICKLY_BUILT);
    }
    run(&mut build)?;
    let program = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    Ok(workspace.command(workspace.target_dir()?.join("release").join(program)))
}

/// Turns off link-time optimisation, which takes as long as the rest of the build, and compiles crates in parts.
pub fn quickly_optimised(build: &mut Command) -> &mut Command {
    build.env("CARGO_PROFILE_RELEASE_LTO", "off").env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
}

/// Builds a program of `tools`, optimised, and runs it with `arguments`. The feature that brings its
/// dependencies has the program's name.
///
/// # Errors
/// If it cannot be started.
pub fn program<A: AsRef<OsStr>>(
    workspace: &Workspace,
    name: &str,
    arguments: impl IntoIterator<Item = A>,
) -> Result<ExitCode, String> {
    let mut command =
        workspace.cargo(&["run", "--quiet", "--release", "--package=anabranch-tools"]);
    command.args(["--features", name, "--bin", name, "--"]).args(arguments);
    let here = std::env::current_dir().map_err(|error| error.to_string())?;
    to_end(command.current_dir(here))
}

/// Runs `command` with our own input and output and passes its exit code on.
///
/// # Errors
/// If it cannot be started.
pub fn to_end(command: &mut Command) -> Result<ExitCode, String> {
    let status = command.status().map_err(|error| format!("`{}`: {error}", show(command)))?;
    Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
}

/// The command line as one would type it, without quoting.
pub fn show(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program());
    let name = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy();
    let args = command.get_args().map(|arg| format!(" {}", arg.to_string_lossy()));
    name.into_owned() + &args.collect::<String>()
}

/// The present instant: for times shown to people and for the limit of [`capture_within`].
#[expect(clippy::disallowed_methods, reason = "steps are timed for people")]
pub fn now() -> Instant {
    Instant::now()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn output_and_status_are_reported() {
        let echo = capture_within(Command::new("echo").arg("hi"), Duration::from_secs(60));
        assert_eq!(echo, Ok("hi\n".into()));
        assert!(capture_within(&mut Command::new("false"), Duration::from_secs(60)).is_err());
        assert!(capture(&mut Command::new("false")).is_err());
    }

    #[test]
    fn a_program_that_hangs_is_killed() {
        let result = capture_within(Command::new("sleep").arg("600"), Duration::ZERO);
        assert!(result.is_err_and(|message| message.contains("still running")));
    }
}
