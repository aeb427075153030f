//! Tests of SCRAM-SHA-256 in the whole engine: a client with the password logs in without sending
//! it, and no client learns which accounts exist.

#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a test may fail")]

use std::sync::Arc;

use http::Site;
use machine::Micros;
use rustls::ClientConfig;
use simulated::MemoryDisk;

use crate::CORES;

use super::room::scram_client::{Asked, ScramClient, ScramExchange};
use super::room::tls_stream::{Trust, client};
use super::room::{DISK_BYTES, Room, Talk, usual_sizes};

/// The configuration. Ada's account has a password, and Grace's account has only the hash of a
/// password.
const CONFIGURATION: &str = r#"
hostname = "mail.barepost.test"
domains = ["barepost.test"]

[network]
address = "10.0.0.2/24"

[[user]]
address = "ada@barepost.test"
password = "lovelace"
aliases = ["postmaster@barepost.test", "countess@barepost.test"]

[[user]]
address = "grace@barepost.test"
password_hash = "$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHQ$Oi7AsNkSF11/Jvy4J3BMjBTrWUr2l8Z3T8a7yI9rNnQ"

[access]
plaintext_auth_from = ["10.0.0.0/24"]
"#;

const SUBMISSION: u16 = 587;
const SUBMISSIONS: u16 = 465;
const POP3: u16 = 110;
const POP3S: u16 = 995;

const IN: &str = "235 2.7.0 Authentication successful";
const WRONG: &str = "535 5.7.8 Wrong user name or password";

fn serving_on(seed: u64, disk: MemoryDisk) -> (Room, Arc<ClientConfig>) {
    let trust = Trust::new("mail.barepost.test");
    let certificates = vec![trust.certificate.clone()];
    let mut room =
        Room::certified(seed, disk, usual_sizes(), CONFIGURATION, Site::default(), certificates);
    room.until("the engine serves", |room| room.console_says("serving"));
    (room, Arc::new(client(&trust, &[])))
}

fn serving(seed: u64) -> (Room, Arc<ClientConfig>) {
    serving_on(seed, MemoryDisk::blank(DISK_BYTES))
}

/// Connects in clear text, from an address that may log in without TLS, and sends EHLO.
fn greeted(room: &mut Room, host: usize) -> Talk {
    let mut talk = room.connect_from(host, SUBMISSION);
    assert!(room.smtp_reply(&mut talk).starts_with("220 "));
    assert_eq!(room.smtp(&mut talk, "EHLO client.test"), "250 HELP");
    talk
}

/// Begins a login as `name`. Returns the exchange and the server's challenge.
fn begin(
    room: &mut Room,
    talk: &mut Talk,
    scram_client: &mut ScramClient,
    name: &str,
    password: &str,
) -> (ScramExchange, String) {
    let (scram, first) = scram_client.begin(name, password);
    let asked = room.smtp(talk, &format!("AUTH SCRAM-SHA-256 {first}"));
    (scram, asked.strip_prefix("334 ").expect("a challenge").to_string())
}

/// Sends a proof for `name` with `password`. The reply is a challenge with the server's signature,
/// or a refusal.
fn prove(
    room: &mut Room,
    talk: &mut Talk,
    scram_client: &mut ScramClient,
    name: &str,
    password: &str,
) -> (ScramExchange, String) {
    let (mut scram, challenge) = begin(room, talk, scram_client, name, password);
    let answer = scram_client.answer(&mut scram, &challenge);
    let server_reply = room.smtp(talk, &answer);
    (scram, server_reply)
}

#[test]
fn scram_logins_send_and_read_mail_over_tls() {
    let (mut room, client) = serving(1);
    let mut scram_client = ScramClient::default();
    let mut session = room.connect_tls(SUBMISSIONS, &client);
    assert!(room.line_tls(&mut session).starts_with("220 "));
    assert_eq!(room.smtp_tls(&mut session, "EHLO client.test"), "250 HELP");
    let (mut scram, first) = scram_client.begin("Countess", "lovelace");
    assert_eq!(room.smtp_tls(&mut session, "AUTH SCRAM-SHA-256"), "334");
    let challenge = room.smtp_tls(&mut session, &first);
    let last =
        scram_client.answer(&mut scram, challenge.strip_prefix("334 ").expect("a challenge"));
    assert_eq!(room.smtp_tls(&mut session, &last), format!("334 {}", scram.server_final));
    assert_eq!(room.smtp_tls(&mut session, ""), IN);
    for (command, code) in [
        ("MAIL FROM:<ada@barepost.test>", "250"),
        ("RCPT TO:<countess@barepost.test>", "250"),
        ("DATA", "354"),
        ("A letter.\r\n.", "250"),
    ] {
        let reply = room.smtp_tls(&mut session, command);
        assert!(reply.starts_with(code), "{command}: {reply}");
    }
    room.finish_tls(session);
    let mut reader = room.connect_tls(POP3S, &client);
    assert!(room.line_tls(&mut reader).starts_with("+OK"));
    let (mut scram, first) = scram_client.begin("ada@barepost.test", "lovelace");
    let challenge = room.pop3_tls(&mut reader, &format!("AUTH SCRAM-SHA-256 {first}"));
    let last = scram_client.answer(&mut scram, challenge.strip_prefix("+ ").expect("a challenge"));
    assert_eq!(room.pop3_tls(&mut reader, &last), format!("+ {}", scram.server_final));
    assert_eq!(room.pop3_tls(&mut reader, ""), "+OK 1 messages");
    room.finish_tls(reader);
    room.until_nothing_is_in_use();
}

