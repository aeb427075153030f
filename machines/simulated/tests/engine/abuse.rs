//! Abuse by external clients: block lists, greylisting, rate limits, and the handling of such mail.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use machine::Micros;
use server::InUse;
use simulated::room::messages_on;
use smoltcp::wire::Ipv4Address;

use crate::CORES;

use super::dmarc::{INBOX, JUNK, newest};
use super::dns::{EXTERNAL, IPV4, Mood, NameServer, TEXT, serving_as, text};
use super::room::{Room, Talk};

const LISTS: &str =
    "[abuse]\ndnsbl = [\"block.test\"]\ndnsbl_junk = [\"junk.test\"]\ndnswl = [\"trust.test\"]\n";
const BLOCKED: &str = "7.113.0.203.block.test";
const SUSPECTED: &str = "7.113.0.203.junk.test";
const TRUSTED: &str = "7.113.0.203.trust.test";
const UNCHECKED: &str = "451 4.7.0 Cannot check your IP address now, try again later";
const REFUSED: &str =
    "554 5.7.1 203.0.113.7 is listed by block.test: See https://block.test/203.0.113.7";

/// Adds a record for `name` to the name server's zone, so that a block list contains the external
/// client.
fn list(server: &mut NameServer, name: &'static str, address: [u8; 4]) {
    server.zone.push((name, IPV4, address.to_vec()));
    server.zone.push((name, TEXT, text("See https://block.test/203.0.113.7")));
}

/// Connects from a host, and sends EHLO and MAIL.
fn greet(room: &mut Room, server: &mut NameServer, host: usize) -> Talk {
    let mut talk = room.connect_from(host, 25);
    assert!(server.line(room, &mut talk).starts_with("220 "));
    for command in ["EHLO far.test", "MAIL FROM:<me@pass.test>"] {
        let reply = server.smtp(room, &mut talk, command);
        assert!(reply.starts_with("250 "), "{command}: {reply}");
    }
    talk
}

/// The reply to RCPT for Ada, on a new connection of a host.
fn rcpt_reply(room: &mut Room, server: &mut NameServer, host: usize) -> String {
    let mut talk = greet(room, server, host);
    let reply = server.smtp(room, &mut talk, "RCPT TO:<ada@barepost.test>");
    room.part(talk);
    reply
}

#[test]
fn a_listed_client_is_refused_except_for_the_postmaster() {
    for seed in [1, 2] {
        let (mut room, mut server) = serving_as(seed, Mood::Answers, LISTS);
        list(&mut server, BLOCKED, [127, 0, 0, 2]);
        let mut talk = greet(&mut room, &mut server, EXTERNAL);
        for (path, reply) in [
            ("ada@barepost.test", REFUSED),
            ("nobody@barepost.test", REFUSED),
            ("Postmaster", "250 2.1.5 Recipient OK"),
            ("\"PostMaster\"@barepost.test", "250 2.1.5 Recipient OK"),
            ("grace@barepost.test", REFUSED),
        ] {
            assert_eq!(
                server.smtp(&mut room, &mut talk, &format!("RCPT TO:<{path}>")),
                reply,
                "{path}"
            );
        }
        assert!(server.smtp(&mut room, &mut talk, "DATA").starts_with("354 "));
        assert!(
            server
                .smtp(&mut room, &mut talk, "From: me@pass.test\r\n\r\nLetter\r\n.")
                .starts_with("250 2.0.0 ")
        );
        room.part(talk);
        assert_eq!(newest(&room).0, INBOX);
        assert_eq!(rcpt_reply(&mut room, &mut server, EXTERNAL), REFUSED);
        let asked = server.asked.iter().filter(|(name, _)| name == BLOCKED).count();
        assert_eq!(asked, 2, "a cached record is not queried again: {:?}", server.asked);
        server.asked.clear();
        assert_eq!(
            rcpt_reply(&mut room, &mut server, 0),
            "250 2.1.5 Recipient OK",
            "local clients are not checked"
        );
        assert_eq!(server.asked, []);
        room.until_nothing_is_in_use();
    }
}

