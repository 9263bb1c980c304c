//! Builds plans in code: a few lines define the links, a profile and the amount of data.

use core::time::Duration;

use anabranch_core::config::TransportConfig;
use anabranch_core::path::UDP_OVERHEAD;
use anabranch_core::profiles::Profile;
use anabranch_policy::view::TrafficClass;
use anabranch_types::DataSize;

use super::plan::{EventPlan, FlowPlan, LinkPlan, PathPlan, Plan, ProbePlan};
use super::profiles::Protocol;
use super::topology::{RECEIVER, SENDER};
use crate::endpoint::PathChange;
use crate::link::LinkConfig;
use crate::probe::Metric;
use crate::traffic::Traffic;

/// How often a plan of [`Plan::parallel`] checks whether everything has arrived.
const CHECK: Duration = Duration::from_millis(10);
/// Longest duration of such a plan, unless [`Plan::within`] changes it.
const MOST: Duration = Duration::from_secs(600);

impl Plan {
    /// A plan with parallel links from a sender to a receiver, a path over each link, and no flow.
    /// A link without a name is named by its number, counted from 0; a path has the name of its
    /// link. The reverse link of `a` is called `a.reverse`, and it has no random loss
    /// ([`LinkConfig::clean_reverse`]). A run ends when every finite flow has delivered all its
    /// data, but after ten minutes at the latest.
    ///
    /// ```
    /// use anabranch_core::profiles::Profile;
    /// use anabranch_sim::scenario::{FlowPlan, Plan};
    ///
    /// let profile = Profile::named("anabranch").ok_or("no such profile")?;
    /// let links = ["rate=20mbit,delay=10ms,loss=2%".parse()?, "rate=10mbit,delay=40ms".parse()?];
    /// let report = Plan::parallel(links).flow(FlowPlan::core(profile).of(2_000_000)).run(1)?;
    /// assert_eq!(report.bytes(), 2_000_000);
    /// assert!(report.efficiency() > 0.5);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn parallel(links: impl IntoIterator<Item = LinkConfig>) -> Plan {
        let mut plan = Plan {
            duration: MOST,
            warm_up: Duration::ZERO,
            stop_when_done: Some(CHECK),
            links: Vec::new(),
            paths: Vec::new(),
            mesh: None,
            flows: Vec::new(),
            loads: Vec::new(),
            events: Vec::new(),
            probes: Vec::new(),
        };
        for (index, config) in links.into_iter().enumerate() {
            let name = match config.name.as_str() {
                "" => index.to_string(),
                name => name.to_owned(),
            };
            let back = config.clean_reverse();
            for (name, from, to, config) in [
                (name.clone(), SENDER, RECEIVER, config),
                (format!("{name}.reverse"), RECEIVER, SENDER, back),
            ] {
                plan.links.push(LinkPlan {
                    name,
                    from: from.to_owned(),
                    to: to.to_owned(),
                    config,
                });
            }
            let (forward, back) = (vec![2 * index], vec![2 * index + 1]);
            plan.paths.push(PathPlan {
                group: name.clone(),
                name,
                forward,
                back,
                congestion: None,
            });
        }
        plan
    }

    /// Sets the reverse links, in the order of the links. A link for which none is given keeps its
    /// default reverse link.
    #[must_use]
    pub fn with_reverse(mut self, reverse: impl IntoIterator<Item = LinkConfig>) -> Plan {
        for (path, config) in self.paths.iter().zip(reverse) {
            let back = path.back.first().and_then(|link| self.links.get_mut(*link));
            if let Some(link) = back {
                link.config = config;
            }
        }
        self
    }

    /// Limits the run to `duration`, counted from time zero.
    #[must_use]
    pub fn within(mut self, duration: Duration) -> Plan {
        self.duration = duration;
        self
    }

    /// Starts the measurements at the end of `warm_up`.
    #[must_use]
    pub fn after(mut self, warm_up: Duration) -> Plan {
        self.warm_up = warm_up;
        self
    }

    /// Adds a flow. A flow that names no paths uses all of them; several flows of a group are numbered:
    /// `flow`, `flow.2`, `flow.3`.
    #[must_use]
    pub fn flow(mut self, mut flow: FlowPlan) -> Plan {
        if flow.paths.is_empty() {
            flow.paths.clone_from(&self.paths);
        }
        let alike = self.flows.iter().filter(|other| other.group == flow.group).count();
        if alike > 0 {
            flow.subject = format!("{}.{}", flow.group, alike + 1);
        }
        self.flows.push(flow);
        self
    }

    /// Adds a change of path number `path`, counted from 0; ignored if there is no such path.
    #[must_use]
    pub fn event(mut self, at: Duration, path: usize, change: PathChange) -> Plan {
        if let Some(path) = self.paths.get(path) {
            self.events.push(EventPlan { at, path: path.name.clone(), change });
            self.events.sort_by_key(|event| event.at);
        }
        self
    }

    /// Records a metric of the subject `of` every `interval`. An unknown metric is ignored.
    #[must_use]
    pub fn record(mut self, of: &str, metric: &str, interval: Duration) -> Plan {
        let series = Metric::named(metric).into_iter().map(|metric| metric.name).collect();
        let (samples, figures) = (Vec::new(), Vec::new());
        let (of, slice) = (vec![of.to_owned()], DataSize::from_bytes(65_536));
        self.probes.push(ProbePlan {
            of,
            series,
            samples,
            figures,
            interval,
            slice,
            coding_blocks: false,
        });
        self
    }
}

impl FlowPlan {
    /// A flow between core endpoints of `profile`, called `flow`. It sends without end from time
    /// zero on, in packets of one size.
    pub fn core(profile: Profile) -> FlowPlan {
        FlowPlan {
            group: "flow".to_owned(),
            subject: "flow".to_owned(),
            protocol: Protocol::Core(Box::new(profile)),
            transport: TransportConfig { mtu_limit: None, ..TransportConfig::default() },
            overhead: UDP_OVERHEAD as i32,
            paths: Vec::new(),
            stations: None,
            start: Duration::ZERO,
            start_jitter: Duration::ZERO,
            traffic: Traffic::Bulk,
            messages: None,
            class: TrafficClass::Bulk,
            stop: None,
            key_limit: None,
            host: None,
            stripe: None,
        }
    }

    /// Makes the flow share its endpoints with the other flows of `host`.
    #[must_use]
    pub fn at(self, host: &str) -> FlowPlan {
        FlowPlan { host: Some(host.to_owned()), ..self }
    }

    /// Makes the flow send one transfer of this many bytes.
    #[must_use]
    pub fn of(self, bytes: u64) -> FlowPlan {
        FlowPlan { traffic: Traffic::Transfers { size: bytes, repeat: 1 }, ..self }
    }

    /// Makes the flow write until `stop`.
    #[must_use]
    pub fn until(self, stop: Duration) -> FlowPlan {
        FlowPlan { stop: Some(stop), ..self }
    }
}
