//! Reports: what a machine tells an account of a message for another server. In the ledger each is
//! a letter that may come, from the moment in which the message is written.
//!
//! Invariants:
//! - A report is of one message and of one recipient, or says that the message takes long. It comes
//!   once, to the account that has sent the message, and names both.
//! - No report comes of a message that was refused. A failure is never reported of a recipient that
//!   takes mail, unless the message is on bad sectors.

use sometimes::sometimes;

use super::ledger::{Fate, Ledger, Letter, LetterId};
use super::peer::Mailbox;
use super::posted::{Answer, number_behind};

/// The subject of a report.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct ReportOf {
    /// The number of the message.
    pub(super) number: usize,
    /// The recipient that does not get the message; `None`: the message is delayed.
    pub(super) mailbox: Option<Mailbox>,
}

impl ReportOf {
    /// The subject of the report in a message; `None`: it is no report.
    ///
    /// Errors: it is a report, and something is wrong with it.
    pub(super) fn read(message: &[u8]) -> Result<Option<ReportOf>, String> {
        let text = String::from_utf8_lossy(message);
        let Some((_, text)) = text.split_once("\r\nContent-Type: multipart/report;") else { return Ok(None) };
        let number = number_behind(text.as_bytes(), b"\r\nSubject: ", b"\r\n");
        let number = number.or_else(|| number_behind(text.as_bytes(), b"\r\nMessage-ID: <", b".posted@"));
        let number = number.ok_or("a report has the header of none of our messages")?;
        if text.contains("\r\nAction: delayed\r\n") {
            return Ok(Some(ReportOf { number, mailbox: None }));
        }
        if !text.contains("\r\nAction: failed\r\n") {
            return Err(format!("a report says neither failed nor delayed: {text}"));
        }
        let (_, behind) = text.split_once("\r\nFinal-Recipient: rfc822; ").ok_or("a failure is of no recipient")?;
        let address = behind.lines().next().unwrap_or_default();
        let (mailbox, _) = Mailbox::named(address).ok_or_else(|| format!("a report names {address}"))?;
        Ok(Some(ReportOf { number, mailbox: Some(mailbox) }))
    }
}

impl Ledger {
    /// Notes that a report may come.
    pub(super) fn expect_report(&mut self, of: ReportOf, account: usize) -> LetterId {
        self.letters.push(Letter::report(of, account));
        LetterId(self.letters.len() - 1)
    }

    /// The ledger's letter for a report.
    pub(super) fn report(&self, of: ReportOf) -> LetterId {
        let posted = &self.posted[self.posted_numbered(of.number).expect("a report is on a message that was sent")];
        let Some(mailbox) = of.mailbox else { return posted.delay };
        let recipient = posted.recipients.iter().find(|recipient| recipient.mailbox == mailbox);
        recipient.unwrap_or_else(|| panic!("a report names {mailbox:?}, which the message is not for")).report
    }

    /// Whether a report has come, whatever has become of it since.
    pub(super) fn has_come(&self, report: LetterId) -> bool {
        let mut copies = self.letters[report.0].copies.iter();
        copies.any(|copy| !matches!(copy.fate, Fate::Absent | Fate::PerhapsDelivered))
    }

    /// Notes that a report is in the machine's index, and so on its disk.
    pub(super) fn report_listed(&mut self, of: ReportOf, account: usize, places: &[(u32, u32)]) {
        let id = self.report(of);
        let posted = &self.posted[self.posted_numbered(of.number).expect("a report is on a message that was sent")];
        assert_eq!(posted.sender, account, "a report goes to the account that has sent the message");
        assert!(posted.answer != Answer::Refused, "a report has come of a message that was refused");
        let is_right = posted.is_harmed || of.mailbox.is_none_or(|mailbox| !mailbox.takes());
        assert!(is_right, "a failure is reported of a recipient that takes mail: {of:?}");
        if !self.has_come(id) {
            sometimes!(ReportStored);
        }
        self.letters[id.0].copies[account].is_seen();
        for (mailbox, uid) in places {
            self.reports.insert((account, *mailbox, *uid), id);
        }
    }

    /// The report in this row of a list.
    pub(super) fn report_at(&self, account: usize, mailbox: u32, uid: u32) -> Option<LetterId> {
        self.reports.get(&(account, mailbox, uid)).copied()
    }

    /// Whether it is a report: no search for its number finds it.
    pub(super) fn is_report(&self, id: LetterId) -> bool {
        self.letters[id.0].report.is_some()
    }
}
