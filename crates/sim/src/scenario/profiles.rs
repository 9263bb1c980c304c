//! The protocols that a flow can use, by name.

use anabranch_core::profiles::Profile;
use anabranch_policy::{Axis, CongestionController, PolicySpec};
use anabranch_tcp::meta::{Join, MetaConfig};
use anabranch_tcp::striping::{Estimate, RateSource, Striping, StripingConfig};
use anabranch_tcp::{Config, PersistTimer, TimerConfig, WindowUpdates, WireFormat};
use core::time::Duration;
use std::sync::Arc;

use super::error::Flaw;
use super::plan::PathPlan;
use super::reader::Section;
use super::tcp;
use crate::endpoint::{TcpProtocol, ToldRates};

/// A protocol with all options.
#[derive(Clone, Debug)]
pub enum Protocol {
    /// The core transport with these policies, at both endpoints.
    Core(Box<Profile>),
    /// The TCP model, over one or several paths.
    Tcp(Arc<TcpProtocol>),
}

/// A profile that does not use the core transport: its name, its description in one line, and a
/// function that makes it.
type Row = (&'static str, &'static str, fn() -> Protocol);

/// All profiles that do not use the core transport.
const ROWS: &[Row] = &[
    ("tcp:sack", "TCP with selective acknowledgements (RFC 6675), Reno, timestamps", || {
        reference(Config::default(), RENO)
    }),
    ("tcp:newreno", "TCP without selective acknowledgements (RFC 6582), Reno", || {
        let recovery = anabranch_tcp::LossRecovery::NewReno;
        reference(Config { recovery, ..Config::default() }, RENO)
    }),
    ("tcp:cubic", "TCP with selective acknowledgements and CUBIC (RFC 9438)", || {
        reference(Config::default(), "cubic")
    }),
    (
        "tcp:linux",
        "TCP as Linux sends today: CUBIC, PRR, RACK-TLP, spurious cuts undone, delayed acknowledgements",
        || reference(Config::linux(), "cubic"),
    ),
    ("tcp:bbr", "the same with BBR", || reference(Config::linux(), "bbr")),
    (
        "tcp:ns2-sack1",
        "ns-2's Sack1 sender: no timestamps, so back-off stays by Karn's rule",
        || reference(Config::ns2_sack1(false), NS2_RENO),
    ),
    ("tcp:ns2-sack1-ts", "ns-2's Sack1 sender with timestamps", || {
        reference(Config::ns2_sack1(true), NS2_RENO)
    }),
    ("tcp:mptcp", "MPTCP: lowest round-trip time first, LIA, reinjection after timeouts", || {
        let recovery = PolicySpec::new("resend");
        let meta = MetaConfig::new(Config::default());
        several(MetaConfig { recovery, coupled: true, ..meta }, "lia")
    }),
    (
        "tcp:mptcp-linux",
        "MPTCP as Linux 6.18 has it: CUBIC, uncoupled, RACK-TLP, PRR, its scheduler, buffers that grow",
        || {
            let recovery = PolicySpec::new("resend").with("timeout", "copy").with("stale", "4");
            let meta = MetaConfig {
                recovery,
                scheduler: PolicySpec::new("linux"),
                // About half of the memory limits of tcp_rmem and tcp_wmem (32 MiB and 4 MiB per
                // subflow) is available for payload.
                receive_buffer: 16 << 20,
                send_buffer: 8 << 20,
                autotune: Some(tcp::INITIAL_RECEIVE_BUFFER),
                ..MetaConfig::new(Config::linux())
            };
            several(meta, "cubic:like=linux")
        },
    ),
    (
        "tcp:parallel",
        "parallel SACK connections with ECN that pull from one queue, as MPLOT compares with",
        || several(parallel(), RENO),
    ),
    (
        "tcp:ptcp",
        "pTCP: whichever pipe has room takes the oldest bytes, redundant striping, reassignment",
        || {
            let recovery = PolicySpec::new("resend").with("timeout", "copy").with("cut", "unbind");
            let scheduler = PolicySpec::new("blind");
            let base = parallel();
            let subflow = Config { wire: base.subflow.wire.ptcp(), ..base.subflow.clone() };
            let join = Join::AfterFirst;
            several(MetaConfig { recovery, scheduler, subflow, join, ..base }, RENO)
        },
    ),
    (
        "tcp:unaware",
        "an application that fills the send buffers of parallel connections in turn, as pTCP compares with",
        || striped(Striping::UntilFull, None),
    ),
    (
        "tcp:smart",
        "the same, striping in the ratio of the links' rates, which it is told every 10 s",
        || {
            let interval = Duration::from_secs(10);
            let source = RateSource::Told(Arc::default());
            let striping = Striping::ByRate(Estimate { interval, source, within_buffers: false });
            striped(striping, Some(ToldRates::BlackoutsUnseen))
        },
    ),
    ("tcp:ns2-newreno", "ns-2's Newreno sender", || reference(Config::ns2_newreno(), NS2_RENO)),
];

const RENO: &str = "reno:initial=2,growth=acks";
const NS2_RENO: &str = "reno:initial=2,growth=acks,floor=1";

/// The names of all profiles, each with its description in one line, in the order in which messages
/// list them.
pub fn all() -> Vec<(String, String)> {
    let core = Profile::all().into_iter().map(|profile| (profile.name, profile.summary));
    let others = ROWS.iter().map(|(name, summary, _)| ((*name).to_owned(), (*summary).to_owned()));
    core.chain(others).collect()
}

