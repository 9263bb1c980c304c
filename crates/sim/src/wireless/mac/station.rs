use anabranch_types::Rng;

use super::super::queue::InterfaceQueue;
use super::{Destination, Frame, FrameKind, IdleAccess, MacCounters, Message, Notice, Timing};

/// The MAC of one station. Its inputs are the messages to send, the events of the radio and the
/// expiry of its timer. Its outputs are a frame to send at once, if any, and notices for the layer
/// above.
#[derive(Debug)]
pub(in super::super) struct Mac {
    id: u32,
    rng: Rng,
    queue: InterfaceQueue,
    current: Option<Outgoing>,
    step: Step,
    /// When `step` ends, unless it is [`Step::Contending`].
    due: u64,
    /// The current contention window, CW, slots.
    window: u32,
    backoff: BackOff,
    /// Time from which slots are counted; `None` while the channel is busy or there are no slots to
    /// count.
    counting: Option<u64>,
    /// Whether the radio senses a frame of another station.
    busy: bool,
    /// Time until which other stations have reserved the channel (the NAV).
    reserved: u64,
    /// Time before which no DIFS can begin, because of an EIFS.
    eifs: u64,
    /// When the channel was last busy, including with own frames, as the radio senses it.
    quiet_since: u64,
    sequence: u32,
    /// The last sequence number received from each station; 0 if there was none.
    seen: Vec<u32>,
    pub(in super::super) counters: MacCounters,
}

/// The message that the station is sending.
#[derive(Clone, Copy, Debug)]
struct Outgoing {
    message: Message,
    sequence: u32,
    short_retries: u32,
    long_retries: u32,
}

/// The station's state in a frame exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// No exchange is in progress: the station contends for the channel, or has nothing to send.
    Contending,
    SendingRts,
    AwaitingCts,
    /// The SIFS between CTS and data.
    BeforeData,
    SendingData,
    AwaitingAck,
    /// The SIFS before a CTS or an ACK.
    BeforeAnswer(Frame),
    SendingAnswer,
}

/// The slots that must pass before the next frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BackOff {
    Nothing,
    /// No slots, as long as the channel stays idle.
    AtOnce,
    Slots(u32),
}

/// Number of sequence numbers: those of 12 bits (§7.1.3.4.1) except 0, which stands for none.
const SEQUENCES: u32 = (1 << 12) - 1;

impl Mac {
    pub(in super::super) fn new(id: u32, stations: usize, timing: &Timing, rng: Rng) -> Self {
        Mac {
            id,
            rng,
            queue: InterfaceQueue::new(timing.config.queue),
            current: None,
            step: Step::Contending,
            due: 0,
            window: timing.config.window_min,
            backoff: BackOff::Nothing,
            counting: None,
            busy: false,
            reserved: 0,
            eifs: 0,
            quiet_since: 0,
            sequence: 0,
            seen: vec![0; stations],
            counters: MacCounters::default(),
        }
    }

    /// Queues a message to send. Returns whether the queue had room.
    pub(in super::super) fn submit(&mut self, now: u64, timing: &Timing, message: Message) -> bool {
        if !self.queue.push(message) {
            self.counters.refused += 1;
            return false;
        }
        self.settle(now, timing);
        true
    }

    /// Number of messages in the MAC, including the one being sent.
    pub(in super::super) fn backlog(&self) -> usize {
        self.queue.len() + usize::from(self.current.is_some())
    }

    /// Takes back the messages that wait for `to`, but not the one being sent. Their tokens are
    /// appended to `tokens`.
    pub(in super::super) fn withdraw(&mut self, to: Destination, tokens: &mut Vec<u32>) {
        self.queue.withdraw(to, tokens);
    }

    /// When to call [`handle_timer`](Self::handle_timer), nanoseconds; `None` for never.
    pub(in super::super) fn next_timer(&self, timing: &Timing) -> Option<u64> {
        match self.step {
            Step::Contending => self.counting.map(|from| from + self.slots() * timing.slot),
            _ => Some(self.due),
        }
    }

    /// Handles the expiry of the timer. Returns a frame to send at once, if any.
    pub(in super::super) fn handle_timer(
        &mut self,
        now: u64,
        timing: &Timing,
        notices: &mut Vec<Notice>,
    ) -> Option<Frame> {
        match self.step {
            Step::Contending => {
                self.counting = None;
                self.backoff = BackOff::Nothing;
                return self.current.map(|current| self.begin(now, timing, current));
            }
            Step::SendingRts => self.go(Step::AwaitingCts, now + timing.cts_timeout),
            Step::BeforeData => return self.current.map(|it| self.send_data(now, timing, it)),
            Step::SendingData => match self.current {
                Some(Outgoing { message: Message { to: Destination::Broadcast, .. }, .. }) => {
                    self.finish(timing, notices);
                }
                _ => self.go(Step::AwaitingAck, now + timing.ack_timeout),
            },
            Step::AwaitingCts | Step::AwaitingAck => self.fail(timing, notices),
            Step::BeforeAnswer(answer) => {
                self.go(Step::SendingAnswer, now + answer.airtime);
                return Some(answer);
            }
            Step::SendingAnswer => self.step = Step::Contending,
        }
        self.quiet_since = self.quiet_since.max(now);
        self.settle(now, timing);
        None
    }

