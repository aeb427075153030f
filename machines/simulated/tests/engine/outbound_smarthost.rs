//! Outbound mail through a smarthost, for all or some domains. The server uses TLS and login as
//! configured, and sends no mail if either is not possible.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use http::Site;
use server::MachineKeys;
use simulated::MemoryDisk;
use tls::Authorities;

use super::relay::{MESSAGE, Mood, World, configuration, is_whole, world_of};
use super::relay_smarthost::{Greeting, PASSWORD, Smarthost, SmarthostTls};
use super::room::tls_stream::Trust;
use super::room::{DISK_BYTES, Room, usual_sizes};

const IPV4: u16 = 1;
const DAYS: std::ops::Range<i64> = -10..10_000;

/// A room and its world, with a smarthost at the host of `far.test`.
struct Around {
    room: Room,
    world: World,
    smart: Smarthost,
}

/// A world with the smarthost `smart.test`, which presents this certificate. The machine trusts the
/// certificate, and has the lines `relay` in its configuration.
fn around(seed: u64, (port, tls_mode): (u16, SmarthostTls), trust: Trust, relay: &str) -> Around {
    let authorities = Authorities::with([trust.pem.as_slice()]).expect("the certificate is valid");
    let papers = MachineKeys { authorities, ..MachineKeys::default() };
    let private = "private_networks = [\"10.0.0.0/24\"]\n";
    let text = configuration().replace(private, &format!("{private}{relay}\n"));
    let disk = MemoryDisk::blank(DISK_BYTES);
    let room = Room::with_papers(seed, disk, usual_sizes(), &text, Site::default(), papers);
    let (mut room, mut world) = world_of(room, Mood::Takes);
    world.names.zone.push(("smart.test", IPV4, vec![10, 0, 0, 13]));
    let smart = Smarthost::new(port, tls_mode, trust, &mut room);
    Around { room, world, smart }
}

fn trust(names: &[&str]) -> Trust {
    Trust::made(11, names, DAYS)
}

impl Around {
    fn pass(&mut self, seconds: u64) {
        let end = self.room.machine.now + machine::Micros::from_secs(seconds);
        let Around { room, world, smart } = self;
        world.until(room, "time has passed", |_, room| {
            smart.serve(room);
            room.machine.now >= end
        });
    }

    fn submit(&mut self, recipients: &[&str]) {
        self.world.submit(&mut self.room, recipients, MESSAGE);
    }

    /// The recipients of the messages that went through the smarthost. Checks their content and
    /// whether TLS was used.
    fn by_smarthost(&self, is_over_tls: bool) -> Vec<String> {
        let taken = &self.smart.taken;
        assert!(
            taken
                .iter()
                .all(|taken| is_whole(&taken.content, MESSAGE) && taken.is_over_tls == is_over_tls)
        );
        let mut all: Vec<String> = taken.iter().flat_map(|taken| taken.to.clone()).collect();
        all.sort();
        all
    }

    /// Checks that nothing is sent within ten hours, and that Ada gets a report with the reason.
    fn assert_nothing_sent(&mut self, why: &str) {
        self.pass(10 * 3600);
        let heard: Vec<&str> = self.smart.lines.iter().map(|(line, _)| line.as_str()).collect();
        let is_about_mail =
            |line: &&&str| ["MAIL", "RCPT", "DATA"].iter().any(|word| line.starts_with(word));
        assert_eq!(heard.iter().filter(is_about_mail).count(), 0, "{heard:?}");
        assert_eq!((self.smart.taken.len(), self.world.peer.taken.len()), (0, 0));
        let inbox = self.world.inbox(&mut self.room, "ada");
        assert_eq!(inbox.len(), 1, "{inbox:?}");
        let words = inbox[0].split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("Action: delayed") && words.contains(why), "{words}");
    }

    /// The AUTH lines that the smarthost has received.
    fn logins(&self) -> Vec<&str> {
        self.smart
            .lines
            .iter()
            .map(|(line, _)| line.as_str())
            .filter(|line| line.starts_with("AUTH"))
            .collect()
    }
}

