//! State changes of symbols that were sent.

use anabranch_policy::registry::Registry;
use anabranch_policy::scheduler::Work;
use anabranch_policy::view::TrafficClass;
use anabranch_types::Time;

use crate::coding::code;
use crate::coding::send::SendBlocks;

#[test]
fn a_block_that_fills_sends_a_lost_symbol_again_and_counts_its_first_packet_alone() {
    let mut send = SendBlocks::new(code::of_peer(&Registry::new(), None), 32, u64::MAX);
    let block = send.open(Time::ZERO, TrafficClass::Bulk, 3, 32);
    let mut push = || {
        let taken = send.push(|_, out| {
            out[0] = 1;
            1
        });
        let carried = taken.unwrap().0.carried;
        send.on_sent(carried, 0);
        carried
    };
    let [first, second, third] = [push(), push(), push()];

    send.on_resolved(first, 0, false);
    assert!(!send.views()[0].has_work());
    send.make_due(first);
    assert!(send.views()[0].has_work() && !send.views()[0].closed);
    assert_eq!(send.take(Work::Block(block), 1).unwrap().carried, first);
    send.on_sent(first, 1);
    assert!(send.on_resolved(first, 1, true).news);

    assert_eq!(send.close(), Some(block));
    assert!(!send.on_resolved(second, 0, true).first_resolved, "the third is still under way");
    assert!(send.on_resolved(third, 0, false).first_resolved);
}
