//! Tests against mail-auth, an independent implementation. It verifies our signatures and ARC sets,
//! and we verify the signatures and sets of mail-auth.

extern crate std;

use std::sync::LazyLock;

use futures_util::FutureExt;
use known::{AUTHENTICATOR, Known, first};
use mail_auth::arc::ArcSealer;
use mail_auth::common::crypto::{Ed25519Key, RsaKey, Sha256};
use mail_auth::common::headers::HeaderWriter;
use mail_auth::common::parse::TxtRecordParser;
use mail_auth::common::verify::DomainKey;
use mail_auth::dkim::{Canonicalization, DkimSigner};
use mail_auth::{AuthenticatedMessage, AuthenticationResults, DkimResult, Parameters, Txt};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::{collection, prop_oneof};
use rustls_pki_types::PrivateKeyDer;

use super::signing::{ED25519, RSA_2048, ed25519, rsa};
use super::*;
use crate::{ChainVerdict, Sealing, SigningKey};

static KEYS: LazyLock<[SigningKey; 2]> = LazyLock::new(|| {
    [
        SigningKey::new(&ed25519(), "ed25519").unwrap(),
        SigningKey::new(&rsa(RSA_2048), "rsa").unwrap(),
    ]
});
/// The domain's keys in the form that mail-auth asks for.
static PUBLISHED: LazyLock<Known<Txt>> = LazyLock::new(|| {
    let read = |key: &SigningKey| DomainKey::parse(key.record().as_bytes());
    Known::texts(
        KEYS.iter()
            .map(|key| (key.name_at(&domain()).unwrap().as_str().into(), first([read(key)]))),
    )
});
/// A time after all signatures. mail-auth signs at the time of the system's clock.
const LATER: UnixTime = UnixTime::from_seconds(u32::MAX as u64);
/// Names of fields that both implementations sign.
const SIGNED: [&str; 5] = ["From", "To", "Cc", "Subject", "Date"];

fn domain() -> Name {
    Name::parse("example.test").unwrap()
}

/// The answers for the names that a message asks for.
fn known(message: &CompleteMessage) -> Knowledge {
    let mut knowledge = Knowledge::default();
    for question in message.missing(&knowledge, LATER) {
        let key = KEYS.iter().find(|key| key.name_at(&domain()).unwrap() == question.name);
        let records =
            key.map(|key| Record::Text(key.record().as_bytes().into())).into_iter().collect();
        knowledge.learn(question, Ok(Answer { exists: true, is_authenticated: false, records }));
    }
    knowledge
}

/// Whether we accept the only signature of a message, and whether mail-auth does.
fn signature_passes(message: &str) -> [bool; 2] {
    let ours = read(message.as_bytes());
    let ours = ours.verify(0, &known(&ours), LATER).unwrap().outcome() == SignatureOutcome::Pass;
    let theirs = AuthenticatedMessage::parse(message.as_bytes()).unwrap();
    let theirs = AUTHENTICATOR
        .verify_dkim(Parameters::new(&theirs).with_txt_cache(&*PUBLISHED))
        .now_or_never();
    let theirs = theirs.expect("mail-auth asks no server");
    [ours, matches!(&theirs[..], [only] if *only.result() == DkimResult::Pass)]
}

/// Whether we accept a message's chain, and whether mail-auth does.
fn chain_passes(message: &str) -> [bool; 2] {
    let theirs = AuthenticatedMessage::parse(message.as_bytes()).unwrap();
    let theirs = AUTHENTICATOR
        .verify_arc(Parameters::new(&theirs).with_txt_cache(&*PUBLISHED))
        .now_or_never();
    [
        found(message) == ChainVerdict::Pass,
        *theirs.expect("mail-auth asks no server").result() == DkimResult::Pass,
    ]
}

/// Our verdict on a message's chain.
fn found(message: &str) -> ChainVerdict {
    let message = read(message.as_bytes());
    let knowledge = known(&message);
    (0..).find_map(|step| message.judge_chain(step, &knowledge, LATER).unwrap()).unwrap()
}

/// The message with our signature on top.
fn signed_by_us(key: usize, message: &str) -> String {
    let mut reading = MessageReader::to_sign();
    reading.arrived(message.as_bytes());
    reading.ended().sign(&KEYS[key], &domain(), NOW).unwrap() + message
}

