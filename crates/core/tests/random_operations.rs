//! Tests with random inputs for the bodies of the fuzz targets that interpret operations.

use anabranch_core::{coding, fuzzing};
use proptest::prelude::*;

/// Random operations: mostly small numbers, like those of real operations, and some arbitrary
/// bytes.
fn script(longest: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop_oneof![3 => 0_u8..32, 1 => any::<u8>()], 0..longest)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_decoder_survives_any_sender(data in script(600)) {
        coding::fuzzing::receive(&data);
    }

    #[test]
    fn a_receiver_of_blocks_gives_honest_senders_all_they_wrote(data in script(400)) {
        coding::fuzzing::block(&data);
    }

    #[test]
    fn a_receiver_of_sliding_repairs_recovers_all_that_can_be(data in script(400)) {
        coding::fuzzing::sliding(&data);
    }

    #[test]
    fn endpoints_agree_over_any_network(data in script(500)) {
        fuzzing::endpoint(&data);
    }

    #[test]
    fn an_endpoint_survives_any_peer(data in script(300)) {
        fuzzing::peer(&data);
    }

    /// The input is a valid script followed by random operations.
    #[test]
    fn an_endpoint_survives_a_peer_that_goes_bad(seed in 0_usize..24, data in script(200)) {
        let seeds = fuzzing::peer_seeds();
        fuzzing::peer(&[seeds[seed % seeds.len()].as_slice(), &data].concat());
    }
}
