//! What large providers require of hosts that send them mail, as comments below the records.

/// A requirement.
struct Requirement {
    what: &'static str,
    /// The providers, and the senders that they mean.
    providers: &'static str,
    /// The reason, and what is left to do.
    reason: &'static str,
}

/// The published rules of Gmail and Yahoo (since February 2024) and of Outlook.com (since May
/// 2025).
const REQUIREMENTS: [Requirement; 8] = [
    Requirement {
        what: "SPF, DKIM",
        providers: "Gmail, Yahoo: at least one, and both from bulk senders; Microsoft: both from bulk senders",
        reason: "They prove which domain sends. This machine signs all mail of its users.",
    },
    Requirement {
        what: "DMARC",
        providers: "Gmail, Microsoft, Yahoo: from bulk senders",
        reason: "It proves the author's domain: SPF or DKIM must pass for the domain in From.",
    },
    Requirement {
        what: "PTR",
        providers: "Gmail, Microsoft, Yahoo",
        reason: "Computers that were broken into rarely have a name that leads back to their address.",
    },
    Requirement {
        what: "TLS",
        providers: "Gmail",
        reason: "It keeps mail from being read on its way. This machine uses TLS with every host that offers it.",
    },
    Requirement {
        what: "TLS-RPT",
        providers: "not required; Gmail and Microsoft send reports",
        reason: "It tells you when mail to you cannot use TLS.",
    },
    Requirement {
        what: "MTA-STS",
        providers: "not required; Gmail, Microsoft and Yahoo follow it",
        reason: "No attacker can turn TLS off for mail to you. Set mta_sts in [web] to publish it.",
    },
    Requirement {
        what: "Unsubscribe",
        providers: "Gmail, Yahoo: from bulk senders",
        reason: "One click must end a newsletter (RFC 8058). The program that writes it adds the fields.",
    },
    Requirement {
        what: "Complaints",
        providers: "Gmail, Yahoo: from bulk senders",
        reason: "Less than 0.3 % of your mail may be reported as spam. See postmaster.google.com.",
    },
];

/// The lines for people. Name servers ignore them.
pub(super) fn lines() -> impl Iterator<Item = String> {
    let head = "; What large providers require of senders. A bulk sender sends 5,000 messages a day to one of them.";
    let line = |Requirement { what, providers, reason }: &Requirement| {
        format!("; {what:<11}  {providers}. {reason}")
    };
    core::iter::once(head.to_string()).chain(REQUIREMENTS.iter().map(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_name_providers_and_are_comments() {
        let lines: Vec<String> = lines().collect();
        for what in
            ["SPF, DKIM", "DMARC", "PTR", "TLS", "TLS-RPT", "MTA-STS", "Unsubscribe", "Complaints"]
        {
            let about = |line: &&String| line.starts_with(&format!("; {what:<11}  "));
            let line = lines.iter().find(about).unwrap_or_else(|| panic!("nothing about {what}"));
            assert!(line.contains("Gmail") && line.ends_with('.'), "{line}");
        }
        assert!(lines.iter().all(|line| line.starts_with("; ") && line.len() < 200));
    }
}
