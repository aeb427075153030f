//! Opens a message. It is read to its end, to show it in a conversation, to print it, or to reply
//! to it.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use http::Reply;
use message::header::{ADDRESSES_MAX, Address, Field, HeaderMailbox};
use message::structure::{ADDRESS_FIELD_BYTES_MAX, Disposition, Listener, Part, StructureReader};
use message::{Summary, TextDecoder};
use store::{
    AccountId, AccountInfo, Body as Octets, CHUNK_OCTETS, Flags, MarkChange, MessageInfo,
    PartialMessage, Refusal,
};

use crate::answer;
use crate::context::JobContext;
use crate::conversation::{Attachment, Loads, MessageBody};
use crate::layout::AuthenticatedClient;
use crate::moments::Moment;
use crate::prose::Prose;
use crate::source::{PrintPage, Printed};
use crate::step::{JobProgress, why};
use crate::{MessageKey, WebPage};
use crate::{phishing, remote_content};

use super::attachments::{Attached, name_of};
use super::trusted_senders::{VerifiedAuthor, is_trusted};

/// The maximum number of bytes of a message's text on a page. Readers can download the rest.
pub const TEXT_BYTES_MAX: usize = 256 * 1024;

/// The maximum number of bytes of HTML on a page. Other webmails have the same limit. A browser may
/// need minutes to lay out much longer HTML.
pub(super) const HTML_BYTES_MAX: usize = 102 * 1024;

/// The maximum number of recipients that a page names.
const RECIPIENTS_MAX: usize = 20;

/// The maximum number of mailboxes of one kind that are read from a message, in all fields
/// together.
const MAILBOXES_MAX: usize = ADDRESSES_MAX;

/// The names of the header fields that are read.
const FIELDS: [&str; 6] = ["From", "Reply-To", "To", "Cc", "Bcc", "Subject"];

/// A message that is being opened.
#[derive(Debug)]
pub(crate) struct OpenMessage {
    key: MessageKey,
    /// The entry in the index. `None` before the index was read.
    info: Option<MessageInfo>,
    /// The number of octets that were read.
    offset: u32,
    /// Whether the message needs no more requests to mark it as read.
    is_marked: bool,
    /// The summary for lists, and the beginning of the message from which it is made.
    summary: Summary,
    beginning: Option<PartialMessage>,
    verified: VerifiedAuthor,
    reader: StructureReader,
    contents: MessageContents,
    refused: Option<Refusal>,
}

/// The files of a message: the part and the name of each.
pub(super) type AttachedFiles = Vec<(u16, String)>;

/// The data that is extracted while the message is parsed.
#[derive(Debug, Default)]
pub(super) struct MessageContents {
    pub(super) from: Option<HeaderMailbox>,
    /// The mailboxes to which the author wants replies, if not `from`.
    pub(super) reply_to: Vec<HeaderMailbox>,
    pub(super) to: Vec<HeaderMailbox>,
    pub(super) cc: Vec<HeaderMailbox>,
    pub(super) bcc: Vec<HeaderMailbox>,
    /// Whether the message may have more mailboxes of one kind than are kept.
    pub(super) has_more_people: bool,
    pub(super) subject: Option<String>,
    pub(super) text: String,
    /// Whether `text` is incomplete.
    is_cut: bool,
    /// Whether `page` is incomplete.
    is_page_cut: bool,
    decoder: Option<TextDecoder>,
    /// The index of the first HTML part to show, and the beginning of its HTML, which is searched
    /// for links.
    html: Option<usize>,
    page: String,
    /// Whether the current part is the HTML part of `page`.
    is_page: bool,
}

impl OpenMessage {
    pub(super) fn new(key: MessageKey) -> OpenMessage {
        OpenMessage {
            key,
            info: None,
            offset: 0,
            is_marked: false,
            summary: Summary::default(),
            beginning: None,
            verified: VerifiedAuthor::default(),
            reader: StructureReader::new(),
            contents: MessageContents::default(),
            refused: None,
        }
    }

    /// A message that is opened for a reply, and not marked as read.
    pub(super) fn to_answer(key: MessageKey) -> OpenMessage {
        OpenMessage { is_marked: true, ..OpenMessage::new(key) }
    }

    pub(super) fn key(&self) -> MessageKey {
        self.key
    }

    /// Whether no requests to the store are left.
    pub(super) fn is_finished(&self) -> bool {
        let is_read = self.info.is_some_and(|info| self.offset >= info.octets);
        self.refused.is_some() || is_read && self.is_marked
    }

