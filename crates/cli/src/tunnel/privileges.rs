//! Changes to another user once the sockets are bound. What the process gives up before that is in
//! `confine`.

use crate::failure::Failure;

/// Becomes `user`, if one is named: the C library changes all threads.
///
/// # Errors
/// If a user was named and the process is not root, the user is unknown, or the system refuses the change.
#[cfg(target_os = "linux")]
pub(super) fn become_user(user: Option<&str>) -> Result<(), Failure> {
    use nix::unistd::{Uid, User, initgroups, setgid, setuid};
    use std::ffi::CString;
    if let Some(name) = user {
        if !Uid::effective().is_root() {
            return Err(Failure::usage(
                "--user needs root; without root, start the program as that user",
            ));
        }
        let failed = |error: nix::errno::Errno| {
            Failure::failed(format!("cannot become user {name}: {error}"))
        };
        let user = User::from_name(name).map_err(failed)?;
        let user = user.ok_or_else(|| Failure::usage(format!("there is no user {name}")))?;
        let c_name = CString::new(name).map_err(Failure::usage)?;
        initgroups(&c_name, user.gid).and_then(|()| setgid(user.gid)).map_err(failed)?;
        setuid(user.uid).map_err(failed)?;
        crate::confine::forbid_core_files()?;
    }
    Ok(())
}

/// Refuses to change the user: this system has no support for it.
///
/// # Errors
/// If a user was named.
#[cfg(not(target_os = "linux"))]
pub(super) fn become_user(user: Option<&str>) -> Result<(), Failure> {
    match user {
        Some(_) => {
            Err(Failure::usage("--user needs Linux; elsewhere, start the program as that user"))
        }
        None => Ok(()),
    }
}
