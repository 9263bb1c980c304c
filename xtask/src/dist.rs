//! `cargo xtask dist`: one archive that runs on any Linux of its architecture, and packages of the same content.
//!
//! The program in it is static. The bytes of the archive depend only on the commit, the toolchain, the C compiler for
//! ring, `tar` and `gzip`: names are sorted, times are the commit's, files have no owner, and this machine's
//! directories are removed from the program.

mod elf;
mod image;
mod installer;
mod licences;
mod packages;
#[cfg(test)]
mod tests;
mod tools;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use packages::Content;
use serde_json::Value;

use crate::workspace::Workspace;
use crate::{process, python};

/// The target of the build.
const TARGET: &str = "x86_64-unknown-linux-musl";
const PROGRAM: &str = "anabranch";
/// Shells, and where each looks for a completion script.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/anabranch"),
    ("fish", "share/fish/vendor_completions.d/anabranch.fish"),
    ("zsh", "share/zsh/site-functions/_anabranch"),
];
/// Files copied unchanged, and their destinations.
const TAKEN: [(&str, &str); 5] = [
    ("README.md", "share/doc/anabranch/README.md"),
    ("LICENSE-APACHE", "share/doc/anabranch/LICENSE-APACHE"),
    ("LICENSE-MIT", "share/doc/anabranch/LICENSE-MIT"),
    (
        "packaging/systemd/anabranch-connect@.service",
        "lib/systemd/system/anabranch-connect@.service",
    ),
    ("packaging/systemd/anabranch-serve@.service", "lib/systemd/system/anabranch-serve@.service"),
];
/// How long the program may take to show that it runs.
const LIMIT: Duration = Duration::from_secs(120);

/// Builds, checks and packs; prints where the archive is and its sum.
///
/// # Errors
/// If something is missing on this machine, the build fails, or the program is not static or does not
/// run.
pub fn run(workspace: &Workspace, args: &[String]) -> Result<(), String> {
    match args {
        [] => {}
        [option] if option == "--wheels" => return wheels(workspace),
        _ => return Err(format!("`dist` takes --wheels or nothing, not `{}`", args.join(" "))),
    }
    tools::require(workspace, TARGET)?;
    let program = build(workspace)?;
    let bytes = fs::read(&program).map_err(|error| failed(&program, &error))?;
    elf::check_static(&bytes).map_err(|why| format!("{}: {why}", program.display()))?;
    let version = check_runs(&program)?;
    pack(workspace, &program, &version, &workspace.target_dir()?.join("dist")).map(|_| ())
}

/// Makes everything that `dist` makes, with the program that this machine runs in place of the static one, and installs
/// it into a directory.
///
/// # Errors
/// If something is not made, or the installed program does not tell its version.
pub fn check(workspace: &Workspace) -> Result<String, String> {
    let program = process::optimised(workspace, PROGRAM)?;
    let program = Path::new(program.get_program());
    let version = process::capture_within(Command::new(program).arg("--version"), LIMIT)?;
    let out = workspace.target_dir()?.join("dist-check");
    let made = pack(workspace, program, &version, &out)?;
    let [.., installer] = &made[..] else { return Err("no installer was made".into()) };
    let prefix = out.join("installed");
    let option = format!("--prefix={}", prefix.display());
    process::capture(Command::new("sh").arg(installer).arg(option))?;
    let mut installed = Command::new(prefix.join("bin").join(PROGRAM));
    let told = process::capture_within(installed.arg("--version"), LIMIT)?;
    if told != version || !prefix.join("share/man/man1/anabranch.1").is_file() {
        return Err(format!("the installed program is not the one that was packed: {told}"));
    }
    Ok(format!("{} files", made.len()))
}

