//! `cargo xtask python`: the Python package, built as users get it, in environments of its own.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::{env, fs};

use crate::process;
use crate::workspace::Workspace;

const REQUIREMENTS: &str = "crates/py/requirements-test.txt";
const MANIFEST: &str = "crates/py/Cargo.toml";
/// Where the package is; the tools find their settings there.
const PACKAGE: &str = "crates/py";
/// The notebook that promises to need nothing but the package.
const FIRST: &str = "docs/notebooks/first-simulation.ipynb";
/// The linker for wheels for systems older than this machine's, or of another architecture.
const LINKER: &str = "ziglang==0.17.1";
/// The oldest C library that wheels for others may need, as manylinux names it: glibc 2.17, of 2014.
const COMPATIBILITY: &str = "manylinux2014";
/// The targets of the wheels.
const TARGETS: [&str; 2] = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"];
/// The oldest Python that the package supports.
const OLDEST: (u32, u32) = (3, 11);

/// Why a check has no result.
enum Stop {
    /// This machine lacks something that the repository cannot bring.
    Missing(String),
    Failed(String),
}

impl From<String> for Stop {
    fn from(message: String) -> Self {
        Stop::Failed(message)
    }
}

/// The step of `ci`. If Python or its packages are not available, the step is skipped on a
/// developer's machine, and fails in continuous integration, which sets `CI`.
///
/// # Errors
/// If a check fails.
pub fn check(workspace: &Workspace) -> Result<String, String> {
    match checked(workspace, &[]) {
        Ok(()) => Ok(String::new()),
        Err(Stop::Missing(what)) if env::var_os("CI").is_none_or(|ci| ci == "false") => {
            Ok(format!("SKIPPED: {what}"))
        }
        Err(Stop::Missing(what) | Stop::Failed(what)) => Err(what),
    }
}

/// Variant of [`check`] with arguments for pytest, and nothing skipped.
///
/// # Errors
/// If a check fails or cannot be made.
pub fn run(workspace: &Workspace, args: &[String]) -> Result<ExitCode, String> {
    match checked(workspace, args) {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(Stop::Missing(what) | Stop::Failed(what)) => Err(what),
    }
}

/// `cargo xtask dist --wheels`: wheels that run on any Linux with glibc, one for each architecture. The one for this
/// machine is installed alone, and the first notebook run with it.
///
/// # Errors
/// If something is missing on this machine, or a wheel cannot be built or does not run.
pub fn wheels(workspace: &Workspace, out: &Path) -> Result<Vec<PathBuf>, String> {
    release(workspace, out).map_err(|(Stop::Missing(why) | Stop::Failed(why))| why)
}

fn release(workspace: &Workspace, out: &Path) -> Result<Vec<PathBuf>, Stop> {
    let python = interpreter(workspace)?;
    let place = workspace.target_dir()?.join("python");
    let tools = Tools { workspace, bin: place.join("tools").join("bin") };
    tools.fill(&python, &place)?;
    process::run(tools.pip().args(["install", LINKER]))?;
    let path = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths([tools.bin.clone()].into_iter().chain(env::split_paths(&path)));
    let path = path.map_err(|error| format!("PATH: {error}"))?;
    let mut wheels = Vec::new();
    for target in TARGETS {
        let mut maturin = tools.command("maturin");
        maturin.args(["build", "--release", "--locked", "--manifest-path", MANIFEST, "--zig"]);
        maturin.args(["--compatibility", COMPATIBILITY, "--target", target]);
        // The linker's own programs are in the environment.
        maturin.env("PATH", &path);
        let wheel = built(&mut maturin, &out.join(target))?;
        if target.starts_with(env::consts::ARCH) {
            tools.alone(&python, &place.join("alone"), &wheel)?;
        }
        wheels.push(wheel);
    }
    Ok(wheels)
}

fn checked(workspace: &Workspace, args: &[String]) -> Result<(), Stop> {
    let python = interpreter(workspace)?;
    let place = workspace.target_dir()?.join("python");
    let tools = Tools { workspace, bin: place.join("tools").join("bin") };
    tools.fill(&python, &place)?;
    let wheel = tools.wheel(&place.join("wheels"))?;
    tools.alone(&python, &place.join("alone"), &wheel)?;
    tools.install(&["--force-reinstall"], &wheel)?;
    let program = process::optimised(workspace, "anabranch")?;
    // Run all of them, so that one run reports every failure.
    let style = ["check", "--config", "pyproject.toml", ".", "../../docs/notebooks"];
    let form = ["format", "--check", "--config", "pyproject.toml", ".", "../../docs/notebooks"];
    let results = [
        process::run(tools.within("ruff").args(style)),
        process::run(tools.within("ruff").args(form)),
        process::run(tools.within("mypy").arg("python/anabranch")),
        process::run(tools.pytest(Path::new(program.get_program())).args(args)),
    ];
    let failures: Vec<String> = results.into_iter().filter_map(Result::err).collect();
    if failures.is_empty() { Ok(()) } else { Err(Stop::Failed(failures.join("; "))) }
}

