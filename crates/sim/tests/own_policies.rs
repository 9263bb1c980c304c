//! On every axis, a policy that a program adds works like a built-in one: it is chosen by name and
//! controls whole transfers. A policy that answers like a built-in one changes nothing.

mod support;

use core::time::Duration;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anabranch_policy::ack::{AckTiming, ReceivedEvent};
use anabranch_policy::code::{CodeLimits, Coverage, Decoder, Encoder, SlidingDecoder};
use anabranch_policy::congestion::{AckEvent, SentEvent, TimeoutEvent};
use anabranch_policy::loss::{DetectionView, InFlight, Late, LossVerdict, Resolved};
use anabranch_policy::recovery::{RecoveryAction, RecoveryEvent};
use anabranch_policy::redundancy::{BlockShape, RedundancyView};
use anabranch_policy::registry::{Entry, OnAxis, Options, Registry};
use anabranch_policy::scheduler::{Pick, Pull, SchedulerAction, SchedulerEvent};
use anabranch_policy::view::{
    BlockId, BlockView, LossView, MAX_PATHS, PathView, RttView, SchedulerView,
};
use anabranch_policy::{
    AckPolicy, Axis, CongestionController, ErasureCode, LossDetector, LossEstimator,
    RecoveryPolicy, RedundancyPolicy, Scheduler,
};
use anabranch_sim::report::RunReport;
use anabranch_sim::scenario::{FlowPlan, Plan};
use anabranch_types::{Bitrate, PathId, Rng, Time};

use support::{go, links, profile};

const WATCHED: Entry = Entry {
    name: "watched",
    summary: "what the profile has, and how often it is asked",
    source: "",
    options: &[],
};

/// A policy that passes every question to another one and counts some of them.
#[derive(Debug)]
struct Watched<P: ?Sized> {
    inner: Box<P>,
    asked: Arc<AtomicU64>,
}

impl<P: ?Sized> Watched<P> {
    fn ask(&self) -> &P {
        self.asked.fetch_add(1, Ordering::Relaxed);
        &self.inner
    }

    fn ask_mut(&mut self) -> &mut P {
        self.asked.fetch_add(1, Ordering::Relaxed);
        &mut self.inner
    }
}

impl CongestionController for Watched<dyn CongestionController> {
    fn on_sent(&mut self, event: &SentEvent) {
        self.inner.on_sent(event);
    }

    fn on_ack(&mut self, event: &AckEvent, siblings: &[PathView]) {
        self.ask_mut().on_ack(event, siblings);
    }

    fn on_timeout(&mut self, event: &TimeoutEvent) {
        self.inner.on_timeout(event);
    }

    fn penalise(&mut self) {
        self.inner.penalise();
    }

    fn undo(&mut self) {
        self.inner.undo();
    }

    fn needs_rate(&self) -> bool {
        self.inner.needs_rate()
    }

    fn heeds_loss_notices(&self) -> bool {
        self.inner.heeds_loss_notices()
    }

    fn reads_siblings(&self) -> bool {
        self.inner.reads_siblings()
    }

    fn set_packet_size(&mut self, bytes: u64) {
        self.inner.set_packet_size(bytes);
    }

    fn cwnd(&self) -> u64 {
        self.inner.cwnd()
    }

    fn ssthresh(&self) -> u64 {
        self.inner.ssthresh()
    }

    fn pacing_rate(&self) -> Option<Bitrate> {
        self.inner.pacing_rate()
    }

    fn bandwidth(&self) -> Option<Bitrate> {
        self.inner.bandwidth()
    }

    fn own_queue(&self) -> Option<Duration> {
        self.inner.own_queue()
    }

    fn governs_recovery(&self) -> bool {
        self.inner.governs_recovery()
    }

    fn couples(&self) -> bool {
        self.inner.couples()
    }

    fn phase(&self) -> &'static str {
        self.inner.phase()
    }
}

impl LossDetector for Watched<dyn LossDetector> {
    fn judge(&self, packet: &InFlight, view: &DetectionView) -> LossVerdict {
        self.ask().judge(packet, view)
    }

    fn on_late(&mut self, packet: &Late) {
        self.inner.on_late(packet);
    }