#[test]
fn all_mail_uses_the_smarthost_except_for_direct_domains() {
    let relay =
        "smarthost = 'smart.test:587'\n[[relay.domain]]\ndomains = ['far.test']\ndirect = true";
    for seed in [830, 831] {
        let mut around = around(seed, (587, SmarthostTls::None), trust(&["smart.test"]), relay);
        around.submit(&[
            "bob@far.test",
            "eve@nowhere.test",
            "x@null.test",
            "x@silent.test",
            "grace@barepost.test",
        ]);
        around.pass(120);
        assert_eq!(
            around.by_smarthost(false),
            ["eve@nowhere.test", "x@null.test", "x@silent.test"]
        );
        let to: Vec<_> = around.world.peer.taken.iter().map(|taken| taken.to.clone()).collect();
        assert_eq!(to, [["bob@far.test"]]);
        assert_eq!(around.world.inbox(&mut around.room, "grace").len(), 1);
        assert_eq!(around.world.inbox(&mut around.room, "ada").len(), 0);
        assert!(
            !around.world.names.asked.iter().any(|(name, _)| name == "nowhere.test"),
            "no name server is asked for the smarthost's domains"
        );
        around.room.until_nothing_is_in_use();
    }
}

#[test]
fn a_domain_may_have_its_own_smarthost() {
    let relay = "[[relay.domain]]\ndomains = ['null.test']\nsmarthost = '10.0.0.13:2525'";
    let mut around = around(832, (2525, SmarthostTls::Offered), trust(&["other.test"]), relay);
    around.submit(&["bob@far.test", "x@null.test"]);
    around.pass(120);
    assert_eq!(around.by_smarthost(true), ["x@null.test"], "over TLS, with any certificate");
    assert_eq!(around.world.peer.taken.len(), 1);
}

/// A password is sent only over TLS to a smarthost with a valid certificate, and not at all if
/// SCRAM is offered.
#[test]
fn the_best_offered_login_mechanism_is_used() {
    let login = "user = 'barepost'\npassword = 'pencil'";
    for (seed, mechanisms, expected) in [
        (833, "LOGIN PLAIN SCRAM-SHA-256", "AUTH SCRAM-SHA-256 "),
        (834, "LOGIN PLAIN", "AUTH PLAIN "),
        (835, "LOGIN", "AUTH LOGIN"),
    ] {
        for (tls_mode, tls) in [
            (SmarthostTls::Offered, ""),
            (SmarthostTls::Offered12, "tls = 'starttls'\n"),
            (SmarthostTls::Implicit, "tls = 'implicit'\n"),
            (SmarthostTls::None, "tls = 'none'\n"),
        ] {
            let relay = format!("smarthost = 'smart.test:465'\n{tls}{login}");
            let mut around = around(seed, (465, tls_mode), trust(&["smart.test"]), &relay);
            around.smart.mechanisms = mechanisms;
            around.submit(&["x@null.test"]);
            around.pass(120);
            assert_eq!(
                around.by_smarthost(tls_mode != SmarthostTls::None),
                ["x@null.test"],
                "{mechanisms} {tls_mode:?}"
            );
            assert!(around.logins()[0].starts_with(expected), "{:?}", around.logins());
            let in_clear = around.smart.lines.iter().filter(|(line, is_over_tls)| {
                !is_over_tls && !line.starts_with("EHLO") && line != "STARTTLS"
            });
            assert_eq!(
                in_clear.count() == 0,
                tls_mode != SmarthostTls::None,
                "{:?}",
                around.smart.lines
            );
            around.room.until_nothing_is_in_use();
        }
    }
}

#[test]
fn the_tls_setting_is_enforced_and_failures_are_reported() {
    const NO_TLS: &str = "does not offer TLS, which is required";
    const NOT_VALID: &str = "has no valid certificate for its name";
    let login = "user = 'barepost'\npassword = 'pencil'\n";
    let other = || trust(&["other.test"]);
    let right = || trust(&["smart.test"]);
    for (seed, tls_mode, shown, settings, why) in [
        (840, SmarthostTls::None, right(), "tls = 'starttls'\n".to_string(), NO_TLS),
        (841, SmarthostTls::Babbles, right(), "tls = 'starttls'\n".to_string(), "after STARTTLS"),
        (
            842,
            SmarthostTls::None,
            right(),
            "tls = 'implicit'\n".to_string(),
            "TLS with the other server failed",
        ),
        (843, SmarthostTls::None, right(), login.to_string(), NO_TLS),
        (844, SmarthostTls::Babbles, right(), login.to_string(), "after STARTTLS"),
        (845, SmarthostTls::Offered, other(), login.to_string(), NOT_VALID),
        (846, SmarthostTls::Offered12, other(), format!("tls = 'starttls'\n{login}"), NOT_VALID),
        (847, SmarthostTls::Implicit, other(), format!("tls = 'implicit'\n{login}"), NOT_VALID),
        (
            848,
            SmarthostTls::Implicit,
            right(),
            format!("tls = 'starttls'\n{login}"),
            "did not respond in time",
        ),
    ] {
        let mut around = around(
            seed,
            (587, tls_mode),
            shown,
            &format!("smarthost = 'smart.test:587'\n{settings}"),
        );
        around.smart.mechanisms = if settings.contains("user") { "PLAIN LOGIN" } else { "" };
        around.submit(&["x@null.test"]);
        around.assert_nothing_sent(why);
        assert_eq!(around.logins().len(), 0, "{seed}");
    }
}

