//! When an acknowledgement is due: after a number of packets, or at once when something is wrong.

use core::time::Duration;

use crate::ack::{AckTiming, ReceivedEvent};
use crate::registry::{OptionEntry, Options, PolicyError, option};

/// The options of every acknowledgement policy here.
pub(super) const OPTIONS: &[OptionEntry] = &[
    option("every", "packets that ask for an acknowledgement before one is sent at once", "2"),
    option("delay", "longest time an acknowledgement waits for more packets", "5ms"),
    option("about", "what a report covers: the path that is due, or every path (all)", "path"),
];

/// Acknowledges once `every` packets are pending, reordering and congestion marks at once, and anything else within
/// `delay` (RFC 9000 §13.2).
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    every: u32,
    delay: Duration,
    /// Whether each acknowledgement reports on every path.
    pub(super) about_all: bool,
}

impl Timing {
    pub(super) fn read(options: &Options<'_>) -> Result<Self, PolicyError> {
        Ok(Timing {
            every: options.integer("every", 1..=1000)? as u32,
            delay: options.duration("delay", Duration::ZERO..=Duration::from_secs(1))?,
            about_all: options.choice("about", &[("path", false), ("all", true)])?,
        })
    }

    pub(super) fn due(&self, event: &ReceivedEvent) -> AckTiming {
        if !event.ack_eliciting {
            AckTiming::None
        } else if event.out_of_order || event.ce || event.pending >= self.every {
            AckTiming::Now
        } else {
            AckTiming::By(event.now + self.delay)
        }
    }
}