#[test]
fn unlisted_allowed_and_exempt_clients_are_accepted() {
    for (seed, case) in
        ["nothing", "asked wrongly", "not listed so", "fails", "trusted", "blocks us", "exempt"]
            .into_iter()
            .enumerate()
    {
        // The lines are appended to a configuration that ends with the section [access].
        let exempt =
            if case == "exempt" { "unthrottled_from = [\"203.0.113.0/24\"]\n" } else { "" };
        let (mut room, mut server) =
            serving_as(seed as u64, Mood::Answers, &format!("{exempt}{LISTS}"));
        match case {
            "asked wrongly" => list(&mut server, BLOCKED, [127, 255, 255, 254]),
            "blocks us" => list(&mut server, BLOCKED, [127, 0, 0, 255]),
            "not listed so" => list(&mut server, BLOCKED, [192, 0, 2, 1]),
            "fails" => server.failing = vec![BLOCKED],
            "trusted" => {
                list(&mut server, BLOCKED, [127, 0, 0, 2]);
                list(&mut server, TRUSTED, [127, 0, 5, 1]);
            }
            "exempt" => list(&mut server, BLOCKED, [127, 0, 0, 2]),
            _ => {}
        }
        assert_eq!(
            rcpt_reply(&mut room, &mut server, EXTERNAL),
            "250 2.1.5 Recipient OK",
            "{case}"
        );
        room.until_nothing_is_in_use();
    }
}

#[test]
fn mail_of_a_client_on_a_junk_list_goes_to_junk() {
    for seed in [3, 4] {
        let (mut room, mut server) = serving_as(seed, Mood::Answers, LISTS);
        list(&mut server, SUSPECTED, [127, 0, 0, 3]);
        server.zone.push(("_dmarc.fail.test", TEXT, text("v=DMARC1; p=quarantine")));
        let listed = "203.0.113.7 is listed by junk.test: See https://block.test/203.0.113.7";
        let unproved = "DMARC failed for fail.test, and its policy is quarantine; ";
        for (author, reason) in [("me@pass.test", ""), ("me@fail.test", unproved)] {
            let mut talk = greet(&mut room, &mut server, EXTERNAL);
            for command in [
                "RCPT TO:<ada@barepost.test>",
                "DATA",
                &format!("From: {author}\r\n\r\nLetter\r\n."),
            ] {
                let reply = server.smtp(&mut room, &mut talk, command);
                assert!(
                    reply.starts_with(if command == "DATA" { "354 " } else { "250 " }),
                    "{command}: {reply}"
                );
            }
            room.part(talk);
            let (mailbox, above, _) = newest(&room);
            assert_eq!(mailbox, JUNK);
            assert!(
                above.contains(&format!("\r\nX-Barepost-Reason: {reason}{listed}\r\n")),
                "{above}"
            );
        }
        room.until_nothing_is_in_use();
    }
}

#[test]
fn a_silent_list_refuses_no_client_and_is_skipped_for_a_while() {
    for seed in [5, 6] {
        let (mut room, mut server) = serving_as(seed, Mood::Silent, LISTS);
        let mut talk = greet(&mut room, &mut server, EXTERNAL);
        let before = room.machine.now;
        assert_eq!(
            server.smtp(&mut room, &mut talk, "RCPT TO:<Postmaster>"),
            "250 2.1.5 Recipient OK"
        );
        assert!(
            room.machine.now.since(before).as_secs() < 1,
            "the postmaster does not wait for lists"
        );
        room.part(talk);
        // The time at which each core last waited for the list.
        let mut waited_until = vec![None; usize::from(CORES)];
        let mut waits = |room: &mut Room| {
            let mut talk = greet(room, &mut server, EXTERNAL);
            let of_each = room.engines.in_use_on_each();
            let core = of_each
                .iter()
                .position(|in_use| in_use.sessions > 0)
                .expect("one core has the session");
            let before = room.machine.now;
            assert_eq!(
                server.smtp(room, &mut talk, "RCPT TO:<ada@barepost.test>"),
                "250 2.1.5 Recipient OK"
            );
            let waited = room.machine.now.since(before).as_secs();
            assert!(waited <= 5, "{waited}");
            let is_asked = waited > 1;
            if is_asked {
                let last = waited_until[core].replace(room.machine.now);
                let is_time = last.is_none_or(|last| before.since(last).as_secs() >= 59);
                assert!(is_time, "core {core} of {CORES} asks once a minute");
            }
            room.part(talk);
            is_asked
        };
        assert!(waits(&mut room));
        let waited = (0..20).filter(|_| waits(&mut room)).count();
        assert!(waited < 20, "the silent list is skipped");
        room.pass(Micros::from_secs(61));
        assert!((0..20).any(|_| waits(&mut room)), "the list is asked again after a minute");
        room.until_nothing_is_in_use();
    }
}

