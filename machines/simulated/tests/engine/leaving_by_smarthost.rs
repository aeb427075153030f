//! Mail leaves by a smarthost: for everybody, or for some domains; in TLS where that is written, after a login where there is a password, and not at all where either cannot be kept to.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use http::Site;
use server::Papers;
use simulated::MemoryDisk;
use tls::Authorities;

use super::far::{LETTER, Mood, World, configuration, is_whole, world_of};
use super::far_smarthost::{Greeting, PASSWORD, Shield, Smarthost};
use super::room::shielded::Trust;
use super::room::{DISK_BYTES, Room, usual_sizes};

const IPV4: u16 = 1;
const DAYS: std::ops::Range<i64> = -10..10_000;

/// The world, and a smarthost in it at the host of `far.test`.
struct Around {
    room: Room,
    world: World,
    smart: Smarthost,
}

/// One with a smarthost that shows this at its port, and a machine that believes it and is configured so. It is called `smart.test`.
fn around(seed: u64, (port, shield): (u16, Shield), trust: Trust, relay: &str) -> Around {
    let authorities = Authorities::with([trust.pem.as_slice()]).expect("it is one");
    let papers = Papers { authorities, ..Papers::default() };
    let private = "private_networks = [\"10.0.0.0/24\"]\n";
    let text = configuration().replace(private, &format!("{private}{relay}\n"));
    let disk = MemoryDisk::blank(DISK_BYTES);
    let room = Room::with_papers(seed, disk, usual_sizes(), &text, Site::default(), papers);
    let (mut room, mut world) = world_of(room, Mood::Takes);
    world.names.zone.push(("smart.test", IPV4, vec![10, 0, 0, 13]));
    let smart = Smarthost::new(port, shield, trust, &mut room);
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
        self.world.submit(&mut self.room, recipients, LETTER);
    }

    /// To whom letters went by the smarthost; whole, and in TLS or not.
    fn by_smarthost(&self, is_sealed: bool) -> Vec<String> {
        let taken = &self.smart.taken;
        assert!(
            taken
                .iter()
                .all(|taken| is_whole(&taken.content, LETTER) && taken.is_sealed == is_sealed)
        );
        let mut all: Vec<String> = taken.iter().flat_map(|taken| taken.to.clone()).collect();
        all.sort();
        all
    }

    /// Ten hours go by, in which nobody hears of a letter. Ada hears why that is.
    fn nothing_goes(&mut self, why: &str) {
        self.pass(10 * 3600);
        let heard: Vec<&str> = self.smart.lines.iter().map(|(line, _)| line.as_str()).collect();
        let is_of_letter =
            |line: &&&str| ["MAIL", "RCPT", "DATA"].iter().any(|word| line.starts_with(word));
        assert_eq!(heard.iter().filter(is_of_letter).count(), 0, "{heard:?}");
        assert_eq!((self.smart.taken.len(), self.world.peer.taken.len()), (0, 0));
        let inbox = self.world.inbox(&mut self.room, "ada");
        assert_eq!(inbox.len(), 1, "{inbox:?}");
        let words = inbox[0].split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("Action: delayed") && words.contains(why), "{words}");
    }

    /// Lines of logins that the smarthost has heard.
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
fn all_mail_goes_by_the_smarthost_but_that_of_domains_which_have_a_way_of_their_own() {
    let relay =
        "smarthost = 'smart.test:587'\n[[relay.domain]]\ndomains = ['far.test']\ndirect = true";
    for seed in [830, 831] {
        let mut around = around(seed, (587, Shield::None), trust(&["smart.test"]), relay);
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
            "nobody has to know"
        );
        around.room.until_nothing_is_in_use();
    }
}

#[test]
fn a_domain_may_have_a_smarthost_of_its_own() {
    let relay = "[[relay.domain]]\ndomains = ['null.test']\nsmarthost = '10.0.0.13:2525'";
    let mut around = around(832, (2525, Shield::Offered), trust(&["other.test"]), relay);
    around.submit(&["bob@far.test", "x@null.test"]);
    around.pass(120);
    assert_eq!(around.by_smarthost(true), ["x@null.test"], "in TLS, with whom it may be");
    assert_eq!(around.world.peer.taken.len(), 1);
}

/// Where a password has to be said it is said in TLS, to who shows that he is the one; and where it can be proved it is not said.
#[test]
fn whoever_is_to_log_in_does_so_by_the_best_way_that_is_offered() {
    let login = "user = 'barepost'\npassword = 'pencil'";
    for (seed, mechanisms, expected) in [
        (833, "LOGIN PLAIN SCRAM-SHA-256", "AUTH SCRAM-SHA-256 "),
        (834, "LOGIN PLAIN", "AUTH PLAIN "),
        (835, "LOGIN", "AUTH LOGIN"),
    ] {
        for (shield, tls) in [
            (Shield::Offered, ""),
            (Shield::Offered12, "tls = 'starttls'\n"),
            (Shield::Implicit, "tls = 'implicit'\n"),
            (Shield::None, "tls = 'none'\n"),
        ] {
            let relay = format!("smarthost = 'smart.test:465'\n{tls}{login}");
            let mut around = around(seed, (465, shield), trust(&["smart.test"]), &relay);
            around.smart.mechanisms = mechanisms;
            around.submit(&["x@null.test"]);
            around.pass(120);
            assert_eq!(
                around.by_smarthost(shield != Shield::None),
                ["x@null.test"],
                "{mechanisms} {shield:?}"
            );
            assert!(around.logins()[0].starts_with(expected), "{:?}", around.logins());
            let in_clear = around.smart.lines.iter().filter(|(line, is_sealed)| {
                !is_sealed && !line.starts_with("EHLO") && line != "STARTTLS"
            });
            assert_eq!(in_clear.count() == 0, shield != Shield::None, "{:?}", around.smart.lines);
            around.room.until_nothing_is_in_use();
        }
    }
}

