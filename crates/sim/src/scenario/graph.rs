//! A graph of nodes and links, and the shortest routes in it.

use std::collections::{BTreeMap, VecDeque};

/// A directed graph. A node is created with its first link.
#[derive(Clone, Debug, Default)]
pub(super) struct Graph {
    ids: BTreeMap<String, usize>,
    names: Vec<String>,
    /// For each node, the links that leave it and the nodes at their ends, in the order in which
    /// they were added.
    leaving: Vec<Vec<(usize, usize)>>,
}

impl Graph {
    /// Adds a link with the caller's number `link`.
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

    /// The links of the route with the fewest hops. Of equally short routes, it takes links that
    /// were added earlier. `None` if there is no route.
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

    /// The nodes that can be reached from `from`, in alphabetical order.
    pub(super) fn reachable(&self, from: &str) -> Vec<&str> {
        let Some(from) = self.ids.get(from) else { return Vec::new() };
        let arrived_by = self.explore(*from, None);
        let reached = self.names.iter().zip(&arrived_by).filter(|(_, by)| by.is_some());
        let mut names: Vec<&str> = reached.map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names
    }

    /// For each node, the link and the previous node by which a breadth-first search from `from`
    /// first reaches it. The search ends when it reaches `to`.
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