#[test]
fn concurrent_list_lookups_are_limited_and_cleaned_up() {
    // Without a greeting delay, all clients are looked up at the same time.
    let (mut room, mut server) =
        serving_as(7, Mood::Silent, &format!("{LISTS}greeting_delay = \"0s\"\n"));
    let wait = |room: &mut Room, server: &mut NameServer| {
        let talk = greet(room, server, EXTERNAL);
        room.send(&talk, b"RCPT TO:<ada@barepost.test>\r\n");
        talk
    };
    // An address may open at least this many connections in a minute.
    let count = 50 * usize::from(CORES.min(4));
    let mut talks: Vec<Talk> = (0..count).map(|_| wait(&mut room, &mut server)).collect();
    room.pass(Micros::from_millis(100));
    // Of the lookups that may wait for one response, an address may have at most a third.
    let searches = room.engines.in_use().searches;
    assert_eq!(searches, 42);
    let answered: Vec<String> = talks.iter_mut().filter_map(|talk| room.line_heard(talk)).collect();
    assert_eq!(
        answered.len(),
        talks.len() - searches,
        "clients beyond the limit are answered at once"
    );
    assert!(answered.iter().all(|line| line == UNCHECKED), "{answered:?}");
    talks.iter().for_each(|talk| room.abort(talk));
    room.until_nothing_is_in_use();
    room.pass(Micros::from_secs(61));
    let mut talk = wait(&mut room, &mut server);
    room.pass(Micros::from_secs(1));
    room.machine.stop = true;
    assert!(server.line(&mut room, &mut talk).starts_with("421 "));
    room.until("the machine has stopped", |room| room.ended.is_some());
    assert_eq!(InUse { connections: 0, ..room.engines.in_use() }, InUse::default());
}

/// A client beyond the limit of lookups is deferred. It is not accepted without a check.
#[test]
fn a_client_beyond_the_lookup_limit_is_deferred() {
    let (mut room, mut server) =
        serving_as(1545, Mood::Silent, &format!("{LISTS}greeting_delay = \"0s\"\n"));
    list(&mut server, BLOCKED, [127, 0, 0, 2]);
    let mut talks: Vec<Talk> = (0..43).map(|_| greet(&mut room, &mut server, EXTERNAL)).collect();
    for talk in &talks {
        room.send(talk, b"RCPT TO:<ada@barepost.test>\r\n");
    }
    room.pass(Micros::from_millis(100));
    let deferred: Vec<usize> =
        (0..43).filter(|at| room.line_heard(&mut talks[*at]).is_some()).collect();
    let [deferred] = deferred[..] else { panic!("{deferred:?}") };
    let mut deferred = talks.swap_remove(deferred);
    assert_eq!(
        server.smtp(&mut room, &mut deferred, "RCPT TO:<ada@barepost.test>"),
        UNCHECKED,
        "the limit is still reached"
    );
    let reply = server.smtp(&mut room, &mut deferred, "RCPT TO:<postmaster@barepost.test>");
    assert_eq!(reply, "250 2.1.5 Recipient OK");
    server.mood = Mood::Answers;
    for talk in &mut talks {
        assert_eq!(server.line(&mut room, talk), REFUSED);
    }
    assert_eq!(
        server.smtp(&mut room, &mut deferred, "RCPT TO:<ada@barepost.test>"),
        REFUSED,
        "the client is looked up again"
    );
    talks.into_iter().chain([deferred]).for_each(|talk| room.part(talk));
    room.until_nothing_is_in_use();
}