#[test]
fn what_is_written_of_tls_is_kept_to_and_who_sends_hears_why_nothing_goes() {
    const NO_TLS: &str = "offers no TLS, and without it nothing is sent there";
    const NOT_VALID: &str = "showed no certificate that is valid for its name";
    let login = "user = 'barepost'\npassword = 'pencil'\n";
    let other = || trust(&["other.test"]);
    let right = || trust(&["smart.test"]);
    for (seed, shield, shown, settings, why) in [
        (840, Shield::None, right(), "tls = 'starttls'\n".to_string(), NO_TLS),
        (841, Shield::Babbles, right(), "tls = 'starttls'\n".to_string(), "while TLS was begun"),
        (
            842,
            Shield::None,
            right(),
            "tls = 'implicit'\n".to_string(),
            "TLS with the other server failed",
        ),
        (843, Shield::None, right(), login.to_string(), NO_TLS),
        (844, Shield::Babbles, right(), login.to_string(), "while TLS was begun"),
        (845, Shield::Offered, other(), login.to_string(), NOT_VALID),
        (846, Shield::Offered12, other(), format!("tls = 'starttls'\n{login}"), NOT_VALID),
        (847, Shield::Implicit, other(), format!("tls = 'implicit'\n{login}"), NOT_VALID),
        (848, Shield::Implicit, right(), format!("tls = 'starttls'\n{login}"), "fell silent"),
    ] {
        let mut around = around(
            seed,
            (587, shield),
            shown,
            &format!("smarthost = 'smart.test:587'\n{settings}"),
        );
        around.smart.mechanisms = if settings.contains("user") { "PLAIN LOGIN" } else { "" };
        around.submit(&["x@null.test"]);
        around.nothing_goes(why);
        assert_eq!(around.logins().len(), 0, "{seed}");
    }
}

/// Without a password anybody will do: there is a letter to be kept from who listens, as everywhere.
#[test]
fn without_a_password_any_certificate_will_do() {
    for (seed, shield, tls) in
        [(850, Shield::Offered, "starttls"), (851, Shield::Implicit, "implicit")]
    {
        let relay = format!("smarthost = 'smart.test:587'\ntls = '{tls}'");
        let mut around = around(seed, (587, shield), trust(&["other.test"]), &relay);
        around.submit(&["x@null.test"]);
        around.pass(60);
        assert_eq!(around.by_smarthost(true), ["x@null.test"]);
    }
}

#[test]
fn a_smarthost_at_an_address_has_to_have_it_in_its_certificate_where_there_is_a_password() {
    let relay = "smarthost = '10.0.0.13:587'\nuser = 'barepost'\npassword = 'pencil'";
    let mut right = around(852, (587, Shield::Offered), trust(&["10.0.0.13"]), relay);
    right.smart.mechanisms = "SCRAM-SHA-256";
    right.submit(&["x@null.test"]);
    right.pass(60);
    assert_eq!(right.by_smarthost(true), ["x@null.test"]);
    let mut wrong = around(853, (587, Shield::Offered), trust(&["smart.test"]), relay);
    wrong.submit(&["x@null.test"]);
    wrong.nothing_goes("showed no certificate that is valid for its name");
}

#[test]
fn what_a_smarthost_says_before_it_hears_of_a_letter_is_never_final() {
    let login = "smarthost = 'smart.test:587'\nuser = 'barepost'\npassword = 'pencil'";
    let mut refused = around(854, (587, Shield::Offered), trust(&["smart.test"]), login);
    refused.smart.mechanisms = "SCRAM-SHA-256 PLAIN";
    refused.smart.knows("another");
    refused.submit(&["x@null.test"]);
    refused.nothing_goes("refused our login: 535 5.7.8 No");
    assert!(
        refused.logins().iter().all(|line| line.starts_with("AUTH SCRAM-SHA-256 ")),
        "{:?}",
        refused.logins()
    );

    let mut away =
        around(855, (587, Shield::None), trust(&["smart.test"]), "smarthost = 'smart.test:587'");
    away.smart.greeting = Greeting::SendsAway;
    away.submit(&["x@null.test"]);
    away.nothing_goes("does not want to speak with us: 554 5.7.1 You are blocked");

    let mut lost =
        around(856, (587, Shield::None), trust(&["smart.test"]), "smarthost = 'gone.test:587'");
    lost.submit(&["x@null.test"]);
    lost.nothing_goes(
        "the server that sends mail on for this one has no address that can be reached",
    );

    for mut around in [refused, away] {
        around.smart.greeting = Greeting::Ready;
        around.smart.knows(PASSWORD);
        around.pass(6 * 3600);
        assert_eq!(around.smart.taken.len(), 1);
        around.room.until_nothing_is_in_use();
    }
}

/// It is the smarthost that is down, not each of the domains behind it; and when it is back, letters for them follow each other by one connection.
#[test]
fn a_smarthost_that_is_down_is_one_destination_whatever_lies_behind_it() {
    let relay =
        "smarthost = 'smart.test:587'\n[[relay.domain]]\ndomains = ['far.test']\ndirect = true";
    let mut around = around(857, (587, Shield::None), trust(&["smart.test"]), relay);
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
        around.smart.letters_max > 1 && calls < 30,
        "{calls} calls, {} letters",
        around.smart.letters_max
    );
}
