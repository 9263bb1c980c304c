use super::*;
use crate::profiles::Profile;

fn path_to(remote: &str) -> Path {
    let profile = Profile::default();
    let id = PathId(0);
    let congestion = profile.make_congestion(id, 1500).unwrap();
    let policies = PathPolicies { congestion, detector: profile.make().unwrap() };
    let address = PathAddress { socket: SocketId(0), remote: remote.parse().unwrap() };
    Path::new(id, address, policies, PathMtu::new(1452, None), Time::ZERO)
}

#[test]
fn counters_include_the_headers_of_the_address_family() {
    for (remote, headers) in [("192.0.2.1:1", 28), ("[2001:db8::1]:1", 48)] {
        let mut path = path_to(remote);
        path.on_sent_aside(Time::ZERO, 100);
        path.on_sent_aside(Time::ZERO, 200);
        path.count_received(400);
        assert_eq!(path.counters.sent_bytes, 300 + 2 * headers, "{remote}");
        assert_eq!(path.counters.received_bytes, 400 + headers, "{remote}");
    }
}
