//! PLAIN and LOGIN, and the rules of all exchanges.

use std::borrow::Cow;
use std::string::{String, ToString};
use std::vec::Vec;

use base64ct::{Base64, Encoding};
use proptest::prelude::*;

use super::{RecordingHost, base64};
use crate::{Exchange, Mechanism, RESPONSE_BYTES_MAX, SaslStep};

/// The name and password that the host got, or the answer to the client if the host got none.
type CredentialsOrStep = Result<(String, Vec<u8>), SaslStep>;

fn respond(exchange: &mut Exchange, response: &[u8]) -> CredentialsOrStep {
    let mut host = RecordingHost::default();
    let answer = exchange.response_arrived(response, &mut host);
    assert_eq!(answer == SaslStep::Complete, host.name.is_some());
    host.name.zip(host.password).ok_or(answer)
}

fn plain(message: &[u8]) -> CredentialsOrStep {
    respond(&mut Exchange::begin(Mechanism::Plain), base64(message).as_bytes())
}

fn complete(name: &str, password: &[u8]) -> CredentialsOrStep {
    Ok((name.to_string(), password.to_vec()))
}

fn asks(challenge: &'static [u8]) -> SaslStep {
    SaslStep::Challenge(Cow::Borrowed(challenge))
}

#[test]
fn mechanism_names_are_case_insensitive() {
    assert_eq!(Mechanism::named(b"plain"), Some(Mechanism::Plain));
    assert_eq!(Mechanism::named(b"LogIn"), Some(Mechanism::Login));
    assert_eq!(Mechanism::named(b"scram-Sha-256"), Some(Mechanism::ScramSha256));
    for name in [
        &b""[..],
        b"PLAINS",
        b"CRAM-MD5",
        b"SCRAM-SHA-1",
        b"SCRAM-SHA-256-PLUS",
        b"XOAUTH2",
        b"EXTERNAL",
        b"ANONYMOUS",
    ] {
        assert_eq!(Mechanism::named(name), None);
    }
    let announced: Vec<_> =
        crate::NAMES.split(' ').map(|name| Mechanism::named(name.as_bytes())).collect();
    assert_eq!(announced, [Mechanism::ScramSha256, Mechanism::Plain, Mechanism::Login].map(Some));
}

#[test]
fn plain_sends_name_and_password_in_one_response() {
    assert_eq!(Exchange::begin(Mechanism::Plain).opening(), asks(b""));
    assert_eq!(plain(b"\0ada\0two  words "), complete("ada", b"two  words "));
    assert_eq!(plain(b"\0ada\0"), complete("ada", b""));
    assert_eq!(plain("\0jürgen\0Schlüssel".as_bytes()), complete("jürgen", "Schlüssel".as_bytes()));
    // Two examples of RFC 4616 section 4. Here the first client also names itself as the identity
    // to act as. The second names another user.
    assert_eq!(plain(b"tim\0tim\0tanstaaftanstaaf"), complete("tim", b"tanstaaftanstaaf"));
    assert_eq!(plain(b"Ursel\0Kurt\0xipj3plmq"), Err(SaslStep::NotAllowed));
    for malformed in [
        &b""[..],
        b"\0",
        b"ada",
        b"\0ada",
        b"\0\0password",
        b"\0ada\0pass\0word",
        b"\0a\nb\0p",
        b"\0\xff\0p",
        b"\xff\0ada\0p",
    ] {
        assert_eq!(plain(malformed), Err(SaslStep::Malformed), "{malformed:?}");
    }
}

#[test]
fn login_asks_for_name_and_password_in_turn() {
    let mut exchange = Exchange::begin(Mechanism::Login);
    assert_eq!(exchange.opening(), asks(b"VXNlcm5hbWU6"));
    assert_eq!(respond(&mut exchange, b"YWRh"), Err(asks(b"UGFzc3dvcmQ6")));
    assert_eq!(respond(&mut exchange, b"c2VjcmV0"), complete("ada", b"secret"));
    for malformed in [&b""[..], b"YQBi", b"/w==", b"!"] {
        assert_eq!(
            respond(&mut Exchange::begin(Mechanism::Login), malformed),
            Err(SaslStep::Malformed)
        );
    }
}

#[test]
fn a_response_must_be_base64() {
    for response in [
        &b"**"[..],
        b"AGFkYQBwYXNz=",
        b"AGFkYQBwYXN",
        b"AGFk YQBwYXNz",
        b"AGFkYQBwYXNz\r",
        b"AGFkYQ-_YXNz",
        b"=",
    ] {
        assert_eq!(
            respond(&mut Exchange::begin(Mechanism::Plain), response),
            Err(SaslStep::Malformed),
            "{response:?}"
        );
    }
    let longest = [b"\0ada\0".as_slice(), &[b'x'; RESPONSE_BYTES_MAX / 4 * 3 - 5]].concat();
    assert_eq!(plain(&longest), complete("ada", &longest[5..]));
    assert_eq!(plain(&[&longest[..], b"x"].concat()), Err(SaslStep::Malformed));
}

#[test]
fn a_client_may_cancel_an_exchange() {
    let begun_with = |response: &[u8]| {
        Exchange::begin(Mechanism::Login).begun_with(response, &mut RecordingHost::default())
    };
    assert_eq!(begun_with(b"YWRh"), asks(b"UGFzc3dvcmQ6"));
    assert_eq!(
        [begun_with(b"="), begun_with(b"*")],
        [SaslStep::Malformed, SaslStep::Malformed],
        "LOGIN wants a name"
    );
    assert_eq!(respond(&mut Exchange::begin(Mechanism::Login), b"*"), Err(SaslStep::GivenUp));
    assert_eq!(respond(&mut Exchange::begin(Mechanism::ScramSha256), b"*"), Err(SaslStep::GivenUp));
}

proptest! {
    #[test]
    fn responses_are_passed_on_unchanged_or_rejected(response: Vec<u8>, encode: bool, login: bool) {
        let mechanism = if login { Mechanism::Login } else { Mechanism::Plain };
        let mut exchange = Exchange::begin(mechanism);
        let sent = if encode { base64(&response).into_bytes() } else { response.clone() };
        if let Ok((name, password)) = respond(&mut exchange, &sent) {
            let plain = Base64::decode_vec(core::str::from_utf8(&sent).unwrap()).unwrap();
            prop_assert!(plain.ends_with(&[name.as_bytes(), b"\0", &password].concat()));
        }
    }
}
