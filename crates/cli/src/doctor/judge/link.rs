//! Judges an interface and its routes.

use super::Finding;
use crate::doctor::facts::{Binding, Interface, Way};

/// A routing table for the advice: any number that is free will do.
const TABLE: u32 = 101;

pub(super) fn judge(interface: &Interface) -> Vec<Finding> {
    let name = &interface.name;
    if !interface.running {
        let what = "it has an address but no carrier, or is switched off";
        return vec![Finding::note("link", name, what).advise(format!(
            "ip link set {name} up; and check that the cable or modem is plugged in"
        ))];
    }
    let mut findings: Vec<Finding> =
        interface.ways.iter().map(|way| route(interface, way)).collect();
    findings.extend(interface.ways.iter().filter_map(|way| reverse_filter(interface, way)));
    if interface.binding == Binding::Denied {
        let what = "sockets cannot be bound to it, so the routing table chooses the link";
        findings.push(
            Finding::note("binding", name, what)
                .advise("sudo setcap cap_net_raw+ep \"$(command -v anabranch)\""),
        );
    }
    findings
}

fn route(interface: &Interface, way: &Way) -> Finding {
    let name = &interface.name;
    let family = if way.to.is_ipv4() { "IPv4" } else { "IPv6" };
    let flag = if way.to.is_ipv4() { "" } else { "-6 " };
    if !way.leads_on() {
        let what = format!("no {family} route to {} via {name}: it is not used", way.to);
        return Finding::note("route", name, what).advise(format!(
            "if it leads there: ip {flag}route add default via ROUTER dev {name} metric 500"
        ));
    }
    if goes_elsewhere(interface, way) && interface.binding == Binding::Denied {
        let other = way.unbound.as_deref().unwrap_or("another interface");
        let what = format!("packets from its address {} leave over {other}", way.source);
        let via = way.gateway.map(|gateway| format!("via {gateway} ")).unwrap_or_default();
        return Finding::problem("route", name, what).advise(format!(
            "ip {flag}route add default {via}dev {name} table {TABLE}; \
             ip {flag}rule add from {} table {TABLE}",
            way.source
        ));
    }
    let via = match way.gateway {
        Some(gateway) => format!("via the router {gateway}"),
        None if way.route.is_none() => "as far as this system can tell".to_owned(),
        None => "on the link itself".to_owned(),
    };
    let what = format!("{family} leads to {} from {}, {via}", way.to, way.source);
    Finding::ok("route", name, what)
}

/// Whether packets of the interface's address leave over another one unless the socket is bound.
fn goes_elsewhere(interface: &Interface, way: &Way) -> bool {
    way.unbound.as_ref().is_some_and(|other| *other != interface.name)
}

/// Finds a strict reverse-path filter: it drops what arrives over `interface` if the route back is over another.
fn reverse_filter(interface: &Interface, way: &Way) -> Option<Finding> {
    let strict = interface.reverse_filter == Some(1) && way.to.is_ipv4();
    if !strict || !way.leads_on() || !goes_elsewhere(interface, way) {
        return None;
    }
    let other = way.unbound.as_deref().unwrap_or("another interface");
    let name = &interface.name;
    let what =
        format!("answers over it are dropped: the strict rp_filter expects them over {other}");
    Some(
        Finding::problem("rp-filter", name, what)
            .advise(format!("sysctl -w net.ipv4.conf.{name}.rp_filter=2")),
    )
}
