//! The receiver's consent to an offer: given by options, or asked for on the terminal.
//!
//! On a terminal a person sees what is offered and says yes or no, unless `--yes` was given. Without a terminal,
//! running the command is the consent to plain files: whoever ran it has made a ticket, allowed a key or named a
//! sender, and chosen a directory. Names that begin with a dot, which programs read as configuration, and the replacing
//! of existing files need their own options; `--yes` does not cover them.

use std::fmt::Write as _;

use anabranch_transfer::{Code, Entry, Kind, Manifest, Name};

use super::error::TransferError;
use super::listing::{Amounts, line};
use super::store::Out;
use super::take::Taking;
use super::target::Root;
use crate::format;

/// Entries that a question lists unless asked for all of them.
const LISTED: usize = 20;
/// Names that a sentence lists.
const NAMED: usize = 3;

/// Permissions that the options give.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rules {
    /// `--yes`: take what is offered without a question, and let executables be executable.
    pub(super) yes: bool,
    /// `--allow-hidden`: names that begin with a dot.
    pub(super) hidden: bool,
    /// `--overwrite`: replace what exists and differs.
    pub(super) overwrite: bool,
}

/// Permissions granted for one offer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Grant {
    /// Files that differ are replaced.
    pub(super) overwrite: bool,
    /// Files that the sender may execute can be executed here.
    pub(super) executable: bool,
}

/// Decision about an offer.
#[derive(Debug)]
pub(super) enum Verdict {
    /// Take the offer, with this message for the person, if there is one.
    Take(Grant, Option<String>),
    /// Ask the person first.
    Ask,
}

/// Summary of an offer, compared with the files that exist here.
#[derive(Debug, Default)]
pub(super) struct Survey {
    amounts: Amounts,
    hidden: Names,
    executable: Names,
    /// Files that are here under the same name.
    existing: Names,
}

/// Names, of which the first are kept.
#[derive(Debug, Default)]
struct Names {
    count: u64,
    first: Vec<Name>,
}

impl Names {
    fn add(&mut self, name: &Name) {
        self.count += 1;
        if self.first.len() < NAMED {
            self.first.push(name.clone());
        }
    }

    /// `a, b, c and 12 more`; `None` if there are none.
    fn text(&self) -> Option<String> {
        let names: Vec<String> = self.first.iter().map(ToString::to_string).collect();
        let more = self.count - names.len() as u64;
        match (names.is_empty(), more) {
            (true, _) => None,
            (false, 0) => Some(names.join(", ")),
            (false, more) => Some(format!("{} and {more} more", names.join(", "))),
        }
    }
}

impl Survey {
    /// Compares an offer with the files that exist. Entries that were asked for by name do not count as hidden.
    pub(super) fn of(manifest: &Manifest, taking: &Taking) -> Self {
        let mut survey = Survey::default();
        let Out::Directory(root) = &taking.out else { return survey };
        for entry in manifest.entries() {
            survey.add(&entry, root, &taking.wanted);
        }
        survey
    }

    fn add(&mut self, entry: &Entry, root: &Root, wanted: &[Name]) {
        if is_hidden(&entry.name, wanted) {
            self.hidden.add(&entry.name);
        }
        self.amounts.add(entry);
        if entry.is_executable() {
            self.executable.add(&entry.name);
        }
        if entry.kind != Kind::Directory && root.look(&entry.name).is_some() {
            self.existing.add(&entry.name);
        }
    }

    /// Decides as far as the options allow. `wanted` says that every entry was asked for by name,
    /// `terminal` that there is somebody to ask.
    ///
    /// # Errors
    /// If the offer is refused.
    pub(super) fn judge(
        &self,
        rules: Rules,
        wanted: bool,
        terminal: bool,
    ) -> Result<Verdict, TransferError> {
        let plain = self.executable.count == 0
            && (self.hidden.count == 0 || rules.hidden)
            && (self.existing.count == 0 || rules.overwrite);
        if terminal && !rules.yes && !(wanted && plain) {
            return Ok(Verdict::Ask);
        }
        if let Some(names) = self.hidden.text().filter(|_| !rules.hidden) {
            let why = format!(
                "names that begin with a dot are not allowed here: {names}; the receiver's \
                 --allow-hidden allows them"
            );
            return Err(TransferError::Local(Code::Refused, why));
        }
        let told =
            self.executable.text().filter(|_| !rules.yes).map(|names| {
                format!("storing without execute permission (--yes keeps it): {names}")
            });
        Ok(Verdict::Take(Grant { overwrite: rules.overwrite, executable: rules.yes }, told))
    }

    /// Permissions that a person's yes grants.
    pub(super) fn granted(&self, rules: Rules) -> Grant {
        Grant { overwrite: rules.overwrite || self.existing.count > 0, executable: true }
    }

    /// Text shown to a person before the question; all entries, or the first ones.
    pub(super) fn question(
        &self,
        sender: &str,
        manifest: &Manifest,
        root: &Root,
        all: bool,
    ) -> String {
        let amounts = self.amounts.text();
        let mut text = format!("{sender} offers {amounts}, for {}:\n", root.path().display());
        let shown = if all { manifest.len() } else { LISTED };
        for entry in manifest.entries().take(shown) {
            let mark = if entry.is_executable() { ", executable" } else { "" };
            let _ = writeln!(text, "{}{mark}", line(&entry));
        }
        if let Some(left) = manifest.len().checked_sub(shown).filter(|left| *left > 0) {
            let _ = writeln!(text, "  and {} more (`l` lists all)", format::count(left as u64));
        }
        for (what, names) in [
            ("begin with a dot", &self.hidden),
            ("can be executed", &self.executable),
            ("exist here and are replaced if they differ", &self.existing),
        ] {
            if let Some(names) = names.text() {
                let _ = writeln!(text, "These {what}: {names}");
            }
        }
        text
    }
}

