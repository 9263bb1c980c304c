use std::io;
use std::thread::{Builder, JoinHandle};

/// A thread that is joined on drop. In a struct, declare it after the field whose drop ends the thread, since
/// fields are dropped in order of declaration.
#[derive(Debug)]
pub(crate) struct Joined(Option<JoinHandle<()>>);

impl Joined {
    /// Starts the thread.
    pub(crate) fn start(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        Ok(Joined(Some(Builder::new().name(format!("anabranch-{name}")).spawn(work)?)))
    }

    /// Whether the thread still runs.
    pub(crate) fn is_running(&self) -> bool {
        self.0.as_ref().is_some_and(|thread| !thread.is_finished())
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            // A panic of the thread was reported when it happened.
            thread.join().ok();
        }
    }
}