/// Opens twenty connections from a host. Returns those that got a greeting, still open.
fn greeted(room: &mut Room, server: &mut NameServer, host: usize) -> Vec<Talk> {
    let (mut greeted, mut refused) = (Vec::new(), Vec::new());
    for _ in 0..20 {
        let mut talk = room.connect_from(host, 25);
        let line = server.line(room, &mut talk);
        if line.starts_with("220 ") {
            greeted.push(talk);
        } else {
            assert_eq!(
                line,
                "421 4.7.0 Too many connections from your IP address, try again later"
            );
            refused.push(talk);
        }
    }
    refused.into_iter().for_each(|talk| room.part(talk));
    greeted
}

#[test]
fn connections_per_external_address_are_limited() {
    for (seed, limit) in [(21, "connections = 3\n"), (22, "connections_a_minute = 3\n")] {
        let (mut room, mut server) = serving_as(seed, Mood::Answers, &format!("[abuse]\n{limit}"));
        // Each core counts its own open connections.
        let most = if seed == 21 { 3 * usize::from(CORES) } else { 3 };
        let talks = greeted(&mut room, &mut server, EXTERNAL);
        assert!((3..=most).contains(&talks.len()), "{}", talks.len());
        let neighbours = greeted(&mut room, &mut server, 0);
        assert_eq!(neighbours.len(), 20, "local clients are not limited");
        talks.into_iter().chain(neighbours).for_each(|talk| room.part(talk));
        room.until_nothing_is_in_use();
        let again = greeted(&mut room, &mut server, EXTERNAL);
        // A closed connection no longer counts towards the limit on open connections. It still
        // counts towards the limit on connections per minute.
        assert!(
            if seed == 21 { (3..=most).contains(&again.len()) } else { again.len() <= most },
            "{}",
            again.len()
        );
        again.into_iter().for_each(|talk| room.part(talk));
        room.pass(Micros::from_secs(61));
        let later = greeted(&mut room, &mut server, EXTERNAL);
        assert!((3..=most).contains(&later.len()), "{}", later.len());
        later.into_iter().for_each(|talk| room.part(talk));
        room.until_nothing_is_in_use();
    }
}

#[test]
fn messages_and_recipients_per_address_are_rate_limited() {
    let limits = "[abuse]\nmessages_a_minute = 3\nrecipients_a_minute = 4\n";
    let (mut room, mut server) = serving_as(23, Mood::Answers, limits);
    let too_many =
        |what: &str| format!("450 4.7.1 Too many {what} from your IP address, try again later");
    let rcpt = "RCPT TO:<ada@barepost.test>";
    let mut talk = greet(&mut room, &mut server, EXTERNAL);
    for _ in 0..4 {
        assert_eq!(server.smtp(&mut room, &mut talk, rcpt), "250 2.1.5 Recipient OK");
    }
    assert_eq!(server.smtp(&mut room, &mut talk, rcpt), too_many("recipients"));
    for reply in
        ["250 2.1.0 Sender OK", "250 2.1.0 Sender OK", &too_many("messages"), &too_many("messages")]
    {
        server.smtp(&mut room, &mut talk, "RSET");
        assert_eq!(server.smtp(&mut room, &mut talk, "MAIL FROM:<me@pass.test>"), reply);
    }
    room.pass(Micros::from_secs(20));
    assert_eq!(
        server.smtp(&mut room, &mut talk, "MAIL FROM:<me@pass.test>"),
        "250 2.1.0 Sender OK"
    );
    assert_eq!(server.smtp(&mut room, &mut talk, rcpt), "250 2.1.5 Recipient OK");
    room.part(talk);
    let mut talk = greet(&mut room, &mut server, 0);
    for _ in 0..9 {
        assert_eq!(server.smtp(&mut room, &mut talk, rcpt), "250 2.1.5 Recipient OK");
    }
    room.part(talk);
    room.until_nothing_is_in_use();
}