    pub(super) fn ask(
        &mut self,
        account: AccountId,
        under_way: &mut usize,
        cx: &mut JobContext<'_, '_>,
    ) -> JobProgress {
        let (mailbox, uid) = self.key.in_store();
        let continuation = cx.continuation();
        if self.refused.is_some() || *under_way > 0 {
            return JobProgress::Waiting;
        }
        let Some(info) = self.info.or_else(|| cx.store().message(account, mailbox, uid)) else {
            self.refused = Some(Refusal::NoSuchMessage);
            return JobProgress::Waiting;
        };
        self.info = Some(info);
        if self.offset < info.octets {
            return match cx.store_mut().read(account, mailbox, uid, self.offset, continuation) {
                Ok(()) => {
                    *under_way += 1;
                    JobProgress::Waiting
                }
                Err(Refusal::Busy) => JobProgress::Yield,
                Err(refusal) => {
                    self.refused = Some(refusal);
                    JobProgress::Waiting
                }
            };
        }
        if !self.is_marked {
            self.is_marked = true;
            self.mark(account, info, under_way, cx);
        }
        JobProgress::Waiting
    }

    /// Marks the message as read. If that fails, the message is still shown.
    fn mark(
        &mut self,
        account: AccountId,
        info: MessageInfo,
        under_way: &mut usize,
        cx: &mut JobContext<'_, '_>,
    ) {
        if info.flags.contains(Flags::SEEN) {
            return;
        }
        let (mailbox, uid) = self.key.in_store();
        let continuation = cx.continuation();
        let marked =
            cx.store_mut().mark(account, mailbox, uid, MarkChange::set(Flags::SEEN), continuation);
        *under_way += usize::from(marked.is_ok());
    }

    /// Computes the summary as the store does, from the first chunk without the head.
    fn summarize(&mut self, octets: &[u8]) {
        let Some(info) = self.info else { return };
        if self.offset == 0 {
            self.beginning = Some(PartialMessage::from(info.head));
        }
        let Some(beginning) = &mut self.beginning else { return };
        let above = info.head.saturating_sub(self.offset) as usize;
        beginning.arrived(octets.get(above..).unwrap_or_default());
        let first = beginning.octets();
        if first.len() >= CHUNK_OCTETS || beginning.is_all_of(info.octets) {
            self.summary = Summary::of(first.get(..CHUNK_OCTETS).unwrap_or(first));
            self.beginning = None;
        }
    }

    pub(super) fn body_arrived(&mut self, body: &Octets) {
        if self.offset == 0 {
            self.verified = VerifiedAuthor::of(body.bytes());
        }
        self.summarize(body.bytes());
        self.offset = self.offset.saturating_add(body.bytes().len() as u32);
        self.reader.bytes_arrived(body.bytes(), &mut self.contents);
    }

    pub(super) fn refused(&mut self, refusal: Refusal) {
        if !self.is_marked {
            self.refused = Some(refusal);
        }
    }

    /// The extracted data, and the names of files by their parts. Errors: the message could not be
    /// read. If the message has no plain text, the HTML part counts as a file. An attached message
    /// does not count as a file, but its files count.
    pub(super) fn contents(
        &mut self,
    ) -> Result<(&MessageContents, MessageInfo, AttachedFiles), Refusal> {
        if let Some(refusal) = self.refused {
            return Err(refusal);
        }
        let structure = core::mem::take(&mut self.reader).message_ended(&mut self.contents);
        let page = self.contents.html.filter(|_| self.contents.text.is_empty());
        let is_file = |index, part: &Part| {
            part.is_attachment() && !part.holds_message() || page == Some(index)
        };
        let attached =
            structure.parts.iter().enumerate().filter(|(index, part)| is_file(*index, part));
        let files =
            attached.filter_map(|(index, part)| Some((u16::try_from(index).ok()?, name_of(part))));
        Ok((&self.contents, self.info.ok_or(Refusal::NoSuchMessage)?, files.collect()))
    }

