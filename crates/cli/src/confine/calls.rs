//! System calls that no command makes and that would help an attacker who has taken one over are forbidden (seccomp(2)).
//!
//! The filter names what is forbidden, not what is allowed. C libraries and runtimes begin to use new system calls from
//! version to version. With a list of what is allowed, such an update would stop tunnels that work, and their users would
//! turn confinement off.

use std::collections::BTreeMap;
use std::io;

use libc::c_long;
use seccompiler::{
    BackendError, BpfProgram, Error, SeccompAction, SeccompCmpArgLen, SeccompCmpOp,
    SeccompCondition, SeccompFilter, SeccompRule, TargetArch, apply_filter,
};

/// Running programs, looking into other processes, mounting, kernel modules, and interfaces of the
/// kernel that have often had vulnerabilities.
const FORBIDDEN: &[c_long] = &[
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_mount_setattr,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mknodat,
    libc::SYS_open_by_handle_at,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_fanotify_init,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_personality,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
];

/// System calls that only x86-64 has.
#[cfg(target_arch = "x86_64")]
const OLD: &[c_long] = &[
    libc::SYS_fork,
    libc::SYS_vfork,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_mknod,
    libc::SYS_uselib,
];
#[cfg(not(target_arch = "x86_64"))]
const OLD: &[c_long] = &[];

/// An x86-64 kernel may also take system calls by the numbers of x32: this bit is set in them.
#[cfg(target_arch = "x86_64")]
const X32: Option<c_long> = Some(0x4000_0000);
#[cfg(not(target_arch = "x86_64"))]
const X32: Option<c_long> = None;
/// `execve`, `ptrace`, `kexec_load`, `process_vm_readv`, `process_vm_writev` and `execveat` have other numbers in x32.
const ONLY_X32: [c_long; 6] = [520, 521, 528, 539, 540, 545];

/// Address families of the sockets that commands use: IP, Unix sockets, and netlink for interfaces and routes.
const FAMILIES: [i32; 4] = [libc::AF_INET, libc::AF_INET6, libc::AF_UNIX, libc::AF_NETLINK];
/// The bits of a socket's type that are not flags.
const SOCKET_TYPE: u64 = 0xf;

/// The rules for each listed system call. A call is forbidden if one of its rules matches, or if
/// its list of rules is empty.
type Rules = BTreeMap<c_long, Vec<SeccompRule>>;

/// Makes the forbidden calls fail with `EPERM`, in this thread and in those that it starts.
pub(super) fn forbid() -> Result<(), Error> {
    let mut rules: Rules = FORBIDDEN.iter().chain(OLD).map(|call| (*call, Vec::new())).collect();
    rules.insert(libc::SYS_clone, new_processes()?);
    rules.insert(libc::SYS_socket, odd_sockets()?);
    if let Some(bit) = X32 {
        let same: Vec<_> = rules.iter().map(|(call, rules)| (call | bit, rules.clone())).collect();
        rules.extend(same);
        rules.extend(ONLY_X32.map(|call| (call | bit, Vec::new())));
    }
    apply(rules, libc::EPERM)?;
    // A filter cannot see the flags of `clone3`. Where that call is missing, C libraries start threads with `clone`.
    let mut rules = Rules::from([(libc::SYS_clone3, Vec::new())]);
    rules.extend(X32.map(|bit| (libc::SYS_clone3 | bit, Vec::new())));
    apply(rules, libc::ENOSYS)
}

/// Forbids `clone` unless it starts a thread: other flags start a process or a namespace.
fn new_processes() -> Result<Vec<SeccompRule>, Error> {
    let thread = libc::CLONE_THREAD as u64;
    Ok(vec![rule(&[(0, SeccompCmpOp::MaskedEq(thread), 0)])?])
}

/// Forbids sockets of families other than [`FAMILIES`], and raw ones, which read and forge packets of other programs.
fn odd_sockets() -> Result<Vec<SeccompRule>, Error> {
    let other = FAMILIES.map(|family| (0, SeccompCmpOp::Ne, family as u64));
    let raw = |family: i32| {
        let kind = (1, SeccompCmpOp::MaskedEq(SOCKET_TYPE), libc::SOCK_RAW as u64);
        rule(&[(0, SeccompCmpOp::Eq, family as u64), kind])
    };
    Ok(vec![rule(&other)?, raw(libc::AF_INET)?, raw(libc::AF_INET6)?])
}

/// A rule that matches if all of its conditions hold: the number of an argument, how it is compared, and with what.
fn rule(conditions: &[(u8, SeccompCmpOp, u64)]) -> Result<SeccompRule, BackendError> {
    let conditions = conditions.iter().map(|(argument, operation, value)| {
        SeccompCondition::new(*argument, SeccompCmpArgLen::Dword, operation.clone(), *value)
    });
    SeccompRule::new(conditions.collect::<Result<_, _>>()?)
}

/// Makes the system calls that the rules match fail with `error`.
#[allow(clippy::useless_conversion, reason = "numbers of calls have 32 bits on 32-bit processors")]
fn apply(rules: Rules, error: i32) -> Result<(), Error> {
    // There are filters for a few processors only.
    let Ok(arch) = TargetArch::try_from(std::env::consts::ARCH) else { return Ok(()) };
    let rules = rules.into_iter().map(|(call, rules)| (i64::from(call), rules)).collect();
    let forbidden = SeccompAction::Errno(error as u32);
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, forbidden, arch)?;
    match apply_filter(&BpfProgram::try_from(filter)?) {
        Err(Error::Seccomp(error) | Error::Prctl(error)) if is_missing(&error) => Ok(()),
        result => result,
    }
}

/// Whether the kernel has no filters, or a filter already in force forbids further ones.
fn is_missing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EINVAL | libc::EPERM))
}
