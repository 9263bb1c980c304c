//! A peer with valid keys that follows a list of operations.

use std::collections::BTreeMap;

use anabranch_policy::view::{SymbolId, SymbolSpace, TrafficClass};
use anabranch_types::PathId;
use core::time::Duration;

use crate::config::TransportConfig;
use crate::profiles::Profile;
use crate::testing::{Rogue, rogue_address, written};
use crate::wire::codec::Reader;
use crate::wire::fuzzing::{specimens, with_mutants};
use crate::wire::{SourceFrame, StreamId, SymbolFrame};

/// A source symbol with stream data.
fn symbol(symbol: SymbolId, offset: u64, data: &[u8]) -> Vec<u8> {
    let frame = SymbolFrame::Stream { stream: StreamId(0), offset, fin: false, data };
    let payload = &written(|writer| frame.encode(writer).expect("the data is short"));
    let floor = symbol.space().symbol(0);
    let frame = SourceFrame { symbol, floor, payload, last: false };
    written(|writer| frame.encode_to_end(writer).expect("the symbol is short"))
}

/// A peer with valid keys sends arbitrary frames, including correct acknowledgements and symbols,
/// while the victim's application writes and reads. Nothing panics or grows without bound.
pub fn peer(data: &[u8]) {
    let mut script = Reader::new(data);
    let Ok(choice) = script.u8() else { return };
    let profiles = Profile::all();
    let profile = profiles[usize::from(choice) % profiles.len()].name.as_str();
    let mut transport = TransportConfig { receive_symbols: 300, ..TransportConfig::default() };
    transport.streams.max_stream_data = 4096;
    transport.streams.max_data = 8192;
    let mut theirs = TransportConfig::default().parameters(profile);
    // Some peers supply an id for one path only, and the victim waits for the ids of others.
    theirs.connection_ids = if choice < 128 { Vec::new() } else { vec![Rogue::id(1)] };
    let mut rogue = Rogue::connect(transport, profile, &theirs);
    let mut next_symbols = [0; SymbolSpace::ALL.len()];
    let mut widest = BTreeMap::new();
    while let Ok(operation) = script.u8() {
        if play(&mut rogue, operation, &mut next_symbols, &mut script).is_none() {
            break;
        }
        audit(&mut rogue, &mut widest);
    }
    rogue.advance(Duration::from_secs(60));
    assert!(rogue.connection().is_none(), "an idle connection goes away");
}

fn play(
    rogue: &mut Rogue,
    operation: u8,
    next_symbols: &mut [u64; SymbolSpace::ALL.len()],
    script: &mut Reader<'_>,
) -> Option<()> {
    let path = u32::from(operation & 3);
    match operation >> 2 & 7 {
        0 | 1 => {
            let length = script.u8().ok()?;
            let frames = script.bytes(length.into()).or_else(|_| script.rest()).ok()?.to_vec();
            // Most packets come from the path's own address, some from others.
            rogue.send_from(path, rogue_address(path + 4 * u32::from(operation >> 5)), &frames);
        }
        2 => rogue.advance(Duration::from_millis(u64::from(script.u8().ok()?) * 4)),
        3 => {
            rogue.listen();
            rogue.acknowledge(path);
            rogue.answer();
        }
        4 => {
            let space = SymbolSpace::ALL[usize::from(operation >> 5) % 2];
            let next = &mut next_symbols[space as usize];
            let data = [*next as u8; 100];
            rogue.send(path, &symbol(space.symbol(*next), *next * 100, &data));
            *next += 1;
        }
        5 => {
            let connection = rogue.connection()?;
            let class = TrafficClass::ALL[usize::from(operation >> 5) % 3];
            let stream = connection.open_stream(class).unwrap_or(StreamId(1));
            let _ = connection.write(stream, &[7; 20_000]);
            let _ = connection.send_datagram(&[8; 100], TrafficClass::Interactive);
        }
        6 => {
            let _ = rogue.connection()?.read(StreamId(0), &mut [0; 1000]);
        }
        _ => {
            let number = u64::from(script.u8().ok()?) << (operation >> 3);
            rogue.send_numbered(path, number, &[0x01]);
        }
    }
    Some(())
}

/// Checks that the bytes in flight fit into the largest congestion window that the path has had,
/// since a shrinking window recalls no packets.
fn audit(rogue: &mut Rogue, widest: &mut BTreeMap<PathId, u64>) {
    let Some(connection) = rogue.connection() else { return };
    let stats = connection.stats();
    assert!(stats.paths.len() <= 8, "{} paths", stats.paths.len());
    for path in &stats.paths {
        let cwnd = widest.entry(path.id).or_insert(20_000);
        *cwnd = path.cwnd.max(*cwnd);
        // Probes may leave beyond the window, but few.
        assert!(path.bytes_in_flight <= *cwnd + 200_000, "{path:?}");
    }
}

/// Inputs for [`peer`].
pub fn peer_seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for profile in 0..3 {
        let mut seed = vec![profile, 5 << 2];
        for frame in specimens().into_iter().filter(|frame| frame.len() < 200) {
            seed.extend([0, frame.len() as u8]);
            seed.extend(frame);
        }
        seeds.push(seed);
        // A transfer in both directions with correct acknowledgements.
        let round = [5 << 2, 3 << 2, 4 << 2, 2 << 2, 10, 4 << 2 | 1, 3 << 2, 6 << 2, 2 << 2, 30];
        seeds.push([&[profile][..], &round.repeat(8)].concat());
    }
    // A path is opened before its connection id is announced, and abandoned.
    let [a, b, c, d] = Rogue::id(2).0.to_be_bytes();
    let open = [128, 2, 1, 0x01, 3 << 2];
    let tell = [0, 6, 0x17, 2, a, b, c, d, 3 << 2, 2 << 2, 30];
    let abandon = [0, 3, 0x11, 2, 0, 2, 1, 0x01, 3 << 2];
    seeds.push([&open[..], &tell, &abandon].concat());
    with_mutants(seeds)
}