    fn timeout(&self, rtt: &RttView) -> Duration {
        self.inner.timeout(rtt)
    }

    fn backoff_limit(&self) -> u32 {
        self.inner.backoff_limit()
    }

    fn longest_timeout(&self) -> Option<Duration> {
        self.inner.longest_timeout()
    }

    fn probes(&self) -> u8 {
        self.inner.probes()
    }

    fn timeout_loses_flight(&self) -> bool {
        self.inner.timeout_loses_flight()
    }
}

impl LossEstimator for Watched<dyn LossEstimator> {
    fn on_sent(&mut self, path: PathId, block: Option<BlockId>, packets: u32) {
        self.inner.on_sent(path, block, packets);
    }

    fn on_resolved(&mut self, event: &Resolved) {
        self.ask_mut().on_resolved(event);
    }

    fn on_spurious(&mut self, event: &Resolved) {
        self.inner.on_spurious(event);
    }

    fn on_block_resolved(&mut self, block: BlockId) {
        self.inner.on_block_resolved(block);
    }

    fn path(&self, path: PathId) -> LossView {
        self.inner.path(path)
    }

    fn aggregate(&self) -> LossView {
        self.inner.aggregate()
    }
}

impl Scheduler for Watched<dyn Scheduler> {
    fn on_event(
        &mut self,
        event: SchedulerEvent,
        view: &SchedulerView<'_>,
        actions: &mut Vec<SchedulerAction>,
    ) {
        self.inner.on_event(event, view, actions);
    }

    fn pull(&mut self, path: PathId, view: &SchedulerView<'_>, picks: &mut Vec<Pick>) -> Pull {
        self.ask_mut().pull(path, view, picks)
    }

    fn wakeup(&self) -> Option<Time> {
        self.inner.wakeup()
    }
}

impl ErasureCode for Watched<dyn ErasureCode> {
    fn limits(&self) -> CodeLimits {
        self.inner.limits()
    }

    fn encoder(&self) -> Box<dyn Encoder> {
        self.ask().encoder()
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        self.ask().decoder()
    }

    fn sliding_decoder(&self, symbol_length: usize) -> Option<Box<dyn SlidingDecoder>> {
        self.inner.sliding_decoder(symbol_length)
    }
}

impl RedundancyPolicy for Watched<dyn RedundancyPolicy> {
    fn next_block(&mut self, view: &RedundancyView<'_>) -> BlockShape {
        self.ask_mut().next_block(view)
    }

    fn proactive(&mut self, block: &BlockView, view: &RedundancyView<'_>) -> u16 {
        self.inner.proactive(block, view)
    }

    fn after_source(&mut self, block: &BlockView, view: &RedundancyView<'_>) -> u16 {
        self.inner.after_source(block, view)
    }

    fn coverage(&self, block: &BlockView) -> Coverage {
        self.inner.coverage(block)
    }

    fn symbols_per_packet(&self) -> u16 {
        self.inner.symbols_per_packet()
    }

    fn still_needed(
        &self,
        block: &BlockView,
        hypothetical: &[u16; MAX_PATHS],
        view: &RedundancyView<'_>,
    ) -> u16 {
        self.inner.still_needed(block, hypothetical, view)
    }
}

impl RecoveryPolicy for Watched<dyn RecoveryPolicy> {
    fn on_event(&mut self, now: Time, event: RecoveryEvent, paths: &[PathView]) -> RecoveryAction {
        self.ask_mut().on_event(now, event, paths)
    }

    fn resends(&self) -> bool {
        self.inner.resends()
    }

    fn avoids_silent_paths(&self) -> bool {
        self.inner.avoids_silent_paths()
    }
}

impl AckPolicy for Watched<dyn AckPolicy> {
    fn on_received(&mut self, event: &ReceivedEvent) -> AckTiming {
        self.ask_mut().on_received(event)
    }

    fn reports_every_path(&self) -> bool {
        self.inner.reports_every_path()
    }

    fn route(&mut self, about: PathId, paths: &[PathView], rng: &mut Rng, out: &mut Vec<PathId>) {
        self.inner.route(about, paths, rng, out);
    }
}

