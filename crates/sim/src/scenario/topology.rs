//! Reads links and paths, and finds the routes between nodes.

use anabranch_tcp::Config;
use std::collections::BTreeMap;

use super::error::{Flaw, Place};
use super::graph::Graph;
use super::parts::{blank, link_config};
use super::plan::{LinkPlan, PathPlan};
use super::profiles;
use super::reader::Section;

/// The default end nodes of paths and flows.
pub(super) const SENDER: &str = "sender";
pub(super) const RECEIVER: &str = "receiver";

/// The links and paths that packets can use.
#[derive(Clone, Debug, Default)]
pub(super) struct Network {
    pub links: Vec<LinkPlan>,
    pub paths: Vec<PathPlan>,
    by_name: BTreeMap<String, usize>,
    graph: Graph,
    /// The index of each link's reverse link, if it has one.
    opposite: Vec<Option<usize>>,
}

impl Network {
    /// Reads every `[[link]]` and `[[path]]`.
    pub(super) fn read(file: &Section<'_>) -> Network {
        let mut network = Network::default();
        for section in file.tables("link") {
            let count = section.count("count").unwrap_or(1);
            for number in 1..=count {
                network.read_link(&numbered(&section, number), count > 1);
            }
        }
        for section in file.tables("path") {
            let count = section.count("count").unwrap_or(1);
            let grouped = section.has("count");
            for number in 1..=count {
                network.read_path(&numbered(&section, number), grouped.then_some(number));
            }
        }
        network
    }

