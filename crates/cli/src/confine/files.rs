//! Limits the files that can be seen and the TCP ports that can be used, with landlock(7).

use std::fs;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, PathBeneath,
    PathFd, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};

use super::{Kernel, Needs};

/// Landlock version asked for; an older kernel applies as much of it as it can.
const VERSION: ABI = ABI::V6;
const _: () = assert!(VERSION as u8 == Kernel::NEWEST);

/// Directories that are read to look up names and users, to load libraries and to list interfaces.
/// Whole directories are listed, because files such as `resolv.conf` are replaced while a command
/// runs.
const SYSTEM: [&str; 22] = [
    "/etc",
    "/usr",
    "/lib",
    "/lib32",
    "/lib64",
    "/nix/store",
    "/gnu/store",
    "/run/systemd/resolve",
    "/run/systemd/userdb",
    "/run/NetworkManager",
    "/run/resolvconf",
    "/run/connman",
    "/run/nscd",
    "/var/cache/nscd",
    "/var/db",
    "/var/lib/sss",
    "/proc/self",
    "/proc/sys",
    "/sys/class/net",
    "/sys/devices",
    "/dev/urandom",
    "/dev/random",
];
/// The file that names the name servers; often a link to a file elsewhere.
const NAME_SERVERS: &str = "/etc/resolv.conf";
/// Devices that are read and written.
const DEVICES: [&str; 2] = ["/dev/null", "/dev/tty"];
/// Ports of name servers, which are asked by TCP when an answer is long.
const NAME_SERVER_PORTS: [u16; 2] = [53, 853];

/// Limits this thread, and those that it starts, to the files and ports that are needed.
pub(super) fn restrict(needs: &Needs) -> Result<(), RulesetError> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(VERSION))?
        .scope(Scope::from_all(VERSION))?;
    if !needs.tcp {
        rules = rules.handle_access(AccessNet::from_all(VERSION))?;
    }
    let reading = AccessFs::ReadFile | AccessFs::ReadDir;
    let mut rules = rules.create()?;
    rules = allow(rules, SYSTEM.iter().map(Path::new), reading)?;
    rules = allow(rules, name_servers().iter().map(PathBuf::as_path), reading)?;
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
    rules = allow(rules, DEVICES.iter().map(Path::new), device)?;
    rules = allow(rules, needs.read.iter().map(PathBuf::as_path), reading)?;
    let writing = reading
        | AccessFs::WriteFile
        | AccessFs::Truncate
        | AccessFs::MakeReg
        | AccessFs::MakeDir
        | AccessFs::MakeSym
        | AccessFs::RemoveFile
        | AccessFs::Refer;
    rules = allow(rules, needs.write.iter().map(PathBuf::as_path), writing)?;
    // The directory is locked while a socket is made in it. Locking needs the right to read it.
    let making = AccessFs::ReadDir | AccessFs::MakeSock | AccessFs::RemoveFile;
    rules = allow(rules, needs.sockets.iter().map(PathBuf::as_path), making)?;
    if !needs.tcp {
        for port in NAME_SERVER_PORTS {
            rules = rules.add_rule(NetPort::new(port, AccessNet::ConnectTcp))?;
        }
    }
    rules.restrict_self().map(|_| ())
}

fn allow<'a>(
    mut rules: RulesetCreated,
    paths: impl Iterator<Item = &'a Path>,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    for path in paths {
        // A path that does not exist needs no rule.
        let Ok(fd) = PathFd::new(path) else { continue };
        // A file has fewer kinds of access than a directory.
        let access = if path.is_dir() { access } else { access & AccessFs::from_file(VERSION) };
        rules = rules.add_rule(PathBeneath::new(fd, access))?;
    }
    Ok(rules)
}

/// The nearest existing directories above the file with the name servers: above the link's first target, which need
/// not exist yet, and above its final target. The root directory is left out.
fn name_servers() -> Vec<PathBuf> {
    let first = fs::read_link(NAME_SERVERS).ok().map(|link| Path::new("/etc").join(link));
    let last = fs::canonicalize(NAME_SERVERS).ok();
    let directory = |file: PathBuf| {
        let mut above = file.ancestors().skip(1).filter_map(|above| above.canonicalize().ok());
        above.next().filter(|directory| directory.parent().is_some())
    };
    first.into_iter().chain(last).filter_map(directory).collect()
}

/// The version of Landlock that this kernel has, at most [`Kernel::NEWEST`]; 0 without Landlock.
pub(super) fn version() -> u8 {
    (1..=Kernel::NEWEST).rev().find(|version| has(ABI::from(i32::from(*version)))).unwrap_or(0)
}

fn has(version: ABI) -> bool {
    let rules = || Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    let (net, scope) = (AccessNet::from_all(version), Scope::from_all(version));
    rules().handle_access(AccessFs::from_all(version)).is_ok()
        && (net.is_empty() || rules().handle_access(net).is_ok())
        && (scope.is_empty() || rules().scope(scope).is_ok())
}