/// Two megabytes over two links that lose packets.
fn transfer(profile: anabranch_core::profiles::Profile) -> RunReport {
    let lossy = ["rate=10mbit,delay=20ms,loss=5%", "rate=5mbit,delay=50ms,loss=2%"];
    go(&Plan::parallel(links(&lossy)).flow(FlowPlan::core(profile).of(2_000_000)), 3)
}

/// Makes a transfer with a watched policy on the axis of `P`, which asks the profile's own policy.
/// Returns how often the watched policy was asked, and the report.
fn watch<P: OnAxis + ?Sized>(wrap: fn(Watched<P>) -> Box<P>) -> (u64, RunReport) {
    let mut own = profile("anabranch");
    let inner = own.policy(P::AXIS).clone();
    let asked = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&asked);
    own.register(&WATCHED, move |options| {
        let inner = Registry::new().build_for(&inner, options.packet_size())?;
        Ok(wrap(Watched { inner, asked: Arc::clone(&counter) }))
    })
    .expect("a new name");
    own.set(P::AXIS, "watched").expect("registered");
    let report = transfer(own);
    (asked.load(Ordering::Relaxed), report)
}

#[test]
fn own_policies_decide_transfers_on_every_axis() {
    let built_in = transfer(profile("anabranch"));
    for axis in Axis::ALL {
        let (asked, report) = match axis {
            Axis::Congestion => watch::<dyn CongestionController>(|own| Box::new(own)),
            Axis::LossDetector => watch::<dyn LossDetector>(|own| Box::new(own)),
            Axis::LossEstimator => watch::<dyn LossEstimator>(|own| Box::new(own)),
            Axis::Scheduler => watch::<dyn Scheduler>(|own| Box::new(own)),
            Axis::Code => watch::<dyn ErasureCode>(|own| Box::new(own)),
            Axis::Redundancy => watch::<dyn RedundancyPolicy>(|own| Box::new(own)),
            Axis::Recovery => watch::<dyn RecoveryPolicy>(|own| Box::new(own)),
            Axis::Ack => watch::<dyn AckPolicy>(|own| Box::new(own)),
        };
        assert!(asked > 0, "{axis}: never asked");
        assert_eq!(report.bytes(), 2_000_000, "{axis}");
        let sender = report.flows[0].sender.as_ref().expect("the flow has a sender");
        assert!(sender.sent.repairs > 0, "{axis}: {:?}", sender.sent);
        // The handshake carries the names of the code and the acknowledgement policy, so these
        // digests differ.
        if !matches!(axis, Axis::Code | Axis::Ack) {
            assert_eq!(report.digest, built_in.digest, "{axis}: not what its inner policy decides");
        }
    }
}

#[test]
fn a_code_that_one_end_lacks_is_not_used() {
    use anabranch_core::endpoint::EndpointConfig;
    use anabranch_core::testing::{Pair, Sent, endpoint};
    let mut own = profile("anabranch");
    let random = |_: &Options<'_>| anabranch_policy::code::build(&"random-linear".parse()?);
    own.register(&WATCHED, random).expect("a new name");
    own.set(Axis::Code, "watched").expect("registered");
    let repairs = |other: anabranch_core::profiles::Profile| {
        let ends = [(1, own.clone()), (2, other)].map(|(seed, profile)| {
            let mut config = EndpointConfig::new(profile);
            config.responder.permitted = anabranch_core::handshake::Permitted::Anyone;
            endpoint(seed, config)
        });
        let mut drops = 0;
        let network = |sent: &Sent<'_>| {
            drops = (drops + 1) % 10;
            let lost = sent.now > Time::from_millis(100) && sent.side == 0 && drops == 0;
            (!lost).then(|| (sent.now + Duration::from_millis(10), sent.ecn))
        };
        let mut pair = Pair::of(ends, &own, network);
        pair.connect(1);
        pair.ends[0].unwritten = 300_000;
        while pair.ends[1].read < 300_000 {
            pair.round(Duration::from_millis(1));
            assert!(pair.now < Time::from_secs(60), "{} bytes arrive", pair.ends[1].read);
        }
        pair.ends[0].connection().expect("connected").stats().sent.repairs
    };
    assert_eq!(repairs(profile("anabranch")), 0);
    assert!(repairs(own.clone()) > 0);
}