/// Without a password any certificate is accepted: TLS only protects the message from
/// eavesdroppers, as on any hop.
#[test]
fn without_a_password_any_certificate_is_accepted() {
    for (seed, tls_mode, tls) in
        [(850, SmarthostTls::Offered, "starttls"), (851, SmarthostTls::Implicit, "implicit")]
    {
        let relay = format!("smarthost = 'smart.test:587'\ntls = '{tls}'");
        let mut around = around(seed, (587, tls_mode), trust(&["other.test"]), &relay);
        around.submit(&["x@null.test"]);
        around.pass(60);
        assert_eq!(around.by_smarthost(true), ["x@null.test"]);
    }
}

#[test]
fn a_smarthost_with_a_password_must_have_its_address_certified() {
    let relay = "smarthost = '10.0.0.13:587'\nuser = 'barepost'\npassword = 'pencil'";
    let mut right = around(852, (587, SmarthostTls::Offered), trust(&["10.0.0.13"]), relay);
    right.smart.mechanisms = "SCRAM-SHA-256";
    right.submit(&["x@null.test"]);
    right.pass(60);
    assert_eq!(right.by_smarthost(true), ["x@null.test"]);
    let mut wrong = around(853, (587, SmarthostTls::Offered), trust(&["smart.test"]), relay);
    wrong.submit(&["x@null.test"]);
    wrong.assert_nothing_sent("has no valid certificate for its name");
}

#[test]
fn smarthost_failures_before_a_message_are_temporary() {
    let login = "smarthost = 'smart.test:587'\nuser = 'barepost'\npassword = 'pencil'";
    let mut refused = around(854, (587, SmarthostTls::Offered), trust(&["smart.test"]), login);
    refused.smart.mechanisms = "SCRAM-SHA-256 PLAIN";
    refused.smart.knows("another");
    refused.submit(&["x@null.test"]);
    refused.assert_nothing_sent("refused our login. smart.test replied: 535 5.7.8 No");
    assert!(
        refused.logins().iter().all(|line| line.starts_with("AUTH SCRAM-SHA-256 ")),
        "{:?}",
        refused.logins()
    );

    let mut away = around(
        855,
        (587, SmarthostTls::None),
        trust(&["smart.test"]),
        "smarthost = 'smart.test:587'",
    );
    away.smart.greeting = Greeting::SendsAway;
    away.submit(&["x@null.test"]);
    away.assert_nothing_sent(
        "refused the connection. smart.test replied: 554 5.7.1 You are blocked",
    );

    let mut lost = around(
        856,
        (587, SmarthostTls::None),
        trust(&["smart.test"]),
        "smarthost = 'gone.test:587'",
    );
    lost.submit(&["x@null.test"]);
    lost.assert_nothing_sent("The smarthost has no reachable address");

    for mut around in [refused, away] {
        around.smart.greeting = Greeting::Ready;
        around.smart.knows(PASSWORD);
        around.pass(6 * 3600);
        assert_eq!(around.smart.taken.len(), 1);
        around.room.until_nothing_is_in_use();
    }
}

/// While the smarthost is down, the server tries it as one destination, not once for each domain.
/// Afterwards the messages share connections.
#[test]
fn a_smarthost_that_is_down_is_one_destination() {
    let relay =
        "smarthost = 'smart.test:587'\n[[relay.domain]]\ndomains = ['far.test']\ndirect = true";
    let mut around = around(857, (587, SmarthostTls::None), trust(&["smart.test"]), relay);
    around.smart.greeting = Greeting::Down;
    let domains: Vec<String> = (0..30).map(|number| format!("eve@{number}.nowhere.test")).collect();
    for recipients in domains.chunks(10) {
        around.submit(&recipients.iter().map(String::as_str).collect::<Vec<_>>());
    }
    around.submit(&["bob@far.test"]);
    around.pass(3 * 3600);
    assert_eq!((around.smart.taken.len(), around.world.peer.taken.len()), (0, 1));
    assert!((4..=20).contains(&around.smart.accepted), "{}", around.smart.accepted);
    around.smart.greeting = Greeting::Ready;
    let before = around.smart.accepted;
    around.pass(8 * 3600);
    assert_eq!(around.by_smarthost(false).len(), 30);
    let calls = around.smart.accepted - before;
    assert!(
        around.smart.messages_max > 1 && calls < 30,
        "{calls} calls, {} messages",
        around.smart.messages_max
    );
}
