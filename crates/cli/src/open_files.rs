//! Raises the number of files and sockets that this process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit on open files and sockets to the most that the system allows. Processes usually begin with 1024,
/// for the sake of old programs, and each connection that is carried needs a socket at each side.
pub fn allow_many() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        // Where raising is forbidden, the service manager has set the limit.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}
