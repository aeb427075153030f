//! Tests of valid and invalid addresses.

use core::net::IpAddr;
use std::format;
use std::string::{String, ToString};

use proptest::prelude::*;

use crate::{Domain, LOCAL_PART_BYTES_MAX, PathError, ReversePath, SmtpMailbox, SmtpPath};

fn mailbox(text: &str) -> Result<SmtpMailbox<'_>, PathError> {
    match SmtpPath::read(text)? {
        (SmtpPath::Mailbox(mailbox), "") => Ok(mailbox),
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
        "<ada@>",
        "<@example.org>",
        "<ada@example.org",
        "<a b@c>",
        "<a@b c>",
        "<a@b@c>",
        "<a@.b>",
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
        assert!(SmtpPath::read(text).is_err(), "{text:?}");
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
    assert!(SmtpPath::read("<>").is_err());
}

#[test]
fn paths_of_careless_clients_name_their_mailbox() {
    for text in [
        "ada@example.org",
        "'ada@example.org'",
        "ada@example.org.",
        "@one.example:ada@example.org",
        "<ada@example.org.>",
        "<'ada@example.org'>",
        "<'ada@example.org.'>",
        "< ada@example.org\t>",
        "<<ada@example.org>>",
        "<Ada L. <ada@example.org>>",
        "<\"Ada\" <ada@example.org> >",
        "\"Ada\" <ada@example.org>",
        "\"Ada\"<ada@example.org>",
        "\"bob@example.org\" <ada@example.org>",
        "\"a \\\"<b\" \"c\" <ada@example.org>",
    ] {
        for rest in ["", " SIZE=1", " AUTH=<>"] {
            let command = format!("{text}{rest}");
            let (SmtpPath::Mailbox(mailbox), after) = SmtpPath::read(&command).unwrap() else {
                panic!("{text} has a domain");
            };
            assert_eq!((mailbox.text, after), ("ada@example.org", rest), "{command}");
            assert_eq!(mailbox.local_part, "ada");
            assert_eq!(mailbox.domain, Domain::Name("example.org"));
            let (sender, _) = ReversePath::read(&command).unwrap();
            assert_eq!(sender, ReversePath::Named(SmtpPath::Mailbox(mailbox)));
        }
    }
    assert_eq!(mailbox("a@[192.0.2.1]").unwrap().text, "a@[192.0.2.1]");
    assert_eq!(mailbox("\"a b\"@c").unwrap().local_part, "\"a b\"");
    assert_eq!(mailbox("<'ada'@c>").unwrap().local_part, "'ada'");
}

#[test]
fn path_without_a_domain_is_a_local_part() {
    for (text, name) in [
        ("<Postmaster>", "Postmaster"),
        ("postmaster", "postmaster"),
        ("<<scanner>>", "scanner"),
        ("\"Scanner\" <scanner>", "scanner"),
        ("<SIZE=1>", "SIZE=1"),
    ] {
        assert_eq!(SmtpPath::read(text), Ok((SmtpPath::LocalPart(name), "")), "{text}");
    }
    let longest = "l".repeat(LOCAL_PART_BYTES_MAX);
    assert!(SmtpPath::read(&longest).is_ok());
    assert_eq!(SmtpPath::read(&format!("<{longest}l>")), Err(PathError::TooLong));
}

