//! Identifies the messages of a room on a disk. Local messages are known by the subject, messages
//! for the other server by the Message-ID, and reports by the message that they are about.

use super::remote::RemoteMailbox;

/// The identity of a message.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum MessageName {
    /// A message for local accounts or composed at the webmail, by its number.
    Local(usize),
    /// A message for the other server that a sender submitted, by its number.
    Posted(usize),
    Report(ReportOf),
}

/// The message and recipient that a report is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct ReportOf {
    /// The number of the message.
    pub(super) number: usize,
    /// The recipient that does not get the message. `None`: the report says that the message is
    /// delayed.
    pub(super) mailbox: Option<RemoteMailbox>,
}

impl ReportOf {
    /// Reads what a report is about; `None`: the message is not a report.
    ///
    /// Errors: the message is a malformed report.
    pub(super) fn read(message: &[u8]) -> Result<Option<ReportOf>, String> {
        let text = String::from_utf8_lossy(message);
        let Some((_, text)) = text.split_once("\r\nContent-Type: multipart/report;") else {
            return Ok(None);
        };
        let number = number_after(text.as_bytes(), b"\r\nSubject: ", b"\r\n");
        let number =
            number.or_else(|| number_after(text.as_bytes(), b"\r\nMessage-ID: <", b".posted@"));
        let number =
            number.ok_or("a report does not contain the header of any message of this room")?;
        if text.contains("\r\nAction: delayed\r\n") {
            return Ok(Some(ReportOf { number, mailbox: None }));
        }
        if !text.contains("\r\nAction: failed\r\n") {
            return Err(format!("a report says neither failed nor delayed: {text}"));
        }
        let (_, behind) = text
            .split_once("\r\nFinal-Recipient: rfc822; ")
            .ok_or("a failure is of no recipient")?;
        let address = behind.lines().next().unwrap_or_default();
        let (mailbox, _) =
            RemoteMailbox::named(address).ok_or_else(|| format!("a report names {address}"))?;
        Ok(Some(ReportOf { number, mailbox: Some(mailbox) }))
    }
}

/// Identifies the message that begins with these octets. The octets are not verified: a power cut
/// may have torn them before any index had the message. A torn report identifies no message.
pub(super) fn named_in(octets: &[u8]) -> Option<MessageName> {
    let report = ReportOf::read(octets).ok()?;
    let posted = number_after(octets, b"\r\nMessage-ID: <", b".posted@").map(MessageName::Posted);
    let local = || number_after(octets, b"\r\nSubject: ", b"\r\n").map(MessageName::Local);
    report.map(MessageName::Report).or(posted).or_else(local)
}

/// The number after the first `before`, if `after` follows the number.
pub(super) fn number_after(octets: &[u8], before: &[u8], after: &[u8]) -> Option<usize> {
    let at = octets.windows(before.len()).position(|window| window == before)? + before.len();
    let digits = octets[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = std::str::from_utf8(&octets[at..at + digits]).ok()?.parse().ok()?;
    octets[at + digits..].starts_with(after).then_some(number)
}
