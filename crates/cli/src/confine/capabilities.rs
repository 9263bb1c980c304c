//! Capabilities: the privileges of root, which a process can give up one by one (capabilities(7)).

use std::io;

use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities,
};

use super::Needs;

/// Drops all capabilities that are not needed, in this thread and in those that it starts.
pub(super) fn keep(needs: &Needs) -> io::Result<()> {
    let kept = kept(needs);
    // The next two calls may fail: only root may lower the bounding set, and old kernels have no ambient set. Both
    // matter only to programs that the process starts, and it starts none.
    for capability in CapabilitySet::all().difference(kept).iter() {
        let _ = remove_capability_from_bounding_set(capability);
    }
    let _ = clear_ambient_capability_set();
    let CapabilitySets { effective, permitted, inheritable } = capabilities(None)?;
    if kept.contains(effective | permitted) && inheritable.is_empty() {
        // There is nothing to give up. A service manager that has removed all others may also have
        // forbidden the call below.
        return Ok(());
    }
    let sets = CapabilitySets {
        effective: effective & kept,
        permitted: permitted & kept,
        inheritable: CapabilitySet::empty(),
    };
    Ok(set_capabilities(None, sets)?)
}

fn kept(needs: &Needs) -> CapabilitySet {
    // These allow binding sockets to interfaces, even to ones that appear later, and to ports below
    // 1024.
    let mut kept = CapabilitySet::NET_RAW | CapabilitySet::NET_BIND_SERVICE;
    if needs.other_user {
        kept |= CapabilitySet::SETUID | CapabilitySet::SETGID;
    }
    if !needs.read.is_empty() {
        kept |= CapabilitySet::DAC_READ_SEARCH;
    }
    if !needs.write.is_empty() || !needs.sockets.is_empty() {
        kept |= CapabilitySet::DAC_OVERRIDE | CapabilitySet::FOWNER;
    }
    kept
}
