//! Judges the links to the peer.

use super::Finding;
use crate::doctor::facts::{Load, Measured, Outcome, Path, Peer};
use crate::format;
use crate::machine::is_private;

/// MTU of Ethernet, and of most of the internet, bytes.
const ETHERNET: u32 = 1500;
/// Loss from which a link is worth a note, and from which it is a problem.
const LOSS: (f64, f64) = (0.01, 0.2);
/// Least number of packets from which loss is judged.
const ENOUGH: u64 = 20;
/// Marks by which ECN is judged (as RFC 9000 §13.4.2 counts ten).
const ENOUGH_MARKS: u64 = 10;
/// Share of the marks that has to arrive.
const MARKS: f64 = 0.9;
/// Queueing delay from which a link is worth a note, ms: nearly idle, and filled.
const QUEUE_MS: (f64, f64) = (100.0, 200.0);
/// Loss of a filled link, beyond twice its usual loss, from which it looks policed if it has no queue.
const POLICED: f64 = 0.03;
/// Queueing delay below which a filled link counts as having no queue, ms.
const NO_QUEUE_MS: f64 = 20.0;

impl Peer {
    /// Whether a link of this name was tried.
    pub(super) fn uses(&self, name: &str) -> bool {
        self.paths.iter().any(|path| path.name == name)
    }
}

pub(super) fn judge(peer: &Peer) -> Vec<Finding> {
    let answers = peer.paths.iter().any(|path| path.outcome == Outcome::Answered);
    let mut findings: Vec<Finding> =
        peer.paths.iter().flat_map(|path| self::path(path, answers)).collect();
    if !answers {
        findings.push(nobody(peer));
    }
    findings
}

fn nobody(peer: &Peer) -> Finding {
    if peer.refused {
        let what = format!("the machine is up, but nothing listens on UDP {}", peer.name);
        return Finding::problem("answer", "peer", what)
            .advise("start `anabranch serve` there, or check which port it listens on");
    }
    let what = format!(
        "{} did not answer over any link; a peer without permission gets no answer",
        peer.name
    );
    Finding::problem("answer", "peer", what).advise(
        "on the peer: does it run, does it --allow what `anabranch pubkey KEY` prints here, is its UDP port open in the firewall? here: is --peer its key?",
    )
}

fn path(path: &Path, others: bool) -> Vec<Finding> {
    let (name, remote) = (&path.name, path.remote);
    let unusable = match &path.outcome {
        Outcome::Answered => None,
        Outcome::NoRoute => Some(
            Finding::problem("answer", name, format!("there is no route to {remote} over it"))
                .advise(format!("ip route add {} via ROUTER dev {name}", remote.ip())),
        ),
        Outcome::Failed(why) => {
            Some(Finding::problem("answer", name, format!("no socket could be opened on it: {why}")))
        }
        // If no other link gets an answer either, this link is not to blame.
        Outcome::Silent if !others => Some(Finding::note("answer", name, "no answer over it")),
        Outcome::Silent => Some(
            Finding::problem("answer", name, "no answer over it, although other links get one")
                .advise(format!(
                    "ping -I {name} {}: if that is answered, UDP port {} is blocked on the way: let the peer listen on another port, such as 443",
                    remote.ip(),
                    remote.port()
                )),
        ),
    };
    if let Some(finding) = unusable {
        return vec![finding];
    }
    let Some(measured) = &path.measured else {
        return vec![Finding::problem(
            "answer",
            name,
            "the connection ended while it was examined",
        )];
    };
    let mut findings = vec![round_trips(name, measured)];
    findings.push(loss(name, "to", measured.lost, measured.sent, measured.loss()));
    findings.push(loss(name, "from", measured.peer_lost, measured.peer_sent, measured.peer_loss()));
    findings.extend(marks(name, measured));
    findings.push(size(name, measured));
    findings.extend(translation(path));
    findings.extend(measured.load.map(|load| filled(name, measured, &load)));
    findings.extend(measured.load_failed.as_ref().map(|why| {
        Finding::problem("load", name, format!("it could not be filled: {why}"))
            .advise("run it again; if that happens again, `anabranch serve` there says why")
    }));
    findings.extend(recorded(name, measured));
    findings
}

/// Finding about the recording, if one was asked for.
fn recorded(name: &str, measured: &Measured) -> Option<Finding> {
    if let Some(why) = &measured.trace_failed {
        let what = format!("it could not be recorded: {why}");
        let advice = "run it again with another directory, or leave this link out with --path";
        return Some(Finding::problem("trace", name, what).advise(advice));
    }
    let trace = measured.trace.as_ref()?;
    let [least, most] = trace.delay_ms;
    let delay =
        if most - least < 0.1 { format!("{least:.1}") } else { format!("{least:.1} to {most:.1}") };
    let what = format!(
        "{:.0} s recorded: {} Mb/s on average, {} to {} Mb/s (10th to 90th percentile), {delay} ms \
         one way, {} lost",
        trace.seconds,
        format::mbps(trace.mbps),
        format::mbps(trace.mbps_p10),
        format::mbps(trace.mbps_p90),
        format::percent(trace.loss)
    );
    let policed = if trace.policed {
        "; a policer drops traffic above that rate, without a queue"
    } else {
        ""
    };
    let what = what + policed;
    let scenario = &trace.scenario;
    let replay = format!(
        "anabranch emulate {scenario} --shell, or anabranch sim run {scenario}, replays it"
    );
    Some(Finding::ok("trace", name, what).advise(replay))
}

