//! Reads the keys of routing.

use core::time::Duration;

use anabranch_types::Probability;

use crate::scenario::reader::Section;
use crate::wireless::mesh::{
    AckRoute, Answers, Forwarding, Renewal, RouteUse, RoutingConfig, Separation,
};

/// Reads the routing protocol, and the changes to its defaults.
pub(super) fn read(section: &Section<'_>) -> RoutingConfig {
    let usual = match section.word("routing") {
        Some("mtcp") => RoutingConfig::mtcp(),
        Some("smr") => RoutingConfig::smr(),
        _ => RoutingConfig::dsr(),
    };
    let flag = |key, usual| section.flag(key).unwrap_or(usual);
    let time = |key, usual| section.time(key).unwrap_or(usual);
    let first = section.time("neighbours-first");
    let routing = RoutingConfig {
        neighbours_first: first
            .map_or(usual.neighbours_first, |wait| Some(wait).filter(|wait| !wait.is_zero())),
        request_period: time("request-period", usual.request_period),
        most_request_period: time("most-request-period", usual.most_request_period),
        reply_from_cache: flag("reply-from-cache", usual.reply_from_cache),
        overhear: flag("overhear", usual.overhear),
        shorten: flag("shorten", usual.shorten),
        salvage: flag("salvage", usual.salvage),
        send_buffer: section.count("send-buffer").map_or(usual.send_buffer, |n| n as usize),
        send_buffer_timeout: time("send-buffer-timeout", usual.send_buffer_timeout),
        release_gap: time("release-gap", usual.release_gap),
        jitter: time("request-jitter", usual.jitter),
        arp: flag("arp", usual.arp),
        neighbour_lists: flag("neighbour-lists", usual.neighbour_lists),
        drop_copies: flag("drop-copies", usual.drop_copies),
        ..several(section, usual)
    };
    if routing.drop_copies && matches!(routing.routes, RouteUse::CopiesIfLossy { .. }) {
        let given = "given beside copies-if-lossy, which counts acknowledgements of copies";
        section.complain("drop-copies", given, "one of them");
    }
    routing
}

/// Reads the keys for sources that use several routes.
fn several(section: &Section<'_>, usual: RoutingConfig) -> RoutingConfig {
    let jitter = section.time("jitter").unwrap_or(Duration::from_millis(10));
    let above = section.share("lossy-above").unwrap_or(Probability::clamped(0.1));
    let wait = section.time("answer-wait").unwrap_or(Duration::from_millis(100));
    let copies = RouteUse::Copies { jitter };
    RoutingConfig {
        routes: match section.word("routes") {
            Some("shortest") => RouteUse::Shortest,
            Some("copies") => copies,
            Some("copies-if-lossy") => RouteUse::CopiesIfLossy { jitter, above },
            Some("scatter") => RouteUse::Scatter,
            Some("backup") => RouteUse::Backup,
            _ if matches!(usual.routes, RouteUse::Copies { .. }) => copies,
            _ => usual.routes,
        },
        forwarding: match section.word("forwarding") {
            Some("first") => Forwarding::First,
            Some("fewer-hops") => Forwarding::FewerHops,
            Some("other-link") => Forwarding::OtherLink,
            _ => usual.forwarding,
        },
        answers: match section.word("answers") {
            Some("every") => Answers::Every,
            Some("disjoint") => Answers::Disjoint,
            Some("maximally-disjoint") => Answers::MaximallyDisjoint { wait },
            _ if matches!(usual.answers, Answers::MaximallyDisjoint { .. }) => {
                Answers::MaximallyDisjoint { wait }
            }
            _ => usual.answers,
        },
        separation: match section.word("separation") {
            Some("stations") => Separation::Stations,
            Some("two-hops") => Separation::TwoHops,
            _ => usual.separation,
        },
        renewal: match section.word("renewal") {
            Some("no-route") => Renewal::NoRoute,
            Some("one-route") => Renewal::OneRoute,
            _ => usual.renewal,
        },
        acknowledgements: match section.word("acknowledgements") {
            Some("shortest") => AckRoute::Shortest,
            Some("arrival") => AckRoute::Arrival,
            Some("like-data") => AckRoute::LikeData,
            _ => usual.acknowledgements,
        },
        ..usual
    }
}
