//! Tests of valid and invalid addresses.

use core::net::IpAddr;
use std::string::ToString;

use crate::{Domain, ForwardPath, LOCAL_PART_BYTES_MAX, PathError, ReversePath, SmtpMailbox};

fn mailbox(text: &str) -> Result<SmtpMailbox<'_>, PathError> {
    match ForwardPath::read(text)? {
        (ForwardPath::Mailbox(mailbox), "") => Ok(mailbox),
        other => panic!("{other:?}"),
    }
}

#[test]
fn mailboxes_parse() {
    for (text, local_part, domain) in [
        ("<ada@example.org>", "ada", "example.org"),
        ("<a@b>", "a", "b"),
        ("<first.last+tag@sub.domain.example>", "first.last+tag", "sub.domain.example"),
        ("<!#$%&'*+-/=?^_`{|}~@x.example>", "!#$%&'*+-/=?^_`{|}~", "x.example"),
        ("<a..b.@x_y.example>", "a..b.", "x_y.example"),
        ("<\"a b\"@example.org>", "\"a b\"", "example.org"),
        ("<\"a>b@c\\\"d\\\\\"@example.org>", "\"a>b@c\\\"d\\\\\"", "example.org"),
        ("<\"\"@example.org>", "\"\"", "example.org"),
        ("<@one.example,@two.example:ada@three.example>", "ada", "three.example"),
        ("<@[192.0.2.1]:ada@three.example>", "ada", "three.example"),
        ("<\u{e4}@\u{f6}.example>", "\u{e4}", "\u{f6}.example"),
    ] {
        let mailbox = mailbox(text).unwrap();
        assert_eq!(
            (mailbox.local_part, mailbox.domain),
            (local_part, Domain::Name(domain)),
            "{text}"
        );
        assert_eq!(mailbox.text, local_part.to_string() + "@" + domain);
    }
}

#[test]
fn address_literals_parse() {
    for (text, address) in [
        ("<a@[192.0.2.1]>", "192.0.2.1"),
        ("<a@[IPv6:2001:db8::1]>", "2001:db8::1"),
        ("<a@[ipv6:::1]>", "::1"),
    ] {
        let address: IpAddr = address.parse().unwrap();
        assert_eq!(mailbox(text).unwrap().domain, Domain::Literal(address));
    }
}

#[test]
fn invalid_mailbox_does_not_parse() {
    for text in [
        "",
        "<",
        ">",
        "<>",
        "ada@example.org",
        "<ada>",
        "<ada@>",
        "<@example.org>",
        "<ada@example.org",
        "<a b@c>",
        "<a@b c>",
        "<a@b@c>",
        "<a@.b>",
        "<a@b.>",
        "<a@b..c>",
        "<\"a@b>",
        "<\"a\"b@c>",
        "<\"a\rb\"@c>",
        "<\"a\\\x01\"@c>",
        "<a\0@b>",
        "<a@b\0>",
        "<a@[1.2.3]>",
        "<a@[1.2.3.4>",
        "<a@[IPv6:1.2.3.4]>",
        "<a@[::1]>",
        "<a@[x:y]>",
        "<@a:b>",
        "<@a,b:c@d>",
        "<@a b@c>",
        "<@:a@b>",
        "<(x)a@b>",
        "<a@b(x)>",
        "<a,b@c>",
        "<\\a@b>",
        "<a@b;c>",
        "<a\u{7f}@b>",
    ] {
        assert!(ForwardPath::read(text).is_err(), "{text:?}");
    }
    assert!(ReversePath::read("< >").is_err());
}

#[test]
fn path_length_limits_are_exact() {
    let local_part = "l".repeat(LOCAL_PART_BYTES_MAX);
    let label = "d".repeat(63);
    let domain = std::format!("{label}.{label}.{}", "d".repeat(61));
    let longest = std::format!("<{local_part}@{domain}>");
    assert_eq!(longest.len(), 256);
    assert_eq!(mailbox(&longest).unwrap().local_part, local_part);
    assert_eq!(mailbox(&std::format!("<{local_part}@{domain}d>")), Err(PathError::TooLong));
    assert_eq!(mailbox(&std::format!("<{local_part}l@b>")), Err(PathError::TooLong));
    assert_eq!(mailbox(&std::format!("<a@{label}d>")), Err(PathError::Malformed));
    assert!(mailbox(&std::format!("<a@{label}>")).is_ok());
}

#[test]
fn null_path_is_valid_only_as_sender() {
    assert_eq!(ReversePath::read("<> SIZE=1").unwrap(), (ReversePath::Null, " SIZE=1"));
    assert_eq!(ReversePath::Null.text(), "");
    assert!(ForwardPath::read("<>").is_err());
}

#[test]
fn postmaster_needs_no_domain_and_ignores_case() {
    for text in ["<Postmaster>", "<postmaster>", "<POSTMASTER>"] {
        assert_eq!(ForwardPath::read(text).unwrap().0, ForwardPath::Postmaster);
    }
    assert!(matches!(ForwardPath::read("<postmaster@a>").unwrap().0, ForwardPath::Mailbox(_)));
    assert!(ReversePath::read("<postmaster>").is_err());
}

#[test]
fn quoting_is_removed_from_local_part() {
    for (text, plain) in [
        ("<ada@b>", "ada"),
        ("<\"ada\"@b>", "ada"),
        ("<\"a\\da\"@b>", "ada"),
        ("<\"a b\"@b>", "a b"),
        ("<\"a\\\\b\\\"\"@b>", "a\\b\""),
        ("<\"\"@b>", ""),
        ("<\"\u{e4}\"@b>", "\u{e4}"),
    ] {
        let mut buffer = [0; LOCAL_PART_BYTES_MAX];
        assert_eq!(mailbox(text).unwrap().plain_local_part(&mut buffer), plain, "{text}");
    }
}

#[test]
fn text_after_the_path_is_returned() {
    let (_, rest) = ForwardPath::read("<\">\"@b> X=<y>").unwrap();
    assert_eq!(rest, " X=<y>");
}