fn sealed_by_us(key: usize, message: &str) -> String {
    let mut reading = MessageReader::to_sign();
    reading.arrived(message.as_bytes());
    let read = reading.ended();
    let mut sealing =
        Sealing::begin(&read, found(message), "mx.example.test; spf=pass\r\n smtp.mailfrom=a.test")
            .unwrap();
    while sealing.is_open() {
        sealing.sign(&read, &KEYS[key], &domain(), NOW).unwrap();
    }
    sealing.fields() + message
}

fn their_ed25519() -> Ed25519Key {
    let public = Base64::decode_vec(KEYS[0].record().split("p=").last().unwrap()).unwrap();
    Ed25519Key::from_seed_and_public_key(&Base64::decode_vec(ED25519).unwrap(), &public).unwrap()
}

fn their_rsa() -> RsaKey<Sha256> {
    RsaKey::from_key_der(PrivateKeyDer::Pkcs8(rsa(RSA_2048).into())).unwrap()
}

fn signed_by_them(key: usize, forms: [Canonicalization; 2], message: &str) -> String {
    macro_rules! sign {
        ($key:expr, $selector:expr) => {
            DkimSigner::from_key($key)
                .domain("example.test")
                .selector($selector)
                .headers(SIGNED)
                .header_canonicalization(forms[0])
                .body_canonicalization(forms[1])
                .sign(message.as_bytes())
        };
    }
    let signature =
        if key == 0 { sign!(their_ed25519(), "ed25519") } else { sign!(their_rsa(), "rsa") };
    signature.unwrap().to_header() + message
}

fn sealed_by_them(key: usize, message: &str) -> String {
    let parsed = AuthenticatedMessage::parse(message.as_bytes()).unwrap();
    let found = AUTHENTICATOR
        .verify_arc(Parameters::new(&parsed).with_txt_cache(&*PUBLISHED))
        .now_or_never();
    let found = found.expect("mail-auth asks no server");
    let results =
        AuthenticationResults::new("mx.other.test").with_arc_result(&found, [192, 0, 2, 1].into());
    macro_rules! seal {
        ($key:expr, $selector:expr) => {
            ArcSealer::from_key($key)
                .domain("example.test")
                .selector($selector)
                .headers(SIGNED)
                .seal(&parsed, &results, &found)
        };
    }
    let set = if key == 0 { seal!(their_ed25519(), "ed25519") } else { seal!(their_rsa(), "rsa") };
    set.unwrap().to_header() + message
}

/// Fields with their line ends. Some are folded, and some occur more than once.
fn header() -> impl Strategy<Value = String> {
    let name = select(
        &[
            "From", "To", "to", "Cc", "CC", "Subject", "sUBJECT", "Date", "X-Y", "Received",
            "List-Id",
        ][..],
    );
    let gap = select(&[" ", "  ", "\t", "\r\n ", "\r\n\t ", " \r\n  "][..]);
    let word = prop_oneof!["[a-zA-Z0-9<>@.,:;=_-]{1,12}", Just("gr\u{fc}\u{df}e".into())];
    let value = (collection::vec((gap, word), 0..6), select(&["", " ", "\t "][..])).prop_map(
        |(words, end)| {
            let words: String =
                words.into_iter().map(|(gap, word)| gap.to_string() + &word).collect();
            words + end
        },
    );
    let field = (name, value).prop_map(|(name, value)| format!("{name}:{value}\r\n"));
    let author =
        select(&["From: ada@example.test\r\n", "FROM:Ada \r\n <ada@example.test>\r\n"][..]);
    (collection::vec(field, 0..7), author, any::<Index>()).prop_map(
        |(mut fields, author, place)| {
            fields.insert(place.index(fields.len() + 1), author.into());
            fields.concat()
        },
    )
}

/// Bodies that are empty, or end with or without empty lines. No body ends with lines of white
/// space: `trailing_lines_of_white_space_are_empty` tests them.
fn body() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        2 => select(&["", " ", "\t", "Hi.", "a  b", " a \t b", "a\t ", ".", "=20"][..]).prop_map(String::from),
        1 => "[ -~]{0,90}",
    ];
    let end = select(&["", "\r\n", "\r\n\r\n", "\r\n\r\n\r\n", " \r\n\t\r\n"][..]);
    (collection::vec(line, 0..6), end).prop_map(|(lines, end)| {
        let body = lines.join("\r\n") + end;
        let (text, end) = body.split_at(body.trim_end().len());
        let line = if text.is_empty() { 0 } else { end.find('\r').unwrap_or(end.len()) };
        format!("{text}{}{}", &end[..line], end[line..].replace([' ', '\t'], ""))
    })
}

