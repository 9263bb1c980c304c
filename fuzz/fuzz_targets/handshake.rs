#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| anabranch_core::handshake::fuzz_message(data));
