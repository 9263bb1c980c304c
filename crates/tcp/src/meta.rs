//! One data sequence space over several subflows: what MPTCP, pTCP and the striping applications
//! that papers compare share.
//!
//! A [`MetaSender`] keeps the bytes and cuts them into *chunks*, a segment's payload each, which it
//! *binds* to subflows. When a subflow has room in its window, a scheduler of `anabranch_policy` says
//! what goes on it; it may also assign chunks ahead of a window, take them back, copy named ones and
//! penalise a subflow. Each subflow is an ordinary [`Sender`](crate::Sender), and each of its segments
//! carries the data sequence number of its payload. The [`MetaReceiver`] puts the data back in order
//! and acknowledges it, beside the subflow's own acknowledgement, on the path on which it came.
//!
//! The protocols differ by the values of [`MetaConfig`]: the scheduler, and the recovery policy that
//! says what a timeout, a shrunk window and a dead subflow do to what is bound. To both policies every
//! chunk is a block of one symbol. A subflow repairs its own losses, as TCP does, so the answers
//! `Resend` and `Repair` to a loss ask for nothing more.

mod autotune;
mod binding;
mod chunks;
mod closing;
mod fallback;
mod membership;
mod pull;
mod queue;
mod receiver;
mod recover;
mod sender;
mod sharing;
mod subflow;
mod tell;
mod window;

use anabranch_policy::PolicySpec;

use crate::config::Config;

pub use closing::State;
pub use receiver::{MetaReceiver, MetaReceiverStatistics};
pub use sender::{MetaSender, MetaSenderStatistics};

/// When the subflows open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Join {
    /// The first alone, the others once it is established (RFC 8684 §3.2, pTCP §4.7).
    #[default]
    AfterFirst,
    /// All at once, as sockets that an application opens side by side.
    AllAtOnce,
    /// All at once, and no data is sent before all are established: a connection that has been open for a while.
    BeforeData,
}

/// One data stream over subflows.
#[derive(Clone, Debug, PartialEq)]
pub struct MetaConfig {
    /// Each subflow's connection. Its buffers are ignored: the shared ones apply.
    pub subflow: Config,
    /// Most bytes written and not acknowledged at the data level.
    pub send_buffer: u64,
    /// Most bytes that the receiver holds, read or not in order.
    pub receive_buffer: u64,
    /// Whether `send_buffer` and `receive_buffer` are sizes for one subflow (pTCP §4.5: n·B). The send buffer is then
    /// multiplied by the most subflows joined at the same time, the receive buffer by the number of subflows that
    /// have been heard from. Neither shrinks when a subflow leaves.
    pub buffers_per_subflow: bool,
    /// Whether the buffers grow with the transfer up to these sizes, as Linux tunes them: the receive buffer begins
    /// with this many bytes, the send buffer with six initial windows. Needs timestamps. `None`: they have these
    /// sizes at once.
    pub autotune: Option<u64>,
    /// Subflows that are used only when no other is usable, by bit (MPTCP's backup flag, RFC 8684 §3.3.8).
    pub backups: u16,
    /// Whether the receiving application takes bytes as soon as they are in order.
    pub read_at_once: bool,
    /// The scheduler, one of `anabranch_policy::scheduler`.
    pub scheduler: PolicySpec,
    /// Policy for timeouts, shrunk windows and dead subflows, one of `anabranch_policy::recovery`.
    pub recovery: PolicySpec,
    /// The estimator of each subflow's loss, one of `anabranch_policy::loss`. Only schedulers read the estimate.
    pub loss: PolicySpec,
    /// When the subflows open.
    pub join: Join,
    /// Whether the subflows close once all data has been acknowledged and no more will be written, each with a FIN
    /// and its acknowledgement. Otherwise a connection whose data has been delivered ends without closing its
    /// subflows.
    pub close: bool,
    /// The most subflows that the receiving side agrees to, which it says in its answers to SYNs (pTCP's nRx); the
    /// sender opens no more. `None`: it does not say.
    pub most_subflows: Option<u8>,
    /// Whether the congestion controllers read their siblings (LIA, OLIA and the like).
    pub coupled: bool,
    /// Whether controllers read only siblings that are found to share a bottleneck with them: such subflows are
    /// coupled, the others are not. The sending rate of each then swings by 8 % at times. Needs timestamps.
    pub couple_shared: bool,
}

impl MetaConfig {
    /// Subflows as `subflow` says, filled by least round-trip time first, 4 MiB of buffer on each side,
    /// nothing moved between subflows but what a dead one had, losses counted over some seconds.
    pub fn new(subflow: Config) -> Self {
        let spec = |name: &str, options: &[(&str, &str)]| {
            options.iter().fold(PolicySpec::new(name), |spec, (key, value)| spec.with(key, value))
        };
        MetaConfig {
            subflow,
            send_buffer: 1 << 22,
            receive_buffer: 1 << 22,
            buffers_per_subflow: false,
            autotune: None,
            backups: 0,
            read_at_once: true,
            scheduler: spec("min-rtt", &[]),
            recovery: spec("resend", &[("timeout", "nothing")]),
            loss: spec("windowed", &[("half-life", "5s"), ("queue", "60s")]),
            join: Join::default(),
            close: false,
            most_subflows: None,
            coupled: false,
            couple_shared: false,
        }
    }

    /// The size of a buffer that has `size` bytes, or `size` bytes for each of `opened` subflows.
    fn shared_buffer(&self, size: u64, opened: usize) -> u64 {
        if self.buffers_per_subflow { size.saturating_mul(opened.max(1) as u64) } else { size }
    }

    /// The initial size of the receive buffer, bytes.
    fn initial_receive_buffer(&self) -> u64 {
        self.autotune.map_or(self.receive_buffer, |initial| initial.min(self.receive_buffer))
    }

    /// The subflow's configuration with buffers too large to limit anything.
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
