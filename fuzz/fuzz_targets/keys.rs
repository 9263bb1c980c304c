#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| anabranch::crypto::fuzzing::keys(data));