    /// Handles that the channel has become busy.
    pub(in super::super) fn handle_busy(&mut self, now: u64, timing: &Timing) {
        self.busy = true;
        let Some(from) = self.counting else { return };
        let deadline = from + self.slots() * timing.slot;
        if self.current.is_some() && deadline <= now + timing.sense {
            // The back-off ends before the station senses the frame, so the station transmits
            // anyway.
            return;
        }
        self.counting = None;
        self.backoff = match self.backoff {
            BackOff::Slots(slots) => {
                let passed = now.saturating_sub(from) / timing.slot;
                BackOff::Slots(slots - passed.min(u64::from(slots)) as u32)
            }
            BackOff::AtOnce => self.draw(timing),
            BackOff::Nothing => BackOff::Nothing,
        };
    }

    /// Handles the end of a frame that could not be decoded. `quiet` is true if the channel is idle
    /// now.
    pub(in super::super) fn handle_garbled(&mut self, now: u64, timing: &Timing, quiet: bool) {
        self.counters.garbled += 1;
        self.eifs = self.eifs.max(now + timing.eifs_extra);
        self.handle_quiet(now, timing, quiet);
    }

    /// Handles the end of a frame that arrived while the station was transmitting. `quiet` is true
    /// if the channel is idle now.
    pub(in super::super) fn handle_quiet(&mut self, now: u64, timing: &Timing, quiet: bool) {
        if quiet {
            self.busy = false;
            self.quiet_since = self.quiet_since.max(now);
        }
        self.settle(now, timing);
    }

    /// Handles a decoded frame at its end. `quiet` is true if the channel is idle now.
    pub(in super::super) fn handle_frame(
        &mut self,
        now: u64,
        timing: &Timing,
        (frame, quiet): (&Frame, bool),
        notices: &mut Vec<Notice>,
    ) {
        if timing.config.eifs_rule == super::EifsRule::InsteadOfDifs {
            self.eifs = 0;
        }
        if self.is_awaited(frame) {
            match frame.kind {
                FrameKind::Cts => self.handle_cts(now, timing),
                _ => self.finish(timing, notices),
            }
        } else {
            if matches!(self.step, Step::AwaitingCts | Step::AwaitingAck) {
                // Any other frame means that the answer will not come (§9.2.8).
                self.fail(timing, notices);
            }
            match frame.to {
                Destination::Broadcast => self.receive(frame, notices),
                Destination::Station(to) if to == self.id => {
                    self.answer(now, timing, frame, notices);
                }
                Destination::Station(_) => self.reserved = self.reserved.max(now + frame.reserves),
            }
        }
        self.handle_quiet(now, timing, quiet);
    }

    /// Whether the frame is the answer that the station waits for.
    fn is_awaited(&self, frame: &Frame) -> bool {
        let kind = match self.step {
            Step::AwaitingCts => FrameKind::Cts,
            Step::AwaitingAck => FrameKind::Ack,
            _ => return false,
        };
        frame.kind == kind && frame.to == Destination::Station(self.id)
    }

    fn handle_cts(&mut self, now: u64, timing: &Timing) {
        if let Some(current) = &mut self.current {
            current.short_retries = 0;
        }
        self.go(Step::BeforeData, now + timing.sifs);
    }

    /// Answers a frame to this station. A data frame is always answered, an RTS only if the channel
    /// is not reserved (§9.2.5.7).
    fn answer(&mut self, now: u64, timing: &Timing, frame: &Frame, notices: &mut Vec<Notice>) {
        let (kind, airtime) = match frame.kind {
            FrameKind::Rts if self.reserved <= now => (FrameKind::Cts, timing.cts),
            FrameKind::Data => (FrameKind::Ack, timing.ack),
            _ => return,
        };
        if frame.kind == FrameKind::Data {
            self.receive(frame, notices);
        }
        if self.step == Step::Contending {
            let answer = Frame {
                kind,
                from: self.id,
                to: Destination::Station(frame.from),
                airtime,
                reserves: frame.reserves.saturating_sub(timing.sifs + airtime),
                sequence: 0,
                token: 0,
            };
            self.counting = None;
            self.go(Step::BeforeAnswer(answer), now + timing.sifs);
        }
    }

    /// Passes a message to the layer above, unless it is a duplicate (§9.2.9).
    fn receive(&mut self, frame: &Frame, notices: &mut Vec<Notice>) {
        if frame.kind != FrameKind::Data {
            return;
        }
        let seen = &mut self.seen[frame.from as usize];
        if *seen == frame.sequence {
            self.counters.duplicates += 1;
            return;
        }
        *seen = frame.sequence;
        self.counters.received += 1;
        notices.push(Notice::Received { from: frame.from, token: frame.token });
    }