/// The protocol that a flow's section names, with the section's changes. `paths` are those that the
/// flow can use.
pub(super) fn read(section: &Section<'_>, paths: &[PathPlan]) -> Option<Protocol> {
    let name = section.text("profile")?;
    let row = ROWS.iter().find(|(row, _, _)| *row == name);
    let core = || Profile::named(&name).map(|profile| Protocol::Core(Box::new(profile)));
    let protocol = row.map(|(_, _, make)| make()).or_else(core);
    match protocol {
        Some(Protocol::Core(profile)) => {
            refuse_keys(section, &name, &["tcp"], "policy, transport");
            Some(Protocol::Core(Box::new(policies(section, *profile))))
        }
        Some(Protocol::Tcp(protocol)) => {
            refuse_keys(section, &name, &["policy", "transport", "messages", "class"], "tcp");
            let several = paths.len();
            if several > 1
                && !protocol.is_over_several()
                && !section.flag("per-path").unwrap_or(false)
            {
                let given = format!("'{name}' uses one path, here are {several}");
                section.complain("profile", given, "one path, or per-path = true");
            }
            let mut protocol = protocol.as_ref().clone();
            protocol.registry.clone_from(section.registry());
            Some(Protocol::Tcp(Arc::new(tcp::read(section, protocol, paths))))
        }
        None => {
            let known: Vec<String> = all().into_iter().map(|(name, _)| name).collect();
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            let (place, path) = (section.place_of("profile"), section.path_of("profile"));
            section.report(Flaw::unknown(place, path, "profile", &name, &known));
            None
        }
    }
}

/// A TCP profile over one path. `control` is well formed, since it is written in this file and a
/// test builds every profile.
fn reference(config: Config, control: &str) -> Protocol {
    let control = control.parse().unwrap_or_else(|_| PolicySpec::new("reno"));
    Protocol::Tcp(Arc::new(TcpProtocol::new(config, control)))
}

fn several(meta: MetaConfig, control: &str) -> Protocol {
    let control = control.parse().unwrap_or_else(|_| PolicySpec::new("reno"));
    Protocol::Tcp(Arc::new(TcpProtocol::over_several(meta, control)))
}

/// SACK connections with ECN and shared buffers that are never full (MPLOT, §IV-G).
fn parallel() -> MetaConfig {
    let unbounded = 1 << 40;
    MetaConfig {
        send_buffer: unbounded,
        receive_buffer: unbounded,
        scheduler: PolicySpec::new("round-robin"),
        join: Join::AllAtOnce,
        ..MetaConfig::new(Config { ecn: true, ..Config::default() })
    }
}

/// SACK connections with buffers of 64 KiB, as used by the protocols that pTCP is compared with
/// (pTCP, §2 and §5). They have a single window update, a persist timer of 5 s to 60 s, and no
/// resequencing buffer in addition to the sockets' buffers: "the receiving application reads from
/// each socket only in-sequence packets" (§5.1). The application's header is a sequence number of
/// four bytes.
fn striped(striping: Striping, told: Option<ToldRates>) -> Protocol {
    let (initial, most) = (Duration::from_secs(5), Duration::from_secs(60));
    let persist = Some(PersistTimer { initial, most });
    let config = Config {
        wire: WireFormat { mapping_bytes: 4, ..WireFormat::default() },
        timers: TimerConfig { persist, ..TimerConfig::default() },
        window_updates: WindowUpdates::Opening,
        receive_buffer: 64 << 10,
        send_buffer: 64 << 10,
        ..Config::default()
    };
    let control = RENO.parse().unwrap_or_else(|_| PolicySpec::new("reno"));
    let protocol = TcpProtocol::striped(StripingConfig::new(striping), config, control);
    Protocol::Tcp(Arc::new(TcpProtocol { told, ..protocol }))
}

fn refuse_keys(section: &Section<'_>, profile: &str, keys: &[&str], allowed: &str) {
    for key in keys.iter().filter(|key| section.has(key)) {
        section.complain(key, format!("given for profile '{profile}'"), allowed);
    }
}

fn policies(section: &Section<'_>, mut profile: Profile) -> Profile {
    if profile.registry() != section.registry()
        && let Err(error) = profile.set_registry(section.registry().clone())
    {
        section.complain("profile", error.to_string(), "");
    }
    let Some(table) = section.has("policy").then(|| section.table("policy")).flatten() else {
        return profile;
    };
    for axis in Axis::ALL {
        let Some(value) = table.text(axis.name()) else { continue };
        if let Err(error) = profile.set(axis, &value) {
            table.complain(axis.name(), error.to_string(), "");
        }
    }
    // An endpoint sends its peer the name of the profile by which the peer should acknowledge. This
    // profile now differs from the built-in one of the same name. If the name is not built in, the
    // peer uses the profile that it was configured with.
    profile.name.push('*');
    profile
}

/// Reads the congestion control that `key` of `table` names. Reports it if it cannot be built.
pub(super) fn control(table: &Section<'_>, key: &str, mss: u32) -> Option<PolicySpec> {
    let text = table.text(key)?;
    let built = text.parse::<PolicySpec>().and_then(|spec| {
        table.registry().build_for::<dyn CongestionController>(&spec, u64::from(mss))?;
        Ok(spec)
    });
    match built {
        Ok(spec) => Some(spec),
        Err(error) => {
            table.complain(key, error.to_string(), "");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_can_be_built() {
        for (name, _, make) in ROWS {
            let Protocol::Tcp(protocol) = make() else { panic!("{name}") };
            let mss = u64::from(protocol.config.mss);
            anabranch_policy::congestion::build(&protocol.control, mss)
                .unwrap_or_else(|e| panic!("{name}: {e}"));
        }
    }
}
