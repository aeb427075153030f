//! Exports a mailbox as one mbox file ([`MboxWriter`]), which is sent while it is read.
//!
//! The file has the messages that are in the mailbox when the file begins, in the order of their
//! arrival. Messages that arrive later are left out. Messages that are moved or deleted before they
//! are read are left out too. A message that cannot be read in full is included as far as possible,
//! with a line that says so. So an unreadable message does not end the export.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use http::ReplyEnd;
use machine::UnixTime;
use message::MboxWriter;
use store::{AccountId, Body, MailboxId, Refusal, Uid};

use crate::answer;
use crate::answer::Title;
use crate::context::JobContext;
use crate::layout::display_name;
use crate::step::{JobProgress, why};
use crate::stream::{PIECE_BYTES, StreamStage};

/// An export in progress.
#[derive(Debug)]
pub(crate) struct ExportJob {
    mailbox: MailboxId,
    /// The last message to export, if it is known already.
    last: Option<Uid>,
    /// The next message has at least this UID.
    next: Uid,
    /// The message that is being read.
    message: Option<ExportedMessage>,
    writer: MboxWriter,
    written: Vec<u8>,
    is_over: bool,
    sent: StreamStage,
    refused: Option<Refusal>,
}

/// A message that is being read.
#[derive(Clone, Copy, Debug)]
struct ExportedMessage {
    uid: Uid,
    arrived: UnixTime,
    octets: u32,
    /// The number of octets that were read.
    offset: u32,
    has_begun: bool,
}

impl ExportJob {
    pub(super) fn new(mailbox: MailboxId) -> ExportJob {
        ExportJob {
            mailbox,
            last: None,
            next: Uid(1),
            message: None,
            writer: MboxWriter::default(),
            written: Vec::new(),
            is_over: false,
            sent: StreamStage::Nothing,
            refused: None,
        }
    }

    pub(super) fn ask(
        &mut self,
        account: AccountId,
        under_way: &mut usize,
        cx: &mut JobContext<'_, '_>,
    ) -> JobProgress {
        while *under_way == 0
            && !self.is_over
            && self.refused.is_none()
            && self.written.len() < PIECE_BYTES
        {
            let Some(message) = self.message.or_else(|| self.next_message(account, cx)) else {
                self.is_over = true;
                break;
            };
            self.message = Some(message);
            if message.offset >= message.octets {
                self.message_ended();
                continue;
            }
            let continuation = cx.continuation();
            match cx.store_mut().read(
                account,
                self.mailbox,
                message.uid,
                message.offset,
                continuation,
            ) {
                Ok(()) => *under_way += 1,
                Err(Refusal::Busy) => return JobProgress::Yield,
                Err(refusal) => self.refused(refusal),
            }
        }
        JobProgress::Waiting
    }

    fn next_message(
        &mut self,
        account: AccountId,
        cx: &JobContext<'_, '_>,
    ) -> Option<ExportedMessage> {
        let store = cx.store();
        if self.last.is_none() {
            if store.mailbox(account, self.mailbox).is_none() {
                self.refused = Some(Refusal::NoSuchMailbox);
            }
            self.last =
                store.messages_below(account, self.mailbox, None).next().map(|info| info.uid);
        }
        let last = self.last?;
        let info = store
            .messages_from(account, self.mailbox, self.next)
            .next()
            .filter(|info| info.uid.0 <= last.0)?;
        self.next = Uid(info.uid.0.saturating_add(1));
        Some(ExportedMessage {
            uid: info.uid,
            arrived: info.internal_date,
            octets: info.octets,
            offset: 0,
            has_begun: false,
        })
    }

    pub(super) fn body_arrived(&mut self, body: &Body) {
        self.octets_arrived(body.bytes());
        if let Some(message) = &mut self.message {
            message.offset = message.offset.saturating_add(body.bytes().len() as u32);
        }
    }

    fn octets_arrived(&mut self, octets: &[u8]) {
        let Some(message) = &mut self.message else { return };
        if !message.has_begun {
            message.has_begun = true;
            self.writer.message_began(octets, message.arrived, &mut self.written);
        }
        self.writer.octets_arrived(octets, &mut self.written);
    }

    fn message_ended(&mut self) {
        // An empty message has no octets, so its entry in the file was not begun yet.
        self.octets_arrived(&[]);
        self.writer.message_ended(&mut self.written);
        self.message = None;
    }

    /// The store has refused to read the message. Skips it, or writes a line that says so.
    pub(super) fn refused(&mut self, refusal: Refusal) {
        let Some(message) = self.message else { return };
        let is_gone = matches!(refusal, Refusal::NoSuchMessage | Refusal::NoSuchMailbox);
        if is_gone && !message.has_begun {
            self.message = None;
            return;
        }
        let reason = if is_gone {
            "was moved or deleted while this file was being created"
        } else {
            "cannot be read from the disk"
        };
        let words = match message.has_begun {
            true => format!("\r\n[The rest of this message {reason}.]\r\n"),
            false => format!("Subject: [This message {reason}]\r\n\r\n{}\r\n", why(refusal)),
        };
        self.octets_arrived(words.as_bytes());
        self.message_ended();
    }

    /// The next piece of the reply.
    pub(super) fn next(&mut self, account: AccountId, cx: &JobContext<'_, '_>) -> JobProgress {
        if let Some(refusal) = self.refused {
            return JobProgress::Reply(answer::refused(refusal, why(refusal)));
        }
        let end = self.is_over.then_some(ReplyEnd::Whole);
        let mailbox = self.mailbox;
        self.sent.next(core::mem::take(&mut self.written), end, || {
            let known = cx.store().account(account);
            let mut names = known.iter().flat_map(|known| known.mailboxes());
            let name =
                names.find(|(id, _)| *id == mailbox).map_or("", |(_, name)| display_name(name));
            Title::File { name: file_name(name), media_type: "application/mbox", length: None }
        })
    }
}

/// The name of the file, without path separators.
fn file_name(mailbox: &str) -> String {
    let name: String = mailbox
        .chars()
        .map(|character| if matches!(character, '/' | '\\') { '-' } else { character })
        .collect();
    format!("{name}.mbox")
}