#[test]
fn path_of_doubtful_meaning_is_refused() {
    for text in [
        "SIZE=1",
        "\"scanner\"",
        "\"ada@example.org\"",
        "bob@example.org>",
        "<bob@example.org",
        "<bob@example.org>>",
        "<<bob@example.org>",
        "<<<bob@example.org>>>",
        "\"Bob\" <>",
        "<<>>",
        "\"Bob\" bob@example.org",
        "bob@example.org,eve@example.org",
        "<bob@example.org,eve@example.org>",
        "bob@example.org;",
        "<bob@example.org..>",
        "<bob@[192.0.2.1].>",
        "<bob smith@example.org>",
        "<bob@'example.org'>",
        "<bob@example.org'>",
        "<'@example.org'>",
        "<''bob@example.org''>",
        "<\"bob@example.org\" bob@example.org>",
        "mailto:bob@example.org",
        "bob @example.org",
    ] {
        assert!(!matches!(SmtpPath::read(text), Ok((_, ""))), "{text}");
    }
    // The second path is the client's error: no parameter has that form.
    for text in ["<bob@example.org><eve@example.org>", "bob@example.org <eve@example.org>"] {
        let (SmtpPath::Mailbox(mailbox), rest) = SmtpPath::read(text).unwrap() else {
            panic!("{text}");
        };
        assert_eq!((mailbox.text, rest.trim()), ("bob@example.org", "<eve@example.org>"));
    }
    // A display name hides neither a sender nor a parameter.
    let hiding = [
        "scanner AUTH=<bob@example.org>",
        "\"scanner\" AUTH=<bob@example.org>",
        "ada@example.org AUTH=<bob@example.org>",
    ];
    for text in hiding {
        let read = ReversePath::read(text).map(|(path, _)| path.text());
        assert!(!matches!(read, Ok("" | "bob@example.org")), "{text}: {read:?}");
    }
}

#[test]
fn administrator_is_reached_by_two_names_in_any_case() {
    for text in ["<Postmaster>", "abuse", "<ABUSE@a>", "<\"post\\master\"@a>", "<postmaster@[::1]>"]
    {
        let text = text.replace("[::1]", "[IPv6:::1]");
        assert!(SmtpPath::read(&text).unwrap().0.is_for_administrator(), "{text}");
    }
    for text in ["<abuser>", "<abuse+x@a>", "<a@postmaster>"] {
        assert!(!SmtpPath::read(text).unwrap().0.is_for_administrator(), "{text}");
    }
}

/// A path within the grammar of RFC 5321, and its local part and domain.
fn grammatical() -> impl Strategy<Value = (String, String, String)> {
    let route = "|@[a-c]{1,3}(\\.x1)?(,@\\[192\\.0\\.2\\.1\\])?:";
    let local_part =
        "[a-c'=!+\u{e4}]{1,5}(\\.[a-c'*]{1,5}){0,2}|\"([a-c @<>':]|\\\\[a\"\\\\ ]){0,8}\"";
    let domain = "[a-c\u{e4}]{1,4}(\\.[a-c][a-c1-3-]{0,3}[a-c]){0,2}|\\[IPv6:::1\\]";
    (route, local_part, domain).prop_map(|(route, local_part, domain)| {
        (format!("<{route}{local_part}@{domain}>"), local_part, domain)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn grammatical_path_keeps_its_meaning(
        (text, local_part, domain) in grammatical(), rest in "| [A-Z=<>@1 ]{0,12}",
    ) {
        let command = format!("{text}{rest}");
        let (path, after) = SmtpPath::read(&command).unwrap();
        let SmtpPath::Mailbox(mailbox) = path else { panic!("{text}") };
        prop_assert_eq!(mailbox.text, format!("{local_part}@{domain}"));
        prop_assert_eq!((mailbox.local_part, after), (local_part.as_str(), rest.as_str()));
    }

    #[test]
    fn accepted_path_reads_back_as_itself(
        text in "([a\\.@:,='<>\\[\\] \"\\\\\t]|\"a\"|a@b|<a|@b>|\u{e4}){0,12}",
    ) {
        if let Ok((path, rest)) = SmtpPath::read(&text) {
            prop_assert!(text.ends_with(rest));
            let usual = format!("<{}>", path.text());
            prop_assert_eq!(SmtpPath::read(&usual), Ok((path, "")));
        }
    }
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
    let (_, rest) = SmtpPath::read("<\">\"@b> X=<y>").unwrap();
    assert_eq!(rest, " X=<y>");
}
