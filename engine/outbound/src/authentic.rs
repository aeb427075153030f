//! Checks of a forwarded message: whether it came from the sender in its reverse path, and whether
//! it failed the DMARC policy of its author's domain.
//!
//! If a message cannot be forwarded, a report (bounce) goes to the sender in its reverse path. But
//! anyone can write any reverse path. So a bounce for mail from outside is sent only if SPF or
//! DMARC passed for the sender's domain. Otherwise an attacker could choose the addresses that this
//! server sends mail to.
//!
//! The results of these checks are in a field on top of the stored message, above the `Received:`
//! field that this server wrote. The field stays there when the message is forwarded, so the
//! results need no other storage. A message from outside without results has no authenticated
//! sender.
//!
//! Invariants:
//! - Nothing below the first `Received:` or `Authentication-Results:` field is read: a client may
//!   have written it. No client can write the fields on top (`message::Revision`).
//! - A result that is not understood proves nothing.

use accounts::entries::domain_of;
use dns::Name;
use message::header::{Field, Header};
use message::names_a_login;

/// Fields that this server writes above the results.
const ABOVE: [&str; 7] = [
    "Return-Path",
    "Delivered-To",
    relay::loops::FIELD,
    "DKIM-Signature",
    "ARC-Seal",
    "ARC-Message-Signature",
    "ARC-Authentication-Results",
];

/// Whether a message with this header came from `sender`. `is_local`: `sender` is at a domain of
/// this server.
pub(super) fn is_authentic(header: &[u8], sender: &str, hostname: &str, is_local: bool) -> bool {
    match top(header) {
        None => false,
        Some(top) if top.is("Authentication-Results") => {
            results(&top, hostname).any(|result| is_proof(result, sender))
        }
        Some(top) if top.is("Received") => names_a_login(top.value),
        // Only a message written in the webmail has neither field.
        Some(_) => is_local,
    }
}

/// The domain of the author of a message with this header, if the message fails the DMARC policy of
/// that domain. `None` if a trusted server vouches for the message (ARC).
pub(super) fn unproved_author(header: &[u8], hostname: &str) -> Option<Name> {
    let top = top(header).filter(|top| top.is("Authentication-Results"))?;
    let author = results(&top, hostname)
        .find_map(|result| result.strip_prefix("dmarc=fail header.from="))?;
    // The field has the domain in quotes if the domain is not a token (RFC 8601 section 2.2).
    Name::of_bytes(author.trim_matches('"').as_bytes()).ok()
}

/// The topmost field that shows where a message came from. A message that was written in the
/// webmail has no such field: the result is its first field that is not in [`ABOVE`].
fn top(header: &[u8]) -> Option<Field<'_>> {
    let is_above =
        |name: &[u8]| ABOVE.iter().any(|above| name.eq_ignore_ascii_case(above.as_bytes()));
    Header::new(header).fields().find(|field| !is_above(field.name))
}

/// The results in an `Authentication-Results:` field of this server. A field of another server
/// gives no results.
fn results<'a>(field: &Field<'a>, hostname: &str) -> impl Iterator<Item = &'a str> + use<'a> {
    let value = core::str::from_utf8(field.value).unwrap_or_default();
    let own = value.trim().split_once(";\r\n\t").filter(|(host, _)| *host == hostname);
    own.into_iter().flat_map(|(_, results)| results.split(";\r\n\t")).map(str::trim_end)
}

