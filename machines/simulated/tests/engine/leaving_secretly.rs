//! Outbound mail over opportunistic TLS: it is used if the other host supports it, and mail also
//! arrives without it.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use machine::Micros;

use super::far::{LETTER, Mood, World, is_whole, serving};
use super::far_secrets::Secrecy;
use super::room::Room;

/// A world with a host that has this TLS behaviour.
fn serving_with(seed: u64, secrecy: Secrecy) -> (Room, World) {
    let (room, mut world) = serving(seed, Mood::Takes);
    world.peer.secrecy = secrecy;
    (room, world)
}

/// Checks that Bob gets Ada's message once and unchanged, and that no entry is left.
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
fn mail_uses_starttls_with_any_certificate() {
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
fn the_client_hello_names_the_mx_host() {
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
fn a_host_without_a_working_handshake_gets_mail_in_clear_text() {
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
fn data_injected_after_the_220_reply_is_rejected() {
    let (mut room, mut world) = serving_with(769, Secrecy::Injects);
    arrives_once(&mut room, &mut world, LETTER, 60);
    // The first attempt has failed, because the injected data belongs to no command.
    assert_eq!((world.peer.greeted, world.peer.asked), (2, 1));
    assert!(!world.peer.taken[0].is_sealed);
}

#[test]
fn a_tls_failure_mid_message_loses_and_duplicates_nothing() {
    let (mut room, mut world) = serving_with(770, Secrecy::Spoils);
    let letter = [LETTER, &b"Line.\r\n".repeat(20_000)].concat();
    arrives_once(&mut room, &mut world, &letter, 60);
    assert_eq!(
        (world.peer.greeted, world.peer.asked, world.peer.taken[0].is_sealed),
        (2, 1, false)
    );
}

#[test]
fn many_messages_use_tls_at_the_same_time() {
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
fn reports_quote_a_refusal_received_over_tls() {
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
fn a_stop_during_an_outbound_handshake_loses_no_message() {
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