/// Whether a part of `name` begins with a dot, other than those that were asked for.
fn is_hidden(name: &Name, wanted: &[Name]) -> bool {
    let asked = wanted.iter().filter(|wanted| name.is_within(wanted.as_str()));
    let asked = asked.map(|wanted| wanted.parts().count()).max().unwrap_or(0);
    name.parts().skip(asked).any(|part| part.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_transfer::Modified;

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    fn entry(text: &str, mode: u16) -> Entry {
        let modified = Modified::default();
        Entry { name: name(text), kind: Kind::File, mode, size: 1000, modified, target: None }
    }

    fn survey(entries: &[Entry], here: &[&str]) -> (Survey, Manifest, Root, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        here.iter().for_each(|name| std::fs::write(dir.path().join(name), "").unwrap());
        let root = Root::open(dir.path()).unwrap();
        let mut manifest = Manifest::default();
        entries.iter().for_each(|entry| manifest.push(entry).unwrap());
        let taking = Taking::new(Vec::new(), Out::Directory(root.clone()), Rules::default());
        (Survey::of(&manifest, &taking), manifest, root, dir)
    }

    #[test]
    fn dots_count_where_nobody_asked_for_them() {
        for (text, wanted, hidden) in [
            ("a", "", false),
            (".a", "", true),
            ("a/.b/c", "", true),
            ("a/b.c", "", false),
            ("a/.b/c", "a", true),
            ("a/.b/c", "a/.b", false),
            ("a/.b/.c", "a/.b", true),
            ("a/.b/.c", "a/.b/.c", false),
            ("a/.bc", "a/.b", true),
        ] {
            let wanted: Vec<Name> = Name::new(wanted).into_iter().collect();
            assert_eq!(is_hidden(&name(text), &wanted), hidden, "{text} {wanted:?}");
        }
    }

    #[test]
    fn options_decide_where_nobody_can_be_asked() {
        let rule = |yes, hidden, overwrite| Rules { yes, hidden, overwrite };
        let grant = |overwrite, executable| Grant { overwrite, executable };
        let plain = survey(&[entry("a", 0o644)], &[]).0;
        let judged = |survey: &Survey, rules| match survey.judge(rules, false, false) {
            Ok(Verdict::Take(grant, told)) => Some((grant, told.is_some())),
            Ok(Verdict::Ask) => panic!("nobody is there"),
            Err(_) => None,
        };
        assert_eq!(judged(&plain, rule(false, false, false)), Some((grant(false, false), false)));
        assert_eq!(judged(&plain, rule(true, false, true)), Some((grant(true, true), false)));
        let runs = survey(&[entry("a", 0o755)], &["a"]).0;
        assert_eq!(judged(&runs, rule(false, false, false)), Some((grant(false, false), true)));
        assert_eq!(judged(&runs, rule(true, false, false)), Some((grant(false, true), false)));
        let dotted = survey(&[entry("a", 0o644), entry("b/.c", 0o644)], &[]).0;
        assert_eq!(judged(&dotted, rule(true, false, true)), None);
        assert_eq!(judged(&dotted, rule(false, true, false)), Some((grant(false, false), false)));
    }

    #[test]
    fn a_person_is_asked_unless_all_is_plain_and_was_asked_for() {
        let asks = |survey: &Survey, rules, wanted| {
            matches!(survey.judge(rules, wanted, true), Ok(Verdict::Ask))
        };
        let yes = Rules { yes: true, ..Rules::default() };
        let plain = survey(&[entry("a", 0o644)], &[]).0;
        assert!(asks(&plain, Rules::default(), false) && !asks(&plain, Rules::default(), true));
        assert!(!asks(&plain, yes, false));
        for (entries, here) in
            [(entry("a", 0o755), ""), (entry(".a", 0o644), ""), (entry("a", 0o644), "a")]
        {
            let here: Vec<&str> = Some(here).filter(|here| !here.is_empty()).into_iter().collect();
            let risky = survey(&[entries], &here).0;
            assert!(asks(&risky, Rules::default(), true));
            assert!(!asks(&risky, yes, true));
            assert_eq!(risky.granted(Rules::default()).overwrite, !here.is_empty());
        }
    }

    #[test]
    fn a_question_says_what_would_happen() {
        let mut entries: Vec<Entry> =
            (0..30).map(|n| entry(&format!("photo-{n}"), 0o644)).collect();
        entries.push(entry(".profile", 0o644));
        entries.push(entry("run\u{202e}hs.", 0o755));
        let (survey, manifest, root, dir) = survey(&entries, &["photo-3"]);
        let text = survey.question("hSDw", &manifest, &root, false);
        let first = text.lines().next().unwrap();
        assert_eq!(first, format!("hSDw offers 32 files, 32.0 kB, for {}:", dir.path().display()));
        assert_eq!(text.lines().count(), 1 + LISTED + 1 + 3, "{text}");
        for part in [
            "1.0 kB  photo-0\n",
            "and 12 more (`l` lists all)",
            "These begin with a dot: .profile\n",
            "These can be executed: run\\u{202e}hs.\n",
            "replaced if they differ: photo-3\n",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let all = survey.question("hSDw", &manifest, &root, true);
        assert_eq!(all.lines().count(), 1 + 32 + 3, "{all}");
        assert!(all.contains("run\\u{202e}hs., executable"), "{all}");
    }
}
