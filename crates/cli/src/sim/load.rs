//! Reads scenarios and the files they name.

use std::path::Path;

use anabranch_results::{Sweep, Unread, read_text};
#[cfg(target_os = "linux")]
use anabranch_sim::scenario::NetworkPlan;
use anabranch_sim::scenario::{ReadFile, Scenario, ScenarioError};

use super::args::ScenarioArgs;
use super::seeds::Seeds;
use crate::failure::Failure;
use crate::format;

/// Reads the network of the scenario in `file` with `settings` on top; mistakes become a failure as in
/// [`load_right`].
#[cfg(target_os = "linux")]
pub fn load_network(file: &Path, settings: &[String]) -> Result<NetworkPlan, Failure> {
    let plan =
        with_files(file, |text, name, beside| NetworkPlan::load(text, name, settings, beside));
    plan?.map_err(|mistakes| refuse(&mistakes))
}

/// Reads the scenario in `file` with `settings` on top; the inner error is its mistakes.
pub(super) fn load(
    file: &Path,
    settings: &[String],
) -> Result<Result<Scenario, Vec<ScenarioError>>, Failure> {
    with_files(file, |text, name, beside| Scenario::load(text, name, settings, beside))
}

/// Lets `load` read the text of `file`, its name for messages, and the files beside it.
fn with_files<R>(
    file: &Path,
    load: impl FnOnce(&str, &str, &mut ReadFile<'_>) -> R,
) -> Result<R, Failure> {
    let text = read_text(file).map_err(|why| {
        let text = format!("{}: {}", file.display(), unread(&why));
        match &why {
            Unread::System(error) => Failure::of_file(error, text),
            Unread::TooLarge(_) | Unread::NotText(_) => Failure::failed(text),
        }
    })?;
    let directory = file.parent().unwrap_or(Path::new("")).to_owned();
    let mut beside = |path: &str| read(&directory.join(path));
    Ok(load(&text, &file.display().to_string(), &mut beside))
}

/// Loads a scenario, shortened if `quick`; mistakes become a failure by [`refuse`].
fn load_right(file: &Path, settings: &[String], quick: bool) -> Result<Scenario, Failure> {
    let scenario = load(file, settings)?.map_err(|mistakes| refuse(&mistakes))?;
    if quick { scenario.quick().map_err(|mistakes| refuse(&mistakes)) } else { Ok(scenario) }
}

/// The scenario that `args` name, with its seeds.
pub(super) fn load_sweep(args: &ScenarioArgs) -> Result<Sweep, Failure> {
    let scenario = load_right(&args.file, &args.settings, args.quick)?;
    Ok(Sweep::new(scenario, args.seeds.map(Seeds::all)))
}

/// The failure for mistakes. It contains the text of a single mistake. Several are printed, one a
/// line, and the failure says how many there are.
pub(super) fn refuse(mistakes: &[ScenarioError]) -> Failure {
    if let [mistake] = mistakes {
        return Failure::usage(mistake);
    }
    for mistake in mistakes {
        eprintln!("anabranch: {}", Failure::usage(mistake));
    }
    let count = mistakes.len() as u64;
    Failure::usage(format!("the scenario has {}", format::counted(count, "mistake")))
}

/// The text of a file. The error says in one line why it cannot be read.
fn read(path: &Path) -> Result<String, String> {
    read_text(path).map_err(|why| unread(&why))
}

fn unread(why: &Unread) -> String {
    match why {
        Unread::TooLarge(length) => format!("is too large: {}", format::bytes(*length)),
        why => why.to_string(),
    }
}
