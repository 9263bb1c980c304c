//! Judges what concerns all links.

use super::Finding;
use crate::confine::{Kernel, UNCONFINED};
use crate::doctor::facts::{Interface, Machine, Socket, Way};

const SUBJECT: &str = "machine";

pub(super) fn judge(machine: &Machine, interfaces: &[Interface]) -> Vec<Finding> {
    let mut findings = vec![links(interfaces)];
    match &machine.socket {
        Some(socket) => findings.extend([offloads(socket), buffers(socket)]),
        None => findings.push(
            Finding::problem("socket", SUBJECT, "no UDP socket can be made")
                .advise("check that no sandbox or container forbids it, and `ulimit -n`"),
        ),
    }
    findings.push(if machine.clock_is_set {
        Finding::ok("clock", SUBJECT, "the clock is set")
    } else {
        let what = "the clock is years behind; peers reject such connections as replays";
        Finding::problem("clock", SUBJECT, what).advise("timedatectl set-ntp true")
    });
    if machine.root {
        let what = "this runs as root, which no command needs";
        findings.push(Finding::note("root", SUBJECT, what).advise(
            "run it as yourself, and a service with `serve --user NAME` or the units of the package; where a port \
             below 1024 or binding to an interface is denied: sudo setcap \
             cap_net_raw,cap_net_bind_service+ep \"$(command -v anabranch)\"",
        ));
    }
    findings.extend(machine.kernel.map(|kernel| confinement(kernel, machine.unconfined)));
    findings.push(if machine.ipv6 {
        Finding::ok("ipv6", SUBJECT, "IPv6 is available")
    } else {
        Finding::ok("ipv6", SUBJECT, "no IPv6 on these links; IPv4 is enough")
    });
    findings
}

/// How far commands that talk to peers can be confined.
fn confinement(kernel: Kernel, unconfined: bool) -> Finding {
    const CHECK: &str = "confinement";
    if unconfined {
        let what =
            format!("{UNCONFINED} is set: commands keep all privileges that they start with");
        return Finding::note(CHECK, SUBJECT, what).advise(format!("unset {UNCONFINED}"));
    }
    let landlock = match kernel.landlock {
        0 => "no Landlock".to_owned(),
        version => format!("Landlock {version} of {}", Kernel::NEWEST),
    };
    let seccomp = if kernel.seccomp { "seccomp" } else { "no seccomp" };
    let what = format!("kernel support for confining commands: {landlock}, {seccomp}");
    if kernel.landlock > 0 && kernel.seccomp {
        return Finding::ok(CHECK, SUBJECT, what);
    }
    Finding::note(CHECK, SUBJECT, what).advise(
        "Landlock needs Linux 5.13 (with `landlock` in the boot parameter lsm=), all of its limits need Linux 6.12; a container's runtime may forbid it",
    )
}

/// Whether there are links to choose from.
fn links(interfaces: &[Interface]) -> Finding {
    let leads_on =
        |interface: &&Interface| interface.running && interface.ways.iter().any(Way::leads_on);
    let names: Vec<&str> =
        interfaces.iter().filter(leads_on).map(|interface| interface.name.as_str()).collect();
    match names.as_slice() {
        [] => Finding::problem("links", SUBJECT, "no interface has a default route")
            .advise("`ip link` and `ip route` show what is there; `ip link set IFACE up`"),
        [one] => Finding::note("links", SUBJECT, format!("{one} is the only link"))
            .advise("connect a second one; with a single link there is nothing to combine"),
        many => Finding::ok("links", SUBJECT, format!("{} links: {}", many.len(), many.join(", "))),
    }
}

fn offloads(socket: &Socket) -> Finding {
    let what = match (socket.send_segments > 1, socket.receive_segments > 1) {
        (true, true) => {
            return Finding::ok("offloads", SUBJECT, "the kernel segments and coalesces UDP");
        }
        (false, true) => "the kernel does not segment UDP (GSO)",
        (true, false) => "the kernel does not coalesce UDP (GRO)",
        (false, false) => "the kernel neither segments nor coalesces UDP (GSO, GRO)",
    };
    Finding::note("offloads", SUBJECT, format!("{what}: each packet costs more CPU time"))
        .advise("GSO needs Linux 4.18 and GRO Linux 5.0; other systems have neither")
}

fn buffers(socket: &Socket) -> Finding {
    let wanted = socket.wanted_buffer;
    let short =
        [(socket.receive_buffer, "rmem_max", "receive"), (socket.send_buffer, "wmem_max", "send")];
    let short = || short.iter().filter(|(granted, ..)| *granted < wanted);
    if short().next().is_none() {
        return Finding::ok("buffers", SUBJECT, "socket buffers are as large as requested");
    }
    let found: Vec<String> =
        short().map(|(granted, _, name)| format!("{name} {} kB", granted / 1000)).collect();
    let what = format!(
        "socket buffers are small ({} of {} kB): above about 100 Mb/s, this machine may drop \
         packets",
        found.join(", "),
        wanted / 1000
    );
    let limits: Vec<String> =
        short().map(|(_, limit, _)| format!("net.core.{limit}={wanted}")).collect();
    Finding::note("buffers", SUBJECT, what).advise(format!("sysctl -w {}", limits.join(" ")))
}
