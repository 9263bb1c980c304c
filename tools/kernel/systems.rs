//! The transports that are compared.

use crate::facts::Facts;
use crate::options::Options;
use crate::roads::matches;

/// A way to carry bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// The kernel's TCP over one of `paths` paths, counted from 0.
    Tcp { congestion: &'static str, path: usize, paths: usize },
    /// The kernel's MPTCP over all paths.
    Mptcp { congestion: &'static str },
    /// The simulator's model of the kernel's TCP, by its profile, over one of `paths` paths, counted from 0.
    TcpModel { profile: &'static str, congestion: &'static str, path: usize, paths: usize },
    /// The simulator's model of MPTCP over all paths.
    MptcpModel { congestion: &'static str },
    /// Multipath QUIC by noq over all paths, with this congestion control on each.
    Quic { control: &'static str },
    /// One of the papers' protocols, as a profile of `anabranch bench`, over all paths.
    Paper { profile: &'static str },
    /// `anabranch bench` over all paths.
    Anabranch,
}

/// The kernel's congestion controls that are tried.
pub const CONGESTION: [&str; 3] = ["cubic", "bbr", "reno"];

/// The congestion controls of noq that are tried: `bbr` is its BBRv3.
const QUIC: [&str; 2] = ["cubic", "bbr"];

/// The papers' protocols that are run over several paths.
pub const PAPERS: [&str; 3] = ["mplot", "ptcp", "fmtcp"];

impl System {
    /// The systems that `options` ask for and this kernel has, over this many paths, ours last.
    pub fn chosen(paths: usize, options: &Options, facts: &Facts) -> Vec<System> {
        let mut systems = System::over(paths, facts);
        systems.retain(|system| options.quic.is_some() || !system.is_quic());
        let patterns = &options.systems;
        let is_chosen = |name: String| patterns.iter().any(|pattern| matches(pattern, &name));
        systems.retain(|system| patterns.is_empty() || is_chosen(system.name()));
        systems
    }

    /// All systems that this kernel has.
    fn over(paths: usize, facts: &Facts) -> Vec<System> {
        let controls = || CONGESTION.into_iter().filter(|name| facts.has(name));
        let mut systems = Vec::new();
        for path in 0..paths {
            systems.extend(controls().map(|congestion| System::Tcp { congestion, path, paths }));
        }
        if paths > 1 && facts.has_mptcp {
            systems.extend(controls().map(|congestion| System::Mptcp { congestion }));
        }
        systems.extend(System::models(paths));
        if paths > 1 {
            systems.extend(PAPERS.into_iter().map(|profile| System::Paper { profile }));
        }
        systems.extend(QUIC.map(|control| System::Quic { control }));
        systems.push(System::Anabranch);
        systems
    }

    fn is_quic(self) -> bool {
        matches!(self, System::Quic { .. })
    }

    fn models(paths: usize) -> Vec<System> {
        let mut systems = Vec::new();
        for path in 0..paths {
            let tcp = |profile| {
                CONGESTION.map(|congestion| System::TcpModel { profile, congestion, path, paths })
            };
            systems.extend(tcp("tcp:sack"));
            systems.extend(tcp("tcp:linux"));
        }
        if paths > 1 {
            systems.extend(CONGESTION.map(|congestion| System::MptcpModel { congestion }));
        }
        systems
    }

    /// The system of the kernel that this one is a model of.
    pub fn modelled(self) -> Option<System> {
        match self {
            System::TcpModel { congestion, path, paths, .. } => {
                Some(System::Tcp { congestion, path, paths })
            }
            System::MptcpModel { congestion } => Some(System::Mptcp { congestion }),
            _ => None,
        }
    }

    /// Whether the system has further paths to go on with when one fails.
    pub fn uses_several(self, paths: usize) -> bool {
        paths > 1 && !matches!(self, System::Tcp { .. })
    }

    /// Whether the kernel carries the bytes.
    pub fn is_kernels(self) -> bool {
        matches!(self, System::Tcp { .. } | System::Mptcp { .. })
    }

    /// The system's name in tables; where there are several paths, with that of the one it uses.
    pub fn name(self) -> String {
        match self {
            System::Tcp { congestion, paths: 1, .. } => format!("tcp:{congestion}"),
            System::Tcp { congestion, path, .. } => format!("tcp:{congestion} {}", letter(path)),
            System::Mptcp { congestion } => format!("mptcp:{congestion}"),
            System::TcpModel { profile, congestion, path, paths } => {
                let path = if paths > 1 { format!(" {}", letter(path)) } else { String::new() };
                format!("{profile}:{congestion}{path}")
            }
            System::MptcpModel { congestion } => format!("tcp:mptcp-linux:{congestion}"),
            System::Quic { control } => format!("noq:{control}"),
            System::Paper { profile } => profile.to_owned(),
            System::Anabranch => "anabranch".to_owned(),
        }
    }
}

/// Checks that every pattern of `options` matches a system that some kernel has.
///
/// # Errors
/// The error names the first pattern that does not match, and the systems that exist.
pub fn check(options: &Options) -> Result<(), String> {
    let congestion = CONGESTION.map(str::to_owned).to_vec();
    let facts = Facts { congestion, has_mptcp: true, ..Facts::default() };
    let all = [1, 2].map(|paths| System::over(paths, &facts)).concat();
    let is_known = |pattern: &str, system: &System| matches(pattern, &system.name());
    let quics = |pattern: &&String| {
        let mut meant = all.iter().filter(|system| is_known(pattern, system)).peekable();
        meant.peek().is_some() && meant.all(|system| system.is_quic())
    };
    if let (Some(pattern), None) = (options.systems.iter().find(quics), &options.quic) {
        return Err(format!("--system: '{pattern}' needs --quic with the program of tools/quic"));
    }
    let mut names: Vec<String> = all.into_iter().map(System::name).collect();
    names.sort();
    names.dedup();
    let is_known = |pattern: &str| names.iter().any(|name| matches(pattern, name));
    match options.systems.iter().find(|pattern| !is_known(pattern)) {
        None => Ok(()),
        Some(unknown) => Err(format!(
            "--system: there is no system '{unknown}'; allowed, and with *: {}",
            names.join(", ")
        )),
    }
}

/// The name that roads give their path.
pub fn letter(path: usize) -> char {
    u8::try_from(path).ok().and_then(|path| b'a'.checked_add(path)).map_or('?', char::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_system_of_the_kernel_runs_and_no_other() {
        let names = |paths, controls: &[&str], has_mptcp| {
            let congestion = controls.iter().map(|&name| name.to_owned()).collect();
            let facts = Facts { congestion, has_mptcp, ..Facts::default() };
            let systems = System::over(paths, &facts);
            systems.into_iter().map(System::name).collect::<Vec<_>>()
        };
        let models = |paths| System::models(paths).into_iter().map(System::name).collect();
        let with = |kernels: &[&str], paths: usize| {
            let mut names: Vec<String> = kernels.iter().map(|&name| name.to_owned()).collect();
            let models: Vec<String> = models(paths);
            names.extend(models);
            let papers = PAPERS.iter().filter(|_| paths > 1);
            let others = papers.chain(&["noq:cubic", "noq:bbr", "anabranch"]);
            names.extend(others.map(|&name| name.to_owned()));
            names
        };
        assert_eq!(names(1, &["reno", "cubic"], true), with(&["tcp:cubic", "tcp:reno"], 1));
        let bbr = ["tcp:bbr a", "tcp:bbr b", "mptcp:bbr"];
        assert_eq!(names(2, &["bbr"], true), with(&bbr, 2));
        assert_eq!(names(2, &["bbr"], false), with(&bbr[..2], 2));
        let two: Vec<String> = models(2);
        assert!(two.contains(&"tcp:sack:reno b".to_owned()), "{two:?}");
        assert_eq!(two.last().map(String::as_str), Some("tcp:mptcp-linux:reno"));
    }

    #[test]
    fn models_stand_for_a_system_of_the_kernel() {
        for model in System::models(2) {
            assert!(model.modelled().is_some_and(System::is_kernels), "{}", model.name());
        }
        assert_eq!(System::Anabranch.modelled(), None);
    }

    #[test]
    fn systems_are_chosen_by_pattern() {
        let chosen = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
            let options = Options::read(&words).expect("valid").expect("no help");
            let congestion = vec!["reno".to_owned()];
            let facts = Facts { congestion, has_mptcp: true, ..Facts::default() };
            let systems = System::chosen(2, &options, &facts);
            systems.into_iter().map(System::name).collect::<Vec<_>>()
        };
        assert_eq!(chosen(&["program"]).len(), 7 + System::models(2).len());
        assert_eq!(chosen(&["program", "--system", "tcp:reno*"]), ["tcp:reno a", "tcp:reno b"]);
        assert_eq!(chosen(&["program", "--system", "*t*p"]), ["ptcp", "fmtcp"]);
        let two = ["program", "--system", "ana*", "--system", "mptcp:reno"];
        assert_eq!(chosen(&two), ["mptcp:reno", "anabranch"]);
        let words = ["program", "--system", "quic"].map(str::to_owned);
        let options = Options::read(&words).expect("valid").expect("no help");
        assert!(
            check(&options)
                .expect_err("unknown")
                .contains("'quic'; allowed, and with *: anabranch, fmtcp, mplot, mptcp:bbr, ")
        );
        let words = ["program", "--system", "noq:*"].map(str::to_owned);
        let options = Options::read(&words).expect("valid").expect("no help");
        assert!(check(&options).expect_err("no program").contains("needs --quic"));
        let there = Options { quic: Some("quic".into()), ..options };
        assert_eq!(check(&there), Ok(()));
        assert_eq!(System::chosen(1, &there, &Facts::default()).len(), 2);
    }
}
