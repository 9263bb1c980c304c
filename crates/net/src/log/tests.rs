use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::*;
use anabranch_core::wire::CloseCode;

/// Counts events.
struct Count(Arc<AtomicU64>);

impl Subscriber for Count {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {
        self.0.fetch_add(1, Relaxed);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// A peer that opens and closes connections without end has no more lines than any other, and neither have
/// handshakes that are refused.
#[test]
fn nobody_fills_the_log() {
    let events: Arc<AtomicU64> = Arc::default();
    let (peers, refusals, clock) = (Peers::default(), Refusals::default(), Clock::start());
    let reason = CloseReason { code: CloseCode(0), reason: "".into(), by_peer: true };
    tracing::subscriber::with_default(Count(Arc::clone(&events)), || {
        for id in 0..1000 {
            let voice = Voice::new((&peers, clock), Handle(id), &PublicKey([1; 32]), "server");
            opened(&voice);
            closed(&voice, &reason);
        }
        let of_peer = events.swap(0, Relaxed);
        assert!((60..=61).contains(&of_peer), "{of_peer} lines");
        for port in 1..1000 {
            let remote = SocketAddr::from(([127, 0, 0, 1], port));
            refused(&refusals, clock.now(), remote, DropReason::NotPermitted);
        }
        let of_strangers = events.swap(0, Relaxed);
        assert!((60..=61).contains(&of_strangers), "{of_strangers} lines");
        let another = Voice::new((&peers, clock), Handle(1), &PublicKey([2; 32]), "server");
        opened(&another);
        assert_eq!(events.load(Relaxed), 1);
    });
}
