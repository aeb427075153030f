//! Opens a message. It is read to its end, to show or print it in a conversation, or to reply to
//! it.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use machine::UnixTime;
use message::Summary;
use message::header::HeaderMailbox;
use message::presentation::{Preference, Role, ShownAs};
use message::structure::{PARTS_MAX, Part, Structure, StructureReader};
use store::{
    AccountId, AccountInfo, Body as Octets, CHUNK_OCTETS, Flags, MarkChange, MessageInfo,
    PartialMessage, Refusal,
};

use crate::context::JobContext;
use crate::conversation::{Attachment, Loads, MessageBody};
use crate::notice::KindNotice;
use crate::prose::Prose;
use crate::step::JobProgress;
use crate::{MessageKey, WebPage};
use crate::{phishing, remote_content};

use super::attachments::{Attached, names};
use super::invitation::Zones;
use super::message_contents::{MessageContents, PartText};
use super::message_date::sent_apart;
use super::notices;
use super::people;
use super::trusted_senders::{VerifiedAuthor, is_trusted};

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

    /// The structure of the message, which was read to its end.
    fn structure(&mut self) -> Structure {
        let structure = core::mem::take(&mut self.reader).message_ended(&mut self.contents);
        self.contents.message_ended(&structure.parts);
        structure
    }

    /// The message as a reply or a forwarded message quotes it. Errors: the message could not be
    /// read.
    pub(super) fn quoted(&mut self) -> Result<QuotedMessage<'_>, Refusal> {
        if let Some(refusal) = self.refused {
            return Err(refusal);
        }
        let Structure { parts, .. } = self.structure();
        let contents = &self.contents;
        let presentation = contents.presentation(&parts, Preference::Text);
        let (text, is_whole) = contents.plain_text(&presentation);
        // HTML loses its layout in a quote, so it is also a file. So is each text if the quote does
        // not have all of it. Files of an attached message are in that message.
        let is_file = |role, is_listed| match role {
            Role::Shown(ShownAs::Html) => true,
            Role::Shown(ShownAs::Text) => is_listed || !is_whole,
            Role::Enclosed => false,
            _ => is_listed,
        };
        let files = presentation.leaves().iter().filter(|leaf| is_file(leaf.role, leaf.is_listed));
        let files: Vec<u16> = files.filter_map(|leaf| u16::try_from(leaf.part).ok()).collect();
        let mut names = if files.is_empty() { Vec::new() } else { names(&parts) };
        let mut name = |part: u16| names.get_mut(usize::from(part)).map(core::mem::take);
        Ok(QuotedMessage {
            contents,
            text,
            info: self.info.ok_or(Refusal::NoSuchMessage)?,
            files: files.into_iter().filter_map(|part| Some((part, name(part)?))).collect(),
        })
    }

    /// The data for the conversation page. Errors: the message could not be read.
    pub(super) fn shown(
        &mut self,
        loaded: Option<MessageKey>,
        known: Option<&AccountInfo<'_>>,
        zones: &mut Zones<'_>,
    ) -> Result<ShownMessage, Refusal> {
        let (Some(info), None) = (self.info, self.refused) else {
            return Err(self.refused.unwrap_or(Refusal::NoSuchMessage));
        };
        let Structure { parts, is_cut } = self.structure();
        let mut contents = core::mem::take(&mut self.contents);
        let presentation = contents.presentation(&parts, Preference::Html);
        let notices = notices::of(&contents, &parts, &presentation, zones);
        let texts = contents.take_shown(&presentation);
        let files = contents.take_files();
        let from = contents.from.clone().unwrap_or_default();
        let warnings = warnings(&from, &texts, &parts, is_cut);
        let mut pages = texts.iter().filter(|text| text.shown_as == ShownAs::Html).peekable();
        let loads = match loaded == Some(self.key) {
            _ if pages.peek().is_none() => Loads::Own,
            _ if is_trusted(known, &from.address, &self.verified) => Loads::Always,
            true => Loads::Once,
            false if pages.any(|page| remote_content::is_in(&page.text)) => Loads::Nothing,
            false => Loads::Own,
        };
        let name = if from.name.is_empty() { &from.address } else { &from.name };
        Ok(ShownMessage {
            key: self.key.to_string(),
            from: if name.is_empty() { "(unknown sender)".into() } else { name.clone() },
            to: people::recipients(&contents.to, &contents.cc),
            people: people::by_field([
                ("From", contents.from.as_slice()),
                ("Reply to", &contents.reply_to),
                ("To", &contents.to),
                ("Cc", &contents.cc),
                ("Bcc", &contents.bcc),
            ]),
            address: from.address,
            subject: contents.subject.unwrap_or_default(),
            sent: sent_apart(contents.sent, info.internal_date),
            summary: core::mem::take(&mut self.summary),
            shown: texts.into_iter().map(|text| ShownPart::of(text, self.key)).collect(),
            info,
            warnings,
            notices,
            loads,
            attached: Attached::of(&parts, &presentation, &files, self.key),
        })
    }
}

