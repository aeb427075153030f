//! Outbound mail with DANE: the server delivers only to hosts that present the certificate that
//! their domain publishes.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use sha2::{Digest, Sha256};

use super::dns::TLSA;
use super::relay::{MESSAGE, Mood, World, is_whole, serving, serving_trusting};
use super::relay_tls::{TlsBehaviour, shown};
use super::room::Room;

/// The name of the TLSA record of the host that takes mail for `far.test`.
const PLACE: &str = "_25._tcp.mx.far.test";
const SIGNED: [&str; 3] = ["far.test", "mx.far.test", PLACE];

/// A TLSA record for the certificate that the host presents, or for another certificate.
fn published(usage: u8, is_shown: bool) -> (&'static str, u16, Vec<u8>) {
    let mut digest = Sha256::digest(shown().root.as_ref()).to_vec();
    digest[0] ^= u8::from(!is_shown);
    (PLACE, TLSA, [&[usage, 0, 1][..], &digest].concat())
}

/// A world with this TLS behaviour of the host, and with these records. All records are signed.
fn publishing(
    seed: u64,
    tls_behaviour: TlsBehaviour,
    records: Vec<(&'static str, u16, Vec<u8>)>,
) -> (Room, World) {
    let (room, mut world) = serving_trusting(seed, Mood::Takes);
    world.peer.tls_behaviour = tls_behaviour;
    world.names.zone.extend(records);
    world.names.signed.extend(SIGNED);
    (room, world)
}

fn assert_arrives(room: &mut Room, world: &mut World, is_over_tls: bool) {
    world.until(room, "it has arrived", |world, _| !world.peer.taken.is_empty());
    world.pass(room, 7200);
    assert_eq!(world.peer.taken.len(), 1);
    assert_eq!(world.peer.taken[0].is_over_tls, is_over_tls);
    assert!(is_whole(&world.peer.taken[0].content, MESSAGE));
    room.until_nothing_is_in_use();
}

#[test]
fn a_host_with_the_published_certificate_gets_mail() {
    for (seed, tls_behaviour) in [(780, TlsBehaviour::Tls12), (781, TlsBehaviour::Tls13)] {
        let (mut room, mut world) =
            publishing(seed, tls_behaviour, vec![published(3, false), published(3, true)]);
        world.submit(&mut room, &["bob@far.test"], MESSAGE);
        assert_arrives(&mut room, &mut world, true);
    }
}

#[test]
fn a_host_with_another_certificate_gets_no_mail() {
    for (seed, tls_behaviour, why) in [
        (
            782,
            TlsBehaviour::Tls12,
            "certificate does not match the one that its domain has published",
        ),
        (
            783,
            TlsBehaviour::Tls13,
            "certificate does not match the one that its domain has published",
        ),
        (784, TlsBehaviour::None, "does not offer TLS, which is required"),
        (785, TlsBehaviour::Refuses, "refused TLS"),
        (786, TlsBehaviour::Babbles, "after STARTTLS"),
    ] {
        let (mut room, mut world) = publishing(seed, tls_behaviour, vec![published(3, false)]);
        world.submit(&mut room, &["bob@far.test"], MESSAGE);
        world.pass(&mut room, 10 * 3600);
        assert_eq!((world.peer.taken.len(), world.peer.rcpt_count), (0, 0), "{tls_behaviour:?}");
        let inbox = world.inbox(&mut room, "ada");
        assert_eq!(inbox.len(), 1);
        let words = inbox[0].split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            words.contains("Action: delayed") && words.contains(why),
            "{tls_behaviour:?}: {words}"
        );
        assert!(!why.contains("published") || words.contains("Status: 4.7.5"), "{words}");
        world.names.zone.push(published(3, true));
        world.peer.tls_behaviour = TlsBehaviour::Tls13;
        assert_arrives(&mut room, &mut world, true);
    }
}

#[test]
fn unusable_tlsa_records_require_tls_with_any_certificate() {
    let (mut room, mut world) = publishing(787, TlsBehaviour::Babbles, vec![published(1, false)]);
    world.submit(&mut room, &["bob@far.test"], MESSAGE);
    world.pass(&mut room, 3600);
    assert_eq!((world.peer.taken.len(), world.peer.rcpt_count), (0, 0));
    world.peer.tls_behaviour = TlsBehaviour::Tls13;
    assert_arrives(&mut room, &mut world, true);
}

#[test]
fn a_host_is_not_contacted_while_its_tlsa_lookup_fails() {
    let (mut room, mut world) = publishing(788, TlsBehaviour::Tls13, vec![published(3, true)]);
    world.names.failing.push(PLACE);
    world.submit(&mut room, &["bob@far.test"], MESSAGE);
    world.pass(&mut room, 3600);
    assert_eq!(world.peer.ehlo_count, 0);
    world.names.failing.clear();
    assert_arrives(&mut room, &mut world, true);
}

#[test]
fn tlsa_records_count_only_if_the_whole_chain_is_signed() {
    for (seed, unsigned) in (789..).zip(SIGNED) {
        let (mut room, mut world) =
            publishing(seed, TlsBehaviour::Tls13, vec![published(3, false)]);
        world.names.signed.retain(|signed| *signed != unsigned);
        world.submit(&mut room, &["bob@far.test"], MESSAGE);
        assert_arrives(&mut room, &mut world, true);
        let is_asked = world.names.asked.iter().any(|(name, _)| name == PLACE);
        assert_eq!(is_asked, unsigned == PLACE, "the TLSA record is queried only if it can count");
    }
}

#[test]
fn an_untrusted_name_server_is_not_asked_for_tlsa_records() {
    let (mut room, mut world) = serving(792, Mood::Takes);
    world.peer.tls_behaviour = TlsBehaviour::Tls13;
    world.names.zone.push(published(3, false));
    world.names.signed.extend(SIGNED);
    world.submit(&mut room, &["bob@far.test"], MESSAGE);
    assert_arrives(&mut room, &mut world, true);
    assert!(!world.names.asked.iter().any(|(name, _)| name == PLACE));
}
