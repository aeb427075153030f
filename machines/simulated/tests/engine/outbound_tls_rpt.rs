//! The statistics of TLS with other servers (TLS-RPT): the server counts them and shows them to
//! administrators.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use http::Site;
use server::MachineKeys;
use sha2::{Digest, Sha256};
use simulated::MemoryDisk;
use tls::Authorities;

use super::dns::{TEXT, TLSA, text};
use super::relay::{self, MESSAGE, World, world_of};
use super::relay_policies::{self, PolicyServer};
use super::relay_tls::{TlsBehaviour, shown};
use super::room::tls_stream::Trust;
use super::room::{DISK_BYTES, Room, usual_sizes};
use super::webmail::Browser;

const IPV4: u16 = 1;
const PLACE: &str = "_25._tcp.mx.far.test";
const SIGNED: [&str; 3] = ["far.test", "mx.far.test", PLACE];

/// The policy or records that the domain publishes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Says {
    Nothing,
    /// A policy that allows these hosts.
    Policy(&'static str),
    /// The domain announces a policy, and the policy's web server behaves like this.
    NoPolicy(relay_policies::Mood),
    /// The web server has an invalid policy.
    NonPolicy,
    /// The web server has an invalid policy, and its certificate is not trusted.
    UnvouchedPolicy,
    /// A TLSA record with this usage. True: the record is for the certificate that the host
    /// presents. False: it is for another certificate.
    Certificate(u8, bool),
    /// A TLSA record with a lookup that fails.
    Unanswered,
}

fn valid() -> Trust {
    Trust::made(12, &["mx.far.test", "mta-sts.far.test", "mail.barepost.test"], -10..10_000)
}

/// A valid certificate for another name.
fn for_another() -> Trust {
    Trust::made(12, &["other.far.test"], -10..10_000)
}

/// A certificate from an unknown authority.
fn unknown() -> Trust {
    Trust::made(13, &["mx.far.test"], -10..10_000)
}

fn around(
    seed: u64,
    says: Says,
    tls_behaviour: TlsBehaviour,
    presented: fn() -> Trust,
) -> (Room, World, PolicyServer) {
    let authorities = [valid().pem, for_another().pem].concat();
    let authorities =
        Authorities::with([authorities.as_slice()]).expect("the certificates are valid");
    let papers = MachineKeys {
        authorities,
        certificates: vec![valid().certificate],
        ..MachineKeys::default()
    };
    let configuration = relay::configuration()
        .replace(
            "address = \"grace@barepost.test\"",
            "address = \"grace@barepost.test\"\nadmin = true",
        )
        .replace("dns = [\"10.0.0.12\"]", "dns = [\"10.0.0.12\"]\ndnssec = true");
    let disk = MemoryDisk::blank(DISK_BYTES);
    let room =
        Room::with_papers(seed, disk, usual_sizes(), &configuration, Site::default(), papers);
    let (mut room, mut world) = world_of(room, relay::Mood::Takes);
    (world.peer.tls_behaviour, world.peer.presented) = (tls_behaviour, presented);
    let host = if let Says::Policy(host) = says { host } else { "*.far.test" };
    let policy = format!("version: STSv1\r\nmode: enforce\r\nmx: {host}\r\nmax_age: 864000\r\n");
    let mut web = PolicyServer::new(&policy, valid, &mut room);
    match says {
        Says::NoPolicy(mood) => web.mood = mood,
        Says::NonPolicy => web.policy = "Hello".to_string(),
        Says::UnvouchedPolicy => web.presented = shown,
        Says::Nothing | Says::Policy(_) | Says::Certificate(..) | Says::Unanswered => {}
    }
    match says {
        Says::Nothing => {}
        Says::Certificate(..) | Says::Unanswered => {
            let (usage, is_shown) = if let Says::Certificate(usage, is_shown) = says {
                (usage, is_shown)
            } else {
                (3, true)
            };
            let mut digest = Sha256::digest(presented().root.as_ref()).to_vec();
            digest[0] ^= u8::from(!is_shown);
            digest.splice(..0, [usage, 0, 1]);
            world.names.zone.push((PLACE, TLSA, digest));
            world.names.signed.extend(SIGNED);
            world.names.failing.extend((says == Says::Unanswered).then_some(PLACE));
        }
        _ => {
            world.names.zone.push(("mta-sts.far.test", IPV4, vec![10, 0, 0, 13]));
            world.names.zone.push(("_mta-sts.far.test", TEXT, text("v=STSv1; id=1;")));
        }
    }
    (room, world, web)
}

/// Lets time pass.
fn pass(seconds: u64, room: &mut Room, world: &mut World, web: &mut PolicyServer) {
    let end = room.machine.now + machine::Micros::from_secs(seconds);
    world.until(room, "time has passed", |_, room| {
        web.serve(room);
        room.machine.now >= end
    });
}

/// The rows of the table on the queue page: domain, day, policy, connections with TLS, failed ones.
/// `None`: the page has no table.
fn rows(grace: &mut Browser, room: &mut Room) -> Option<Vec<String>> {
    let page = grace.get(room, "/mail/queue");
    assert_eq!(page.status, 200);
    grace.hang_up(room);
    let text = page.text();
    let (_, table) = text.split_once("<tbody>")?;
    let (table, _) = table.split_once("</tbody>")?;
    let plain = |row: &str| {
        row.split('>').filter_map(|part| part.split('<').next()).collect::<Vec<_>>().join(" ")
    };
    let words = |row: &str| plain(row).split_whitespace().collect::<Vec<_>>().join(" ");
    Some(table.split("<tr").skip(1).map(words).collect())
}

