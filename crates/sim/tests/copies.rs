//! Copies of what is long in flight (recovery `xlink`), over links: one of two paths stalls for a second.

use anabranch_sim::scenario::Scenario;

/// A transfer over two paths of 10 Mb/s, of 20 ms and of twice `far`, the first dark for a second: seconds until it is
/// complete, and the longest time without a byte in order.
fn transfer(flow: &str, far: u32, size: &str) -> (f64, f64) {
    let text = format!(
        r#"
name = "stall"
duration = "20s"
stop = "done"
[[path]]
name = "near"
rate = "10mbit"
delay = "10ms"
blackout = "60ms-1060ms"
[[path]]
name = "far"
rate = "10mbit"
delay = "{far}ms"
[[flow]]
name = "bonded"
traffic = "size:{size}"
{flow}
"#
    );
    let scenario = Scenario::parse(&text, "stall.toml").expect("no mistakes");
    let report = scenario.run(&scenario.points()[0], 1).expect("runs");
    let figure = |name| report.scalar("bonded", name).expect("measured");
    (figure("fct_mean_s"), figure("longest_gap_s"))
}

/// The same with `resend` and with `xlink`.
fn both(flow: &str, far: u32, size: &str) -> [(f64, f64); 2] {
    let results = ["resend", "xlink"].map(|name| transfer(&flow.replace("WHICH", name), far, size));
    println!(
        "{flow} {far} ms, {size}: {:.3?} with resend, {:.3?} with xlink",
        results[0], results[1]
    );
    results
}

#[test]
fn copies_end_a_short_transfer_over_tcp_before_the_timer_fires() {
    for far in [10, 40] {
        let flow = "profile = \"tcp:mptcp\"\ntcp = { recovery = \"WHICH\" }";
        let [resend, xlink] = both(flow, far, "60kB");
        assert!(xlink.0 < 0.7 * resend.0, "{far} ms: {xlink:?}, {resend:?}");
    }
}

#[test]
fn copies_shorten_a_stall_in_the_transport() {
    let flow = "profile = \"uncoded\"\npolicy = { scheduler = \"min-rtt\", recovery = \"WHICH\" }";
    let [resend, xlink] = both(flow, 10, "2MB");
    assert!(xlink.1 < 0.7 * resend.1, "{xlink:?}, {resend:?}");
    // They take room from new data.
    assert!(xlink.0 < 1.15 * resend.0, "{xlink:?}, {resend:?}");
}