/// Packs the program and all that belongs to it as an archive, packages, an image and an installer.
/// Prints where each file is and its sum, which is also written beside the file. Returns the files,
/// the installer last.
fn pack(
    workspace: &Workspace,
    program: &Path,
    version: &str,
    out: &Path,
) -> Result<Vec<PathBuf>, String> {
    let name = format!("{}-{TARGET}", version.trim().replace(' ', "-"));
    let tree = out.join(&name);
    fill(workspace, program, &tree)?;
    let time = tools::commit_time(workspace)?;
    let version = version.split_whitespace().last().unwrap_or("0");
    let content = Content { tree: &tree, version, time: &time };
    let mut made = vec![out.join(tools::pack(out, &name, &time)?)];
    made.extend(packages::deb(content, out)?);
    made.extend(packages::rpm(content, out)?);
    made.extend([image::make(content, out)?, installer::make(content, out)?]);
    for file in &made {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        println!("{}\n{}", file.display(), tools::sum(out, &name)?.trim());
    }
    Ok(made)
}

/// Builds the Python package's wheels; prints where they are and their sums.
fn wheels(workspace: &Workspace) -> Result<(), String> {
    let out = workspace.target_dir()?.join("dist").join("wheels");
    for wheel in python::wheels(workspace, &out)? {
        let (place, name) = (wheel.parent().unwrap_or(&out), wheel.file_name().unwrap_or_default());
        println!("{}\n{}", wheel.display(), tools::sum(place, &name.to_string_lossy())?.trim());
    }
    Ok(())
}

/// Builds the program without this machine's paths and without debug symbols in it.
fn build(workspace: &Workspace) -> Result<PathBuf, String> {
    let args = ["build", "--release", "--locked", "--bin", PROGRAM, "--target", TARGET];
    let mut command = workspace.cargo(&args);
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
    let mut flags = OsString::new();
    let places = [Some((workspace.root(), "anabranch")), home.as_deref().map(|it| (it, "cargo"))];
    for (from, to) in places.into_iter().flatten() {
        if !flags.is_empty() {
            flags.push("\u{1f}");
        }
        flags.push("--remap-path-prefix=");
        flags.push(from);
        flags.push(format!("={to}"));
    }
    command.env("CARGO_ENCODED_RUSTFLAGS", flags);
    command.env("CARGO_PROFILE_RELEASE_STRIP", "symbols");
    command.env("CARGO_PROFILE_RELEASE_DEBUG", "0");
    process::run(&mut command)?;
    Ok(workspace.target_dir()?.join(TARGET).join("release").join(PROGRAM))
}

/// Checks that the program carries data and tells its version; returns the version.
fn check_runs(program: &Path) -> Result<String, String> {
    let demo = ["demo", "--json", "--time", "2"];
    let report = process::capture_within(Command::new(program).args(demo), LIMIT)?;
    let report: Value = serde_json::from_str(&report).map_err(|error| error.to_string())?;
    if report.get("sha256_ok") != Some(&Value::Bool(true)) {
        return Err("the demo of the static program did not carry its data intact".into());
    }
    process::capture_within(Command::new(program).arg("--version"), LIMIT)
}

/// Lays out everything under `tree` as below a prefix such as `/usr`.
fn fill(workspace: &Workspace, program: &Path, tree: &Path) -> Result<(), String> {
    if tree.exists() {
        fs::remove_dir_all(tree).map_err(|error| failed(tree, &error))?;
    }
    copy(program, &tree.join("bin").join(PROGRAM))?;
    for (from, to) in TAKEN {
        copy(&workspace.root().join(from), &tree.join(to))?;
    }
    let notices = licences::of_dependencies(workspace, TARGET)?;
    write(&tree.join("share/doc/anabranch/THIRD-PARTY"), &notices)?;
    for (shell, to) in COMPLETIONS {
        let script = process::capture(Command::new(program).args(["completions", shell]))?;
        write(&tree.join(to), &script)?;
    }
    let pages = tree.join("share/man/man1");
    parent(&pages)?;
    process::run(Command::new(program).arg("man").arg(pages))
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    parent(to)?;
    fs::copy(from, to).map(|_| ()).map_err(|error| failed(from, &error))
}

fn write(to: &Path, text: &str) -> Result<(), String> {
    parent(to)?;
    fs::write(to, text).map_err(|error| failed(to, &error))
}

fn parent(of: &Path) -> Result<(), String> {
    let directory = of.parent().unwrap_or(of);
    fs::create_dir_all(directory).map_err(|error| failed(directory, &error))
}

fn failed(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}
