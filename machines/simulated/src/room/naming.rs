//! Identifies a message of the room on a disk: by the subject, by the Message-ID if it goes to the
//! other server, and a report by the message that it is about.

use super::remote::RemoteMailbox;

/// A message of the room.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum MessageName {
    /// For local accounts.
    Local(usize),
    /// For another server, by its number. A message that is composed at the webmail is a `Message`
    /// instead.
    PostedMessage(usize),
    Report(ReportOf),
}

/// The subject of a report.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct ReportOf {
    /// The number of the message.
    pub(super) number: usize,
    /// The recipient that does not get the message; `None`: the message is delayed.
    pub(super) mailbox: Option<RemoteMailbox>,
}

impl ReportOf {
    /// The subject of the report in a message; `None`: it is not a report.
    ///
    /// Errors: it is a report, and something is wrong with it.
    pub(super) fn read(message: &[u8]) -> Result<Option<ReportOf>, String> {
        let text = String::from_utf8_lossy(message);
        let Some((_, text)) = text.split_once("\r\nContent-Type: multipart/report;") else {
            return Ok(None);
        };
        let number = number_behind(text.as_bytes(), b"\r\nSubject: ", b"\r\n");
        let number =
            number.or_else(|| number_behind(text.as_bytes(), b"\r\nMessage-ID: <", b".posted@"));
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

/// The message that begins with these octets. They are not verified: a power cut may have torn them
/// before any index knew them. A torn report identifies no message.
pub(super) fn named_in(octets: &[u8]) -> Option<MessageName> {
    let report = ReportOf::read(octets).ok()?;
    let posted =
        number_behind(octets, b"\r\nMessage-ID: <", b".posted@").map(MessageName::PostedMessage);
    let local = || number_behind(octets, b"\r\nSubject: ", b"\r\n").map(MessageName::Local);
    report.map(MessageName::Report).or(posted).or_else(local)
}

/// The first number between `before` and `after`.
pub(super) fn number_behind(octets: &[u8], before: &[u8], after: &[u8]) -> Option<usize> {
    let at = octets.windows(before.len()).position(|window| window == before)? + before.len();
    let digits = octets[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = std::str::from_utf8(&octets[at..at + digits]).ok()?.parse().ok()?;
    octets[at + digits..].starts_with(after).then_some(number)
}
