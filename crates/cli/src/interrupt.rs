//! Requests to end, by Ctrl-C or from a service manager, for work that has to be finished cleanly.
//!
//! One thread receives the signals of the whole process from the first use of this module on, so that none is missed
//! between two waits. A Ctrl-C after the first signal ends the process at once. Where signals cannot be caught, the
//! first one ends the process.

use std::future::pending;
use std::io;
use std::process::exit;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;

use tokio::runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

static ASKED: AtomicBool = AtomicBool::new(false);

/// A flag that is raised when the process is asked to end.
pub fn flag() -> &'static AtomicBool {
    listener();
    &ASKED
}

/// Waits until the process has been asked to end.
pub async fn asked_to_end() {
    let mut asked = listener();
    if asked.wait_for(|asked| *asked).await.is_err() {
        pending::<()>().await;
    }
}

/// Tells whether the process has been asked to end. The first call starts the thread that hears signals.
fn listener() -> watch::Receiver<bool> {
    static LISTENER: OnceLock<watch::Receiver<bool>> = OnceLock::new();
    let started = LISTENER.get_or_init(|| {
        let (asked, is_asked) = watch::channel(false);
        let (ready, is_ready) = channel();
        let listening = move || -> io::Result<()> {
            runtime::Builder::new_current_thread()
                .enable_io()
                .build()?
                .block_on(listen(ready, asked))
        };
        let _ = thread::Builder::new().name("signals".to_owned()).spawn(listening);
        // Returns when the thread listens or has failed; there is no need to tell which.
        let _ = is_ready.recv();
        is_asked
    });
    started.clone()
}

/// Receives signals; reports on `ready` once the handlers are installed.
async fn listen(ready: Sender<()>, asked: watch::Sender<bool>) -> io::Result<()> {
    let mut terminated = signal(SignalKind::terminate())?;
    let mut interrupted = signal(SignalKind::interrupt())?;
    // The first caller waits for this.
    let _ = ready.send(());
    loop {
        tokio::select! {
            _ = interrupted.recv() => if ASKED.load(Ordering::Relaxed) { exit(130) },
            _ = terminated.recv() => {}
        }
        ASKED.store(true, Ordering::Relaxed);
        asked.send_replace(true);
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::Duration;

    use rustix::process::{Signal, getpid, kill_process};

    use super::*;

    /// A signal goes to a whole process, so the test runs in a process of its own.
    #[test]
    fn who_waits_anew_misses_no_signal() {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "interrupt::tests::in_a_process_of_its_own", "--ignored"]);
        let output = child.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{output:?}");
    }

    #[test]
    #[ignore = "sends this process a signal; started by the test above"]
    fn in_a_process_of_its_own() {
        let flag = flag();
        kill_process(getpid(), Signal::TERM).unwrap();
        while !flag.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(1));
        }
        let runtime = runtime::Builder::new_current_thread().enable_time().build().unwrap();
        for _ in 0..2 {
            let heard =
                async { tokio::time::timeout(Duration::from_secs(10), asked_to_end()).await };
            runtime.block_on(heard).unwrap();
        }
    }
}