    /// The index of the link called `name`.
    pub(super) fn link(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    pub(super) fn link_names(&self) -> Vec<&str> {
        self.links.iter().map(|link| link.name.as_str()).collect()
    }

    /// The paths that `names` selects. Each name is that of a path or of a group of paths. Unknown
    /// names are reported.
    pub(super) fn select(&self, section: &Section<'_>, names: &[(String, Place)]) -> Vec<PathPlan> {
        let mut chosen: Vec<PathPlan> = Vec::new();
        for (name, place) in names {
            let matching =
                self.paths.iter().filter(|path| path.name == *name || path.group == *name);
            let before = chosen.len();
            chosen.extend(matching.cloned());
            if chosen.len() == before {
                let mut known: Vec<&str> =
                    self.paths.iter().map(|path| path.group.as_str()).collect();
                known.dedup();
                let key = section.path_of("paths");
                section.report(Flaw::unknown(*place, key, "path", name, &known));
            }
        }
        chosen
    }

    /// The route with the fewest hops between two nodes, and the reverse route. Of equally short
    /// routes, links that come first in the file are preferred. Unknown nodes and missing routes
    /// are reported.
    pub(super) fn between(&self, section: &Section<'_>, from: &str, to: &str) -> Option<PathPlan> {
        let mut known = true;
        for (key, node) in [("from", from), ("to", to)] {
            if !self.graph.has(node) {
                let (place, path) = (section.place_of(key), section.path_of(key));
                section.report(Flaw::unknown(place, path, "node", node, &self.graph.nodes()));
                known = false;
            }
        }
        if !known {
            return None;
        }
        if from == to {
            section.complain("to", format!("'{to}' is also where it begins"), "another node");
            return None;
        }
        let route = |key: &str, from: &str, to: &str| {
            let route = self.graph.shortest(from, to);
            if route.is_none() {
                let mut reached = self.graph.reachable(from).join(", ");
                if reached.is_empty() {
                    reached.push_str("none");
                }
                let given = format!("no links lead from '{from}' to '{to}'");
                section.complain(key, given, format!("nodes that '{from}' reaches: {reached}"));
            }
            route
        };
        let forward = route("to", from, to)?;
        let back = route("from", to, from)?;
        let (name, group, congestion) = (String::new(), String::new(), None);
        Some(PathPlan { name, group, forward, back, congestion })
    }

    fn read_link(&mut self, section: &Section<'_>, grouped: bool) {
        let Some(name) = name(section, grouped) else { return };
        let (Some(from), Some(to)) = (section.text("from"), section.text("to")) else { return };
        if from == to {
            section.complain("to", format!("'{to}' is also where it begins"), "another node");
            return;
        }
        let duplex = section.flag("duplex").unwrap_or(true);
        if !duplex && section.has("reverse") {
            section.complain("reverse", "given for a link of one direction", "duplex = true");
        }
        self.add(section, &name, [&from, &to], duplex);
    }

    fn read_path(&mut self, section: &Section<'_>, number: Option<u64>) {
        let Some(group) = name(section, false) else { return };
        let name = match number {
            Some(number) => format!("{group}{number}"),
            None => group.clone(),
        };
        if self.paths.iter().any(|path| path.name == name) {
            section.refuse_value("name", &name, "a name that no other path has");
            return;
        }
        let routes = if section.has("via") {
            self.via(section)
        } else {
            let from = section.text("from").unwrap_or_else(|| SENDER.to_owned());
            let to = section.text("to").unwrap_or_else(|| RECEIVER.to_owned());
            for key in ["rate", "delay"].into_iter().filter(|key| !section.has(key)) {
                section.refuse(key, section.place, "missing");
            }
            let (forward, back) = self.add(section, &name, [&from, &to], true);
            Some((vec![forward], back.into_iter().collect()))
        };
        let congestion = profiles::control(section, "congestion", Config::default().mss);
        if let Some((forward, back)) = routes {
            self.paths.push(PathPlan { name, group, forward, back, congestion });
        }
    }

    /// Reads an explicit route, whose links must follow one another.
    fn via(&self, section: &Section<'_>) -> Option<(Vec<usize>, Vec<usize>)> {
        let together = ["name", "count", "via", "back", "congestion"];
        for key in section.keys().filter(|key| !together.contains(key)) {
            let allowed = "via, back, name, count and congestion together";
            section.complain(key, "given beside 'via'", allowed);
        }
        let forward = self.chain(section, "via")?;
        if section.has("back") {
            return Some((forward, self.chain(section, "back")?));
        }
        let mut back = Vec::new();
        for link in forward.iter().rev() {
            match self.opposite.get(*link).copied().flatten() {
                Some(opposite) => back.push(opposite),
                None => {
                    let name = self.links.get(*link).map_or("", |link| link.name.as_str());
                    let given = format!("link '{name}' has no opposite direction");
                    section.complain("via", given, "duplex links, or 'back' with the way back");
                    return None;
                }
            }
        }
        Some((forward, back))
    }

    fn chain(&self, section: &Section<'_>, key: &str) -> Option<Vec<usize>> {
        let mut route: Vec<usize> = Vec::new();
        for (name, place) in section.names(key)? {
            let Some(link) = self.link(&name) else {
                let known = self.link_names();
                let path = section.path_of(key);
                section.report(Flaw::unknown(place, path, "link", &name, &known));
                return None;
            };
            if let Some(last) = route.last().and_then(|last| self.links.get(*last))
                && self.links.get(link).is_none_or(|link| link.from != last.to)
            {
                let given = format!("link '{name}' does not begin at '{}'", last.to);
                let allowed =
                    format!("a link that begins at '{}', where the last one ends", last.to);
                section.report(Flaw::other(place, section.path_of(key), given, allowed));
                return None;
            }
            route.push(link);
        }
        if route.is_empty() {
            section.refuse(key, section.place_of(key), "an empty list");
            return None;
        }
        Some(route)
    }

    /// Adds a link and, if `duplex`, its reverse link. Returns their indices.
    fn add(
        &mut self,
        section: &Section<'_>,
        name: &str,
        [from, to]: [&str; 2],
        duplex: bool,
    ) -> (usize, Option<usize>) {
        let config = link_config(section, blank());
        let reverse = duplex.then(|| {
            let base = config.clean_reverse();
            section.table("reverse").map_or(base.clone(), |reverse| link_config(&reverse, base))
        });
        if self.by_name.contains_key(name) {
            section.refuse_value("name", name, "a name that no other link has");
        }
        let forward = self.push(LinkPlan {
            name: name.to_owned(),
            from: from.to_owned(),
            to: to.to_owned(),
            config,
        });
        let back = reverse.map(|config| {
            self.push(LinkPlan {
                name: format!("{name}.reverse"),
                from: to.to_owned(),
                to: from.to_owned(),
                config,
            })
        });
        if let (Some(back), Some(slot)) = (back, self.opposite.get_mut(forward)) {
            *slot = Some(back);
        }
        if let Some(slot) = back.and_then(|back| self.opposite.get_mut(back)) {
            *slot = Some(forward);
        }
        (forward, back)
    }

    fn push(&mut self, link: LinkPlan) -> usize {
        let index = self.links.len();
        self.by_name.insert(link.name.clone(), index);
        self.graph.add(&link.from, &link.to, index);
        self.links.push(link);
        self.opposite.push(None);
        index
    }
}

/// The section `section` for member `number` of its group.
pub(super) fn numbered<'a>(section: &Section<'a>, number: u64) -> Section<'a> {
    section.rebound(section.bindings.with("i", number as f64))
}

/// Reads the section's name, if it is valid. If `grouped`, the name must contain `{i}` or another
/// expression.
pub(super) fn name(section: &Section<'_>, grouped: bool) -> Option<String> {
    let name = section.text("name")?;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !(1..=32).contains(&name.len()) || !name.chars().all(plain) {
        let given = format!("'{name}' is not accepted");
        section.refuse("name", section.place_of("name"), &given);
        return None;
    }
    let written = section.node("name").map(super::tree::Node::show).unwrap_or_default();
    if grouped && !written.contains('{') {
        section.complain("name", format!("'{name}' for several links"), "a name with {i} in it");
        return None;
    }
    Some(name)
}
