//! Outbound mail with MTA-STS: the server delivers only to hosts that the domain's policy allows
//! and that present a valid certificate.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use http::Site;
use server::MachineKeys;
use sha2::{Digest, Sha256};
use simulated::MemoryDisk;
use tls::Authorities;

use super::dns::{TEXT, TLSA, text};
use super::relay::{self, GRACE, MESSAGE, World, is_whole, world_of};
use super::relay_policies::{Mood, PolicyServer};
use super::relay_tls::{TlsBehaviour, shown};
use super::room::tls_stream::Trust;
use super::room::{DISK_BYTES, Room, usual_sizes};

const IPV4: u16 = 1;
const PLACE: &str = "_mta-sts.far.test";

/// The certificate of the host and of the policy server.
fn valid() -> Trust {
    Trust::made(12, &["mx.far.test", "mta-sts.far.test"], -10..10_000)
}

fn policy(mode: &str, host: &str) -> String {
    format!("version: STSv1\r\nmode: {mode}\r\nmx: {host}\r\nmax_age: 864000\r\n")
}

struct Around {
    room: Room,
    world: World,
    web: PolicyServer,
}

/// A world with a domain that announces `policy`. The policy server has a valid certificate, and
/// the mail host presents the certificate that `presented` makes.
fn around(
    seed: u64,
    policy: &str,
    tls_behaviour: TlsBehaviour,
    presented: fn() -> Trust,
) -> Around {
    configured(seed, policy, tls_behaviour, presented, "")
}

fn configured(
    seed: u64,
    policy: &str,
    tls_behaviour: TlsBehaviour,
    presented: fn() -> Trust,
    network: &str,
) -> Around {
    let authorities =
        Authorities::with([valid().pem.as_slice()]).expect("the certificate is valid");
    let papers = MachineKeys { authorities, ..MachineKeys::default() };
    let configuration = relay::configuration()
        .replace("dns = [\"10.0.0.12\"]", &["dns = [\"10.0.0.12\"]", network].join("\n"));
    let disk = MemoryDisk::blank(DISK_BYTES);
    let room =
        Room::with_papers(seed, disk, usual_sizes(), &configuration, Site::default(), papers);
    let (mut room, mut world) = world_of(room, relay::Mood::Takes);
    world.names.zone.push(("mta-sts.far.test", IPV4, vec![10, 0, 0, 13]));
    world.names.zone.push((PLACE, TEXT, text("v=STSv1; id=1;")));
    (world.peer.tls_behaviour, world.peer.presented) = (tls_behaviour, presented);
    let web = PolicyServer::new(policy, valid, &mut room);
    Around { room, world, web }
}

impl Around {
    fn pass(&mut self, seconds: u64) {
        let end = self.room.machine.now + machine::Micros::from_secs(seconds);
        let Around { room, world, web } = self;
        world.until(room, "time has passed", |_, room| {
            web.serve(room);
            room.machine.now >= end
        });
    }

    fn pass_days(&mut self, days: u64) {
        (0..days).for_each(|_| self.pass(86_400));
    }

    fn submit(&mut self) {
        self.world.submit(&mut self.room, &["bob@far.test"], MESSAGE);
    }

    /// Checks the number of all messages that have arrived, and whether the last message came over
    /// TLS.
    fn assert_arrived(&mut self, count: usize, is_over_tls: bool) {
        let taken = &self.world.peer.taken;
        assert_eq!(taken.len(), count);
        let last = taken.last().expect("a message has arrived");
        assert!(last.is_over_tls == is_over_tls && is_whole(&last.content, MESSAGE));
    }

    /// Checks that nothing is sent within ten hours, and that Ada gets a report with the reason.
    fn assert_nothing_sent(&mut self, why: &str) {
        self.pass(10 * 3600);
        assert_eq!((self.world.peer.taken.len(), self.world.peer.rcpt_count), (0, 0));
        let inbox = self.world.inbox(&mut self.room, "ada");
        assert_eq!(inbox.len(), 1, "{inbox:?}");
        let words = inbox[0].split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("Action: delayed") && words.contains(why), "{words}");
    }

    fn announce(&mut self, record: Option<&str>) {
        self.world.names.zone.retain(|(name, ..)| *name != PLACE);
        self.world.names.zone.extend(record.map(|record| (PLACE, TEXT, text(record))));
    }
}

#[test]
fn an_allowed_host_with_a_valid_certificate_gets_mail() {
    for (seed, tls_behaviour, host) in
        [(860, TlsBehaviour::Tls12, "mx.far.test"), (861, TlsBehaviour::Tls13, "*.far.test")]
    {
        let mut around = around(seed, &policy("enforce", host), tls_behaviour, valid);
        around.submit();
        around.pass(120);
        around.assert_arrived(1, true);
        assert_eq!(around.web.asked, ["mta-sts.far.test"]);
        around.submit();
        around.pass(120);
        around.assert_arrived(2, true);
        assert_eq!(around.web.asked.len(), 1, "a cached record is not queried again");
        around.room.until_nothing_is_in_use();
    }
}

/// With several cores, the messages are on two cores in some of the rooms.
#[test]
fn a_policy_is_fetched_once_for_all_cores() {
    for seed in 880..884 {
        let mut around =
            around(seed, &policy("enforce", "mx.far.test"), TlsBehaviour::Tls13, valid);
        around.submit();
        around.pass(120);
        let message = String::from_utf8_lossy(MESSAGE).replace("ada@", "grace@");
        let sender = (GRACE, "grace@barepost.test");
        around.world.submit_from(&mut around.room, sender, &["bob@far.test"], message.as_bytes());
        around.pass(120);
        assert!(around.world.peer.taken.iter().all(|taken| taken.is_over_tls));
        assert_eq!((around.world.peer.taken.len(), around.web.asked.len()), (2, 1), "{seed}");
        around.room.until_nothing_is_in_use();
    }
}