/// Whether a result proves that the message came from the sender's domain.
fn is_proof(result: &str, sender: &str) -> bool {
    let domain = domain_of(sender);
    if let Some(checked) = result.strip_prefix("spf=pass smtp.mailfrom=") {
        return checked.eq_ignore_ascii_case(&domain);
    }
    let Some(author) = result.strip_prefix("dmarc=pass header.from=") else { return false };
    // The author's domain and its subdomains are aligned.
    let author = author.to_ascii_lowercase();
    domain.strip_suffix(&author).is_some_and(|below| below.is_empty() || below.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::ToString;

    use super::*;

    const RECEIVED: &str =
        "Received: from far.test ([192.0.2.7])\r\n\tby mail.test with ESMTPS id 5;\r\n\tnow\r\n";

    fn is_authentic_at(header: &str, sender: &str) -> bool {
        is_authentic(header.as_bytes(), sender, "mail.test", sender.ends_with("@mail.test"))
    }

    fn found(results: &str) -> bool {
        let header = format!(
            "Authentication-Results: mail.test;\r\n\t{results}\r\n{RECEIVED}Subject: a\r\n"
        );
        let forwarded =
            format!("Delivered-To: ada@mail.test\r\nX-Loop: A\r\nARC-Seal: i=1\r\n{header}");
        let is_authentic = is_authentic_at(&header, "frank@far.test");
        assert_eq!(is_authentic_at(&forwarded, "frank@far.test"), is_authentic);
        is_authentic
    }

    #[test]
    fn spf_or_dmarc_pass_makes_the_sender_authentic() {
        for results in [
            "spf=pass smtp.mailfrom=far.test",
            "spf=pass smtp.mailfrom=Far.Test;\r\n\tdmarc=fail header.from=other.test",
            "spf=fail smtp.mailfrom=far.test;\r\n\tdmarc=pass header.from=far.test;\r\n\tdkim=pass\r\n\t     ",
            "spf=none smtp.mailfrom=far.test;\r\n\tdmarc=pass header.from=test",
        ] {
            assert!(found(results), "{results}");
        }
        for results in [
            "spf=none smtp.mailfrom=far.test",
            "spf=softfail smtp.mailfrom=far.test;\r\n\tdmarc=none header.from=far.test",
            "spf=pass smtp.mailfrom=other.test;\r\n\tdmarc=pass header.from=other.test",
            "spf=pass smtp.mailfrom=r.test;\r\n\tdmarc=pass header.from=r.test",
            "spf=pass smtp.helo=far.test",
            "spf=temperror smtp.mailfrom=far.test;\r\n\tdmarc=temperror header.from=far.test",
            "x-spf=pass smtp.mailfrom=far.test",
        ] {
            assert!(!found(results), "{results}");
        }
        assert!(!found("") && !found("none"));
    }

    #[test]
    fn author_that_fails_its_dmarc_policy_is_unproved() {
        let unproved = |results: &str| {
            let header = format!(
                "Authentication-Results: mail.test;\r\n\t{results}\r\n{RECEIVED}Subject: a\r\n"
            );
            unproved_author(header.as_bytes(), "mail.test")
                .map(|author| author.as_str().to_string())
        };
        for (written, author) in
            [("mail.test", "mail.test"), ("\"a+b.mail.test\"", "a+b.mail.test")]
        {
            let results = format!(
                "spf=pass smtp.mailfrom=far.test;\r\n\tdmarc=fail header.from={written};\r\n\tdkim=none"
            );
            assert_eq!(unproved(&results).as_deref(), Some(author));
        }
        for results in [
            "spf=none smtp.mailfrom=far.test",
            "dmarc=pass header.from=mail.test",
            "dmarc=none header.from=mail.test",
            "dmarc=temperror header.from=mail.test",
            "dmarc=permerror",
            "dmarc=fail reason=\"list.test is a trusted forwarder (ARC)\" header.from=mail.test",
        ] {
            assert_eq!(unproved(results), None, "{results}");
        }
        let of_another =
            "Authentication-Results: other.test;\r\n\tdmarc=fail header.from=mail.test\r\n";
        assert_eq!(unproved_author(of_another.as_bytes(), "mail.test"), None);
        assert_eq!(unproved_author(RECEIVED.as_bytes(), "mail.test"), None);
    }

    #[test]
    fn only_our_own_results_make_a_sender_authentic() {
        let results = |host: &str| {
            format!("Authentication-Results: {host};\r\n\tspf=pass smtp.mailfrom=far.test\r\n")
        };
        for header in [
            format!("{}{RECEIVED}", results("other.test")),
            format!("{RECEIVED}{}", results("mail.test")),
            format!("Subject: a\r\n{}", results("mail.test")),
            format!("{}{}{RECEIVED}", results("other.test"), results("mail.test")),
            format!(
                "Authentication-Results: mail.test; none\r\n{}{RECEIVED}",
                results("mail.test")
            ),
            RECEIVED.into(),
            "DKIM-Signature: a\r\n".into(),
            "".into(),
        ] {
            assert!(!is_authentic_at(&header, "frank@far.test"), "{header}");
        }
    }

    #[test]
    fn logged_in_user_is_an_authentic_sender() {
        for (protocol, is_user) in
            [("ESMTPSA", true), ("UTF8SMTPA", true), ("ESMTPS", false), ("SMTP", false)]
        {
            let header = RECEIVED.replace("ESMTPS", protocol);
            for above in ["", "DKIM-Signature: v=1\r\n", "Delivered-To: ada@mail.test\r\n"] {
                assert_eq!(
                    is_authentic_at(&format!("{above}{header}"), "ada@mail.test"),
                    is_user,
                    "{protocol}"
                );
            }
        }
        let forged = RECEIVED.replace("far.test", "by mail.test with ESMTPSA id");
        assert!(!is_authentic_at(&forged, "ada@mail.test"));
        assert!(
            is_authentic_at("DKIM-Signature: v=1\r\nDate: now\r\n", "ada@mail.test"),
            "from the webmail"
        );
        assert!(!is_authentic_at("Date: now\r\n", "frank@far.test"));
    }
}