    /// The page for printing. For an HTML message the reply is a redirect to the usual page, which
    /// the reader can print.
    pub(super) fn on_paper(
        &mut self,
        client: &AuthenticatedClient,
        cx: &JobContext<'_, '_>,
    ) -> Reply {
        if self.contents.html.is_some() && self.contents.text.is_empty() {
            return answer::redirect(&WebPage::Read(self.key).to_string());
        }
        let back = WebPage::Read(self.key).to_string();
        let key = self.key;
        let structure = core::mem::take(&mut self.reader).message_ended(&mut self.contents);
        let (Some(info), None) = (self.info, self.refused) else {
            return self
                .refused
                .map_or_else(answer::not_found, |refusal| answer::refused(refusal, why(refusal)));
        };
        let contents = &self.contents;
        let no_author = HeaderMailbox::default();
        let from = contents.from.as_ref().unwrap_or(&no_author);
        let attached = Attached::of(&structure, key, contents.html);
        let names: Vec<&str> = attached.iter().map(|attached| attached.name.as_str()).collect();
        let known = cx.store().account(client.account);
        let moment = Moment::of(info.internal_date);
        answer::page(&PrintPage {
            address: known.as_ref().map_or("", |known| known.address()),
            subject: contents.subject.as_deref().unwrap_or_default(),
            back: &back,
            messages: &[Printed {
                from: if from.name.is_empty() { &from.address } else { &from.name },
                address: &from.address,
                to: &contents.recipients(),
                date: &moment.in_words(),
                moment: &moment.exact(),
                text: &contents.text,
                attachments: &names,
            }],
        })
    }

    /// The data for the conversation page. Errors: the message could not be read.
    pub(super) fn shown(
        &mut self,
        loaded: Option<MessageKey>,
        known: Option<&AccountInfo<'_>>,
    ) -> Result<ShownMessage, Refusal> {
        let (Some(info), None) = (self.info, self.refused) else {
            return Err(self.refused.unwrap_or(Refusal::NoSuchMessage));
        };
        let structure = core::mem::take(&mut self.reader).message_ended(&mut self.contents);
        let contents = core::mem::take(&mut self.contents);
        let from = contents.from.clone().unwrap_or_default();
        let warnings = contents.warnings(&from, structure.is_cut);
        let loads = match loaded == Some(self.key) {
            _ if is_trusted(known, &from.address, &self.verified) => Loads::Always,
            true => Loads::Once,
            false if remote_content::is_in(&contents.page) => Loads::Nothing,
            false => Loads::Own,
        };
        let name = if from.name.is_empty() { &from.address } else { &from.name };
        let html = contents.html.and_then(|part| u16::try_from(part).ok());
        Ok(ShownMessage {
            key: self.key.to_string(),
            href: WebPage::Read(self.key).to_string(),
            from: if name.is_empty() { "(unknown sender)".into() } else { name.clone() },
            to: contents.recipients(),
            address: from.address,
            subject: contents.subject.unwrap_or_default(),
            summary: core::mem::take(&mut self.summary),
            source: html.map(|part| WebPage::Html(self.key, part).to_string()),
            whole: html
                .filter(|_| contents.is_page_cut)
                .map(|part| WebPage::Whole(self.key, part).to_string()),
            text: contents.text,
            page: contents.page,
            info,
            warnings,
            loads,
            attached: Attached::of(&structure, self.key, contents.html),
        })
    }
}

/// The data of a message for the conversation page.
pub(super) struct ShownMessage {
    pub(super) key: String,
    pub(super) href: String,
    pub(super) from: String,
    pub(super) address: String,
    pub(super) to: String,
    pub(super) subject: String,
    pub(super) summary: Summary,
    pub(super) info: MessageInfo,
    text: String,
    /// The HTML, as far as it was read.
    page: String,
    /// The address of the HTML, if it is shown.
    source: Option<String>,
    /// The address of the whole HTML, if the page shows only its beginning.
    whole: Option<String>,
    pub(super) warnings: Vec<String>,
    loads: Loads,
    attached: Vec<Attached>,
}

impl ShownMessage {
    pub(super) fn attachments(&self) -> Vec<Attachment<'_>> {
        self.attached.iter().map(Attached::link).collect()
    }

    /// Whether both messages have equal contents, as far as they were read.
    pub(super) fn has_same_contents(&self, other: &ShownMessage) -> bool {
        let others = other.attached.iter().map(Attached::in_words);
        let has_same_files = self.attached.iter().map(Attached::in_words).eq(others);
        has_same_files && self.text == other.text && self.page == other.page
    }

    pub(super) fn body(&self) -> MessageBody<'_> {
        match &self.source {
            Some(source) => {
                MessageBody::Html { source, loads: self.loads, whole: self.whole.as_deref() }
            }
            None => MessageBody::Text(Prose(&self.text)),
        }
    }
}

