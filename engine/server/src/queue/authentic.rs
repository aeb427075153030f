//! Whether a forwarded message came from the sender that its reverse path names.
//!
//! A report goes to the sender, but anybody can write any reverse path. So a report about mail from
//! outside goes to the sender only if SPF or DMARC passed for the sender's domain. Otherwise an
//! attacker could choose the addresses that this server sends mail to.
//!
//! The results of these checks stand on top of the stored message, above the `Received:` field that
//! this server wrote. They stay there when the message is forwarded, so nothing else is stored. A
//! message from outside without results has no authenticated sender.
//!
//! Invariants:
//! - Nothing below the first `Received:` or `Authentication-Results:` field is read: a client may
//!   have written it. No client can write the fields on top (`message::Revision`).
//! - A result that is not understood proves nothing.

use message::header::Header;
use message::names_a_login;

use super::entry::domain_of;

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
    let is_above = |name: &[u8]| ABOVE.iter().any(|above| name.eq_ignore_ascii_case(above.as_bytes()));
    let Some(top) = Header::new(header).fields().find(|field| !is_above(field.name)) else { return false };
    if top.is("Authentication-Results") {
        let value = core::str::from_utf8(top.value).unwrap_or_default();
        let found = value.trim().split_once(";\r\n\t").filter(|(host, _)| *host == hostname);
        found.is_some_and(|(_, results)| results.split(";\r\n\t").any(|result| is_proof(result.trim_end(), sender)))
    } else if top.is("Received") {
        names_a_login(top.value)
    } else {
        // Only a message written in the webmail has neither field.
        is_local
    }
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

    use super::*;

    const RECEIVED: &str = "Received: from far.test ([192.0.2.7])\r\n\tby mail.test with ESMTPS id 5;\r\n\tnow\r\n";

    fn is_authentic_at(header: &str, sender: &str) -> bool {
        is_authentic(header.as_bytes(), sender, "mail.test", sender.ends_with("@mail.test"))
    }

    fn found(results: &str) -> bool {
        let header = format!("Authentication-Results: mail.test;\r\n\t{results}\r\n{RECEIVED}Subject: a\r\n");
        let sent_on = format!("Delivered-To: ada@mail.test\r\nX-Loop: A\r\nARC-Seal: i=1\r\n{header}");
        let is_authentic = is_authentic_at(&header, "frank@far.test");
        assert_eq!(is_authentic_at(&sent_on, "frank@far.test"), is_authentic);
        is_authentic
    }

    #[test]
    fn spf_or_dmarc_for_its_domain_make_a_sender_authentic() {
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
    fn only_our_own_results_make_a_sender_authentic() {
        let results = |host: &str| format!("Authentication-Results: {host};\r\n\tspf=pass smtp.mailfrom=far.test\r\n");
        for header in [
            format!("{}{RECEIVED}", results("other.test")),
            format!("{RECEIVED}{}", results("mail.test")),
            format!("Subject: a\r\n{}", results("mail.test")),
            format!("{}{}{RECEIVED}", results("other.test"), results("mail.test")),
            format!("Authentication-Results: mail.test; none\r\n{}{RECEIVED}", results("mail.test")),
            RECEIVED.into(),
            "DKIM-Signature: a\r\n".into(),
            "".into(),
        ] {
            assert!(!is_authentic_at(&header, "frank@far.test"), "{header}");
        }
    }

    #[test]
    fn a_user_is_an_authentic_sender() {
        for (protocol, is_user) in [("ESMTPSA", true), ("UTF8SMTPA", true), ("ESMTPS", false), ("SMTP", false)] {
            let header = RECEIVED.replace("ESMTPS", protocol);
            for above in ["", "DKIM-Signature: v=1\r\n", "Delivered-To: ada@mail.test\r\n"] {
                assert_eq!(is_authentic_at(&format!("{above}{header}"), "ada@mail.test"), is_user, "{protocol}");
            }
        }
        let lie = RECEIVED.replace("far.test", "by mail.test with ESMTPSA id");
        assert!(!is_authentic_at(&lie, "ada@mail.test"));
        assert!(is_authentic_at("DKIM-Signature: v=1\r\nDate: now\r\n", "ada@mail.test"), "from the webmail");
        assert!(!is_authentic_at("Date: now\r\n", "frank@far.test"));
    }
}
