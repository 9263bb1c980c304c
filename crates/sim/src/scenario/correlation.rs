//! Reads `[[correlation]]`, which makes the losses of links correlated.

use core::time::Duration;

use anabranch_types::Probability;

use super::error::Flaw;
use super::reader::Section;
use super::topology::Network;
use crate::loss::{CorrelatedConfig, JointConfig, LossConfig};

/// Applies every `[[correlation]]` to the links that it names.
pub(super) fn apply(file: &Section<'_>, network: &mut Network) {
    for (index, section) in file.tables("correlation").into_iter().enumerate() {
        let links = members(&section, network);
        let Some(theta) = section.share("theta") else { continue };
        let slot = section.time("slot").unwrap_or(Duration::from_millis(1));
        let group = Group {
            name: format!("group{}", index + 1),
            theta,
            slot,
            states: section.time("states"),
        };
        match section.word("method") {
            Some("park") => group.joint(&section, network, &links),
            _ => group.chain(&section, network, &links),
        }
    }
}

struct Group {
    name: String,
    theta: Probability,
    slot: Duration,
    states: Option<Duration>,
}

impl Group {
    fn chain(&self, section: &Section<'_>, network: &mut Network, links: &[usize]) {
        for (place, link) in links.iter().enumerate() {
            let Some(link) = network.links.get_mut(*link) else { continue };
            let loss = LossConfig::Correlated(CorrelatedConfig {
                group: self.name.clone(),
                position: u32::try_from(place + 1).unwrap_or(u32::MAX),
                theta: self.theta,
                slot: self.slot,
                states: self.states,
                base: Box::new(core::mem::take(&mut link.config.loss)),
            });
            if let Err(error) = loss.validate() {
                section.complain("links", format!("link '{}': {error}", link.name), "");
                return;
            }
            link.config.loss = loss;
        }
    }

    fn joint(&self, section: &Section<'_>, network: &mut Network, links: &[usize]) {
        let mut losses = Vec::new();
        for link in links.iter().filter_map(|link| network.links.get(*link)) {
            match &link.config.loss {
                LossConfig::Bernoulli(loss) => losses.push(*loss),
                _ => {
                    let given = format!("the loss of link '{}' is not constant", link.name);
                    let allowed = "constant losses above 0%, or method = \"chain\"";
                    section.complain("links", given, allowed);
                    return;
                }
            }
        }
        let correlation = JointConfig::powers(self.theta, losses.len());
        for (place, link) in links.iter().enumerate() {
            let Some(link) = network.links.get_mut(*link) else { continue };
            let loss = LossConfig::Joint(JointConfig {
                group: self.name.clone(),
                position: u32::try_from(place + 1).unwrap_or(u32::MAX),
                losses: losses.clone(),
                correlation: correlation.clone(),
                slot: self.slot,
            });
            if let Err(error) = loss.validate() {
                let allowed = "a theta at which such losses exist, or method = \"chain\"";
                section.complain("theta", error.to_string(), allowed);
                return;
            }
            link.config.loss = loss;
        }
    }
}

/// The links that the section names directly or by the names of their paths.
fn members(section: &Section<'_>, network: &Network) -> Vec<usize> {
    let mut links = Vec::new();
    for (name, place) in section.names("links").unwrap_or_default() {
        let paths = network.paths.iter().filter(|path| path.group == name || path.name == name);
        let own: Vec<usize> = paths.filter_map(|path| network.link(&path.name)).collect();
        let found = if own.is_empty() { network.link(&name).into_iter().collect() } else { own };
        if found.is_empty() {
            let known = network.link_names();
            let key = section.path_of("links");
            section.report(Flaw::unknown(place, key, "link", &name, &known));
        }
        links.extend(found);
    }
    links
}
