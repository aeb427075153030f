//! Tests of the verdicts on messages. A simple signer in the tests signs them. It works on whole
//! messages.

mod broken;
mod chain;
mod examples;
mod forms;
mod limits;
mod oracle;
mod sealing;
mod signing;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use base64ct::{Base64, Encoding};
use dns::{Answer, Knowledge, Missing, Name, Question, Record, RecordKind, Unanswered};
use machine::UnixTime;
use ring::digest::{SHA256, digest};
use ring::signature::{Ed25519KeyPair, KeyPair};

use crate::{CompleteMessage, MessageReader, SignatureOutcome, SignatureReason, SignatureVerdict};

/// The answer of a name server for the name of a key.
type Texts<'a> = Result<&'a [&'a [u8]], Unanswered>;

/// The time of the tests.
const NOW: UnixTime = UnixTime::from_seconds(2_000_000);
const TAGS: &str =
    "v=1; a=ed25519-sha256; c=relaxed/simple; d=example.test; s=key; h=From:To:Subject";
const FIELDS: [&str; 3] =
    ["From: ada@example.test\r\n", "To: bob@other.test\r\n", "Subject: dinner\r\n"];
const BODY: &str = "Hi.\r\n\r\nAre you  hungry?\r\n";

fn read(message: &[u8]) -> CompleteMessage {
    let mut reading = MessageReader::to_verify();
    reading.arrived(message);
    reading.ended()
}

/// The verdict on one signature if `keys` is the answer for its key. The question must be for
/// `key._domainkey.example.test`.
fn verdict_of(message: &CompleteMessage, number: usize, keys: Texts<'_>) -> SignatureVerdict {
    let mut knowledge = Knowledge::default();
    let Missing(question) = match message.verify(number, &knowledge, NOW) {
        Ok(verdict) => return verdict,
        Err(missing) => missing,
    };
    assert_eq!(
        (question.name.as_str(), question.kind),
        ("key._domainkey.example.test", RecordKind::Text)
    );
    let records = |keys: &[&[u8]]| keys.iter().map(|key| Record::Text((*key).into())).collect();
    let answer =
        keys.map(|keys| Answer { exists: true, is_authenticated: false, records: records(keys) });
    knowledge.learn(question, answer);
    message.verify(number, &knowledge, NOW).expect("the key is known")
}

/// The reason for a message's first signature, with the key that made it.
fn reason(message: &str) -> SignatureReason {
    verdict_of(&read(message.as_bytes()), 0, Ok(&[record("").as_bytes()])).reason
}

fn pair() -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&[7; 32]).expect("a seed")
}

/// The key record of the tests' signer, with other tags before the key.
fn record(tags: &str) -> String {
    format!("v=DKIM1; k=ed25519; {tags}p={}", Base64::encode_string(pair().public_key().as_ref()))
}

/// A message with a signature on top. Tags that are not in `tags` are computed.
fn signed(tags: &str, fields: &[&str], body: &str) -> String {
    format!("{}{}\r\n{body}", signature("DKIM-Signature", tags, fields, body), fields.concat())
}

/// The field with this name that signs a message.
fn signature(name: &str, tags: &str, fields: &[&str], body: &str) -> String {
    let tag = |name: &str| {
        tags.split(';').find_map(|tag| tag.trim().strip_prefix(name)?.strip_prefix('='))
    };
    let forms = tag("c").unwrap_or("simple");
    let (header_form, body_form) = forms.split_once('/').unwrap_or((forms, "simple"));
    let body_hash =
        Base64::encode_string(digest(&SHA256, body_in(body_form, body).as_bytes()).as_ref());
    let body_hash = if tag("bh").is_some() { String::new() } else { format!("; bh={body_hash}") };
    let signature = format!("{name}: {tags}{body_hash}; b=");
    let mut left: Vec<&str> = fields.to_vec();
    let mut covered = String::new();
    for name in tag("h").unwrap_or_default().split(':') {
        let is_called = |field: &&str| {
            field.split(':').next().unwrap_or_default().trim().eq_ignore_ascii_case(name.trim())
        };
        if let Some(lowest) = left.iter().rposition(is_called) {
            covered += &field_in(header_form, left.remove(lowest));
        }
    }
    covered += field_in(header_form, &format!("{signature}\r\n")).trim_end_matches("\r\n");
    format!("{signature}{}\r\n", proof_of(&covered))
}

/// The value of `b=` from the tests' signer.
fn proof_of(covered: &str) -> String {
    Base64::encode_string(pair().sign(digest(&SHA256, covered.as_bytes()).as_ref()).as_ref())
}

/// A body in a canonical form, line by line.
fn body_in(form: &str, body: &str) -> String {
    let mut lines: Vec<String> = body
        .split("\r\n")
        .map(|line| if form == "simple" { line.into() } else { words(line) })
        .collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
    if lines.is_empty() && form == "simple" { "\r\n".into() } else { lines }
}

/// A line with one space in place of several, and without spaces at its end.
fn words(line: &str) -> String {
    let spaces = |byte: char| byte == ' ' || byte == '\t';
    let words = line.split(spaces).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    if line.starts_with(spaces) && !words.is_empty() { format!(" {words}") } else { words }
}

/// A field in a canonical form.
fn field_in(form: &str, field: &str) -> String {
    if form == "simple" {
        return field.into();
    }
    let (name, value) = field.split_once(':').expect("a field");
    format!(
        "{}:{}\r\n",
        name.trim_end().to_lowercase(),
        words(&value.replace("\r\n", "")).trim_start()
    )
}

#[test]
fn unchanged_message_passes_and_names_its_signer() {
    let verdict =
        verdict_of(&read(signed(TAGS, &FIELDS, BODY).as_bytes()), 0, Ok(&[record("").as_bytes()]));
    assert_eq!(verdict.outcome(), SignatureOutcome::Pass);
    let text = verdict.to_string();
    let (before, prefix) = text.split_once(" header.b=").unwrap();
    assert_eq!(before, "dkim=pass header.d=example.test header.s=key header.a=ed25519-sha256");
    assert!(
        signed(TAGS, &FIELDS, BODY).contains(&format!(" b={}", prefix.trim_matches('"'))),
        "{prefix}"
    );
    assert_eq!(prefix.len(), 8 + 2);
}