/// Warnings for the reader about a message that shows these texts.
fn warnings(
    from: &HeaderMailbox,
    texts: &[PartText],
    parts: &[Part],
    is_structure_cut: bool,
) -> Vec<String> {
    let mut warnings = phishing::of_sender(from);
    for text in texts {
        let more = match text.shown_as {
            ShownAs::Html => phishing::of_html(&text.text),
            ShownAs::Text => phishing::of_text(&text.text),
        };
        let room = phishing::WARNINGS_MAX.saturating_sub(warnings.len());
        let more: Vec<String> = more.into_iter().filter(|one| !warnings.contains(one)).collect();
        warnings.extend(more.into_iter().take(room));
    }
    if texts.iter().any(|text| text.is_cut && text.shown_as == ShownAs::Text) {
        warnings.push(
            "This message is too long to be shown in full. Download it to read the rest.".into(),
        );
    }
    if is_structure_cut && parts.len() > PARTS_MAX {
        warnings.push("This message has too many parts to be shown in full. The rest is among the attachments.".into());
    }
    let is_source =
        |text: &PartText| parts.get(text.part).is_some_and(|part| part.has_main_type("multipart"));
    if texts.iter().any(|text| is_source(text) && !text.text.trim().is_empty()) {
        warnings
            .push("The format of this message is damaged, so its source is shown in part.".into());
    }
    warnings
}

/// A message that is replied to, forwarded, or continued.
pub(super) struct QuotedMessage<'a> {
    pub(super) contents: &'a MessageContents,
    /// The shown text.
    pub(super) text: String,
    pub(super) info: MessageInfo,
    /// The files: the part and the name of each.
    pub(super) files: Vec<(u16, String)>,
}

/// The data of a message for the conversation page.
pub(super) struct ShownMessage {
    pub(super) key: String,
    pub(super) from: String,
    pub(super) address: String,
    pub(super) to: String,
    /// The fields with people, and the people in them with their addresses.
    pub(super) people: Vec<(&'static str, String)>,
    pub(super) subject: String,
    /// The time in the date field, if it differs from the arrival.
    pub(super) sent: Option<UnixTime>,
    pub(super) summary: Summary,
    pub(super) info: MessageInfo,
    /// The parts that are shown, in their order.
    shown: Vec<ShownPart>,
    pub(super) warnings: Vec<String>,
    pub(super) notices: Vec<KindNotice>,
    pub(super) loads: Loads,
    attached: Vec<Attached>,
}

/// A part of a message that a page shows.
struct ShownPart {
    /// The text or the HTML, as far as it was read.
    text: String,
    /// The addresses of HTML.
    html: Option<HtmlLinks>,
}

/// The addresses of an HTML part.
struct HtmlLinks {
    source: String,
    /// The address of the whole HTML, if the page shows only its beginning.
    whole: Option<String>,
}

impl ShownPart {
    fn of(text: PartText, key: MessageKey) -> ShownPart {
        let part = u16::try_from(text.part).ok().filter(|_| text.shown_as == ShownAs::Html);
        let html = part.map(|part| HtmlLinks {
            source: WebPage::Html(key, part).to_string(),
            whole: text.is_cut.then(|| WebPage::Whole(key, part).to_string()),
        });
        ShownPart { text: text.text, html }
    }

    fn body(&self) -> MessageBody<'_> {
        match &self.html {
            Some(HtmlLinks { source, whole }) => {
                MessageBody::Html { source, whole: whole.as_deref() }
            }
            None => MessageBody::Text(Prose(&self.text)),
        }
    }
}

impl ShownMessage {
    pub(super) fn attachments(&self) -> Vec<Attachment<'_>> {
        self.attached.iter().map(Attached::link).collect()
    }

    /// Whether both messages have equal contents, as far as they were read.
    pub(super) fn has_same_contents(&self, other: &ShownMessage) -> bool {
        let others = other.attached.iter().map(Attached::in_words);
        let has_same_files = self.attached.iter().map(Attached::in_words).eq(others);
        has_same_files && self.texts().eq(other.texts())
    }

    /// The shown texts, and whether each of them is HTML.
    fn texts(&self) -> impl Iterator<Item = (bool, &str)> {
        self.shown.iter().map(|part| (part.html.is_some(), part.text.as_str()))
    }

    pub(super) fn bodies(&self) -> Vec<MessageBody<'_>> {
        self.shown.iter().map(ShownPart::body).collect()
    }
}
