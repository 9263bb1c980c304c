//! Repeats every few seconds what the command is waiting for.

use std::io::{self, IsTerminal};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

/// Interval between messages where lines stay.
const PAUSE: Duration = Duration::from_secs(2);
/// Interval at which a line on a terminal is redrawn.
const TICK: Duration = Duration::from_millis(250);

/// Shows what is being waited for, until this is dropped.
#[derive(Debug)]
pub(super) struct Waiting(Option<JoinHandle<()>>, Option<ProgressBar>);

impl Waiting {
    /// Shows that `what` is being waited for, and for how long.
    pub(super) fn open(what: String, quiet: bool) -> Self {
        if quiet {
            return Waiting(None, None);
        }
        let bar = io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{spinner} {wide_msg}");
            ProgressBar::new_spinner()
                .with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
        });
        Waiting(Some(tokio::spawn(say(what, bar.clone()))), bar)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(task) = &self.0 {
            task.abort();
        }
        if let Some(bar) = &self.1 {
            bar.finish_and_clear();
        }
    }
}

async fn say(what: String, bar: Option<ProgressBar>) {
    let since = Instant::now();
    let mut ticks = interval_at(since, if bar.is_some() { TICK } else { PAUSE });
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let text = match since.elapsed().as_secs() {
            0 => format!("waiting for {what}"),
            seconds => format!("waiting for {what}, {seconds} s"),
        };
        match &bar {
            Some(bar) => {
                bar.set_message(text);
                bar.tick();
            }
            None => eprintln!("{text}"),
        }
    }
}
