//! Being asked to end, for work that wants to end tidily.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::task::Poll;
use std::thread;

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// A flag that the first Ctrl-C raises from now on; the second ends the process at once.
///
/// Where signals cannot be heard, the process ends at the first, as it would without this.
pub fn flag() -> &'static AtomicBool {
    let (ready, is_ready) = channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build();
        if let Ok(runtime) = runtime {
            runtime.block_on(listen(ready));
        }
    });
    // Either it listens or it has ended; both are the answer.
    let _ = is_ready.recv();
    &INTERRUPTED
}

/// Ready when the process is asked to end, by Ctrl-C or as a service manager does. A second Ctrl-C ends it at once.
pub async fn asked_to_end() {
    first_word().await;
    tokio::spawn(async {
        if tokio::signal::ctrl_c().await.is_ok() {
            std::process::exit(130);
        }
    });
}

async fn first_word() {
    let interrupted = tokio::signal::ctrl_c();
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let Ok(mut terminated) = signal(SignalKind::terminate()) else {
            let _ = interrupted.await;
            return;
        };
        tokio::select! {
            _ = interrupted => {}
            _ = terminated.recv() => {}
        }
    }
    #[cfg(not(unix))]
    let _ = interrupted.await;
}

/// Hears one Ctrl-C after the other, and tells once that it does.
async fn listen(ready: Sender<()>) {
    loop {
        let mut heard = pin!(tokio::signal::ctrl_c());
        // Listening begins with the first poll.
        let first = poll_fn(|context| Poll::Ready(heard.as_mut().poll(context))).await;
        // Nobody waits for it any more from the second round on.
        let _ = ready.send(());
        let heard = match first {
            Poll::Ready(heard) => heard,
            Poll::Pending => heard.await,
        };
        if heard.is_err() {
            return;
        }
        if INTERRUPTED.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    }
}