#[test]
fn scram_logins_work_on_every_core_and_after_a_restart() {
    let (mut room, _) = serving(2);
    let mut scram_client = ScramClient::default();
    for _ in 0..2 {
        for _ in 0..2 * CORES.min(4) {
            let mut talk = greeted(&mut room, 0);
            let (scram, server_reply) =
                prove(&mut room, &mut talk, &mut scram_client, "ada", "lovelace");
            assert_eq!(server_reply, format!("334 {}", scram.server_final));
            assert_eq!(room.smtp(&mut talk, ""), IN);
            room.close(&talk);
        }
        room.until_nothing_is_in_use();
        room = serving_on(3, room.machine.disk.power_cut(&mut chance::Dice::new(2))).0;
    }
}

#[test]
fn scram_challenges_do_not_reveal_accounts() {
    let (mut room, _) = serving(4);
    let mut scram_client = ScramClient::default();
    // The names are an account, an account with only a hash, and two unknown names.
    let names = ["ada", "grace", "nobody", "somebody@elsewhere.test"];
    let mut salts: Vec<Vec<String>> = Vec::new();
    let mut nonces = Vec::new();
    for _ in 0..2 {
        for _ in 0..2 * CORES.min(4) {
            let host = room.add_host();
            let mut talk = greeted(&mut room, host);
            let mut asked_of = |name: &str| {
                let challenge = begin(&mut room, &mut talk, &mut scram_client, name, "").1;
                assert_eq!(room.smtp(&mut talk, "*"), "501 5.7.0 Authentication cancelled");
                Asked::parse(&challenge)
            };
            let asked: Vec<Asked> = names.iter().map(|name| asked_of(name)).collect();
            assert_eq!(
                asked_of("NoBody@Barepost.test").salt,
                asked[2].salt,
                "the case of a name does not matter"
            );
            assert_eq!(
                asked_of("countess").salt,
                asked[0].salt,
                "both names have the salt of one account"
            );
            assert!(asked.iter().all(|asked| asked.salt.len() == 24 && asked.iterations == 16_384));
            nonces.extend(asked.iter().map(|asked| {
                asked.nonce.rsplit_once("client").expect("a nonce").1[1..].to_string()
            }));
            salts.push(asked.into_iter().map(|asked| asked.salt).collect());
            room.close(&talk);
        }
        room.until_nothing_is_in_use();
        room = serving_on(5, room.machine.disk.power_cut(&mut chance::Dice::new(4))).0;
    }
    assert!(
        salts.iter().all(|of_one| *of_one == salts[0]),
        "salts are equal on each core and after a restart: {salts:?}"
    );
    salts[0].sort();
    salts[0].dedup();
    assert_eq!(salts[0].len(), names.len());
    let count = nonces.len();
    nonces.sort();
    nonces.dedup();
    assert_eq!(nonces.len(), count, "nonces are unique");
}

#[test]
fn a_wrong_scram_proof_counts_like_a_wrong_password() {
    let (mut room, _) = serving(6);
    let mut scram_client = ScramClient::default();
    let mut waited = Vec::new();
    for (name, password) in [("ada", "guess"), ("nobody", "guess"), ("grace", "lovelace")] {
        let host = room.add_host();
        let mut talk = greeted(&mut room, host);
        for _ in 0..2 {
            let (mut scram, challenge) =
                begin(&mut room, &mut talk, &mut scram_client, name, password);
            let answer = scram_client.answer(&mut scram, &challenge);
            let before = room.machine.now;
            assert_eq!(room.smtp(&mut talk, &answer), WRONG);
            waited.push(room.machine.now.since(before).as_secs());
        }
        room.part(talk);
        let mut reader = room.connect_from(host, POP3);
        room.line(&mut reader);
        assert!(room.pop3(&mut reader, "USER grace").starts_with("+OK"));
        let before = room.machine.now;
        assert!(room.pop3(&mut reader, "PASS guess").starts_with("-ERR [AUTH]"));
        waited.push(room.machine.now.since(before).as_secs());
        room.part(reader);
    }
    assert_eq!(waited, [2, 4, 8, 2, 4, 8, 2, 4, 8]);
    let mut owner = greeted(&mut room, 0);
    let before = room.machine.now;
    let (scram, server_reply) = prove(&mut room, &mut owner, &mut scram_client, "ada", "lovelace");
    assert_eq!(server_reply, format!("334 {}", scram.server_final));
    assert_eq!(room.smtp(&mut owner, ""), IN);
    assert!(room.machine.now.since(before) < Micros::from_secs(1), "the owner is let in at once");
    room.part(owner);
}

