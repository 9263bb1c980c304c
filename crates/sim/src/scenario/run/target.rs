//! Whom a subject's name stands for.

use crate::scenario::plan::Plan;

/// Flows, paths of flows, loads or a link, by their places in the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Flows(Vec<usize>),
    /// Each a flow, and one of its paths.
    Paths(Vec<(usize, usize)>),
    Loads(Vec<usize>),
    Link(usize),
}

impl Target {
    /// What `subject` stands for; `None` for nothing.
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

    /// The flows concerned, whole or by one of their paths.
    pub(super) fn flows(&self) -> Vec<usize> {
        match self {
            Target::Flows(flows) => flows.clone(),
            Target::Paths(paths) => paths.iter().map(|(flow, _)| *flow).collect(),
            Target::Loads(_) | Target::Link(_) => Vec::new(),
        }
    }
}

fn flows<'a>(plan: &'a Plan, subject: &'a str) -> impl Iterator<Item = usize> + 'a {
    let member = move |flow: &crate::scenario::FlowPlan| {
        subject == "all" || flow.group == subject || flow.subject == subject
    };
    plan.flows.iter().enumerate().filter(move |(_, flow)| member(flow)).map(|(index, _)| index)
}
