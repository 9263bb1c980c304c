use std::io;
use std::sync::mpsc::{Sender, channel};

use nix::sched::{CloneFlags, unshare};
use rtnetlink::Handle;
use tokio::runtime::Runtime;

use crate::joined::Joined;

/// A network namespace without a name, and a thread that lives in it.
///
/// The kernel removes the namespace when its last user is gone. Its users are this thread, the
/// devices made in it, and the processes started from it. These processes run in a PID namespace of
/// their own; when its first process ends, the kernel ends all the others.
#[derive(Debug)]
pub(super) struct Space {
    /// Dropping this sender ends the thread.
    jobs: Sender<Job>,
    _thread: Joined,
}

/// What a job may use of the namespace.
pub(super) struct Inside {
    runtime: Runtime,
    pub(super) netlink: Handle,
}

type Job = Box<dyn FnOnce(&Inside) + Send>;

impl Space {
    /// Makes the namespace.
    ///
    /// # Errors
    /// When the system refuses to make the namespace.
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

    /// Waits for the kernel's answer to a netlink request.
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
