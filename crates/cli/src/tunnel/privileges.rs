//! Giving up what is not needed once the sockets are bound.

use crate::failure::Failure;

/// Becomes `user` if the process is root, and makes sure that it can never be more than it is now.
///
/// # Errors
/// If the user is unknown or cannot be become, or one was named and the process is not root.
#[cfg(target_os = "linux")]
pub(super) fn drop_all(user: Option<&str>) -> Result<(), Failure> {
    use nix::unistd::{Uid, User, initgroups, setgid, setuid};
    use std::ffi::CString;
    if let Some(name) = user {
        if !Uid::effective().is_root() {
            return Err(Failure::usage(
                "--user needs root; without it, start as the user right away",
            ));
        }
        let failed = |error: nix::errno::Errno| Failure::failed(format!("become {name}: {error}"));
        let user = User::from_name(name).map_err(failed)?;
        let user = user.ok_or_else(|| Failure::usage(format!("there is no user {name}")))?;
        let c_name = CString::new(name).map_err(Failure::usage)?;
        initgroups(&c_name, user.gid).and_then(|()| setgid(user.gid)).map_err(failed)?;
        setuid(user.uid).map_err(failed)?;
    }
    nix::sys::prctl::set_no_new_privs()
        .map_err(|error| Failure::failed(format!("cannot give up privileges: {error}")))
}

/// Nothing is given up here; to name a user is an error.
#[cfg(not(target_os = "linux"))]
pub(super) fn drop_all(user: Option<&str>) -> Result<(), Failure> {
    match user {
        Some(_) => Err(Failure::usage("--user needs Linux; start as the user right away")),
        None => Ok(()),
    }
}