/// A Python that can make environments: the one that `PYTHON` names, else `python3`.
fn interpreter(workspace: &Workspace) -> Result<OsString, Stop> {
    let python = env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
    let shown = python.to_string_lossy().into_owned();
    let mut command = workspace.command(&python);
    command.args(["-c", "import sys, venv, ensurepip; print(*sys.version_info[:2])"]);
    let output = command.stderr(Stdio::null()).output();
    let Some(output) = output.ok().filter(|output| output.status.success()) else {
        return Err(Stop::Missing(format!(
            "`{shown}` with its modules venv and ensurepip is not there"
        )));
    };
    let version = String::from_utf8_lossy(&output.stdout).into_owned();
    match version_of(&version) {
        Some(version) if version >= OLDEST => Ok(python),
        _ => Err(Stop::Missing(format!(
            "`{shown}` is Python {}, and {}.{} is the oldest that will do; PYTHON names another",
            version.trim().replace(' ', "."),
            OLDEST.0,
            OLDEST.1
        ))),
    }
}

/// `3 11` as numbers.
fn version_of(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.trim().split_once(' ')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// The environment with everything that the checks need.
struct Tools<'a> {
    workspace: &'a Workspace,
    bin: PathBuf,
}

impl Tools<'_> {
    /// A program of the environment.
    fn command(&self, name: &str) -> Command {
        self.workspace.command(self.bin.join(name))
    }

    /// Variant of [`command`](Self::command) run in the package's directory.
    fn within(&self, name: &str) -> Command {
        let mut command = self.command(name);
        command.current_dir(self.workspace.root().join(PACKAGE));
        command
    }

    fn pip(&self) -> Command {
        let mut command = self.command("python");
        command.args(["-m", "pip", "--disable-pip-version-check", "--quiet"]);
        command
    }

    /// Makes the environment, unless it already holds exactly these packages.
    fn fill(&self, python: &OsString, place: &Path) -> Result<(), Stop> {
        let required = self.workspace.root().join(REQUIREMENTS);
        let required = fs::read_to_string(&required).map_err(|e| format!("{REQUIREMENTS}: {e}"))?;
        let stamp = place.join("tools-have.txt");
        let has = fs::read_to_string(&stamp).is_ok_and(|has| has == required);
        if has && self.command("python").arg("--version").stdout(Stdio::null()).status().is_ok() {
            return Ok(());
        }
        let _ = fs::remove_file(&stamp);
        environment(self.workspace, python, &place.join("tools"), &[])?;
        // Most of the packages' modules are never imported, so none is compiled before it is.
        let install = ["install", "--no-compile", "--requirement", REQUIREMENTS];
        process::run(self.pip().args(install)).map_err(|error| {
            Stop::Missing(format!("the packages of {REQUIREMENTS} cannot be had: {error}"))
        })?;
        fs::write(&stamp, required)
            .map_err(|error| Stop::Failed(format!("{}: {error}", stamp.display())))
    }

    /// Builds the wheel for this machine; returns its path.
    fn wheel(&self, out: &Path) -> Result<PathBuf, Stop> {
        let mut maturin = self.command("maturin");
        maturin.args(["build", "--release", "--locked", "--quiet", "--manifest-path", MANIFEST]);
        built(process::quickly_optimised(&mut maturin), out)
    }

    /// Runs the first notebook's cells where there is nothing but Python and the wheel.
    fn alone(&self, python: &OsString, place: &Path, wheel: &Path) -> Result<(), Stop> {
        environment(self.workspace, python, place, &["--without-pip"])?;
        let alone = place.join("bin").join("python");
        let target: OsString =
            [OsString::from("--python="), alone.clone().into()].into_iter().collect();
        self.install(&[&target.to_string_lossy()], wheel)?;
        let mut command = self.workspace.command(alone);
        process::run(command.args(["-I", "crates/py/tests/run_cells.py", FIRST]))?;
        Ok(())
    }

    /// Installs the wheel, without its dependencies, into an environment.
    fn install(&self, args: &[&str], wheel: &Path) -> Result<(), Stop> {
        let (before, after): (Vec<&str>, Vec<&str>) =
            args.iter().partition(|arg| arg.starts_with("--python"));
        let mut pip = self.pip();
        pip.args(before).args(["install", "--no-index", "--no-deps"]).args(after).arg(wheel);
        Ok(process::run(&mut pip)?)
    }

    fn pytest(&self, program: &Path) -> Command {
        let mut command = self.within("python");
        command.args(["-m", "pytest", "--quiet", "tests"]);
        command.env("ANABRANCH", program);
        command
    }
}

/// Lets maturin build a wheel into `out`, which then holds nothing else; returns the wheel's path.
fn built(maturin: &mut Command, out: &Path) -> Result<PathBuf, Stop> {
    let _ = fs::remove_dir_all(out);
    process::run(maturin.arg("--out").arg(out))?;
    let files = fs::read_dir(out).map_err(|error| format!("{}: {error}", out.display()))?;
    let mut wheels = files.filter_map(|file| Some(file.ok()?.path()));
    let wheel = wheels.find(|file| file.extension().is_some_and(|it| it == "whl"));
    wheel.ok_or_else(|| Stop::Failed(format!("maturin left no wheel in {}", out.display())))
}

/// Makes a fresh environment.
fn environment(
    workspace: &Workspace,
    python: &OsString,
    place: &Path,
    args: &[&str],
) -> Result<(), Stop> {
    let mut command = workspace.command(python);
    command.args(["-m", "venv", "--clear"]).args(args).arg(place);
    Ok(process::run(&mut command)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert!(version_of("3 11\n").is_some_and(|version| version >= OLDEST));
        assert!(version_of("3 9\n").is_some_and(|version| version < OLDEST));
        assert_eq!(version_of("Python"), None);
    }
}
