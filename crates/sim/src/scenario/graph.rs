//! Nodes, the links between them, and shortest routes.

use std::collections::{BTreeMap, VecDeque};

/// A directed graph; nodes are created by their first link.
#[derive(Clone, Debug, Default)]
pub(super) struct Graph {
    ids: BTreeMap<String, usize>,
    names: Vec<String>,
    /// Links that leave a node, and where they lead, in the order in which they were added.
    leaving: Vec<Vec<(usize, usize)>>,
}

impl Graph {
    /// Adds a link, which the caller calls `link`.
    pub(super) fn add(&mut self, from: &str, to: &str, link: usize) {
        let (from, to) = (self.id(from), self.id(to));
        if let Some(leaving) = self.leaving.get_mut(from) {
            leaving.push((link, to));
        }
    }

    /// Names of the nodes, in alphabetical order.
    pub(super) fn nodes(&self) -> Vec<&str> {
        self.ids.keys().map(String::as_str).collect()
    }

    pub(super) fn has(&self, node: &str) -> bool {
        self.ids.contains_key(node)
    }

    /// The links of the shortest route by hops, ties by the order in which links were added; `None` if
    /// there is none.
    pub(super) fn shortest(&self, from: &str, to: &str) -> Option<Vec<usize>> {
        let (from, to) = (*self.ids.get(from)?, *self.ids.get(to)?);
        let arrived_by = self.explore(from, Some(to));
        let mut route = Vec::new();
        let mut node = to;
        while node != from {
            let (link, before) = (*arrived_by.get(node)?)?;
            route.push(link);
            node = before;
        }
        route.reverse();
        Some(route)
    }

    /// Nodes to which some route leads from `from`, in alphabetical order.
    pub(super) fn reachable(&self, from: &str) -> Vec<&str> {
        let Some(from) = self.ids.get(from) else { return Vec::new() };
        let arrived_by = self.explore(*from, None);
        let reached = self.names.iter().zip(&arrived_by).filter(|(_, by)| by.is_some());
        let mut names: Vec<&str> = reached.map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names
    }

    /// By which link, and from where, each node is first reached from `from`, breadth first, until `to`
    /// is found.
    fn explore(&self, from: usize, to: Option<usize>) -> Vec<Option<(usize, usize)>> {
        let mut arrived_by = vec![None; self.names.len()];
        let mut frontier = VecDeque::from([from]);
        while let Some(node) = frontier.pop_front() {
            for (link, next) in self.leaving.get(node).into_iter().flatten() {
                let Some(slot) = arrived_by.get_mut(*next) else { continue };
                if *next == from || slot.is_some() {
                    continue;
                }
                *slot = Some((*link, node));
                if to == Some(*next) {
                    return arrived_by;
                }
                frontier.push_back(*next);
            }
        }
        arrived_by
    }

    fn id(&mut self, name: &str) -> usize {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        let id = self.names.len();
        self.ids.insert(name.to_owned(), id);
        self.names.push(name.to_owned());
        self.leaving.push(Vec::new());
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_route_is_found_and_the_first_of_equals() {
        let mut graph = Graph::default();
        for (link, (from, to)) in
            [("a", "b"), ("b", "d"), ("a", "c"), ("c", "d"), ("d", "e"), ("a", "e"), ("x", "a")]
                .into_iter()
                .enumerate()
        {
            graph.add(from, to, link);
        }
        assert_eq!(graph.shortest("a", "d"), Some(vec![0, 1]));
        assert_eq!(graph.shortest("x", "e"), Some(vec![6, 5]));
        assert_eq!(graph.shortest("e", "a"), None);
        assert_eq!(graph.reachable("c"), ["d", "e"]);
        assert!(graph.has("x") && !graph.has("y"));
    }
}