fn message() -> impl Strategy<Value = String> {
    (header(), body()).prop_map(|(header, body)| format!("{header}\r\n{body}"))
}

fn forms() -> impl Strategy<Value = [Canonicalization; 2]> {
    let form = select(&[Canonicalization::Simple, Canonicalization::Relaxed][..]);
    [form.clone(), form]
}

/// A message's fields, with their line ends, and its body.
fn parts(message: &str) -> (Vec<&str>, &str) {
    let (header, body) = message.split_once("\r\n\r\n").unwrap();
    let mut rest = &message[..header.len() + 2];
    let mut fields = Vec::new();
    while !rest.is_empty() {
        let ends = rest.match_indices("\r\n").map(|(end, _)| end + 2);
        let end = { ends }.find(|end| !rest[*end..].starts_with([' ', '\t'])).unwrap();
        let (field, after) = rest.split_at(end);
        fields.push(field);
        rest = after;
    }
    (fields, body)
}

/// The message with one character replaced. The character is in the body, or in a field that
/// `is_covered`.
fn changed(message: &str, at: Index, is_covered: impl Fn(&str) -> bool) -> String {
    let (fields, body) = parts(message);
    let mut places: Vec<usize> = (message.len() - body.len()..message.len()).collect();
    let mut start = 0;
    for field in fields {
        if is_covered(field.split(':').next().unwrap()) {
            places.extend(start..start + field.len());
        }
        start += field.len();
    }
    let mut bytes = message.as_bytes().to_vec();
    places.retain(|place| bytes[*place].is_ascii_alphabetic() && !ends_base64(&bytes, *place));
    let place = places[at.index(places.len())];
    bytes[place] = match bytes[place] {
        b'z' => b'a',
        b'Z' => b'A',
        byte => byte + 1,
    };
    String::from_utf8(bytes).unwrap()
}

/// Whether base64 ends with the character at this place. Its low bits are unused, so another
/// character may decode to the same octets, and mail-auth accepts both. Folding may stand before
/// and after the padding.
fn ends_base64(bytes: &[u8], place: usize) -> bool {
    let mut rest = bytes[place + 1..].iter().filter(|byte| !byte.is_ascii_whitespace());
    rest.next() == Some(&b'=') && matches!(rest.next(), Some(b'=' | b';'))
}

#[test]
fn end_of_folded_base64_is_found() {
    for end in ["R==\r\n\t;", "R==;", "R=\r\n\t=", "R=;", "R\r\n\t==\r\nTo: ada"] {
        assert!(ends_base64(end.as_bytes(), 0), "{end:?}");
    }
    assert!(!ends_base64(b"b=Z8D", 0));
    assert!(!ends_base64(b"RR==", 0));
}

fn is_covered(name: &str) -> bool {
    name == "DKIM-Signature" || SIGNED.iter().any(|signed| signed.eq_ignore_ascii_case(name))
}

