//! Privileges of root one by one, capabilities(7).

use std::io;

use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities,
};

use super::Needs;

/// Leaves this thread, and those that it starts, those of its capabilities that are needed.
pub(super) fn keep(needs: &Needs) -> io::Result<()> {
    let kept = kept(needs);
    // No program is started that could get capabilities from the bounding set or the ambient one. To lower the bounding
    // set takes a privilege that only root has, and the ambient set is missing in old kernels.
    for capability in CapabilitySet::all().difference(kept).iter() {
        let _ = remove_capability_from_bounding_set(capability);
    }
    let _ = clear_ambient_capability_set();
    let CapabilitySets { effective, permitted, inheritable } = capabilities(None)?;
    if kept.contains(effective | permitted) && inheritable.is_empty() {
        // A service manager has left no more, and may have forbidden the call.
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
    // Binding sockets to interfaces, which also come later, and to ports below 1024.
    let mut kept = CapabilitySet::NET_RAW | CapabilitySet::NET_BIND_SERVICE;
    if needs.other_user {
        kept |= CapabilitySet::SETUID | CapabilitySet::SETGID;
    }
    if !needs.read.is_empty() {
        kept |= CapabilitySet::DAC_READ_SEARCH;
    }
    if !needs.write.is_empty() {
        kept |= CapabilitySet::DAC_OVERRIDE | CapabilitySet::FOWNER;
    }
    kept
}
