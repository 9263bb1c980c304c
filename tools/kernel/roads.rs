//! The links to run over: variants of scenarios/roads.

use std::path::PathBuf;

use crate::files::{self, FILES};
use crate::options::Options;

/// How many paths the roads of each of the [`FILES`] have.
const PATHS: [usize; 2] = [1, 2];
/// The file of pairs from papers, which is not among the [`FILES`], and its number of paths.
const PAPERS: (&str, usize) = ("papers", 2);

/// The roads run by default: different kinds of links and pairs.
const USUAL: [(&str, &str); 12] = [
    ("links/cable", "steady"),
    ("links/loss-1-shallow", "1 % loss, small buffer"),
    ("links/bursts", "losses in bursts"),
    ("links/gamma-10", "jitter"),
    ("links/cable-bloated", "deep buffer"),
    ("links/lte", "rate that moves"),
    ("pairs/equal", "steady, equal"),
    ("pairs/delays", "delays 10 to 1"),
    ("pairs/one-lossy", "5 % loss on a"),
    ("pairs/wifi-edge-lte", "losses in bursts on a, rate that moves on b"),
    ("pairs/jittery-steady", "jitter on a"),
    ("pairs/bloated", "deep buffer on a, small one on b"),
];

/// Links in parallel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Road {
    /// The scenario file that has the road.
    pub file: &'static str,
    /// Name of the file's variant.
    pub variant: String,
    /// How many paths it has.
    pub paths: usize,
    /// Peculiarity of the road; empty for roads that are not run by default.
    pub kind: &'static str,
}

impl Road {
    /// Name of the road among all.
    pub fn name(&self) -> String {
        format!("{}/{}", self.file, self.variant)
    }

    /// Path of the scenario that has the road.
    pub fn scenario(&self) -> PathBuf {
        files::path(self.file)
    }
}

/// The roads that `options` asks for.
///
/// # Errors
/// When a pattern matches no road, or a scenario file cannot be loaded.
pub fn choose(options: &Options) -> Result<Vec<Road>, String> {
    let all = all()?;
    if options.only.is_empty() {
        return Ok(all.into_iter().filter(|road| !road.kind.is_empty()).collect());
    }
    let means = |pattern: &str, road: &Road| {
        matches(pattern, &road.name()) || matches(pattern, &road.variant) || pattern == road.file
    };
    if let Some(unknown) =
        options.only.iter().find(|only| !all.iter().any(|road| means(only, road)))
    {
        let known: Vec<String> = all.iter().map(Road::name).collect();
        let known = known.join(", ");
        return Err(format!("--only: there is no road '{unknown}'; allowed, and with *: {known}"));
    }
    Ok(all.into_iter().filter(|road| options.only.iter().any(|only| means(only, road))).collect())
}

fn all() -> Result<Vec<Road>, String> {
    let mut roads = Vec::new();
    for (file, paths) in FILES.into_iter().zip(PATHS).chain([PAPERS]) {
        let variants = files::roads(&files::load(file, &[])?);
        roads.extend(variants.into_iter().map(|variant| {
            let name = format!("{file}/{variant}");
            let kind = USUAL.iter().find(|(usual, _)| *usual == name).map_or("", |(_, kind)| kind);
            Road { file, variant, paths, kind }
        }));
    }
    Ok(roads)
}

/// Whether `name` is `pattern`, in which each `*` stands for any characters.
pub fn matches(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(left) = name.strip_prefix(start) else { return false };
    (0..=left.len()).any(|at| left.get(at..).is_some_and(|left| matches(rest, left)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(only: &str) -> Result<Vec<String>, String> {
        let words: Vec<String> =
            format!("program {only}").split_whitespace().map(str::to_owned).collect();
        let options = Options::read(&words).expect("valid").expect("no help");
        choose(&options).map(|roads| roads.iter().map(Road::name).collect())
    }

    #[test]
    fn the_usual_roads_exist() {
        let expected: Vec<&str> = USUAL.iter().map(|(name, _)| *name).collect();
        let mut usual = chosen("").expect("all");
        usual.sort_by_key(|name| expected.iter().position(|other| other == name));
        assert_eq!(usual, expected);
    }

    #[test]
    fn roads_are_chosen_by_pattern_and_unknown_ones_refused() {
        let count = |only: &str| chosen(only).map(|roads| roads.len());
        assert_eq!(chosen("--only wifi"), Ok(vec!["links/wifi".to_owned()]));
        assert_eq!(count("--only normal-5"), Ok(2), "a link and a pair");
        assert_eq!(count("--only pairs"), count("--only pairs/*"));
        assert!(count("--only *lte*").expect("several") > 5);
        assert!(chosen("--only wifi --only ferry").expect_err("unknown").contains("'ferry'"));
    }

    #[test]
    fn stars_stand_for_any_characters() {
        for (pattern, name, expected) in [
            ("*", "", true),
            ("a*", "abc", true),
            ("*c", "abc", true),
            ("a*b*c", "abbc", true),
            ("a*b", "abc", false),
            ("", "a", false),
            ("abc", "abc", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