/// A policy that expires at once or is too large to cache is fetched for each message, and applies
/// to that message.
#[test]
fn an_uncached_policy_applies_to_its_message() {
    let hosts: String = (0..2_000).map(|number| format!("mx: mx{number}.far.test\r\n")).collect();
    let of_no_time = policy("enforce", "mx.far.test").replace("864000", "0");
    let large = policy("enforce", "mx.far.test").replace("max_age", &[&hosts, "max_age"].concat());
    for (seed, policy) in [(866, of_no_time), (867, large)] {
        let mut allowed = around(seed, &policy, TlsBehaviour::Tls13, valid);
        for count in 1..=2 {
            allowed.submit();
            allowed.pass(120);
            allowed.assert_arrived(count, true);
            assert_eq!(allowed.web.asked.len(), count);
        }
        let mut refused = around(seed, &policy, TlsBehaviour::Tls13, shown);
        refused.submit();
        refused.assert_nothing_sent("has no valid certificate for its name");
        refused.room.until_nothing_is_in_use();
    }
}

#[test]
fn a_host_that_violates_the_policy_gets_no_mail() {
    for (seed, host, tls_behaviour, presented, why) in [
        (
            862,
            "mx.far.test",
            TlsBehaviour::Tls13,
            shown as fn() -> Trust,
            "has no valid certificate for its name",
        ),
        (863, "mx.far.test", TlsBehaviour::None, valid, "does not offer TLS, which is required"),
        (864, "mx.far.test", TlsBehaviour::Babbles, valid, "after STARTTLS"),
        (865, "other.far.test", TlsBehaviour::Tls13, valid, "MTA-STS policy allows none of its"),
    ] {
        let mut around = around(seed, &policy("enforce", host), tls_behaviour, presented);
        around.submit();
        around.assert_nothing_sent(why);
        (around.web.policy, around.world.peer.tls_behaviour, around.world.peer.presented) =
            (policy("enforce", "mx.far.test"), TlsBehaviour::Tls13, valid);
        around.announce(Some("v=STSv1; id=2;"));
        around.pass(4 * 3600);
        around.assert_arrived(1, true);
        around.room.until_nothing_is_in_use();
    }
}

#[test]
fn testing_none_and_missing_policies_do_not_block_mail() {
    for (seed, policy, mood, trusted) in [
        (866, policy("testing", "other.test"), Mood::Answers, valid as fn() -> Trust),
        (867, policy("none", "other.test"), Mood::Answers, valid),
        (868, policy("enforce", "other.test"), Mood::KnowsNothing, valid),
        (869, policy("enforce", "other.test"), Mood::Silent, valid),
        (870, policy("enforce", "other.test"), Mood::CutsOff, valid),
        (871, policy("enforce", "other.test"), Mood::Down, valid),
        (872, policy("enforce", "other.test"), Mood::Answers, shown),
    ] {
        let mut around = around(seed, &policy, TlsBehaviour::Tls13, shown);
        (around.web.mood, around.web.presented) = (mood, trusted);
        around.submit();
        around.pass(240);
        around.assert_arrived(1, true);
        around.room.until_nothing_is_in_use();
    }
}

/// Although an attacker on the path can remove the record and block the web server, the cached
/// policy still applies.
#[test]
fn a_cached_policy_applies_until_it_expires() {
    for (seed, record, mood) in [
        (873, None, Mood::Answers),
        (874, Some("v=STSv1; id=2;"), Mood::Down),
        (875, Some("v=STSv1; id=2;"), Mood::KnowsNothing),
    ] {
        let mut around =
            around(seed, &policy("enforce", "mx.far.test"), TlsBehaviour::Tls13, valid);
        around.submit();
        around.pass(120);
        around.assert_arrived(1, true);
        around.world.peer.presented = shown;
        around.web.mood = mood;
        around.announce(record);
        around.pass(600);
        let rcpt_count = around.world.peer.rcpt_count;
        around.submit();
        around.pass(6 * 3600);
        assert_eq!((around.world.peer.taken.len(), around.world.peer.rcpt_count), (1, rcpt_count));
        around.pass_days(8);
        assert_eq!(around.world.peer.taken.len(), 1, "the message is not sent within five days");
        around.pass_days(3);
        around.submit();
        around.pass(600);
        assert_eq!(around.world.peer.taken.len(), 2, "the policy has expired");
    }
}

#[test]
fn dane_takes_precedence_over_mta_sts() {
    let signed = ["far.test", "mx.far.test", "_25._tcp.mx.far.test"];
    let mut digest = Sha256::digest(shown().root.as_ref()).to_vec();
    digest.splice(..0, [3, 0, 1]);
    let mut around = configured(
        876,
        &policy("enforce", "other.test"),
        TlsBehaviour::Tls13,
        shown,
        "dnssec = true",
    );
    around.world.names.zone.push((signed[2], TLSA, digest));
    around.world.names.signed.extend(signed);
    around.submit();
    around.pass(120);
    around.assert_arrived(1, true);
}

#[test]
fn a_policy_request_does_not_block_a_stop() {
    let mut around = around(877, &policy("enforce", "mx.far.test"), TlsBehaviour::Tls13, valid);
    around.web.mood = Mood::Silent;
    around.submit();
    around.pass(20);
    around.room.machine.stop = true;
    let Around { room, world, .. } = &mut around;
    world.until(room, "it has stopped", |_, room| room.ended.is_some());
    assert_eq!(world.peer.taken.len(), 0);
}
