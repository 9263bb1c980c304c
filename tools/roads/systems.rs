//! The systems that are compared on each road.

/// A system under test: its name, and what it sets in the scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct System {
    /// Name in the table.
    pub name: String,
    /// Assignments to keys of the scenario.
    pub settings: Vec<String>,
}

impl System {
    fn new(name: &str, settings: &[&str]) -> Self {
        let settings = settings.iter().map(|setting| (*setting).to_owned()).collect();
        System { name: name.to_owned(), settings }
    }
}

/// The default profile, and the same with each of the congestion controls in `congestion`.
pub fn over_a_link(congestion: &[String]) -> Vec<System> {
    let mut systems = vec![System::new("anabranch", &[])];
    for name in congestion {
        systems.push(System::new(name, &[&format!("flow.bulk.policy.congestion={name}")]));
    }
    systems
}

/// The systems of [`over_a_link`], the default profile on each of the two links alone, and two that do not code.
pub fn over_a_pair(congestion: &[String]) -> Vec<System> {
    let mut systems = over_a_link(congestion);
    systems.push(System::new("a alone", &["flow.bulk.paths=a"]));
    systems.push(System::new("b alone", &["flow.bulk.paths=b"]));
    systems.push(System::new("uncoded", &["flow.bulk.profile=uncoded"]));
    systems.push(System::new("tcp:mptcp", &["vars.tcp=1"]));
    systems
}
