#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| anabranch_core::wire::fuzzing::transport_parameters(
    data
));
