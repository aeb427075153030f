//! Mail leaves over TLS where the other host speaks it, and arrives where it cannot.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use machine::Micros;

use super::far::{LETTER, Mood, World, is_whole, serving};
use super::far_secrets::Secrecy;
use super::room::Room;

/// A world whose host does this about TLS.
fn serving_with(seed: u64, secrecy: Secrecy) -> (Room, World) {
    let (room, mut world) = serving(seed, Mood::Takes);
    world.peer.secrecy = secrecy;
    (room, world)
}

/// Ada's letter has come to Bob as she submitted it, once, and nothing is left of it here.
fn arrives_once(room: &mut Room, world: &mut World, letter: &[u8], seconds: u64) {
    world.submit(room, &["bob@far.test"], letter);
    let start = room.machine.now;
    world.until(room, "it has arrived", |world, _| !world.peer.taken.is_empty());
    let took = room.machine.now.since(start);
    assert!(took < Micros::from_secs(seconds), "{took:?}");
    world.pass(room, 7200);
    assert_eq!(world.peer.taken.len(), 1);
    let taken = &world.peer.taken[0];
    assert_eq!(taken.to, ["bob@far.test"]);
    assert!(is_whole(&taken.content, letter), "{}", taken.content.len());
    assert_eq!(world.inbox(room, "ada").len(), 0);
    room.until_nothing_is_in_use();
}

#[test]
fn a_letter_goes_over_tls_to_a_host_that_offers_it_whatever_certificate_it_shows() {
    for (seed, secrecy) in [(760, Secrecy::Tls12), (761, Secrecy::Tls13)] {
        for letter in [
            LETTER.to_vec(),
            [LETTER, &b"It computes, and computes again.\r\n.\r\n".repeat(30_000)].concat(),
        ] {
            let (mut room, mut world) = serving_with(seed, secrecy);
            arrives_once(&mut room, &mut world, &letter, 60);
            assert!(world.peer.taken[0].is_sealed, "{secrecy:?}");
            assert_eq!((world.peer.greeted, world.peer.asked), (1, 1), "one call is enough");
        }
    }
}

#[test]
fn the_host_is_told_by_which_name_it_is_called() {
    let (mut room, mut world) = serving_with(762, Secrecy::Tls13);
    world.submit(&mut room, &["bob@far.test"], LETTER);
    let mut called = None;
    world.until(&mut room, "it has arrived", |world, _| {
        called = called
            .take()
            .or_else(|| world.peer.conversations.iter().find_map(|talk| talk.veil.called.clone()));
        !world.peer.taken.is_empty()
    });
    assert_eq!(called.as_deref(), Some("mx.far.test"));
}

#[test]
fn a_host_with_which_no_handshake_is_done_gets_the_letter_in_the_clear() {
    for (seed, secrecy, seconds) in [
        (763, Secrecy::Refuses, 60),
        (764, Secrecy::Babbles, 60),
        (765, Secrecy::HangsUp, 60),
        (766, Secrecy::HangsUpLater, 60),
        (767, Secrecy::FallsSilent, 160),
        (768, Secrecy::Drips, 160),
    ] {
        let (mut room, mut world) = serving_with(seed, secrecy);
        arrives_once(&mut room, &mut world, LETTER, seconds);
        assert!(!world.peer.taken[0].is_sealed, "{secrecy:?}");
        let calls = if secrecy == Secrecy::Refuses { 1 } else { 2 };
        assert_eq!((world.peer.greeted, world.peer.asked), (calls, 1), "{secrecy:?}");
    }
}

#[test]
fn what_somebody_says_behind_the_host_s_220_is_not_believed() {
    let (mut room, mut world) = serving_with(769, Secrecy::Injects);
    arrives_once(&mut room, &mut world, LETTER, 60);
    // The first call came to nothing, since what was said belongs to nobody.
    assert_eq!((world.peer.greeted, world.peer.asked), (2, 1));
    assert!(!world.peer.taken[0].is_sealed);
}

#[test]
fn tls_that_breaks_in_the_middle_of_a_letter_loses_and_doubles_nothing() {
    let (mut room, mut world) = serving_with(770, Secrecy::Spoils);
    let letter = [LETTER, &b"Line.\r\n".repeat(20_000)].concat();
    arrives_once(&mut room, &mut world, &letter, 60);
    assert_eq!(
        (world.peer.greeted, world.peer.asked, world.peer.taken[0].is_sealed),
        (2, 1, false)
    );
}

#[test]
fn many_letters_go_over_tls_at_a_time() {
    let (mut room, mut world) = serving_with(771, Secrecy::Tls13);
    for number in 0..30 {
        world.submit(&mut room, &[&format!("friend{number}@far.test")], LETTER);
    }
    world.until(&mut room, "all have arrived", |world, _| world.peer.taken.len() >= 30);
    world.pass(&mut room, 7200);
    assert_eq!(world.peer.taken.len(), 30);
    assert!(
        world.peer.taken.iter().all(|taken| taken.is_sealed && is_whole(&taken.content, LETTER))
    );
    room.until_nothing_is_in_use();
}

#[test]
fn who_is_told_of_a_letter_that_is_refused_over_tls_reads_what_the_host_said() {
    let (mut room, mut world) = serving_with(772, Secrecy::Tls13);
    world.peer.mood = Mood::RefusesBob;
    world.submit(&mut room, &["bob@far.test"], LETTER);
    world.pass(&mut room, 60);
    let inbox = world.inbox(&mut room, "ada");
    assert_eq!(inbox.len(), 1);
    assert!(inbox[0].contains("550 5.1.1 No such user"), "{}", inbox[0]);
    assert_eq!(world.peer.asked, 1);
}

#[test]
fn a_machine_that_stops_in_the_middle_of_a_handshake_stops_and_the_letter_goes_when_it_is_back() {
    let (mut room, mut world) = serving_with(773, Secrecy::FallsSilent);
    world.submit(&mut room, &["bob@far.test"], LETTER);
    world.until(&mut room, "a handshake has begun", |world, _| world.peer.asked > 0);
    room.machine.stop = true;
    let start = room.machine.now;
    world.until(&mut room, "it has stopped", |_, room| room.ended.is_some());
    assert!(room.machine.now.since(start) < Micros::from_secs(5));
    world.peer.secrecy = Secrecy::Tls13;
    let (mut room, mut world) = world.power_cut(room, 773);
    world.until(&mut room, "it has arrived", |world, _| !world.peer.taken.is_empty());
    world.pass(&mut room, 7200);
    assert_eq!((world.peer.taken.len(), world.peer.taken[0].is_sealed), (1, true));
}