    /// Begins an exchange when the station has won the channel, with an RTS or, if none is needed,
    /// with the data.
    fn begin(&mut self, now: u64, timing: &Timing, current: Outgoing) -> Frame {
        let Message { to, bytes, .. } = current.message;
        if to == Destination::Broadcast || !timing.reserves(bytes) {
            return self.send_data(now, timing, current);
        }
        self.go(Step::SendingRts, now + timing.rts);
        self.counters.rts_frames += 1;
        let data = timing.data(bytes, false);
        Frame {
            kind: FrameKind::Rts,
            from: self.id,
            to,
            airtime: timing.rts,
            reserves: 3 * timing.sifs + timing.cts + data + timing.ack,
            sequence: 0,
            token: 0,
        }
    }

    fn send_data(&mut self, now: u64, timing: &Timing, current: Outgoing) -> Frame {
        let Message { to, bytes, token, .. } = current.message;
        let broadcast = to == Destination::Broadcast;
        let airtime = timing.data(bytes, broadcast);
        self.go(Step::SendingData, now + airtime);
        self.counters.data_frames += 1;
        let reserves = if broadcast { 0 } else { timing.sifs + timing.ack };
        let sequence = current.sequence;
        Frame { kind: FrameKind::Data, from: self.id, to, airtime, reserves, sequence, token }
    }

    /// Finishes the current message, which was acknowledged or is a broadcast that has ended.
    fn finish(&mut self, timing: &Timing, notices: &mut Vec<Notice>) {
        if let Some(current) = self.current {
            self.counters.sent += 1;
            notices.push(Notice::Sent { token: current.message.token });
        }
        self.retire(timing);
    }

    /// Handles a missing answer: retries with a larger window, or gives up the message at the retry
    /// limit.
    fn fail(&mut self, timing: &Timing, notices: &mut Vec<Notice>) {
        self.counters.failures += 1;
        let config = &timing.config;
        let Some(current) = &mut self.current else { return };
        let long = self.step == Step::AwaitingAck && timing.reserves(current.message.bytes);
        let (count, limit) = match long {
            true => (&mut current.long_retries, config.long_retry_limit),
            false => (&mut current.short_retries, config.short_retry_limit),
        };
        *count += 1;
        if *count < limit {
            self.window = (2 * self.window + 1).min(config.window_max);
            self.backoff = self.draw(timing);
            self.step = Step::Contending;
            return;
        }
        let Message { token, to, .. } = current.message;
        if let Destination::Station(to) = to {
            self.counters.given_up += 1;
            notices.push(Notice::GaveUp { token, to });
        }
        self.retire(timing);
    }

    /// Removes the current message, which was sent or given up, and draws a back-off before the
    /// next message (§9.2.5.2).
    fn retire(&mut self, timing: &Timing) {
        self.current = None;
        self.window = timing.config.window_min;
        self.backoff = self.draw(timing);
        self.step = Step::Contending;
    }

    /// Takes the next message if there is no current one, and starts counting slots if the station contends on an
    /// idle channel.
    fn settle(&mut self, now: u64, timing: &Timing) {
        let idle = self.step == Step::Contending && !self.busy;
        if self.current.is_none()
            && let Some(message) = self.queue.pop()
        {
            self.sequence = self.sequence % SEQUENCES + 1;
            let sequence = self.sequence;
            self.current = Some(Outgoing { message, sequence, short_retries: 0, long_retries: 0 });
            if self.backoff == BackOff::Nothing {
                let at_once = timing.config.idle_access == IdleAccess::AtOnce;
                let unreserved = self.reserved.max(self.eifs) <= now;
                self.backoff = match idle && unreserved && at_once {
                    true => BackOff::AtOnce,
                    false => self.draw(timing),
                };
            }
        }
        if !idle || self.counting.is_some() {
            return;
        }
        let quiet = self.quiet_since.max(self.reserved).max(self.eifs);
        self.counting = match self.backoff {
            BackOff::Nothing => None,
            BackOff::AtOnce => Some(now.max(quiet + timing.difs)),
            BackOff::Slots(_) => Some(now.max(quiet) + timing.difs),
        };
    }

    fn draw(&mut self, timing: &Timing) -> BackOff {
        BackOff::Slots(self.rng.below(u64::from(self.window + timing.draws)) as u32)
    }

    fn slots(&self) -> u64 {
        match self.backoff {
            BackOff::Slots(slots) => slots.into(),
            BackOff::Nothing | BackOff::AtOnce => 0,
        }
    }

    fn go(&mut self, step: Step, due: u64) {
        self.step = step;
        self.due = due;
    }
}

#[cfg(test)]
mod tests;
