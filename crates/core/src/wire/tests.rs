use core::ops::RangeInclusive;
use core::time::Duration;

use anabranch_policy::view::{SymbolId, SymbolSpace};
use anabranch_types::PathId;
use proptest::prelude::*;

use super::codec::MAX_VARINT;
use super::fuzzing::{specimens, symbol_specimens};
use super::*;

mod codec;
mod frames;
mod header;
mod parameters;

fn encode(frame: &Frame<'_>) -> Vec<u8> {
    let mut buffer = vec![0; 4096];
    let mut writer = Writer::new(&mut buffer);
    frame.encode(&mut writer).unwrap();
    writer.written().to_vec()
}

fn varint() -> impl Strategy<Value = u64> + Clone {
    prop_oneof![0..64_u64, 0..1_u64 << 14, 0..1_u64 << 30, 0..=MAX_VARINT]
}