#[test]
fn a_scram_proof_cannot_be_replayed() {
    let (mut room, _) = serving(7);
    let mut scram_client = ScramClient::default();
    let mut talk = greeted(&mut room, 0);
    let (mut scram, challenge) = begin(&mut room, &mut talk, &mut scram_client, "ada", "lovelace");
    let answer = scram_client.answer(&mut scram, &challenge);
    assert!(room.smtp(&mut talk, &answer).starts_with("334 "));
    assert!(room.smtp(&mut talk, "*").starts_with("501 "));
    assert!(
        room.smtp(&mut talk, "MAIL FROM:<ada@barepost.test>").starts_with("530 "),
        "a cancelled login does not log in"
    );
    for _ in 0..2 {
        begin(&mut room, &mut talk, &mut scram_client, "ada", "lovelace");
        assert_eq!(room.smtp(&mut talk, &answer), WRONG);
    }
    assert!(room.smtp(&mut talk, "MAIL FROM:<ada@barepost.test>").starts_with("530 "));
    room.part(talk);
}

#[test]
fn a_cancelled_scram_login_releases_the_maildrop() {
    let (mut room, _) = serving(8);
    let mut scram_client = ScramClient::default();
    for last_words in [Some("*"), Some("STAT"), None] {
        let mut talk = room.connect(POP3);
        assert!(room.line(&mut talk).starts_with("+OK"));
        let (mut scram, first) = scram_client.begin("ada", "lovelace");
        let challenge = room.pop3(&mut talk, &format!("AUTH SCRAM-SHA-256 {first}"));
        let last =
            scram_client.answer(&mut scram, challenge.strip_prefix("+ ").expect("a challenge"));
        assert_eq!(room.pop3(&mut talk, &last), format!("+ {}", scram.server_final));
        if let Some(words) = last_words {
            assert!(room.pop3(&mut talk, words).starts_with("-ERR "));
            assert_eq!(room.pop3(&mut talk, "STAT"), "-ERR Log in first");
        } else {
            room.abort(&talk);
            room.pass(Micros::from_secs(1));
        }
        let mut other = room.connect(POP3);
        assert!(room.line(&mut other).starts_with("+OK"));
        let (mut scram, first) = scram_client.begin("ada", "lovelace");
        let challenge = room.pop3(&mut other, &format!("AUTH SCRAM-SHA-256 {first}"));
        let last =
            scram_client.answer(&mut scram, challenge.strip_prefix("+ ").expect("a challenge"));
        assert!(room.pop3(&mut other, &last).starts_with("+ "), "the maildrop is not locked");
        assert_eq!(room.pop3(&mut other, ""), "+OK 0 messages");
        room.abort(&other);
        room.abort(&talk);
        room.pass(Micros::from_secs(1));
        room.until_nothing_is_in_use();
    }
}

#[test]
fn pending_scram_logins_per_address_are_limited() {
    let (mut room, _) = serving(9);
    let mut scram_client = ScramClient::default();
    for leaving in 0..4 {
        let host = room.add_host();
        let mut talks: Vec<Talk> = (0..6).map(|_| greeted(&mut room, host)).collect();
        for talk in &mut talks {
            let (mut scram, challenge) = begin(&mut room, talk, &mut scram_client, "ada", "guess");
            let answer = scram_client.answer(&mut scram, &challenge);
            room.send(talk, format!("{answer}\r\n").as_bytes());
        }
        if leaving > 0 {
            (1..leaving).for_each(|_| room.step());
            talks.drain(..4).for_each(|talk| room.abort(&talk));
        }
        let mut refused = 0;
        for talk in &mut talks {
            let answer = room.line(talk);
            refused += usize::from(answer.starts_with("454 4.7.0 "));
            assert!(answer == WRONG || answer.starts_with("454 4.7.0 "), "{answer}");
            room.abort(talk);
        }
        // Each core counts its own pending logins.
        assert!(leaving > 0 || refused == 2 || CORES > 1 && refused < 2, "{refused}");
        room.pass(Micros::from_secs(70));
    }
    room.until_nothing_is_in_use();
}
