//! One data sequence space over several subflows: what MPTCP, pTCP and the striping applications
//! that papers compare share.
//!
//! A [`MetaSender`] keeps the bytes and *binds* them to subflows one segment at a time, when a subflow
//! has window for it (pull); which subflow is the decision of a scheduler of `anabranch_policy`. Each
//! subflow is an ordinary [`Sender`](crate::Sender), and each of its segments carries the data sequence
//! number of its payload. The [`MetaReceiver`] puts the data back in order and acknowledges it, beside
//! the subflow's own acknowledgement, on the path on which it came. The protocols differ by the values
//! of [`MetaConfig`]: what a timeout and a shrunk window do to what is bound ([`OnTimeout`], [`OnCut`]).

mod binding;
mod pull;
mod receiver;
mod sender;

use anabranch_policy::PolicySpec;

use crate::config::Config;

pub use receiver::{MetaReceiver, MetaReceiverStatistics};
pub use sender::{MetaSender, MetaSenderStatistics};

/// What happens to the data bound to a subflow whose retransmission timer fires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnTimeout {
    /// It stays: only the subflow repairs its losses.
    #[default]
    Keep,
    /// All of it is offered to the other subflows too (MPTCP's reinjection).
    ReinjectAll,
    /// The first segment of it is (pTCP's redundant striping).
    ReinjectFirst,
}

/// What happens to the data bound to a subflow whose window shrinks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnCut {
    /// It stays.
    #[default]
    Keep,
    /// What lies beyond the new window is unbound and offered to all; the subflow's segments there
    /// carry other data when they are sent again (pTCP's dynamic reassignment).
    Unbind,
}

/// One data stream over subflows.
#[derive(Clone, Debug, PartialEq)]
pub struct MetaConfig {
    /// Each subflow's connection. Its buffers do not matter: the shared ones bind.
    pub subflow: Config,
    /// Most bytes written and not acknowledged at the data level.
    pub send_buffer: u64,
    /// Most bytes that the receiver holds, read or not in order.
    pub receive_buffer: u64,
    /// Whether the receiving application takes bytes as soon as they are in order.
    pub read_at_once: bool,
    /// The scheduler, of those of `anabranch_policy::scheduler`.
    pub scheduler: PolicySpec,
    /// What a timeout does.
    pub on_timeout: OnTimeout,
    /// What a shrunk window does.
    pub on_cut: OnCut,
    /// Whether the congestion controllers read their siblings (LIA, OLIA and the like).
    pub coupled: bool,
}

impl MetaConfig {
    /// Subflows as `subflow` says, filled by least round-trip time first, 4 MiB of buffer on each side,
    /// nothing moved between subflows.
    pub fn new(subflow: Config) -> Self {
        MetaConfig {
            subflow,
            send_buffer: 1 << 22,
            receive_buffer: 1 << 22,
            read_at_once: true,
            scheduler: PolicySpec::new("min-rtt"),
            on_timeout: OnTimeout::Keep,
            on_cut: OnCut::Keep,
            coupled: false,
        }
    }

    /// The subflow's configuration with buffers that never bind.
    fn unbounded_subflow(&self) -> Config {
        Config {
            receive_buffer: u64::MAX / 4,
            send_buffer: u64::MAX / 4,
            read_at_once: true,
            ..self.subflow.clone()
        }
    }
}

#[cfg(test)]
mod tests;
