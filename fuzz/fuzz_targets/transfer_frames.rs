#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| anabranch::transfer::fuzzing::frames(data));
