//! Tests that no record of another domain makes the machine connect to a host with a private
//! address.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use simulated::MemoryDisk;

use super::dns::{TEXT, text};
use super::relay::{MESSAGE, Mood, World, configuration, is_whole, world_of};
use super::room::{DISK_BYTES, Room, usual_sizes};

const IPV4: u16 = 1;
const ALLOWED: &str = "private_networks = [\"10.0.0.0/24\"]";
const REASON: &str = "domain's mail servers have only private or reserved addresses, which this server does not connect to";

/// A world in which the configuration allows connections to hosts in these private networks.
fn calling(seed: u64, networks: &str) -> (Room, World) {
    let allowed = format!("private_networks = [{networks}]");
    let configuration = configuration().replace(ALLOWED, &allowed);
    assert!(configuration.contains(&allowed));
    let room = Room::configured(seed, MemoryDisk::blank(DISK_BYTES), usual_sizes(), &configuration);
    world_of(room, Mood::Takes)
}

#[test]
fn a_private_mx_host_is_not_contacted_and_is_reported() {
    for (seed, networks) in [(1500, ""), (1501, "\"10.0.1.0/24\", \"192.168.0.0/16\"")] {
        let (mut room, mut world) = calling(seed, networks);
        world.submit(&mut room, &["bob@far.test"], MESSAGE);
        world.pass(&mut room, 120);
        assert_eq!((world.peer.accepted, world.peer.taken.len()), (0, 0));
        let inbox = world.inbox(&mut room, "ada");
        assert_eq!(inbox.len(), 1, "{inbox:?}");
        let report = inbox[0].split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(report.contains("Action: failed") && report.contains("Status: 5.4.4"), "{report}");
        assert!(report.contains(REASON), "{report}");
        room.until_nothing_is_in_use();
    }
}

#[test]
fn an_allowed_private_mx_host_is_contacted() {
    let (mut room, mut world) = calling(1502, "\"10.0.0.13/32\"");
    world.submit(&mut room, &["bob@far.test"], MESSAGE);
    world.until(&mut room, "the message has arrived", |world, _| world.peer.taken.len() == 1);
    assert!(is_whole(&world.peer.taken[0].content, MESSAGE));
}

/// The policy server is silent. If the server connected to it, the message would wait.
#[test]
fn a_private_policy_host_is_not_contacted() {
    let (mut room, mut world) = calling(1503, "\"10.0.0.13/32\"");
    world.names.zone.push(("mta-sts.far.test", IPV4, vec![10, 0, 0, 98]));
    world.names.zone.push(("_mta-sts.far.test", TEXT, text("v=STSv1; id=1;")));
    world.submit(&mut room, &["bob@far.test"], MESSAGE);
    world.pass(&mut room, 5);
    assert_eq!(world.peer.taken.len(), 1);
    let asked: Vec<_> =
        world.names.asked.iter().filter(|(name, _)| name == "mta-sts.far.test").collect();
    assert!(!asked.is_empty(), "the address of the policy server was looked up");
}
