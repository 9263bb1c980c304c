//! How many files and sockets this process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Lets this process have as many files and sockets open as the system allows it: usually it begins with 1024, out of
/// regard for old programs, and each connection that is carried needs one at each side.
pub fn allow_many() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        // Where a service manager has forbidden this, it has set the limit itself.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}