#[test]
fn tls_results_are_counted_and_shown_to_administrators() {
    use relay_policies::Mood;
    for (seed, says, tls_behaviour, presented, wanted) in [
        (
            1600,
            Says::Nothing,
            TlsBehaviour::Tls13,
            shown as fn() -> Trust,
            &["no-policy-found 1 0"][..],
        ),
        (
            1601,
            Says::Nothing,
            TlsBehaviour::None,
            shown,
            &["no-policy-found 0 1 starttls-not-supported"],
        ),
        (
            1602,
            Says::Nothing,
            TlsBehaviour::Refuses,
            shown,
            &["no-policy-found 0 1 starttls-not-supported"],
        ),
        (
            1603,
            Says::Nothing,
            TlsBehaviour::Babbles,
            shown,
            &["no-policy-found 0 1 validation-failure"],
        ),
        (1604, Says::Policy("*.far.test"), TlsBehaviour::Tls12, valid, &["sts 1 0"]),
        (
            1605,
            Says::Policy("*.far.test"),
            TlsBehaviour::Tls13,
            unknown,
            &["sts 0 1 certificate-not-trusted"],
        ),
        (
            1606,
            Says::Policy("*.far.test"),
            TlsBehaviour::Tls13,
            for_another,
            &["sts 0 1 certificate-host-mismatch"],
        ),
        (
            1607,
            Says::Policy("*.far.test"),
            TlsBehaviour::Tls12,
            shown,
            &["sts 0 1 certificate-expired"],
        ),
        (
            1608,
            Says::Policy("*.far.test"),
            TlsBehaviour::None,
            valid,
            &["sts 0 1 starttls-not-supported"],
        ),
        (
            1609,
            Says::Policy("elsewhere.test"),
            TlsBehaviour::Tls13,
            valid,
            &["sts 0 2 validation-failure"],
        ),
        (
            1610,
            Says::NoPolicy(Mood::KnowsNothing),
            TlsBehaviour::Tls13,
            shown,
            &["sts 0 1 sts-policy-fetch-error", "no-policy-found 1 0"],
        ),
        (
            1611,
            Says::NoPolicy(Mood::Down),
            TlsBehaviour::Tls13,
            shown,
            &["sts 0 1 sts-policy-fetch-error", "no-policy-found 1 0"],
        ),
        (
            1612,
            Says::NonPolicy,
            TlsBehaviour::Tls13,
            shown,
            &["sts 0 1 sts-policy-invalid", "no-policy-found 1 0"],
        ),
        (
            1613,
            Says::UnvouchedPolicy,
            TlsBehaviour::Tls13,
            shown,
            &["sts 0 1 sts-webpki-invalid", "no-policy-found 1 0"],
        ),
        (1614, Says::Certificate(3, true), TlsBehaviour::Tls13, shown, &["tlsa 1 0"]),
        (
            1615,
            Says::Certificate(3, false),
            TlsBehaviour::Tls12,
            shown,
            &["tlsa 0 1 certificate-not-trusted"],
        ),
        (1616, Says::Certificate(1, true), TlsBehaviour::Tls13, shown, &["tlsa 0 1 tlsa-invalid"]),
        (
            1617,
            Says::Certificate(3, true),
            TlsBehaviour::None,
            shown,
            &["tlsa 0 1 starttls-not-supported"],
        ),
        (1618, Says::Unanswered, TlsBehaviour::Tls13, shown, &["tlsa 0 1 dnssec-invalid"]),
    ] {
        let (mut room, mut world, mut web) = around(seed, says, tls_behaviour, presented);
        let mut grace = Browser::new(&valid());
        grace.log_in(&mut room, "grace", "lovelace");
        assert_eq!(rows(&mut grace, &mut room), None, "the page has no table yet");
        // The machine may start a second before midnight, so the test waits until the day is
        // certain.
        pass(3, &mut room, &mut world, &mut web);
        world.submit(&mut room, &["bob@far.test"], MESSAGE);
        pass(50, &mut room, &mut world, &mut web);
        let wanted: Vec<String> =
            wanted.iter().map(|row| format!("far.test today {row}")).collect();
        assert_eq!(rows(&mut grace, &mut room), Some(wanted), "{says:?} {tls_behaviour:?}");
    }
}

#[test]
fn a_connection_counts_once_for_all_its_messages() {
    let (mut room, mut world, mut web) = around(1630, Says::Nothing, TlsBehaviour::Tls13, shown);
    let mut grace = Browser::new(&valid());
    grace.log_in(&mut room, "grace", "lovelace");
    grace.hang_up(&mut room);
    for number in 0..20 {
        world.submit(&mut room, &[&format!("friend{number}@far.test")], MESSAGE);
    }
    pass(600, &mut room, &mut world, &mut web);
    let (messages, connections) = (world.peer.taken.len(), world.peer.accepted);
    assert!(messages == 20 && connections < 10, "{messages} {connections}");
    let row = |day: &str| Some(vec![format!("far.test {day} no-policy-found {connections} 0")]);
    assert_eq!(rows(&mut grace, &mut room), row("today"));
    (0..24).for_each(|_| pass(3600, &mut room, &mut world, &mut web));
    grace.log_in(&mut room, "grace", "lovelace");
    grace.hang_up(&mut room);
    assert_eq!(rows(&mut grace, &mut room), row("yesterday"));
}
