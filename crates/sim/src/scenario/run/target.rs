//! Finds the flows, paths, loads or link that the name of a subject means.

use std::collections::BTreeMap;

use crate::scenario::plan::Plan;

/// Flows, paths of flows, loads or a link, by their indices in the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Flows(Vec<usize>),
    /// Flows, each with one of its paths.
    Paths(Vec<(usize, usize)>),
    Loads(Vec<usize>),
    Link(usize),
}

impl Target {
    /// The flows, paths, loads or link that `subject` names; `None` if there are none.
    pub(super) fn of(plan: &Plan, subject: &str) -> Option<Target> {
        if let Some(name) = subject.strip_prefix("link.") {
            return plan.links.iter().position(|link| link.name == name).map(Target::Link);
        }
        if let Some((owner, path)) = subject.split_once('/') {
            let mut paths = Vec::new();
            for flow in flows(plan, owner) {
                let named = plan.flows.get(flow).into_iter().flat_map(|flow| &flow.paths);
                let found = named.enumerate().filter(|(_, known)| known.name == path);
                paths.extend(found.map(|(index, _)| (flow, index)));
            }
            return (!paths.is_empty()).then_some(Target::Paths(paths));
        }
        let flows: Vec<usize> = flows(plan, subject).collect();
        if !flows.is_empty() {
            return Some(Target::Flows(flows));
        }
        let member =
            |load: &crate::scenario::LoadPlan| load.group == subject || load.subject == subject;
        let loads = plan.loads.iter().enumerate().filter(|(_, load)| member(load));
        let loads: Vec<usize> = loads.map(|(index, _)| index).collect();
        (!loads.is_empty()).then_some(Target::Loads(loads))
    }

    /// All subjects of `plan` except its links: first `all`, then each group with its paths, its
    /// members and their paths, in the order of the plan, and then the loads.
    pub(super) fn all(plan: &Plan) -> Vec<(String, Target)> {
        let mut all = Named::default();
        for flow in 0..plan.flows.len() {
            all.add("all".to_owned(), Target::Flows(vec![flow]));
        }
        for (index, flow) in plan.flows.iter().enumerate() {
            // A single member has the name of its group and must not be counted twice.
            let own = Some(&flow.subject).filter(|subject| **subject != flow.group);
            for owner in [Some(&flow.group), own].into_iter().flatten() {
                all.add(owner.clone(), Target::Flows(vec![index]));
                for (path, named) in flow.paths.iter().enumerate() {
                    let subject = format!("{owner}/{}", named.name);
                    all.add(subject, Target::Paths(vec![(index, path)]));
                }
            }
        }
        for (index, load) in plan.loads.iter().enumerate() {
            let own = Some(&load.subject).filter(|subject| **subject != load.group);
            for owner in [Some(&load.group), own].into_iter().flatten() {
                all.add(owner.clone(), Target::Loads(vec![index]));
            }
        }
        all.entries
    }

    /// The flows that the target contains, or of which it contains a path.
    pub(super) fn flows(&self) -> Vec<usize> {
        match self {
            Target::Flows(flows) => flows.clone(),
            Target::Paths(paths) => paths.iter().map(|(flow, _)| *flow).collect(),
            Target::Loads(_) | Target::Link(_) => Vec::new(),
        }
    }
}

/// Subjects in the order in which they were first added, each with its target.
#[derive(Default)]
struct Named {
    entries: Vec<(String, Target)>,
    places: BTreeMap<String, usize>,
}

impl Named {
    fn add(&mut self, subject: String, more: Target) {
        let place = *self.places.entry(subject.clone()).or_insert(self.entries.len());
        match (self.entries.get_mut(place), more) {
            (Some((_, Target::Flows(all))), Target::Flows(more)) => all.extend(more),
            (Some((_, Target::Paths(all))), Target::Paths(more)) => all.extend(more),
            (Some((_, Target::Loads(all))), Target::Loads(more)) => all.extend(more),
            (None, more) => self.entries.push((subject, more)),
            // This does not happen: flows, paths and loads never have the same name.
            _ => {}
        }
    }
}

fn flows<'a>(plan: &'a Plan, subject: &'a str) -> impl Iterator<Item = usize> + 'a {
    let member = move |flow: &crate::scenario::FlowPlan| {
        subject == "all" || flow.group == subject || flow.subject == subject
    };
    plan.flows.iter().enumerate().filter(move |(_, flow)| member(flow)).map(|(index, _)| index)
}
