//! Blocks of which as many symbols as sources arrive, but not independent ones: the receiver asks
//! for one more symbol, and nothing is lost.

use core::time::Duration;

use anabranch_policy::PolicySpec;
use anabranch_policy::code::{self, Coverage, ErasureCode, HeldRepair, HeldSource, Workspace};
use anabranch_policy::scheduler::Work;
use anabranch_policy::view::{SymbolId, TrafficClass};
use anabranch_types::{Rng, Time};

use crate::coding::receive::{Arrival, ReceiveBlocks};
use crate::coding::send::{OutgoingSymbol, SendBlocks};
use crate::path::sent::Carried;

const SOURCES: u16 = 12;
const LENGTH: usize = 40;

fn raptorq() -> Box<dyn ErasureCode> {
    code::build(&PolicySpec::new("raptorq")).unwrap()
}

fn content(id: u64) -> Vec<u8> {
    (0..LENGTH as u64).map(|at| (id * 37 + at * 11 + 1) as u8).collect()
}

/// Whether all sources except the `lost` ones, together with as many repairs, do not determine the
/// block.
fn falls_short(lost: &[u16]) -> bool {
    let sources: Vec<Vec<u8>> = (0..SOURCES).map(|id| content(id.into())).collect();
    let mut made = vec![vec![0; LENGTH]; lost.len()];
    let all: Vec<&[u8]> = sources.iter().map(Vec::as_slice).collect();
    let mut outs: Vec<&mut [u8]> = made.iter_mut().map(Vec::as_mut_slice).collect();
    let coverage = Coverage { first: SymbolId(0), count: SOURCES };
    raptorq().encoder().repairs(coverage, 0, &all, &mut outs).unwrap();
    let held = (0..SOURCES).filter(|index| !lost.contains(index));
    let held: Vec<HeldSource<'_>> =
        held.map(|index| HeldSource { index, bytes: all[usize::from(index)] }).collect();
    let repairs = (0..).zip(&made).map(|(key, bytes)| HeldRepair { key, bytes });
    let repairs: Vec<HeldRepair<'_>> = repairs.collect();
    let mut decoder = raptorq().decoder();
    decoder.begin(SOURCES);
    held.iter().for_each(|source| decoder.source(source.index));
    repairs.iter().for_each(|repair| assert!(decoder.repair(repair.key)));
    assert_eq!(decoder.deficit(), 0);
    decoder.recover(&held, &repairs, &mut Workspace::default(), &mut |_, _| {}).is_err()
}

/// A set of lost sources for which the first repairs do not suffice. About one set in a hundred is
/// like this.
fn unlucky() -> Vec<u16> {
    let mut rng = Rng::new(17);
    for _ in 0..5000 {
        let share = 0.2 + 0.1 * rng.below(8) as f64;
        let lost: Vec<u16> = (0..SOURCES).filter(|_| rng.chance(share)).collect();
        if !lost.is_empty() && falls_short(&lost) {
            return lost;
        }
    }
    panic!("every set suffices");
}

struct Ends {
    send: SendBlocks,
    receive: ReceiveBlocks,
    delivered: u64,
}

impl Ends {
    /// Delivers the symbol and acknowledges it.
    fn arrive(&mut self, taken: &OutgoingSymbol) -> Arrival {
        let mut bytes = vec![0; usize::from(taken.length)];
        self.send.write(taken, &mut bytes).unwrap();
        let delivered = &mut self.delivered;
        let mut deliver = |bytes: &[u8]| {
            assert!((0..SOURCES.into()).any(|id| bytes == content(id)));
            *delivered += 1;
        };
        self.receive.on_packet(bytes.len());
        let arrival = match taken.carried {
            Carried::Source(_, id) => self.receive.on_source(id, &bytes, &mut deliver),
            Carried::Repair(_, key) => {
                self.receive.on_repair(taken.coverage, key, &bytes, &mut deliver)
            }
        };
        self.send.on_resolved(taken.carried, 0, true);
        arrival.unwrap()
    }

    /// Tells the sender how many symbols are missing, and returns the symbols that it then sends.
    fn round(&mut self) -> Vec<OutgoingSymbol> {
        for (first, missing) in self.receive.deficits().collect::<Vec<_>>() {
            self.send.on_rank(first, missing);
        }
        let Some(view) = self.send.views().first().cloned() else { return Vec::new() };
        self.send.add_due(Time::ZERO, view.id, view.shortfall(), Duration::ZERO);
        let taken: Vec<OutgoingSymbol> =
            core::iter::from_fn(|| self.send.take(Work::Block(view.id), 0)).collect();
        taken.iter().for_each(|taken| self.send.on_sent(taken.carried, 0));
        taken
    }
}

#[test]
fn one_more_symbol_is_asked_for_when_as_many_as_sources_do_not_suffice() {
    let lost = unlucky();
    let mut ends = Ends {
        send: SendBlocks::new(raptorq(), LENGTH, u64::MAX),
        receive: ReceiveBlocks::new(raptorq(), LENGTH, 1000),
        delivered: 0,
    };
    ends.send.open(Time::ZERO, TrafficClass::Bulk, SOURCES, LENGTH as u16);
    for index in 0..SOURCES {
        let pushed = ends.send.push(|id, buffer| {
            buffer.copy_from_slice(&content(id.0));
            LENGTH
        });
        let (taken, _) = pushed.unwrap();
        ends.send.on_sent(taken.carried, 0);
        if lost.contains(&index) {
            ends.send.on_resolved(taken.carried, 0, false);
        } else {
            assert_eq!(ends.arrive(&taken), Arrival::New);
        }
    }
    ends.send.close();
    let repairs = ends.round();
    assert_eq!(repairs.len(), lost.len());
    for taken in &repairs {
        assert_eq!(ends.arrive(taken), Arrival::New);
    }
    // As many symbols as sources are there, but they do not suffice.
    assert_eq!(ends.delivered, u64::from(SOURCES) - lost.len() as u64);
    assert_eq!(ends.receive.deficits().collect::<Vec<_>>(), [(SymbolId(0), 1)]);
    let more = ends.round();
    assert_eq!(more.len(), 1);
    assert_eq!(ends.arrive(&more[0]), Arrival::New);
    assert_eq!(ends.delivered, SOURCES.into());
    assert_eq!(ends.receive.first_missing(), SymbolId(SOURCES.into()));
    ends.send.on_all_received(ends.receive.first_missing());
    ends.send.retire(|_| {});
    assert!(ends.send.is_empty());
}
