//! Tests that a machine without work sleeps: its engine runs a turn only if there is work.
#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail")]

use super::room::pages::{large, site};
use super::room::{CONFIGURATION, Room, usual_sizes};
use machine::Micros;
use simulated::{MemoryDisk, TRANSMIT_RING};

const HOUR: Micros = Micros::from_secs(3600);
const DISK_BYTES: u64 = 32 << 20;

/// The number of turns in an hour, after an hour in which `room` becomes idle.
fn turns_in_an_hour(room: &mut Room) -> u64 {
    room.pass(HOUR);
    let before = room.turns;
    room.pass(HOUR);
    room.turns - before
}

#[test]
fn a_machine_without_clients_has_no_turn() {
    let mut room = Room::new(1);
    let mut talk = room.connect(25);
    room.smtp_reply(&mut talk);
    room.smtp(&mut talk, "EHLO client.test");
    assert!(room.smtp(&mut talk, "QUIT").starts_with("221 "));
    assert_eq!(turns_in_an_hour(&mut room), 0);
}

#[test]
fn on_an_empty_link_only_dhcp_and_router_discovery_need_turns() {
    let unconfigured = CONFIGURATION.replace("[network]\naddress = \"10.0.0.2/24\"\n", "");
    assert_ne!(unconfigured, CONFIGURATION);
    let mut room = Room::configured(2, MemoryDisk::blank(DISK_BYTES), usual_sizes(), &unconfigured);
    // The machine sends about one DHCP request a minute, and one router solicitation an hour.
    let turns = turns_in_an_hour(&mut room);
    assert!((1..80).contains(&turns), "{turns} turns");
}

#[test]
fn a_machine_with_a_full_card_sleeps_until_there_is_space() {
    let page = large(20_000);
    let mut room = Room::with_site(3, site(page.len()));
    let mut talk = room.connect(80);
    room.until("the connection is open", |room| room.hosts[0].has_answered(talk.connection));
    room.machine.transmit_ring = 0;
    room.send(&talk, b"GET /large HTTP/1.1\r\nHost: web.test\r\n\r\n");
    room.pass(Micros::from_millis(10));
    let before = room.turns;
    room.pass(Micros::from_secs(1));
    assert!(
        room.turns - before < 10,
        "{} turns in a second in which nothing could be sent",
        room.turns - before
    );
    room.machine.transmit_ring = TRANSMIT_RING;
    let asked = room.machine.now;
    room.until("the page comes", |room| {
        room.listen(&mut talk);
        talk.heard.ends_with(&page)
    });
    assert!(
        room.machine.now.since(asked) < Micros::from_millis(10),
        "free space in the card wakes the engine"
    );
}
