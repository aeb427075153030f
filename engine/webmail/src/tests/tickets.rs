//! Tests of tickets.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use proptest::prelude::*;

use crate::{SECRET_BYTES, SessionTicket, clear_cookie};

const ZERO: &str = "000000000000002a.AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

fn ticket() -> SessionTicket {
    SessionTicket::new(42, [0; SECRET_BYTES])
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The expected values come from Python's hashlib.
#[test]
fn digest_and_form_token_are_derived_from_the_secret() {
    let ticket = ticket();
    assert_eq!(
        hex(&ticket.digest()),
        "66687aadf862bd776c8fc18b8e9f8e20089714856ee233b3902a591d0d5f2925"
    );
    assert_eq!(ticket.form_token().to_string(), "NoL4cJz1X3-Nl6Txr3Xuny3GYQwwKDK2jvzK9tVcq_8");
    assert!(ticket.form_token().is("NoL4cJz1X3-Nl6Txr3Xuny3GYQwwKDK2jvzK9tVcq_8"));
    let other = SessionTicket::new(42, [1; SECRET_BYTES]);
    assert!(
        other.digest() != ticket.digest()
            && !ticket.form_token().is(&other.form_token().to_string())
    );
    for text in [
        "",
        "NoL4cJz1X3-Nl6Txr3Xuny3GYQwwKDK2jvzK9tVcq_",
        "NoL4cJz1X3-Nl6Txr3Xuny3GYQwwKDK2jvzK9tVcq_8=",
        "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    ] {
        assert!(!ticket.form_token().is(text), "{text}");
    }
}

#[test]
fn cookie_is_restricted_to_this_host_and_tls() {
    let attributes = "Path=/; Secure; HttpOnly; SameSite=Lax";
    assert_eq!(ticket().set_cookie().to_string(), format!("__Host-barepost={ZERO}; {attributes}"));
    assert_eq!(clear_cookie().to_string(), format!("__Host-barepost=; Max-Age=0; {attributes}"));
}

fn account(fields: &[&str]) -> Option<u64> {
    SessionTicket::of_cookies(fields.iter().map(|field| field.as_bytes()))
        .map(|ticket| ticket.account)
}

#[test]
fn ticket_is_found_among_other_cookies() {
    let ours = format!("__Host-barepost={ZERO}");
    for fields in [
        &[&*ours][..],
        &[&format!("theme=dark; {ours}; a=b=c")],
        &[&format!("{ours};x")],
        &[&format!("x;\t {ours} ;")],
        &["theme=dark", &ours, "x=y"],
    ] {
        assert_eq!(account(fields), Some(42), "{fields:?}");
    }
    let foreign = [b"x=\xff; ", ours.as_bytes()].concat();
    assert!(SessionTicket::of_cookies([&*foreign]).is_some());
}

#[test]
fn cookies_without_exactly_one_ticket_are_rejected() {
    let ours = format!("__Host-barepost={ZERO}");
    for fields in [
        &[][..],
        &[""],
        &["theme=dark"],
        &[&format!("{ours}; {ours}")],
        &[&ours, &ours],
        &[&format!("{ours}; __Host-barepost=")],
        &[&format!("__host-barepost={ZERO}")],
        &[&format!("barepost={ZERO}")],
        &[&format!("x__Host-barepost={ZERO}")],
        &[&format!("__Host-barepost=\"{ZERO}\"")],
        &[&format!("__Host-barepost={ZERO}, x=y")],
        &[&format!("__Host-barepost {ZERO}")],
    ] {
        assert_eq!(account(fields), None, "{fields:?}");
    }
    let secret = &ZERO[9..];
    for text in [
        "",
        ".",
        ZERO.trim_end_matches('A'),
        &ZERO[..ZERO.len() - 1],
        &format!("{ZERO}A"),
        &format!("{ZERO}="),
        &format!(" {ZERO}"),
        &format!("2a.{secret}"),
        &format!("000000000000002A.{secret}"),
        &format!("+00000000000002a.{secret}"),
        &format!("0000000000000002a.{secret}"),
        &format!("000000000000002a{secret}"),
        &format!("000000000000002a..{}", &secret[1..]),
        &ZERO.replace("AAA", "A+A"),
        &ZERO.replace("AAA", "A A"),
        // The last bits are not a part of any byte.
        &format!("{}B", &ZERO[..ZERO.len() - 1]),
    ] {
        assert!(text.parse::<SessionTicket>().is_err(), "{text}");
    }
}

#[test]
fn debug_output_has_no_secret() {
    let printed = format!("{:?} {:?}", ticket(), ticket().form_token());
    assert_eq!(printed, "SessionTicket(000000000000002a) FormToken");
}

proptest! {
    #[test]
    fn ticket_survives_writing_and_parsing(account: u64, secret: [u8; SECRET_BYTES]) {
        let ticket = SessionTicket::new(account, secret);
        let given = ticket.set_cookie().to_string();
        let cookie = given.split(';').next().unwrap_or_default();
        let back = SessionTicket::of_cookies([cookie.as_bytes()]).expect("the ticket");
        prop_assert_eq!((back.account, back.digest()), (account, ticket.digest()));
        let value = cookie.split_once('=').map(|(_, value)| value);
        prop_assert!(value.is_some_and(|value| value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))));
    }

    #[test]
    fn ticket_has_exactly_one_text(fields in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..4), text in "[0-9a-f]{16}[.][A-Za-z0-9_-]{43}") {
        prop_assert!(SessionTicket::of_cookies(fields.iter().map(Vec::as_slice)).is_none());
        if let Ok(ticket) = text.parse::<SessionTicket>() {
            prop_assert_eq!(ticket.to_string(), text);
        }
    }
}
