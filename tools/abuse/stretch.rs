//! Bytes that the receiver reads in a stretch of time, and their cost.

use crate::Failure;
use crate::receiver::Receiver;
use crate::sender::now;

/// A stretch of time at the receiver.
#[derive(Clone, Copy, Debug)]
pub struct Stretch {
    /// Application bytes that were read.
    read: f64,
    /// Processor time of the receiver, seconds.
    processor: f64,
    /// Length of the stretch, seconds.
    seconds: f64,
}

impl Stretch {
    /// Measures the receiver before and after `meanwhile`; returns also what `meanwhile` returned.
    pub fn measure<T>(
        receiver: &mut Receiver,
        meanwhile: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<(Self, T), Failure> {
        let (before, start) = (receiver.ask()?, now());
        let outcome = meanwhile()?;
        let after = receiver.ask()?;
        let stretch = Stretch {
            read: (after.read - before.read) as f64,
            processor: after.processor - before.processor,
            seconds: start.elapsed().as_secs_f64(),
        };
        Ok((stretch, outcome))
    }

    /// Application bytes a second.
    pub fn goodput(&self) -> f64 {
        self.read / self.seconds
    }

    /// Processor time of the receiver, seconds, less that for the bytes read, if a byte cost what it did in the stretch
    /// `alone`.
    pub fn extra(&self, alone: &Stretch) -> f64 {
        self.processor - alone.processor / alone.read * self.read
    }

    /// Extra processor time, [`extra`](Self::extra), as a share of one processor.
    pub fn extra_share(&self, alone: &Stretch) -> f64 {
        self.extra(alone) / self.seconds
    }
}
