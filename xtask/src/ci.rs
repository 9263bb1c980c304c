//! `cargo xtask ci`: the longer checks, all of them run even if one fails.

use std::process::ExitCode;
use std::time::Duration;

use crate::check::{self, conclude};
use crate::process::{self, now};
use crate::workspace::Workspace;
use crate::{aarch64, book, demo, dist, golden, macos, python, semver, wasm};

/// One check: its name, its purpose, and the function that runs it, which returns a short note or what went wrong.
struct Step {
    name: &'static str,
    about: &'static str,
    run: fn(&Workspace) -> Result<String, String>,
}

struct Outcome {
    name: &'static str,
    took: Duration,
    result: Result<String, String>,
}

const STEPS: &[Step] = &[
    Step { name: "fmt", about: "the formatter changes nothing", run: fmt },
    Step { name: "imports", about: "crates import along the arrows of the design", run: imports },
    Step { name: "words", about: "no retired words; no protocols in the core", run: words },
    Step { name: "unsafe", about: "`unsafe` only in the erasure kernels", run: keywords },
    Step { name: "size", about: "files and functions of readable length", run: size },
    Step { name: "clippy", about: "no lint speaks", run: clippy },
    Step { name: "apart", about: "what builds in workspaces of its own", run: apart },
    Step { name: "deny", about: "licences, banned crates and sources", run: deny },
    Step { name: "doc", about: "the documentation builds without a warning", run: doc },
    Step { name: "links", about: "links between pages lead somewhere; the book", run: book::check },
    Step { name: "wasm", about: "the I/O-free crates build for wasm32", run: wasm::build },
    Step {
        name: "aarch64",
        about: "codes, policies, core and digests on AArch64",
        run: aarch64::check,
    },
    Step { name: "macos", about: "the program's types on macOS", run: macos::check },
    Step { name: "semver", about: "the library's version tells of changes", run: semver::check },
    Step { name: "digest", about: "wasm and native runs agree bit for bit", run: wasm::digest },
    Step {
        name: "work",
        about: "hostile packets make little more work than honest ones",
        run: work,
    },
    Step { name: "abuse", about: "hostile peers take nothing from others", run: abuse },
    Step { name: "golden", about: "golden traces hold, twice", run: golden::check },
    Step { name: "demo", about: "the demo carries a file over lossy paths", run: demo::check },
    Step {
        name: "dist",
        about: "what users install is packed, installs and runs",
        run: dist::check,
    },
    Step {
        name: "python",
        about: "the Python package, its notebooks and examples",
        run: python::check,
    },
];