/// The connections are on several cores, and some cores have several connections.
#[test]
fn rate_limits_count_across_all_cores() {
    for seed in 25..29 {
        let limits = "[abuse]\nunknown_recipients_an_hour = 3\n";
        let (mut room, mut server) = serving_as(seed, Mood::Answers, limits);
        for number in 0..8 {
            let mut talk = greet(&mut room, &mut server, EXTERNAL);
            let reply = server.smtp(&mut room, &mut talk, "RCPT TO:<a@barepost.test>");
            assert_eq!(reply.starts_with("550 5.1.1 "), number < 3, "{seed}: {number}: {reply}");
            room.part(talk);
        }
        let (mut room, mut server) =
            serving_as(seed, Mood::Answers, "[abuse]\nmessages_a_minute = 3\n");
        for number in 0..8 {
            let mut talk = room.connect_from(EXTERNAL, 25);
            assert!(server.line(&mut room, &mut talk).starts_with("220 "));
            server.smtp(&mut room, &mut talk, "EHLO far.test");
            let reply = server.smtp(&mut room, &mut talk, "MAIL FROM:<me@pass.test>");
            assert_eq!(reply.starts_with("250 "), number < 3, "{seed}: {number}: {reply}");
            room.part(talk);
        }
        room.until_nothing_is_in_use();
    }
}

#[test]
fn too_many_unknown_recipients_hide_which_accounts_exist() {
    let (mut room, mut server) =
        serving_as(24, Mood::Answers, "[abuse]\nunknown_recipients_an_hour = 3\n");
    for path in ["ada@barepost.test", "nobody@barepost.test"] {
        let mut talk = greet(&mut room, &mut server, EXTERNAL);
        for _ in 0..5 {
            let reply = server.smtp(&mut room, &mut talk, "RCPT TO:<a@elsewhere.test>");
            assert_eq!(
                reply, "550 5.7.1 Relaying denied",
                "an address of another domain is no guess"
            );
        }
        for name in ["a", "ada", "b", "c"] {
            let known = name == "ada";
            let reply =
                server.smtp(&mut room, &mut talk, &format!("RCPT TO:<{name}@barepost.test>"));
            assert_eq!(
                reply,
                if known { "250 2.1.5 Recipient OK" } else { "550 5.1.1 No such user here" }
            );
        }
        let reply = server.smtp(&mut room, &mut talk, &format!("RCPT TO:<{path}>"));
        assert_eq!(
            reply,
            "421 4.7.0 Too many unknown recipients from your IP address, try again later"
        );
        room.until("the server has closed the connection", |room| room.has_hung_up(&mut talk));
        room.part(talk);
        room.pass(Micros::from_secs(3_600));
    }
    room.until_nothing_is_in_use();
}