impl MessageContents {
    /// Warnings for the reader.
    fn warnings(&self, from: &HeaderMailbox, has_more_parts: bool) -> Vec<String> {
        let mut warnings = phishing::of_sender(from);
        warnings.extend(if self.html.is_some() {
            phishing::of_html(&self.page)
        } else {
            phishing::of_text(&self.text)
        });
        if self.is_cut && self.html.is_none() {
            warnings.push(
                "This message is too long to be shown in full. Download it to read the rest."
                    .into(),
            );
        }
        if has_more_parts {
            warnings
                .push("This message has too many parts to be shown in full. The rest is among the attachments.".into());
        }
        warnings
    }

    /// Adds the mailboxes of a field to the mailboxes of earlier fields of the same kind.
    fn people_arrived(
        &mut self,
        field: &Field<'_>,
        kind: impl FnOnce(&mut MessageContents) -> &mut Vec<HeaderMailbox>,
    ) {
        let people = kind(self);
        let room = MAILBOXES_MAX.saturating_sub(people.len());
        people.extend(mailboxes(field).take(room));
        let is_full = people.len() == MAILBOXES_MAX
            || field.value.len() + "Reply-To: ".len() >= ADDRESS_FIELD_BYTES_MAX;
        self.has_more_people |= is_full;
    }

    fn recipients(&self) -> String {
        let mut names = String::new();
        let all = self.to.iter().chain(&self.cc);
        for (number, mailbox) in all.clone().take(RECIPIENTS_MAX).enumerate() {
            names.push_str(if number > 0 { ", " } else { "" });
            names.push_str(if mailbox.name.is_empty() { &mailbox.address } else { &mailbox.name });
        }
        match all.count().saturating_sub(RECIPIENTS_MAX) {
            0 if names.is_empty() => "undisclosed recipients".into(),
            0 => names,
            1 => format!("{names} and 1 other"),
            others => format!("{names} and {others} others"),
        }
    }
}

impl Listener for MessageContents {
    fn wants_field(&mut self, part: &Part, name: &[u8]) -> bool {
        part.depth == 0 && FIELDS.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
    }

    fn field_arrived(&mut self, field: &Field<'_>) {
        if field.is("From") && self.from.is_none() {
            self.from = mailboxes(field).next();
        } else if field.is("Reply-To") {
            self.people_arrived(field, |contents| &mut contents.reply_to);
        } else if field.is("To") {
            self.people_arrived(field, |contents| &mut contents.to);
        } else if field.is("Cc") {
            self.people_arrived(field, |contents| &mut contents.cc);
        } else if field.is("Bcc") {
            self.people_arrived(field, |contents| &mut contents.bcc);
        } else if field.is("Subject") && self.subject.is_none() {
            self.subject = Some(field.text());
        }
    }

    fn body_began(&mut self, parts: &[Part]) -> bool {
        let Some(part) = parts.last() else { return false };
        // The text of an attached message is not a part of this message's text.
        let is_own = !parts.iter().any(|part| part.media_type.starts_with("message/"));
        if !is_own || part.disposition == Disposition::Attachment || part.file_name.is_some() {
            return false;
        }
        self.is_page = part.media_type == "text/html" && self.html.is_none();
        if self.is_page {
            self.html = Some(parts.len() - 1);
        }
        self.decoder =
            (self.is_page || part.media_type == "text/plain").then(|| TextDecoder::new(part));
        self.decoder.is_some()
    }

    fn body_arrived(&mut self, bytes: &[u8]) {
        if let Some(decoder) = &mut self.decoder {
            let (text, most) = if self.is_page {
                (&mut self.page, HTML_BYTES_MAX)
            } else {
                (&mut self.text, TEXT_BYTES_MAX)
            };
            if text.len() < most {
                decoder.bytes_arrived(bytes, text);
            } else if self.is_page {
                self.is_page_cut = true;
            } else {
                self.is_cut = true;
            }
        }
    }

    fn body_ended(&mut self) {
        let Some(mut decoder) = self.decoder.take() else { return };
        if self.is_page {
            decoder.body_ended(&mut self.page);
            self.is_page_cut |= self.page.len() > HTML_BYTES_MAX;
        } else {
            decoder.body_ended(&mut self.text);
            if !self.text.is_empty() && !self.text.ends_with('\n') {
                self.text.push('\n');
            }
        }
    }
}

/// The mailboxes of a field.
pub(super) fn mailboxes(field: &Field<'_>) -> impl Iterator<Item = HeaderMailbox> {
    field.addresses().into_iter().flat_map(|address| match address {
        Address::Mailbox(mailbox) => alloc::vec![mailbox],
        Address::Group { mailboxes, .. } => mailboxes,
    })
}
