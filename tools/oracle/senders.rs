//! The senders of the tables, as configurations of our TCP model.

use anabranch_tcp::{Config, DelayedAck, LossRecovery, WireFormat};
use core::time::Duration;

/// A sender that can be imitated.
#[derive(Clone, Debug)]
pub struct Imitation {
    pub config: Config,
    pub control: &'static str,
    /// Whether our model has to agree with it.
    pub reference: bool,
}

/// Reno as in ns-3: two segments at first, growth for each acknowledgement.
const RENO: &str = "reno:initial=2,growth=acks";
/// Reno as in ns-2: a small window may fall below one segment, which stops the sender.
const NS2: &str = "reno:initial=2,growth=acks,floor=0";

/// The sender that the tables call `name`, with or without delayed acknowledgements.
pub fn imitate(name: &str, delayed: bool) -> Option<Imitation> {
    let (config, control, reference) = match name {
        "ns2-sack1-ts" => (Config::ns2_sack1(true), NS2, true),
        "ns2-sack1" => (Config::ns2_sack1(false), NS2, true),
        "ns2-newreno" => (Config::ns2_newreno(), NS2, false),
        "rfc6675" => (rfc6675(false), RENO, false),
        "rfc6675-ts" => (rfc6675(true), RENO, false),
        "prr-ts" => (Config { prr: true, ..rfc6675(true) }, RENO, false),
        "linux" => {
            let (wire, mss) = (rfc6675(true).wire, 1000);
            (Config { wire, mss, ..Config::linux() }, "reno:initial=10,growth=bytes", false)
        }
        "ns3.37-newreno-prr" | "ns3.44-newreno-prr" | "ns3.44-newreno-prr-da40" => {
            (ns3(), RENO, false)
        }
        "ns3.44-cubic-prr" => (ns3(), "cubic:initial=2", false),
        _ => return None,
    };
    let delayed_ack = match delayed {
        false => DelayedAck::OFF,
        true if name.ends_with("da40") => {
            DelayedAck { timeout: Duration::from_millis(40), ..DelayedAck::SECOND }
        }
        true => DelayedAck::SECOND,
    };
    Some(Imitation { config: Config { delayed_ack, ..config }, control, reference })
}

/// TCP as in the RFCs, with ns-2's sizes and first timeout.
fn rfc6675(timestamps: bool) -> Config {
    Config { recovery: LossRecovery::Sack, ..Config::ns2_sack1(timestamps) }
}

/// TCP as in ns-3's socket, with the parameters of the reference data: PRR, no timestamps, 1042 B
/// packets.
fn ns3() -> Config {
    let wire = WireFormat { header_bytes: 42, sack_block_bytes: 0, ..WireFormat::default() };
    let base = Config::ns2_sack1(false);
    Config { recovery: LossRecovery::Sack, prr: true, wire, handshake: true, ..base }
}