/// The message with a change of white space at some place, which only the simple form notices.
fn respaced(message: &str, at: Index) -> String {
    let bytes = message.as_bytes();
    let is_between =
        |place: &usize| bytes[place - 1].is_ascii_graphic() && bytes[place + 1].is_ascii_graphic();
    let spaces = (1..bytes.len() - 1).filter(|place| bytes[*place] == b' ').filter(is_between);
    let spaces: Vec<usize> = spaces.collect();
    if spaces.is_empty() {
        return format!("{message}\r\n");
    }
    let place = spaces[at.index(spaces.len())];
    let is_of_header = message.find("\r\n\r\n").is_some_and(|end| place < end);
    format!(
        "{}{}{}",
        &message[..place],
        if is_of_header { "\r\n \t" } else { "\t " },
        &message[place + 1..]
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn mail_auth_accepts_our_signature_until_it_is_changed(
        message in message(),
        key in 0..2_usize,
        at in any::<Index>(),
    ) {
        let signed = signed_by_us(key, &message);
        prop_assert_eq!(signature_passes(&signed), [true, true], "{}", signed);
        let changed = changed(&signed, at, is_covered);
        prop_assert_eq!(signature_passes(&changed), [false, false], "{}", changed);
        let respaced = respaced(&signed, at);
        prop_assert_eq!(signature_passes(&respaced), [true, true], "{}", respaced);
    }

    #[test]
    fn we_accept_mail_auth_signatures_until_they_are_changed(
        message in message(),
        key in 0..2_usize,
        forms in forms(),
        at in any::<Index>(),
    ) {
        let signed = signed_by_them(key, forms, &message);
        prop_assert_eq!(signature_passes(&signed), [true, true], "{}", signed);
        let changed = changed(&signed, at, is_covered);
        prop_assert_eq!(signature_passes(&changed), [false, false], "{}", changed);
        // The effect of a change of white space depends on the form, and is the same for both
        // implementations.
        let [ours, theirs] = signature_passes(&respaced(&signed, at));
        prop_assert_eq!(ours, theirs, "{}", signed);
        prop_assert!(ours || forms != [Canonicalization::Relaxed; 2], "{}", signed);
    }
}

#[test]
fn trailing_lines_of_white_space_are_empty() {
    // mail-auth counts such lines as text. White space at line ends is removed first, and then the
    // empty lines, "in order" (RFC 6376 §3.4.4).
    for (body, expected) in [
        ("", [true, true]),
        ("\r\n", [true, true]),
        (" \r\n", [true, false]),
        ("Hi. \r\n\r\n", [true, true]),
        ("Hi.\r\n\t\r\n", [true, false]),
    ] {
        let message = format!("From: ada@example.test\r\n\r\n{body}");
        assert_eq!(signature_passes(&signed_by_us(0, &message)), expected, "{body:?}");
    }
}

/// A message that we and mail-auth have forwarded. Each entry of `hands` says whether we were the
/// forwarder, and with which key.
fn handed_on(hands: &[(bool, usize)], message: &str) -> String {
    hands.iter().fold(message.into(), |message: String, (is_ours, key)| {
        let sealed =
            if *is_ours { sealed_by_us(*key, &message) } else { sealed_by_them(*key, &message) };
        format!("Received: by another\r\n{sealed}")
    })
}

/// The number of the set that a field of a chain belongs to.
fn instance(field: &str) -> Option<usize> {
    let (_, rest) = field.strip_prefix("ARC-")?.split_once("i=")?;
    rest.split(';').next()?.parse().ok()
}

/// The message with each field replaced by the result of `change`, which gets the number of the
/// field's set. `None` removes a field.
fn with_fields(message: &str, change: impl Fn(&str, Option<usize>) -> Option<String>) -> String {
    let (fields, body) = parts(message);
    let fields: String =
        fields.into_iter().filter_map(|field| change(field, instance(field))).collect();
    format!("{fields}\r\n{body}")
}

/// The message with a set and the next set exchanged.
fn swapped(message: &str, set: usize) -> String {
    let [own, next] = [set, set + 1].map(|number| format!("i={number};"));
    with_fields(message, |field, of| {
        let number = of.unwrap_or(0);
        let field = if number == set { field.replacen(&own, &next, 1) } else { field.into() };
        Some(if number == set + 1 { field.replacen(&next, &own, 1) } else { field })
    })
}

/// The message with another status in the seal of a set.
fn with_status(message: &str, set: usize, status: &str) -> String {
    with_fields(message, |field, of| match field.split_once("cv=") {
        Some((before, rest)) if of == Some(set) => {
            let rest = rest.trim_start_matches(|c: char| c.is_ascii_lowercase());
            Some(format!("{before}cv={status}{rest}"))
        }
        _ => Some(field.into()),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn mixed_chains_of_both_implementations_pass_until_broken(
        message in message(),
        hands in collection::vec((any::<bool>(), 0..2_usize), 2..6),
        at in any::<Index>(),
    ) {
        let sealed = handed_on(&hands, &message);
        prop_assert_eq!(chain_passes(&sealed), [true, true], "{}", sealed);
        let is_sealed = |name: &str| name.starts_with("ARC-") || is_covered(name);
        let set = 1 + at.index(hands.len() - 1);
        let mut broken = Vec::from([
            changed(&sealed, at, is_sealed),
            format!("{sealed}x"),
            with_fields(&sealed, |field, of| (of != Some(set)).then(|| field.into())),
            swapped(&sealed, set),
            // A forwarder that finds the chain broken adds a set with the status `fail`.
            sealed_by_them(0, &format!("{sealed}x")),
        ]);
        broken.extend(["none", "pass", "fail"].map(|status| with_status(&sealed, set, status)));
        for message in broken.into_iter().filter(|message| *message != sealed) {
            prop_assert_eq!(chain_passes(&message), [false, false], "{}", message);
        }
    }
}
