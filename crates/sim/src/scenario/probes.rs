//! Reads the probes of a scenario.

use core::time::Duration;

use anabranch_types::DataSize;

use super::error::{Flaw, Place};
use super::plan::{FlowPlan, LinkPlan, LoadPlan, ProbePlan};
use super::reader::Section;
use crate::probe::{About, METRICS, Metric};

/// The possible subjects of results: groups of flows and their members, the members' paths, loads,
/// links, stations and all flows together.
#[derive(Clone, Debug)]
pub(super) struct Subjects {
    flows: Vec<String>,
    paths: Vec<String>,
    loads: Vec<String>,
    links: Vec<String>,
    /// `mesh`, if there are stations.
    mesh: Option<String>,
}

/// The subject of figures about all stations of a radio network.
pub(super) const MESH: &str = "mesh";

impl Subjects {
    pub(super) fn new(
        flows: &[FlowPlan],
        loads: &[LoadPlan],
        links: &[LinkPlan],
        mesh: bool,
    ) -> Self {
        let mut subjects = Subjects {
            flows: Vec::new(),
            paths: Vec::new(),
            loads: Vec::new(),
            links: links.iter().map(|link| format!("link.{}", link.name)).collect(),
            mesh: mesh.then(|| MESH.to_owned()),
        };
        for flow in flows {
            subjects.flows.extend([flow.group.clone(), flow.subject.clone()]);
            for path in &flow.paths {
                let groups = [&flow.group, &flow.subject];
                subjects.paths.extend(groups.map(|owner| format!("{owner}/{}", path.name)));
            }
        }
        for load in loads {
            subjects.loads.extend([load.group.clone(), load.subject.clone()]);
        }
        for names in [&mut subjects.flows, &mut subjects.paths, &mut subjects.loads] {
            names.sort();
            names.dedup();
        }
        subjects
    }

    /// All subjects, in the order in which messages list them.
    pub(super) fn all(&self) -> Vec<String> {
        let all = core::iter::once("all".to_owned());
        let named = [&self.flows, &self.loads, &self.paths, &self.links].into_iter().flatten();
        all.chain(named.chain(&self.mesh).cloned()).collect()
    }

    /// Whether `metric` exists for `subject`.
    fn has(&self, subject: &str, metric: &Metric) -> bool {
        let is = |names: &[String]| names.iter().any(|name| name == subject);
        match metric.about {
            About::Link => is(&self.links),
            About::Mesh => self.mesh.as_deref() == Some(subject),
            About::Flow => subject == "all" || is(&self.flows),
            About::Path if metric.name == "throughput_mbps" => {
                subject == "all" || is(&self.flows) || is(&self.paths) || is(&self.loads)
            }
            About::Path => is(&self.flows) || is(&self.paths),
        }
    }
}

/// Reads every `[[probe]]`.
pub(super) fn read(file: &Section<'_>, subjects: &Subjects) -> Vec<ProbePlan> {
    let mut probes = Vec::new();
    for section in file.tables("probe") {
        let series = metrics(&section, "series", |metric| metric.series);
        let samples = metrics(&section, "samples", |metric| metric.samples);
        let figures = metrics(&section, "figures", |metric| metric.scalar && metric.on_request);
        if !["series", "samples", "figures"].iter().any(|key| section.has(key)) {
            section.complain("series", "no metric at all", "one of series, samples and figures");
        }
        let all = series.iter().chain(&samples).chain(&figures);
        let of = targets(&section, subjects, all);
        let interval = section.time("interval").unwrap_or(Duration::from_secs(1));
        if interval < Duration::from_millis(1) {
            let given = section.text("interval").unwrap_or_default();
            section.refuse_value("interval", &given, "1ms or more");
            continue;
        }
        let slice = section.size("slice").unwrap_or(DataSize::from_bytes(65_536));
        if slice.as_bytes() == 0 {
            section.refuse_value("slice", "0B", "a size above zero");
            continue;
        }
        let names =
            |metrics: &[&'static Metric]| metrics.iter().map(|metric| metric.name).collect();
        let probe = ProbePlan {
            of,
            series: names(&series),
            samples: names(&samples),
            figures: names(&figures),
            interval,
            slice,
            coding_blocks: section.flag("coding-blocks").unwrap_or(false),
        };
        if probes.iter().any(|other| have_other_blocks(&probe, other)) {
            let given = "other blocks than an earlier probe of the same flow";
            section.complain("slice", given, "one slice and one coding-blocks for each flow");
        }
        probes.push(probe);
    }
    probes
}

/// Whether two probes want different blocks of the same flow.
fn have_other_blocks(a: &ProbePlan, b: &ProbePlan) -> bool {
    // The subject `all` and the name of a group stand for every flow in them.
    let within = |whole: &str, part: &str| {
        let rest = part.strip_prefix(whole);
        whole == "all" || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let meets = |a: &String| b.of.iter().any(|b| within(a, b) || within(b, a));
    a.is_about_blocks()
        && b.is_about_blocks()
        && (a.slice, a.coding_blocks) != (b.slice, b.coding_blocks)
        && a.of.iter().any(meets)
}

fn metrics(
    section: &Section<'_>,
    key: &str,
    has_form: impl Fn(&Metric) -> bool,
) -> Vec<&'static Metric> {
    let mut found = Vec::new();
    for (name, place) in section.names(key).unwrap_or_default() {
        match Metric::named(&name).filter(|metric| has_form(metric)) {
            Some(metric) => found.push(metric),
            None => {
                let known = METRICS.iter().filter(|metric| has_form(metric));
                let known: Vec<&str> = known.map(|metric| metric.name).collect();
                let what = format!("metric for {key}");
                let path = section.path_of(key);
                section.report(Flaw::unknown(place, path, &what, &name, &known));
            }
        }
    }
    found
}

/// The subjects that a probe names. If it names none, these are the flows and the mesh, if one of
/// its metrics exists for them.
fn targets<'a>(
    section: &Section<'_>,
    subjects: &Subjects,
    metrics: impl Iterator<Item = &'a &'static Metric>,
) -> Vec<String> {
    let metrics: Vec<&Metric> = metrics.copied().collect();
    let about = |name: &str| metrics.iter().any(|metric| subjects.has(name, metric));
    let Some(named) = section.names("of") else {
        let all = subjects.flows.iter().chain(&subjects.mesh);
        return all.filter(|name| about(name)).cloned().collect();
    };
    let mut targets = Vec::new();
    for (name, place) in named {
        if about(&name) {
            targets.push(name);
        } else {
            report_target(section, subjects, &metrics, &name, place);
        }
    }
    targets
}

fn report_target(
    section: &Section<'_>,
    subjects: &Subjects,
    metrics: &[&Metric],
    name: &str,
    place: Place,
) {
    let all = subjects.all();
    let path = section.path_of("of");
    if all.iter().any(|known| known == name) {
        let metrics: Vec<&str> = metrics.iter().map(|metric| metric.name).collect();
        let given = format!("'{name}' has none of {}", metrics.join(", "));
        section.report(Flaw::other(place, path, given, "subjects that these are about"));
        return;
    }
    let known: Vec<&str> = all.iter().map(String::as_str).collect();
    section.report(Flaw::unknown(place, path, "subject", name, &known));
}
