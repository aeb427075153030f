//! Tests that forwarding loops end: the server recognises a message by a mark that only the server
//! can make.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use simulated::MemoryDisk;

use super::forwarding::{
    FRANK, delivered, delivered_locally, of, serving, serving_as, taken, text_of,
};
use super::relay::{Mood, World, configuration};
use super::room::{DISK_BYTES, Room};

const GRACE: &str = "grace@barepost.test";
const ADA: &str = "ada@barepost.test";
const BOB: &str = "forward = [\"bob@far.test\"]\nkeep = false";

fn message(number: u32) -> String {
    format!(
        "From: {FRANK}\r\nSubject: {number}\r\nMessage-ID: <{number}@far.test>\r\n\r\nHello.\r\n"
    )
}

/// The field with the loop mark of a forwarded message.
fn mark(text: &str) -> &str {
    text.lines().find(|line| line.starts_with("X-Loop: ")).expect("the message has a mark")
}

#[test]
fn a_forged_delivered_to_field_does_not_stop_forwarding() {
    let (mut room, mut world) = serving(1530, Mood::Takes, BOB);
    let forged = format!("Delivered-To: {GRACE}\r\nX-Loop: {GRACE}\r\nX-Loop: AAAAAAAAAAAA\r\n");
    for (number, bring) in
        [(0, delivered as fn(&mut World, &mut Room, &str, &[&str], &[u8])), (1, delivered_locally)]
    {
        let message = forged.clone() + &message(number);
        bring(&mut world, &mut room, FRANK, &[GRACE, ADA], message.as_bytes());
        world.pass(&mut room, 120);
        let all = taken(&world, "bob@far.test");
        assert_eq!((all.len(), world.peer.taken.len()), (number as usize + 1, number as usize + 1));
        let fields = if number == 0 { 1 } else { 2 };
        assert_eq!(
            text_of(&all[number as usize]).matches("Delivered-To: ").count(),
            fields,
            "external clients add no field"
        );
    }
    let ada = world.inbox(&mut room, "ada");
    assert!(
        !ada[0].contains("Delivered-To: ") && ada[0].contains("X-Loop: AAAAAAAAAAAA"),
        "{ada:?}"
    );
    assert_eq!(world.inbox(&mut room, "grace"), [""; 0]);
    room.until_nothing_is_in_use();
}

/// A host that has seen a mark may copy it. The mark stops neither another message, nor the same
/// message for another account.
#[test]
fn a_loop_mark_counts_for_its_message_and_account_only() {
    let configuration = of("ada", BOB, &of("grace", BOB, &configuration()));
    let (mut room, mut world) =
        serving_as(1531, MemoryDisk::blank(DISK_BYTES), Mood::Takes, &configuration);
    delivered(&mut world, &mut room, FRANK, &[GRACE], message(1).as_bytes());
    world.pass(&mut room, 120);
    let seen = mark(&text_of(&taken(&world, "bob@far.test")[0])).to_string();
    let replayed = |number: u32| format!("{seen}\r\n{}", message(number));
    delivered(&mut world, &mut room, FRANK, &[GRACE], replayed(2).as_bytes());
    delivered(&mut world, &mut room, FRANK, &[ADA], replayed(1).as_bytes());
    world.pass(&mut room, 120);
    assert_eq!((taken(&world, "bob@far.test").len(), world.peer.taken.len()), (3, 3));
    // The mark stops the same message for the same account.
    delivered(&mut world, &mut room, FRANK, &[GRACE], replayed(1).as_bytes());
    world.pass(&mut room, 120);
    let [report] = &taken(&world, FRANK)[..] else { panic!("{:?}", world.peer.taken) };
    assert!(text_of(report).contains("Status: 5.4.6") && taken(&world, "bob@far.test").len() == 3);
    room.until_nothing_is_in_use();
}

/// Acts as other servers that forward mail for the first address of each pair to the second, with
/// added header fields. Continues until no more mail arrives. Returns the number of messages that
/// the other servers received.
fn circulate(world: &mut World, room: &mut Room, back: &[(&str, &str)]) -> usize {
    let mut sent = 0;
    loop {
        world.pass(room, 300);
        let Some(next) = world.peer.taken.get(sent).cloned() else { return sent };
        sent += 1;
        assert!(sent < 50, "the loop ends");
        for (_, to) in back.iter().filter(|(from, _)| next.to == [*from]) {
            let trace = format!("Delivered-To: {}\r\nReceived: by far.test; now\r\n", next.to[0]);
            delivered(world, room, FRANK, &[to], &[trace.as_bytes(), &next.content].concat());
        }
    }
}

#[test]
fn a_loop_by_another_server_ends_when_the_message_comes_back() {
    for (seed, identifier) in [(1532, "Message-ID: <1@far.test>\r\n"), (1533, "")] {
        let (mut room, mut world) = serving(seed, Mood::Takes, BOB);
        let message = message(1).replace("Message-ID: <1@far.test>\r\n", identifier);
        delivered(&mut world, &mut room, FRANK, &[GRACE], message.as_bytes());
        assert_eq!(circulate(&mut world, &mut room, &[("bob@far.test", GRACE)]), 2);
        let (bob, frank) = (taken(&world, "bob@far.test"), taken(&world, FRANK));
        assert_eq!((bob.len(), frank.len()), (1, 1));
        assert!(text_of(&frank[0]).contains("Status: 5.4.6"));
        room.until_nothing_is_in_use();
    }
}

/// Each account forwards to two remote addresses, and each of these forwards to both accounts.
/// Without a limit, the mail would double in each round.
#[test]
fn a_loop_over_two_accounts_and_two_others_ends() {
    let both = "forward = [\"bob@far.test\", \"carol@far.test\"]\nkeep = false";
    let configuration = of("ada", both, &of("grace", both, &configuration()));
    let (mut room, mut world) =
        serving_as(1534, MemoryDisk::blank(DISK_BYTES), Mood::Takes, &configuration);
    delivered(&mut world, &mut room, FRANK, &[ADA], message(1).as_bytes());
    let back = [
        ("bob@far.test", GRACE),
        ("bob@far.test", ADA),
        ("carol@far.test", GRACE),
        ("carol@far.test", ADA),
    ];
    circulate(&mut world, &mut room, &back);
    // Ada's account sends two copies. Each returns to Grace's account, which sends two copies. All
    // other copies return to an account that they have passed before, and are stopped.
    assert_eq!(
        (taken(&world, "bob@far.test").len(), taken(&world, "carol@far.test").len()),
        (3, 3)
    );
    assert_eq!(taken(&world, FRANK).len(), world.peer.taken.len() - 6);
    room.until_nothing_is_in_use();
}
