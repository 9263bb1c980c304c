use crate::engine::PortId;

/// The ports of an endpoint, one per path in path order, and the bytes that arrived at each. The
/// first port is stored inline, because most endpoints have only one and its lookup then needs no
/// further memory access.
#[derive(Clone, Debug, Default)]
pub(super) struct Ports {
    first: Option<Port>,
    others: Vec<Port>,
}

#[derive(Clone, Copy, Debug)]
struct Port {
    id: PortId,
    /// Bytes on the wire that arrived.
    arrived: u64,
    /// Whether the port's interface is down: nothing leaves by the port or arrives at it.
    down: bool,
}

impl Ports {
    pub(super) fn attach(&mut self, id: PortId) {
        let port = Port { id, arrived: 0, down: false };
        match self.first {
            None => self.first = Some(port),
            Some(_) => self.others.push(port),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.others.len() + usize::from(self.first.is_some())
    }

    /// Marks the interface of a path as down or up.
    pub(super) fn set_down(&mut self, path: usize, down: bool) {
        let port = match path {
            0 => self.first.as_mut(),
            path => self.others.get_mut(path - 1),
        };
        if let Some(port) = port {
            port.down = down;
        }
    }

    /// The port of a path; `None` if its interface is down.
    #[inline]
    pub(super) fn get(&self, path: usize) -> Option<PortId> {
        let port = match path {
            0 => self.first.as_ref(),
            path => self.others.get(path - 1),
        };
        port.filter(|port| !port.down).map(|port| port.id)
    }

    /// The path of a port.
    #[inline]
    pub(super) fn path(&self, id: PortId) -> Option<usize> {
        if self.first.is_some_and(|first| first.id == id) {
            return Some(0);
        }
        self.others.iter().position(|port| port.id == id).map(|at| at + 1)
    }

    /// Counts a packet of `size` bytes that arrived at a port; returns the port's path.
    #[inline]
    pub(super) fn arrive(&mut self, id: PortId, size: u32) -> Option<usize> {
        let path = self.path(id)?;
        let port = match path {
            0 => self.first.as_mut(),
            path => self.others.get_mut(path - 1),
        };
        port?.arrived += u64::from(size);
        Some(path)
    }

    /// Bytes that arrived over each path.
    pub(super) fn arrived(&self) -> Vec<u64> {
        self.first.iter().chain(&self.others).map(|port| port.arrived).collect()
    }
}
