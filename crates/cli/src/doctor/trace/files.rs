//! Writes recordings as a scenario file and the trace files that it names.

use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use super::Recording;
use crate::doctor::facts;
use crate::failure::Failure;

/// Name of the scenario file.
const SCENARIO: &str = "links.toml";
/// Longest name of a path, bytes: `emulate` gives it to an interface.
const NAME: usize = 15;

/// Makes `directory`, before the recording takes its time.
///
/// # Errors
/// When the directory holds a recording already, or cannot be made.
pub(in crate::doctor) fn check(directory: &Path) -> Result<(), Failure> {
    let scenario = directory.join(SCENARIO);
    if scenario.exists() {
        return Err(Failure::usage(format!(
            "--trace: {} exists already; name another directory",
            scenario.display()
        )));
    }
    match fs::create_dir(directory) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists || !directory.is_dir() => {
            Err(Failure::failed(format!("--trace: cannot make {}: {error}", directory.display())))
        }
        _ => Ok(()),
    }
}

/// Writes the recordings of the links into `directory`, and returns the path of the scenario file.
///
/// # Errors
/// When a file cannot be written.
pub(in crate::doctor) fn write(
    directory: &Path,
    peer: &str,
    links: &[(&facts::Path, &Recording)],
) -> Result<String, Failure> {
    let mut names: Vec<String> = Vec::new();
    let seconds = links.iter().map(|(_, recording)| recording.seconds).fold(0.0, f64::max);
    let mut scenario = format!(
        "# Links to {peer} as `anabranch doctor --load --trace` recorded them.\n\
         # `anabranch sim run` sends over them; `anabranch emulate` puts any program there.\n\n\
         name = \"recorded\"\nduration = \"{seconds:.0}s\"\n"
    );
    for (path, recording) in links {
        let name = name(&path.name, &names);
        for (kind, text) in [("rate", recording.rate()), ("delay", recording.delay())] {
            save(&directory.join(format!("{name}.{kind}")), &text)?;
        }
        let back = path.measured.as_ref().map_or(0.0, facts::Measured::peer_loss);
        if recording.policed {
            scenario += "\n# A policer dropped traffic above this rate, without a queue. \
                         In a replay, the link has a queue instead.";
        }
        let _ = write!(
            scenario,
            "\n[[path]]\nname = \"{name}\"\nrate = {{ trace = \"{name}.rate\" }}\n\
             delay = {{ trace = \"{name}.delay\" }}\nloss = \"{}\"\n\
             # In the reverse direction, only the loss was measured.\n\
             reverse = {{ loss = \"{}%\" }}\n",
            recording.loss(),
            percent(back)
        );
        names.push(name);
    }
    scenario += "\n[[flow]]\nname = \"bonded\"\nprofile = \"anabranch\"\n";
    // Written last: where it exists, so do the files that it names.
    let file = directory.join(SCENARIO);
    save(&file, &scenario)?;
    Ok(file.display().to_string())
}

fn save(file: &Path, text: &str) -> Result<(), Failure> {
    anabranch_files::write(file, text.as_bytes(), 0o666)
        .map_err(|error| Failure::cannot_write(file, error))
}

/// A name for the path of `link` that a scenario allows and that is not among `taken`.
fn name(link: &str, taken: &[String]) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let plain: String = link.chars().map(allowed).collect();
    let candidates = std::iter::once(String::new()).chain((2..).map(|n: u32| format!("-{n}")));
    let fitting = candidates.map(|end| {
        let start: String = plain.chars().take(NAME - end.len()).collect();
        start + &end
    });
    let mut free = fitting.filter(|name| name != "lo" && !taken.contains(name));
    free.next().unwrap_or_default()
}

/// A share as a percentage with up to four decimal places, without trailing zeros.
fn percent(share: f64) -> String {
    let text = format!("{:.4}", share * 100.0);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

impl Recording {
    /// The text of the rate trace.
    fn rate(&self) -> String {
        let mut text = "# seconds, Mb/s\n".to_owned();
        for (at, mbps) in repeated(&self.rates, self.seconds) {
            let _ = writeln!(text, "{at:.3} {mbps:.3}");
        }
        text
    }

    /// The text of the delay trace.
    fn delay(&self) -> String {
        let mut text = "# milliseconds, one way in milliseconds\n".to_owned();
        for (at, delay) in repeated(&self.delays, self.seconds) {
            let _ = writeln!(text, "{:.0} {delay:.3}", at * 1e3);
        }
        text
    }

    /// The loss in the syntax of scenarios: shares and the times from which they hold.
    fn loss(&self) -> String {
        let step = |(at, share): &(f64, f64)| match *at {
            0.0 => format!("{}%", percent(*share)),
            at => format!("{}%@{at:.0}s", percent(*share)),
        };
        self.losses.iter().map(step).collect::<Vec<_>>().join("/")
    }
}

/// Adds a step so that the trace repeats after exactly `seconds`: the last line of a trace holds for as long as the
/// line before it.
fn repeated(steps: &[(f64, f64)], seconds: f64) -> Vec<(f64, f64)> {
    let mut steps = steps.to_vec();
    if let Some((at, value)) = steps.last().copied() {
        steps.push(((at + seconds) / 2.0, value));
    }
    steps
}
