#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| anabranch_forward::socks::fuzzing::socks(data));
