use std::io;
use std::sync::mpsc::{Sender, channel};

use nix::sched::{CloneFlags, unshare};
use rtnetlink::Handle;
use tokio::runtime::Runtime;

use crate::joined::Joined;

/// A network namespace without a name, and a thread that lives in it.
///
/// The kernel removes the namespace with its last user: this thread, the devices made in it, and the processes
/// started from it. Those live in a process namespace of their own, whose first process takes all others with it.
#[derive(Debug)]
pub(super) struct Space {
    /// Closing it ends the thread.
    jobs: Sender<Job>,
    _thread: Joined,
}

/// A namespace as its jobs see it.
pub(super) struct Inside {
    runtime: Runtime,
    pub(super) netlink: Handle,
}

type Job = Box<dyn FnOnce(&Inside) + Send>;

impl Space {
    /// Makes the namespace.
    ///
    /// # Errors
    /// When the system refuses.
    pub(super) fn open(name: &str) -> io::Result<Self> {
        let (jobs, todo) = channel::<Job>();
        let (tell, told) = channel();
        let work = move || match Inside::enter() {
            Ok(inside) => {
                let _ = tell.send(Ok(()));
                for job in todo {
                    job(&inside);
                }
            }
            Err(error) => drop(tell.send(Err(error))),
        };
        let space = Space { jobs, _thread: Joined::start(name, work)? };
        told.recv().unwrap_or_else(|_| Err(gone()))?;
        Ok(space)
    }

    /// Runs `job` on the thread in the namespace, and waits for its result.
    ///
    /// # Errors
    /// When the thread is gone, which happens only after a panic.
    pub(super) fn run<R: Send + 'static>(
        &self,
        job: impl FnOnce(&Inside) -> R + Send + 'static,
    ) -> io::Result<R> {
        let (tell, told) = channel();
        let job: Job = Box::new(move |inside| drop(tell.send(job(inside))));
        self.jobs.send(job).map_err(|_| gone())?;
        told.recv().map_err(|_| gone())
    }
}

impl Inside {
    fn enter() -> io::Result<Self> {
        unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWPID)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let (connection, netlink, _) = {
            let _context = runtime.enter();
            rtnetlink::new_connection()?
        };
        runtime.spawn(connection);
        Ok(Inside { runtime, netlink })
    }

    /// Waits for the kernel's answers.
    pub(super) fn wait_for<R>(
        &self,
        answer: impl Future<Output = Result<R, rtnetlink::Error>>,
    ) -> io::Result<R> {
        self.runtime.block_on(answer).map_err(|error| match error {
            rtnetlink::Error::NetlinkError(message) => message.to_io(),
            other => io::Error::other(other),
        })
    }
}

fn gone() -> io::Error {
    io::Error::other("a thread of the emulator is gone")
}