/// Runs the chosen steps and prints their table.
///
/// # Errors
/// If the arguments are wrong. A failed step is no error here; the exit code reports it.
pub fn run(workspace: &Workspace, args: &[String]) -> Result<ExitCode, String> {
    let Some(chosen) = choose(args)? else {
        for step in STEPS {
            println!("{:8} {}", step.name, step.about);
        }
        return Ok(ExitCode::SUCCESS);
    };
    let mut outcomes = Vec::new();
    for step in chosen {
        eprintln!("\n==> {}: {}", step.name, step.about);
        let start = now();
        let result = (step.run)(workspace);
        if let Err(message) = &result {
            eprintln!("error: {}: {message}", step.name);
        }
        outcomes.push(Outcome { name: step.name, took: start.elapsed(), result });
    }
    print!("\n{}", table(&outcomes));
    let passed = outcomes.iter().all(|outcome| outcome.result.is_ok());
    Ok(if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The steps the arguments ask for, or `None` if they ask for a list.
fn choose(args: &[String]) -> Result<Option<Vec<&'static Step>>, String> {
    let mut chosen = Vec::new();
    let mut rest = args.iter().map(String::as_str);
    while let Some(arg) = rest.next() {
        match arg {
            "--list" => return Ok(None),
            "--only" => {
                let name = rest.next().ok_or("--only needs the name of a step")?;
                let step = STEPS.iter().find(|step| step.name == name);
                chosen.push(step.ok_or_else(|| format!("no step `{name}`; see `ci --list`"))?);
            }
            other => return Err(format!("`ci` does not know `{other}`")),
        }
    }
    Ok(Some(if chosen.is_empty() { STEPS.iter().collect() } else { chosen }))
}

fn table(outcomes: &[Outcome]) -> String {
    let mut text = format!("{:8} {:>8}  result\n", "step", "time");
    for Outcome { name, took, result } in outcomes {
        let verdict = match result {
            Ok(note) if note.is_empty() => String::from("ok"),
            Ok(note) => format!("ok ({note})"),
            Err(message) => format!("FAILED: {}", message.lines().next().unwrap_or_default()),
        };
        text += &format!("{name:8} {:6.1} s  {verdict}\n", took.as_secs_f64());
    }
    let failed = outcomes.iter().filter(|outcome| outcome.result.is_err()).count();
    let total: Duration = outcomes.iter().map(|outcome| outcome.took).sum();
    let verdict = if failed == 0 { "all passed".into() } else { format!("{failed} failed") };
    text + &format!(
        "{:8} {:6.1} s  {} steps, {verdict}\n",
        "total",
        total.as_secs_f64(),
        outcomes.len()
    )
}

fn fmt(workspace: &Workspace) -> Result<String, String> {
    process::run(&mut workspace.cargo(&["fmt", "--all", "--check"])).map(|()| String::new())
}

fn clippy(workspace: &Workspace) -> Result<String, String> {
    // Some of our programs are behind features.
    let everything = ["clippy", "--workspace", "--all-targets", "--all-features", "--locked"];
    process::run(workspace.cargo(&everything).args(["--", "-D", "warnings"]))?;
    Ok(String::new())
}

/// Checks the fuzz targets, the comparison with quinn and multipath QUIC, which have dependencies that nothing else
/// needs. The shared target directory saves building again what the workspace has built already.
fn apart(workspace: &Workspace) -> Result<String, String> {
    let target = workspace.target_dir()?;
    for manifest in ["fuzz/Cargo.toml", "tools/perf-net/Cargo.toml", "tools/quic/Cargo.toml"] {
        let check = ["check", "--quiet", "--locked", "--manifest-path", manifest];
        process::run(workspace.cargo(&check).arg("--target-dir").arg(&target))?;
    }
    Ok(String::new())
}

fn imports(workspace: &Workspace) -> Result<String, String> {
    let packages = workspace.packages()?;
    conclude(&check::imports::check(&packages), format!("{} packages", packages.len()))
}

fn words(workspace: &Workspace) -> Result<String, String> {
    let mut findings = check::words::check(&check::source_files(workspace.root())?);
    let texts = check::files(workspace.root(), &[".rs", ".md", ".toml"])?;
    findings.extend(check::retired::check(&texts));
    conclude(&findings, String::new())
}

fn keywords(workspace: &Workspace) -> Result<String, String> {
    conclude(&check::keywords::check(&check::source_files(workspace.root())?), String::new())
}

fn size(workspace: &Workspace) -> Result<String, String> {
    let files = check::source_files(workspace.root())?;
    let sizes = check::size::check(&files);
    let pages = check::pages::check(&check::files(workspace.root(), &[".md"])?);
    for warning in &sizes.warnings {
        eprintln!("warning: {warning}");
    }
    let longest = sizes.longest_function;
    let note = format!("{} files, longest function {longest} lines", files.len());
    conclude(&[sizes.errors, pages].concat(), note)
}

fn deny(workspace: &Workspace) -> Result<String, String> {
    let args = ["deny", "--workspace", "--all-features", "--locked", "check"];
    let mut command = workspace.cargo(&args);
    command.args(["licenses", "bans", "sources"]);
    process::run(&mut command).map(|()| String::new())
}

/// Runs each attack for two seconds; judges memory and a newcomer's waiting time, but not goodput, which other load on
/// the machine changes as much. The step `work` counts instructions; `cargo xtask abuse --peers 60` judges goodput.
fn abuse(workspace: &Workspace) -> Result<String, String> {
    let mut abuse = process::optimised(workspace, "abuse")?;
    process::run(abuse.args(["--peers", "2", "--pace", "10", "--least", "0"]))?;
    Ok(String::new())
}

fn work(workspace: &Workspace) -> Result<String, String> {
    process::run(&mut process::optimised(workspace, "work")?).map(|()| String::new())
}

fn doc(workspace: &Workspace) -> Result<String, String> {
    // Libraries only: the program's pages would overwrite those of the library of the same name.
    let mut command = workspace.cargo(&["doc", "--workspace", "--lib", "--no-deps", "--locked"]);
    command.env("RUSTDOCFLAGS", "-D warnings");
    process::run(&mut command).map(|()| String::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(args: &[&str]) -> Result<Option<Vec<&'static str>>, String> {
        let args: Vec<String> = args.iter().map(ToString::to_string).collect();
        Ok(choose(&args)?.map(|steps| steps.iter().map(|step| step.name).collect()))
    }

    #[test]
    fn steps_are_chosen_by_name() {
        assert_eq!(names(&["--only", "size", "--only", "fmt"]), Ok(Some(vec!["size", "fmt"])));
        assert_eq!(names(&[]).map(|all| all.map(|all| all.len())), Ok(Some(STEPS.len())));
        assert_eq!(names(&["--list"]), Ok(None));
        assert!(names(&["--only"]).is_err());
        assert!(names(&["--only", "nothing"]).is_err());
        assert!(names(&["size"]).is_err());
    }

    #[test]
    fn the_table_tells_what_failed() {
        let took = Duration::from_millis(1500);
        let outcomes = [
            Outcome { name: "fmt", took, result: Ok(String::new()) },
            Outcome { name: "size", took, result: Err("2 found\nmore".into()) },
        ];
        let expected = "step         time  result\n\
                        fmt         1.5 s  ok\n\
                        size        1.5 s  FAILED: 2 found\n\
                        total       3.0 s  2 steps, 1 failed\n";
        assert_eq!(table(&outcomes), expected);
    }
}
