//! Outbound mail over opportunistic TLS: the server uses TLS if the other host supports it, and
//! otherwise delivers without TLS.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use machine::Micros;

use super::relay::{MESSAGE, Mood, World, is_whole, serving};
use super::relay_tls::TlsBehaviour;
use super::room::Room;

/// A world with a host that has this TLS behaviour.
fn serving_with(seed: u64, tls_behaviour: TlsBehaviour) -> (Room, World) {
    let (room, mut world) = serving(seed, Mood::Takes);
    world.peer.tls_behaviour = tls_behaviour;
    (room, world)
}

/// Checks that Bob gets Ada's message once and unchanged, and that no outbox entry is left.
fn assert_arrives_once(room: &mut Room, world: &mut World, message: &[u8], seconds: u64) {
    world.submit(room, &["bob@far.test"], message);
    let start = room.machine.now;
    world.until(room, "it has arrived", |world, _| !world.peer.taken.is_empty());
    let took = room.machine.now.since(start);
    assert!(took < Micros::from_secs(seconds), "{took:?}");
    world.pass(room, 7200);
    assert_eq!(world.peer.taken.len(), 1);
    let taken = &world.peer.taken[0];
    assert_eq!(taken.to, ["bob@far.test"]);
    assert!(is_whole(&taken.content, message), "{}", taken.content.len());
    assert_eq!(world.inbox(room, "ada").len(), 0);
    room.until_nothing_is_in_use();
}

#[test]
fn mail_uses_starttls_with_any_certificate() {
    for (seed, tls_behaviour) in [(760, TlsBehaviour::Tls12), (761, TlsBehaviour::Tls13)] {
        for message in [
            MESSAGE.to_vec(),
            [MESSAGE, &b"It computes, and computes again.\r\n.\r\n".repeat(30_000)].concat(),
        ] {
            let (mut room, mut world) = serving_with(seed, tls_behaviour);
            assert_arrives_once(&mut room, &mut world, &message, 60);
            assert!(world.peer.taken[0].is_over_tls, "{tls_behaviour:?}");
            assert_eq!(
                (world.peer.ehlo_count, world.peer.starttls_count),
                (1, 1),
                "one connection is enough"
            );
        }
    }
}

#[test]
fn the_client_hello_names_the_mx_host() {
    let (mut room, mut world) = serving_with(762, TlsBehaviour::Tls13);
    world.submit(&mut room, &["bob@far.test"], MESSAGE);
    let mut called = None;
    world.until(&mut room, "the message has arrived", |world, _| {
        called = called.take().or_else(|| {
            world.peer.conversations.iter().find_map(|talk| talk.tls_layer.called.clone())
        });
        !world.peer.taken.is_empty()
    });
    assert_eq!(called.as_deref(), Some("mx.far.test"));
}

#[test]
fn a_host_without_a_working_handshake_gets_mail_in_clear_text() {
    for (seed, tls_behaviour, seconds) in [
        (763, TlsBehaviour::Refuses, 60),
        (764, TlsBehaviour::Babbles, 60),
        (765, TlsBehaviour::HangsUp, 60),
        (766, TlsBehaviour::HangsUpLater, 60),
        (767, TlsBehaviour::FallsSilent, 160),
        (768, TlsBehaviour::Drips, 160),
    ] {
        let (mut room, mut world) = serving_with(seed, tls_behaviour);
        assert_arrives_once(&mut room, &mut world, MESSAGE, seconds);
        assert!(!world.peer.taken[0].is_over_tls, "{tls_behaviour:?}");
        let calls = if tls_behaviour == TlsBehaviour::Refuses { 1 } else { 2 };
        assert_eq!(
            (world.peer.ehlo_count, world.peer.starttls_count),
            (calls, 1),
            "{tls_behaviour:?}"
        );
    }
}

#[test]
fn data_injected_after_the_220_reply_is_rejected() {
    let (mut room, mut world) = serving_with(769, TlsBehaviour::Injects);
    assert_arrives_once(&mut room, &mut world, MESSAGE, 60);
    // The first attempt fails, because the injected data is the reply to no command.
    assert_eq!((world.peer.ehlo_count, world.peer.starttls_count), (2, 1));
    assert!(!world.peer.taken[0].is_over_tls);
}

#[test]
fn a_tls_failure_mid_message_loses_and_duplicates_nothing() {
    let (mut room, mut world) = serving_with(770, TlsBehaviour::Spoils);
    let message = [MESSAGE, &b"Line.\r\n".repeat(20_000)].concat();
    assert_arrives_once(&mut room, &mut world, &message, 60);
    assert_eq!(
        (world.peer.ehlo_count, world.peer.starttls_count, world.peer.taken[0].is_over_tls),
        (2, 1, false)
    );
}

#[test]
fn many_messages_use_tls_at_the_same_time() {
    let (mut room, mut world) = serving_with(771, TlsBehaviour::Tls13);
    for number in 0..30 {
        world.submit(&mut room, &[&format!("friend{number}@far.test")], MESSAGE);
    }
    world.until(&mut room, "all messages have arrived", |world, _| world.peer.taken.len() >= 30);
    world.pass(&mut room, 7200);
    assert_eq!(world.peer.taken.len(), 30);
    assert!(
        world.peer.taken.iter().all(|taken| taken.is_over_tls && is_whole(&taken.content, MESSAGE))
    );
    room.until_nothing_is_in_use();
}

#[test]
fn reports_quote_a_refusal_received_over_tls() {
    let (mut room, mut world) = serving_with(772, TlsBehaviour::Tls13);
    world.peer.mood = Mood::RefusesBob;
    world.submit(&mut room, &["bob@far.test"], MESSAGE);
    world.pass(&mut room, 60);
    let inbox = world.inbox(&mut room, "ada");
    assert_eq!(inbox.len(), 1);
    assert!(inbox[0].contains("550 5.1.1 No such user"), "{}", inbox[0]);
    assert_eq!(world.peer.starttls_count, 1);
}

#[test]
fn a_stop_during_an_outbound_handshake_loses_no_message() {
    let (mut room, mut world) = serving_with(773, TlsBehaviour::FallsSilent);
    world.submit(&mut room, &["bob@far.test"], MESSAGE);
    world.until(&mut room, "a handshake has begun", |world, _| world.peer.starttls_count > 0);
    room.machine.stop = true;
    let start = room.machine.now;
    world.until(&mut room, "the machine has stopped", |_, room| room.ended.is_some());
    assert!(room.machine.now.since(start) < Micros::from_secs(5));
    world.peer.tls_behaviour = TlsBehaviour::Tls13;
    let (mut room, mut world) = world.power_cut(room, 773);
    world.until(&mut room, "the message has arrived", |world, _| !world.peer.taken.is_empty());
    world.pass(&mut room, 7200);
    assert_eq!((world.peer.taken.len(), world.peer.taken[0].is_over_tls), (1, true));
}