#[test]
fn early_talkers_are_refused_during_the_greeting_delay() {
    let early = "554 5.5.0 Client sent data before the server's greeting";
    for (seed, more, wait_ms) in
        [(31, "", 1_000), (32, "[abuse]\ngreeting_delay = \"5s\"\n", 5_000)]
    {
        let (mut room, mut server) = serving_as(seed, Mood::Answers, more);
        let mut talk = room.connect_from(EXTERNAL, 25);
        let before = room.machine.now;
        assert!(server.line(&mut room, &mut talk).starts_with("220 "));
        let waited = room.machine.now.since(before).as_millis();
        assert!((wait_ms..wait_ms + 100).contains(&waited), "{waited}");
        assert!(server.smtp(&mut room, &mut talk, "EHLO far.test").starts_with("250 "));
        room.part(talk);
        let mut talk = room.connect_from(EXTERNAL, 25);
        room.until("the connection is open", |room| room.hosts[EXTERNAL].is_open(talk.connection));
        assert_eq!(server.smtp(&mut room, &mut talk, "EHLO far.test"), early);
        room.until("the server has closed the connection", |room| room.has_hung_up(&mut talk));
        room.part(talk);
        // The server frees all resources of a client that disconnects during the delay, and of one
        // that waits while the machine stops.
        let talk = room.connect_from(EXTERNAL, 25);
        room.until("the connection is open", |room| room.hosts[EXTERNAL].is_open(talk.connection));
        room.abort(&talk);
        let mut talk = room.connect(25);
        assert_eq!(
            server.smtp(&mut room, &mut talk, "NOOP"),
            "220 mail.barepost.test ESMTP Barepost",
            "a local client may send before the greeting"
        );
        room.part(talk);
        room.until_nothing_is_in_use();
        let talk = room.connect_from(EXTERNAL, 25);
        room.until("the connection is open", |room| room.hosts[EXTERNAL].is_open(talk.connection));
        room.machine.stop = true;
        room.until("the machine has stopped", |room| room.ended.is_some());
        assert_eq!(InUse { connections: 0, ..room.engines.in_use() }, InUse::default());
    }
    let (mut room, mut server) =
        serving_as(33, Mood::Answers, "[abuse]\ngreeting_delay = \"0s\"\n");
    let mut talk = room.connect_from(EXTERNAL, 25);
    let before = room.machine.now;
    assert!(server.line(&mut room, &mut talk).starts_with("220 "));
    assert!(room.machine.now.since(before).as_millis() < 100);
}

#[test]
fn improper_pipelining_is_refused() {
    let (mut room, mut server) = serving_as(34, Mood::Answers, "");
    let all = "EHLO far.test\r\nMAIL FROM:<me@pass.test>\r\nRCPT TO:<ada@barepost.test>\r\nDATA\r\nLetter\r\n.\r\nQUIT";
    let (hello, rest) = all.split_once("\r\n").expect("a command");
    let (envelope, message) = rest.split_once("Letter").expect("a message");
    let too_soon =
        "554 5.5.0 Improper pipelining: wait for the server's reply before you send more";
    for (host, first, second, last) in [
        (EXTERNAL, "", all, too_soon),
        (EXTERNAL, hello, rest, too_soon),
        (0, "", all, "221 2.0.0 Bye"),
        (0, hello, rest, "221 2.0.0 Bye"),
    ] {
        let mut talk = room.connect_from(host, 25);
        assert!(server.line(&mut room, &mut talk).starts_with("220 "));
        if !first.is_empty() {
            assert!(server.smtp(&mut room, &mut talk, first).starts_with("250 "));
        }
        let mut line = server.smtp(&mut room, &mut talk, second);
        while line != last {
            assert!(line.starts_with("250 ") || line.starts_with("354 "), "{line}");
            line = server.line(&mut room, &mut talk);
        }
        room.part(talk);
    }
    assert_eq!(
        messages_on(&room.machine.disk, "ada@barepost.test").len(),
        2,
        "only the local clients' messages are stored"
    );
    let mut talk = greet(&mut room, &mut server, EXTERNAL);
    let mut line = server.smtp(&mut room, &mut talk, &format!("RSET\r\n{}", envelope.trim_end()));
    while !line.starts_with("354 ") {
        assert!(line.starts_with("250 "), "{line}");
        line = server.line(&mut room, &mut talk);
    }
    assert!(
        server
            .smtp(&mut room, &mut talk, &format!("Letter{}", message.trim_end()))
            .starts_with("250 ")
    );
    room.part(talk);
    room.until_nothing_is_in_use();
}

const GREYLIST: &str = "[abuse]\ngreylist = \"5m\"\ndnswl = [\"trust.test\"]\n";
const COME_AGAIN: &str = "450 4.7.1 Greylisted, try again in a few minutes";

