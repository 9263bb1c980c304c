//! One data sequence space over several subflows, which is common to MPTCP, pTCP and the striping
//! applications that papers compare.
//!
//! A [`MetaSender`] keeps the bytes and cuts them into *chunks*, each the payload of one segment,
//! which it *binds* to subflows. When a subflow has room in its window, a scheduler of
//! `anabranch_policy` decides what the subflow sends. The scheduler may also assign chunks before
//! the window has room, take them back, copy given chunks and penalise a subflow. Each subflow is
//! an ordinary [`Sender`](crate::Sender), and each of its segments carries the data sequence number
//! of its payload. The [`MetaReceiver`] puts the data back in order. It acknowledges data, in
//! addition to the subflow's own acknowledgement, on the path on which the data came.
//!
//! The protocols differ by the values of [`MetaConfig`]: the scheduler, and the recovery policy,
//! which decides what happens to bound chunks after a timeout, when a window shrinks and when a
//! subflow dies. To both policies every chunk is a block of one symbol. A subflow repairs its own
//! losses, as TCP does, so the answers `Resend` and `Repair` to a loss have no further effect.

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
    /// The first opens alone, the others once it is established (RFC 8684 §3.2, pTCP §4.7).
    #[default]
    AfterFirst,
    /// All open at once, as sockets that an application opens side by side.
    AllAtOnce,
    /// All open at once, and no data is sent before all are established, as if the connection had
    /// been open for a while.
    BeforeData,
}

/// Configuration of one data stream over subflows.
#[derive(Clone, Debug, PartialEq)]
pub struct MetaConfig {
    /// The connection of each subflow. Its buffer sizes are ignored, since the shared buffers
    /// apply.
    pub subflow: Config,
    /// Most bytes written and not yet acknowledged at the data level.
    pub send_buffer: u64,
    /// Most bytes that the receiver holds: unread ones and those that arrived out of order.
    pub receive_buffer: u64,
    /// Whether `send_buffer` and `receive_buffer` are sizes for one subflow (pTCP §4.5: n·B). The send buffer is then
    /// multiplied by the most subflows joined at the same time, the receive buffer by the number of subflows that
    /// have been heard from. Neither shrinks when a subflow leaves.
    pub buffers_per_subflow: bool,
    /// Whether the buffers grow with the transfer up to `send_buffer` and `receive_buffer`, as
    /// Linux tunes them: the receive buffer begins with this many bytes, the send buffer with six
    /// initial windows. Needs timestamps. `None`: the buffers have their full sizes from the start.
    pub autotune: Option<u64>,
    /// Bit mask of the subflows that are used only when no other is usable (MPTCP's backup flag,
    /// RFC 8684 §3.3.8).
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
    /// Whether the subflows close, each with a FIN and its acknowledgement, once all data has been
    /// acknowledged and no more will be written. Otherwise a connection ends when its data has been
    /// delivered, without closing its subflows.
    pub close: bool,
    /// The largest number of subflows that the receiving side agrees to. Its answers to SYNs carry
    /// the number (pTCP's nRx), and the sender opens no more. `None`: there is no limit.
    pub most_subflows: Option<u8>,
    /// Whether the congestion controllers read their siblings (LIA, OLIA and the like).
    pub coupled: bool,
    /// Whether controllers read only siblings that are found to share a bottleneck with them: such
    /// subflows are coupled, the others are not. To find this out, the sending rate of each subflow
    /// swings by 8 % at times. Needs timestamps.
    pub couple_shared: bool,
}

impl MetaConfig {
    /// Subflows as `subflow` describes them. The subflow with the least round-trip time is filled
    /// first; each side has a buffer of 4 MiB; only the data of a dead subflow is moved to others;
    /// losses are counted over some seconds.
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

    /// The size of a buffer that has `size` bytes in total or, with `buffers_per_subflow`, `size`
    /// bytes for each of `opened` subflows.
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