fn round_trips(name: &str, measured: &Measured) -> Finding {
    let (Some(min), Some(median)) = (measured.rtt_min_ms, measured.rtt_median_ms) else {
        let what = "the handshake succeeded, but no later packet arrived";
        return Finding::problem("rtt", name, what)
            .advise("something on the way blocks UDP: let the peer listen on another port");
    };
    let what = format!("round trip: least {min:.1} ms, median {median:.1} ms");
    if median - min < QUEUE_MS.0 {
        return Finding::ok("rtt", name, what);
    }
    Finding::note("rtt", name, format!("{what}: other traffic keeps its queue filled"))
        .advise(format!(
            "see what else uses the link; tc qdisc replace dev {name} root cake bandwidth RATE, with \
             nine tenths of its upload rate, keeps it short"
        ))
}

fn loss(name: &str, way: &str, lost: u64, sent: u64, share: f64) -> Finding {
    let check = if way == "to" { "loss-to-peer" } else { "loss-from-peer" };
    if sent < ENOUGH {
        return Finding::ok(
            check,
            name,
            format!("too few packets went {way} the peer to measure loss"),
        );
    }
    if lost == 0 {
        return Finding::ok(check, name, format!("none of {sent} packets {way} the peer was lost"));
    }
    let what = format!("{} of {sent} packets {way} the peer lost ({lost})", format::percent(share));
    if share >= LOSS.1 {
        Finding::problem(check, name, what).advise(
            "move the antenna, change the cable, or ask the provider; leave it out with --path if \
             others suffice",
        )
    } else if share >= LOSS.0 {
        Finding::note(check, name, what)
            .advise("nothing: losses are repaired; repairs take about the same share")
    } else {
        Finding::ok(check, name, what)
    }
}

/// Finding about ECN marks; `None` if too few were sent.
fn marks(name: &str, measured: &Measured) -> Option<Finding> {
    let sent = measured.ecn_sent;
    if sent < ENOUGH_MARKS {
        return None;
    }
    let arrived = measured.ecn_arrived + measured.ecn_ce;
    let harmless = "nothing: loss and delay show congestion instead";
    Some(if arrived == 0 {
        Finding::note("ecn", name, "ECN marks are removed on the way").advise(harmless)
    } else if (arrived as f64) < MARKS * sent as f64 {
        let what = format!("only {arrived} of {sent} ECN marks arrive");
        Finding::note("ecn", name, what).advise(harmless)
    } else if measured.ecn_ce > 0 {
        let what = format!("ECN marks pass; {} showed congestion", measured.ecn_ce);
        Finding::ok("ecn", name, what)
    } else {
        Finding::ok("ecn", name, "ECN marks pass")
    })
}

/// Finding about the longest packets that the link carries.
fn size(name: &str, measured: &Measured) -> Finding {
    let Measured { mtu, mtu_limit, .. } = measured;
    if *mtu >= ETHERNET {
        return Finding::ok("mtu", name, format!("packets of {mtu} bytes pass"));
    }
    if mtu >= mtu_limit {
        let what = format!("packets of {mtu} bytes pass, the longest that the peer accepts");
        return Finding::ok("mtu", name, what);
    }
    let what = format!("no packet longer than {mtu} bytes passed; Ethernet carries {ETHERNET}");
    Finding::note("mtu", name, what).advise(
        "nothing: path MTU discovery handles it; if one of your tunnels is on the path, raise its \
         MTU",
    )
}

/// Finding about NAT, from the addresses alone; the protocol does not tell more.
fn translation(path: &Path) -> Option<Finding> {
    if path.local.is_loopback() {
        return None;
    }
    let what = if !is_private(path.local) {
        "its address is public, so no NAT is needed"
    } else if is_private(path.remote.ip()) {
        "both addresses are private; there may be a NAT between them"
    } else {
        "there is a NAT: this address is private, and the peer's is not"
    };
    Some(Finding::ok("nat", &path.name, what))
}

fn filled(name: &str, measured: &Measured, load: &Load) -> Finding {
    let rate = format::mbps(load.mbps);
    let queue = match (load.rtt_median_ms, measured.rtt_min_ms) {
        (Some(filled), Some(least)) => (filled - least).max(0.0),
        _ => 0.0,
    };
    let loss = format::percent(load.loss);
    let what =
        format!("under load it carries {rate} Mb/s with {loss} loss and {queue:.0} ms of queue");
    if queue >= QUEUE_MS.1 {
        return Finding::note("load", name, what).advise(format!(
            "tc qdisc replace dev {name} root cake bandwidth RATE, with nine tenths of that rate, if \
             other traffic suffers"
        ));
    }
    // The loss exceeds that of the idle link, and no full buffer explains it.
    if load.loss >= POLICED + 2.0 * measured.loss() && queue < NO_QUEUE_MS {
        return Finding::problem(
            "load",
            name,
            format!("{what}: it looks as if UDP were throttled"),
        )
        .advise("let the peer listen on UDP 443; ask the provider about limits for UDP");
    }
    Finding::ok("load", name, what)
}