/// The reply to RCPT for this sender and recipient, from the external client.
fn answer(room: &mut Room, server: &mut NameServer, sender: &str, recipient: &str) -> String {
    let mut talk = room.connect_from(EXTERNAL, 25);
    assert!(server.line(room, &mut talk).starts_with("220 "));
    for command in ["EHLO far.test", &format!("MAIL FROM:<{sender}>")] {
        assert!(server.smtp(room, &mut talk, command).starts_with("250 "));
    }
    let reply = server.smtp(room, &mut talk, &format!("RCPT TO:<{recipient}>"));
    room.part(talk);
    reply
}

#[test]
fn greylisting_defers_once_for_all_cores() {
    for seed in [41, 42] {
        let (mut room, mut server) = serving_as(seed, Mood::Answers, GREYLIST);
        let (ada, grace) = ("ada@barepost.test", "grace@barepost.test");
        assert_eq!(answer(&mut room, &mut server, "me@nowhere.test", ada), COME_AGAIN);
        assert_eq!(
            answer(&mut room, &mut server, "me@nowhere.test", "Postmaster"),
            "250 2.1.5 Recipient OK"
        );
        assert_eq!(
            answer(&mut room, &mut server, "me@nowhere.test", "x@barepost.test"),
            "550 5.1.1 No such user here"
        );
        assert_eq!(
            answer(&mut room, &mut server, "me@nowhere.test", ada),
            COME_AGAIN,
            "the retry is too soon"
        );
        room.pass(Micros::from_secs(301));
        assert_eq!(
            answer(&mut room, &mut server, "me@nowhere.test", grace),
            COME_AGAIN,
            "another recipient is deferred again"
        );
        assert_eq!(
            answer(&mut room, &mut server, "me@nowhere.test", ada),
            "250 2.1.5 Recipient OK"
        );
        for _ in 0..8 {
            assert_eq!(
                answer(&mut room, &mut server, "you@fail.test", grace),
                "250 2.1.5 Recipient OK",
                "the client's network has passed greylisting"
            );
        }
        room.until_nothing_is_in_use();
    }
}

#[test]
fn greylisting_knows_spf_domains_and_trusted_hosts() {
    let (mut room, mut server) = serving_as(43, Mood::Answers, GREYLIST);
    server.zone.push((
        "wide.test",
        TEXT,
        text("v=spf1 ip4:203.0.113.0/24 ip4:198.51.100.0/24 -all"),
    ));
    let ada = "ada@barepost.test";
    assert_eq!(answer(&mut room, &mut server, "me@wide.test", ada), COME_AGAIN);
    room.pass(Micros::from_secs(301));
    room.hosts[EXTERNAL].move_to(Ipv4Address::new(198, 51, 100, 9));
    assert_eq!(answer(&mut room, &mut server, "me@wide.test", ada), "250 2.1.5 Recipient OK");
    assert_eq!(
        answer(&mut room, &mut server, "me@pass.test", ada),
        COME_AGAIN,
        "the new network has not passed greylisting"
    );
    room.until_nothing_is_in_use();
    let (mut room, mut server) = serving_as(44, Mood::Answers, GREYLIST);
    list(&mut server, TRUSTED, [127, 0, 4, 2]);
    assert_eq!(answer(&mut room, &mut server, "me@nowhere.test", ada), "250 2.1.5 Recipient OK");
    let (mut room, mut server) = serving_as(45, Mood::Answers, "");
    assert_eq!(
        answer(&mut room, &mut server, "me@nowhere.test", ada),
        "250 2.1.5 Recipient OK",
        "greylisting is off by default"
    );
    let (mut room, mut server) = serving_as(46, Mood::Answers, GREYLIST);
    let mut talk = room.connect(25);
    assert!(server.line(&mut room, &mut talk).starts_with("220 "));
    for command in ["EHLO far.test", "MAIL FROM:<me@nowhere.test>", "RCPT TO:<ada@barepost.test>"] {
        assert!(
            server.smtp(&mut room, &mut talk, command).starts_with("250 "),
            "local clients are not checked"
        );
    }
}

/// The replies to these commands on a new connection, after EHLO and MAIL.
fn replies<const COUNT: usize>(
    room: &mut Room,
    server: &mut NameServer,
    commands: [&str; COUNT],
) -> [String; COUNT] {
    let mut talk = greet(room, server, EXTERNAL);
    let replies = commands.map(|command| server.smtp(room, &mut talk, command));
    room.part(talk);
    replies
}

