//! Tests of the figures of blocks, which are slices of a stream or coding blocks.

use super::{messages, parse, plan};
use crate::report::RunReport;

/// Runs a bulk flow over two paths, one of which loses packets, and measures all figures of blocks.
/// `coding` selects coding blocks instead of slices.
fn run(profile: &str, coding: bool) -> RunReport {
    let text = format!(
        "name = \"blocks\"\nduration = \"20s\"\n\
         [[path]]\nname = \"a\"\nrate = \"8mbit\"\ndelay = \"20ms\"\nloss = \"5%\"\n\
         [[path]]\nname = \"b\"\nrate = \"4mbit\"\ndelay = \"30ms\"\n\
         [[flow]]\nname = \"bulk\"\nprofile = \"{profile}\"\n\
         [[probe]]\nof = \"bulk\"\nslice = \"32KiB\"\ncoding-blocks = {coding}\n\
         series = \"block_delay_s\"\n\
         samples = [\"block_delay_s\", \"block_order_s\", \"block_losses\"]\n\
         figures = [\"block_losses_mean\", \"block_losses_0\", \"block_losses_1\"]\n"
    );
    let scenario = parse(&text);
    scenario.run(&scenario.points()[0], 1).expect("runs")
}

/// Checks properties that all kinds of blocks have. Returns the number of blocks.
fn check(report: &RunReport) -> usize {
    let samples = |metric| report.samples("bulk", metric).expect(metric);
    let [delays, in_order] = ["block_delay_s", "block_order_s"].map(samples);
    assert_eq!(delays.len(), in_order.len(), "all come in order");
    assert!(delays.iter().zip(in_order).all(|(delay, in_order)| delay <= in_order));
    let scalar = |metric| report.scalar("bulk", metric).expect(metric);
    let most = delays.iter().copied().fold(0.0, f64::max);
    assert_eq!(scalar("block_delay_max_s"), most);
    assert!(scalar("block_delay_p99_s") < most);
    let series = report.series("bulk", "block_delay_s").expect("recorded");
    assert_eq!(series.values.iter().copied().fold(0.0, f64::max), most);
    delays.len()
}

/// Number of data packets that were lost or dropped on the links.
fn lost_on_links(report: &RunReport) -> f64 {
    let of = |link, metric| report.scalar(link, metric).expect(metric);
    ["link.a", "link.b"].map(|link| of(link, "losses") + of(link, "drops_queue")).iter().sum()
}

#[test]
fn what_slices_of_a_stream_lost_is_what_the_links_lost() {
    let report = run("tcp:mptcp", false);
    let blocks = check(&report) as f64;
    let lost = report.scalar("bulk", "block_losses_mean").expect("counted") * blocks;
    let links = lost_on_links(&report);
    assert!(links > 50.0 && lost <= links, "{lost} of {links}");
    assert!(lost > 0.9 * links, "{lost} of {links}: all but the last, incomplete slices");
}

#[test]
fn coding_blocks_count_every_symbol_that_was_lost_of_them() {
    let report = run("anabranch", true);
    let blocks = check(&report) as f64;
    let scalar = |metric| report.scalar("bulk", metric).expect(metric);
    assert!(scalar("block_losses_0") < scalar("block_losses_1"));
    let opened = report.scalar("bulk", "blocks").expect("counted");
    assert!(blocks > 0.8 * opened && blocks <= opened, "{blocks} of {opened}");
    let lost = report.scalar("bulk", "block_losses_mean").expect("counted") * blocks;
    let links = lost_on_links(&report);
    assert!((0.9..1.01).contains(&(lost / links)), "{lost} of {links}");
}

#[test]
fn without_a_code_blocks_are_slices() {
    let [slices, blocks] = [false, true].map(|coding| check(&run("uncoded", coding)));
    assert_eq!(slices, blocks);
    let losses = run("uncoded", true).scalar("bulk", "block_losses_mean");
    assert_eq!(losses, None, "nobody counts them");
}

/// The mistakes of a scenario with these probes of a flow `bulk` that consists of two members.
fn mistakes(probes: &str) -> Vec<String> {
    let text = format!(
        "name = \"t\"\nduration = \"1s\"\n[[path]]\nname = \"p\"\nrate = \"1mbit\"\ndelay = \"1ms\"\n\
         [[flow]]\nname = \"bulk\"\ncount = 2\nprofile = \"uncoded\"\n{probes}"
    );
    messages(&text)
}

#[test]
fn a_flow_has_one_kind_of_blocks() {
    let probe = |of: &str, metric: &str, slice: &str| {
        format!("[[probe]]\nof = \"{of}\"\nsamples = \"{metric}\"\nslice = \"{slice}\"\n")
    };
    let whole = probe("bulk", "block_delay_s", "32KiB");
    let refused = mistakes(&(whole.clone() + &probe("bulk.2", "block_delay_s", "700B")));
    assert!(refused.len() == 1 && refused[0].contains("slice"), "{refused:?}");
    for fine in [probe("bulk.2", "packet_delay_s", "700B"), probe("bulk", "block_delay_s", "32KiB")]
    {
        assert_eq!(mistakes(&(whole.clone() + &fine)), [""; 0]);
    }
    let members =
        probe("bulk.1", "block_delay_s", "700B") + &probe("bulk.2", "block_delay_s", "32KiB");
    assert_eq!(mistakes(&members), [""; 0]);
}

#[test]
fn a_probe_of_packets_leaves_the_blocks_to_a_probe_of_blocks() {
    let text = "name = \"t\"\nduration = \"3s\"\n[[path]]\nname = \"p\"\nrate = \"1mbit\"\ndelay = \"1ms\"\n\
         [[flow]]\nname = \"bulk\"\nprofile = \"uncoded\"\n\
         [[probe]]\nsamples = \"packet_delay_s\"\n[[probe]]\nsamples = \"block_delay_s\"\nslice = \"4KiB\"\n";
    let report = plan(text).run(1).expect("it runs");
    let blocks = report.samples("bulk", "block_delay_s").map_or(0, <[f64]>::len);
    assert!(blocks > 50, "{blocks} blocks of 4 KiB in 3 s at 1 Mb/s");
}
