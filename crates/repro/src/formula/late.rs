//! LATE's first figure: an in-order plan over two paths, and how one loss breaks the order.

use anabranch_policy::analysis::rounds::Forecast;
use core::time::Duration;
use std::collections::BTreeSet;

use anabranch_sim::stats::Estimate;

use crate::figure::Figure;
use crate::outcome::Outcome;

/// Round-trip times of the figure's two subflows, and the window of each, packets.
const FAST_RTT: Duration = Duration::from_millis(10);
const SLOW_RTT: Duration = Duration::from_millis(20);
const WINDOW: u32 = 5;
/// Packets that the connection's send window admits.
const SEND_WINDOW: u32 = 20;

/// `late-fig1`: how many packets each subflow is given, and how many wait for earlier ones at the
/// end of the slow subflow's round trip, both without a loss and with each single loss in the fast
/// subflow's first round.
pub fn plan() -> Outcome {
    let mut outcome = Outcome::new();
    let path =
        Forecast { rtt: FAST_RTT, rto: Duration::from_millis(200), loss: 0.0, cap: u32::MAX };
    // Congestion avoidance: the threshold is at the window.
    let fast = path.packets(SLOW_RTT, WINDOW, WINDOW);
    let slow = f64::from(WINDOW).min(f64::from(SEND_WINDOW) - fast);
    outcome.bounded("X_i", Estimate::exact(fast), 11.0, 11.0);
    outcome.bounded("X_j", Estimate::exact(slow), 5.0, 5.0);
    let (fast, slow) = (fast as u32, slow as u32);
    let clean = waiting(fast, slow, None);
    outcome.bounded("waiting without loss", Estimate::exact(f64::from(clean)), 0.0, 0.0);
    let lossy: Vec<u32> = (1..=WINDOW).map(|lost| waiting(fast, slow, Some(lost))).collect();
    let least = lossy.iter().copied().min().unwrap_or(0);
    outcome.bounded("least waiting after one loss", Estimate::exact(f64::from(least)), 1.0, None);
    let mut figure =
        Figure::new("Packets waiting for order after 20 ms", "lost packet (0: none)", "packets");
    let points = lossy.iter().zip(1..).map(|(n, lost)| (f64::from(lost), exact(*n)));
    figure.line("received out of order", [(0.0, exact(clean))].into_iter().chain(points).collect());
    outcome.figures.push(figure);
    outcome.remark(
        "The fast subflow is given packets 1 to 11 and the slow one 12 to 16. A lost packet takes the \
         fast subflow's second round for its retransmission, so the rest of 6 to 11 is late and 12 to \
         16 wait.",
    );
    outcome
}

fn exact(value: u32) -> Estimate {
    Estimate::exact(f64::from(value))
}

/// Number of packets that have arrived but wait for an earlier one when the slow subflow's round
/// trip is over. The fast subflow sends a window each round trip, and the window grows by one
/// packet per round. After a loss the next round carries only the retransmission (LATE §III).
fn waiting(fast: u32, slow: u32, lost: Option<u32>) -> u32 {
    let mut arrived: BTreeSet<u32> = (fast + 1..=fast + slow).collect();
    let mut next = 1;
    let mut window = WINDOW;
    let mut again = None;
    let mut sent_at = Duration::ZERO;
    while sent_at + FAST_RTT / 2 <= SLOW_RTT {
        if let Some(packet) = again.take() {
            arrived.insert(packet);
        } else {
            let round = next..(next + window).min(fast + 1);
            again = lost.filter(|packet| round.contains(packet));
            next = round.end;
            arrived.extend(round.filter(|packet| Some(*packet) != lost));
            window += 1;
        }
        sent_at += FAST_RTT;
    }
    let in_order = (1..).take_while(|packet| arrived.contains(packet)).count();
    arrived.len() as u32 - in_order as u32
}