#[test]
fn a_rejected_message_does_not_pass_greylisting() {
    const OK: &str = "250 2.1.5 Recipient OK";
    const SENDER: &str = "MAIL FROM:<me@nowhere.test>";
    const ADA: &str = "RCPT TO:<ada@barepost.test>";
    let too_often = format!("{GREYLIST}recipients_a_minute = 1\n");
    let quota = format!("[limits]\nquota = \"1M\"\n{GREYLIST}");
    let large = format!("{SENDER} SIZE=2000000");
    let postmaster = "RCPT TO:<Postmaster>";
    for (seed, configuration, commands, refusal) in [
        (48, too_often, ["RSET", SENDER, postmaster, ADA], "450 4.7.1 "),
        (49, quota, ["RSET", &large, postmaster, ADA], "552 5.2.2 "),
    ] {
        let (mut room, mut server) = serving_as(seed, Mood::Answers, &configuration);
        let [.., refused] = replies(&mut room, &mut server, commands);
        assert!(refused.starts_with(refusal) && refused != COME_AGAIN, "{refused}");
        room.pass(Micros::from_secs(301));
        for expected in [COME_AGAIN, OK] {
            assert_eq!(
                answer(&mut room, &mut server, "me@nowhere.test", "ada@barepost.test"),
                expected
            );
            room.pass(Micros::from_secs(301));
        }
        room.until_nothing_is_in_use();
    }
}

/// The commands for an envelope. Each pair of connection and number has a unique sender.
fn envelope(talk: usize, number: usize) -> String {
    format!("MAIL FROM:<{talk}.{number}@[203.0.113.7]>\r\nRCPT TO:<ada@barepost.test>\r\n")
}

#[test]
fn each_greylisted_message_may_be_retried_on_any_core() {
    const TALKS: usize = 60;
    const EACH: usize = 90;
    let limits = "connections = 1000\nconnections_a_minute = 9000\nmessages_a_minute = 60000\nrecipients_a_minute = 60000";
    let abuse = format!("[abuse]\ngreylist = \"5s\"\ngreeting_delay = \"0s\"\n{limits}\n");
    let (mut room, mut server) = serving_as(47, Mood::Answers, &abuse);
    let begin = |room: &mut Room, server: &mut NameServer| {
        let mut talk = room.connect_from(EXTERNAL, 25);
        assert!(server.line(room, &mut talk).starts_with("220 "));
        assert!(server.smtp(room, &mut talk, "EHLO [203.0.113.7]").starts_with("250 "));
        talk
    };
    let mut talks: Vec<Talk> = (0..TALKS).map(|_| begin(&mut room, &mut server)).collect();
    for (at, talk) in talks.iter().enumerate() {
        let all_commands: String =
            (0..EACH).map(|number| format!("{}RSET\r\n", envelope(at, number))).collect();
        room.try_to_send(talk, all_commands.as_bytes());
    }
    for talk in &mut talks {
        for _ in 0..EACH {
            for reply in ["250 2.1.0 Sender OK", COME_AGAIN, "250 2.0.0 OK"] {
                assert_eq!(server.line(&mut room, talk), reply);
            }
        }
    }
    talks.into_iter().for_each(|talk| room.part(talk));
    room.pass(Micros::from_secs(5));
    let mut talks: Vec<Talk> = (0..TALKS).map(|_| begin(&mut room, &mut server)).collect();
    talks
        .iter()
        .enumerate()
        .for_each(|(at, talk)| room.try_to_send(talk, envelope(at, EACH - 1).as_bytes()));
    for talk in &mut talks {
        assert_eq!(server.line(&mut room, talk), "250 2.1.0 Sender OK");
        assert_eq!(server.line(&mut room, talk), "250 2.1.5 Recipient OK");
    }
    talks.into_iter().for_each(|talk| room.part(talk));
    room.until_nothing_is_in_use();
}
