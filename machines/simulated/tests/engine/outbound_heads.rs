//! Messages for other servers with sizes around the edges of chunks. Even if the header of an entry
//! crosses an edge, the queue shows the message, and the server delivers it whole.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use chance::Dice;
use http::Site;
use simulated::MemoryDisk;

use super::draft_files::kept;
use super::forwarding::of;
use super::relay::{Mood, Taken, World, configuration, world_of};
use super::room::tls_stream::Trust;
use super::room::{DISK_BYTES, Room, usual_sizes};
use super::settings::forget_connections;
use super::signing::keys;
use super::webmail::{Browser, between};

const CHUNK: usize = store::CHUNK_OCTETS;
/// An upper bound for the octets of the envelope, the trace fields and two signatures together.
const ABOVE: usize = 1_500;
/// The difference of two sizes in octets. It is less than the length of the signatures, so that at
/// some size the header crosses the edge.
const STEP: usize = 130;

/// A machine that signs messages of its users. Grace is an administrator, and so can see the queue.
fn serving_on(seed: u64, disk: MemoryDisk, mood: Mood, trust: &Trust) -> (Room, World) {
    let configuration = of("grace", "admin = true", &configuration());
    let certificates = vec![trust.certificate.clone()];
    let sizes = usual_sizes();
    world_of(
        Room::keyed(seed, disk, sizes, &configuration, Site::default(), certificates, keys()),
        mood,
    )
}

fn message(octets: usize) -> Vec<u8> {
    let mut message = format!(
        "From: ada@barepost.test\r\nDate: then\r\nMessage-ID: <{octets}@client.test>\r\n\r\n"
    );
    while message.len() + 80 <= octets {
        message.push_str(&"y".repeat(70));
        message.push_str("\r\n");
    }
    message.push_str(&"y".repeat(octets - 2 - message.len()));
    message.push_str("\r\n");
    assert_eq!(message.len(), octets);
    message.into_bytes()
}

/// Sizes of entries that end on both sides of the edge after this many chunks.
fn sizes_around(chunks: usize) -> Vec<usize> {
    let edge = chunks * CHUNK;
    (edge - ABOVE..edge + STEP).step_by(STEP).collect()
}

/// The number of entries for Bob on the queue page.
fn shown(grace: &mut Browser, room: &mut Room) -> usize {
    let text = grace.get(room, "/mail/queue").text();
    grace.hang_up(room);
    text.matches(">bob@far.test</h2>").count()
}

#[test]
fn messages_of_any_size_around_a_chunk_edge_arrive() {
    let trust = Trust::new("mail.barepost.test");
    for (seed, chunks, seconds) in [(950, 1, 0), (951, 2, 0), (952, 1, 100)] {
        let (mut room, mut world) =
            serving_on(seed, MemoryDisk::blank(DISK_BYTES), Mood::RefusesForNow, &trust);
        let mut grace = Browser::new(&trust);
        grace.log_in(&mut room, "grace", "lovelace");
        grace.hang_up(&mut room);
        let sizes = sizes_around(chunks);
        for octets in &sizes {
            world.submit(&mut room, &["bob@far.test"], &message(*octets));
        }
        world.pass(&mut room, 60);
        assert_eq!(shown(&mut grace, &mut room), sizes.len(), "the queue shows each message");
        if seconds > 0 {
            let disk = room.machine.disk.power_cut(&mut Dice::new(seed));
            (room, world) = serving_on(seed + 10, disk, Mood::RefusesForNow, &trust);
            world.pass(&mut room, seconds);
            forget_connections(&mut [&mut grace]);
            assert_eq!(
                shown(&mut grace, &mut room),
                sizes.len(),
                "the queue shows each message after a restart"
            );
        }
        world.peer.mood = Mood::Takes;
        world.pass(&mut room, 7200);
        let arrived = |octets: &usize| {
            let message = message(*octets);
            world.peer.taken.iter().filter(|taken| taken.content.ends_with(&message)).count()
        };
        let lost: Vec<usize> =
            sizes.iter().copied().filter(|octets| arrived(octets) != 1).collect();
        assert!(lost.is_empty(), "each message arrives once: {lost:?}");
        assert!(
            world
                .peer
                .taken
                .iter()
                .all(|taken| taken.content.starts_with(b"DKIM-Signature: v=1; a=rsa-sha256;"))
        );
        assert_eq!(shown(&mut grace, &mut room), 0);
        assert_eq!(world.inbox(&mut room, "ada").len(), 0, "no report is sent");
    }
}

#[test]
fn a_message_of_the_webmail_arrives_at_a_chunk_edge_too() {
    let trust = Trust::new("mail.barepost.test");
    let (mut room, mut world) = serving_on(955, MemoryDisk::blank(DISK_BYTES), Mood::Takes, &trust);
    let mut ada = Browser::new(&trust);
    ada.log_in(&mut room, "ada", "lovelace");
    let token = ada.get(&mut room, "/mail/compose").token();
    let line = ["y".repeat(70), "\n".to_string()].concat();
    let texts: Vec<String> =
        (0..8).map(|step| line.repeat(1 + (CHUNK - 2_400 + step * 200) / line.len())).collect();
    for text in &texts {
        let form = [
            ("token", token.as_str()),
            ("to", "bob@far.test"),
            ("bcc", "grace@barepost.test"),
            ("subject", "Edge"),
            ("text", text),
            ("do", "send"),
        ];
        let page = kept(&mut room, &mut ada, &form, &[]);
        assert!(between(&page, "name=\"what\" value=\"", "\"").is_some(), "{page}");
    }
    ada.hang_up(&mut room);
    world.pass(&mut room, 60);
    let mut arrived: Vec<usize> =
        world.peer.taken.iter().map(|taken| taken.content.len()).collect();
    arrived.sort_unstable();
    arrived.dedup();
    assert_eq!(arrived.len(), texts.len());
    let is_seen = |taken: &&Taken| String::from_utf8_lossy(&taken.content).contains("\r\nBcc:");
    assert_eq!(world.peer.taken.iter().filter(is_seen).count(), 0);
    assert_eq!(world.inbox(&mut room, "grace").len(), texts.len());
}
