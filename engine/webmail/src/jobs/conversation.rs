//! A message with its conversation: all messages of the conversation in all mailboxes, in the order
//! of their arrival.
//!
//! The requested message and unread messages are expanded. The other messages are folded, but the
//! page already has their contents. Opening a conversation marks its messages as read. The same
//! messages, or the requested one alone, can be on a page for printing.
//!
//! Invariants:
//! - The cost of a page is bounded: it has at most [`SHOWN_MAX`] messages. In addition to the
//!   requested message, at most [`WHOLE_MAX`] messages with [`WHOLE_OCTETS_MAX`] octets are read in
//!   full. Each other message has a line and a link.
//! - Messages in Trash and Junk are shown only when opened from there.
//! - A message that users send to themselves exists twice, in Sent and in the mailbox where it
//!   arrived. It is shown once. Equal identifiers do not prove a copy, since a sender can forge
//!   them. So a copy is recognised only if the contents are equal too.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use http::Reply;
use message::Summary;
use store::{
    AccountId, Body as Octets, DRAFTS, Flags, MailboxId, MessageInfo, OUTBOX, Refusal, SENT, Store,
};

use crate::answer;
use crate::context::JobContext;
use crate::conversation::{Attachment, ConversationMessage, ConversationPage, Loads, MessageBody};
use crate::layout::{AuthenticatedClient, PageLayout};
use crate::moments::LocalClock;
use crate::source::PrintPage;
use crate::step::{JobProgress, why};
use crate::{ComposeStart, Destination, ListRange, MessageKey, PermanentId, WebPage};

use super::invitation::Zones;
use super::open_message::{OpenMessage, ShownMessage};
use super::row_totals::is_trash_or_junk;
use super::rows::{self, FoundMessage, RowText};

/// The maximum number of messages of a conversation on a page. The newest are shown.
pub const SHOWN_MAX: usize = 100;

/// The maximum number of messages that are read in full in addition to the requested message, and
/// the maximum of their octets.
const WHOLE_MAX: usize = 16;
const WHOLE_OCTETS_MAX: u32 = 512 * 1024;

/// The maximum number of messages of a conversation that are examined in the index.
const LOOKED_AT_MAX: usize = 1000;

/// The page that a conversation is read for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ConversationView {
    /// The page for reading.
    Screen,
    /// The page for printing.
    Paper,
    /// The page for printing the requested message alone.
    PaperOfOne,
}

/// A conversation that is being read.
#[derive(Debug)]
pub(crate) struct ConversationJob {
    view: ConversationView,
    /// The list from which the message was opened. `None`: the newest messages of its mailbox.
    list: Option<Destination>,
    /// The message that may load its remote content.
    loaded: Option<MessageKey>,
    opened: OpenMessage,
    /// Whether the index was read.
    is_gathered: bool,
    /// The other messages: those that are read in full, and those that get a line.
    whole: Vec<OpenMessage>,
    lines: Vec<FoundMessage>,
    /// Whether the conversation has older messages that are not shown.
    is_cut: bool,
}

/// A message on the page.
struct ConversationEntry<'a> {
    shown: Result<ShownMessage, ConversationLine<'a>>,
    info: MessageInfo,
    key: MessageKey,
}

/// The address of a message's page, and its times, each in words and exactly.
struct EntryTexts {
    href: String,
    arrived: [String; 2],
    /// The time in the date field, if it differs.
    sent: Option<[String; 2]>,
}

/// A message with a line and a link to its page.
struct ConversationLine<'a> {
    text: RowText<'a>,
    /// The summary of the message, if it was read.
    summary: Option<&'a Summary>,
}

impl ConversationJob {
    pub(super) fn new(
        key: MessageKey,
        list: Option<Destination>,
        loaded: Option<MessageKey>,
        view: ConversationView,
    ) -> ConversationJob {
        let (whole, lines) = (Vec::new(), Vec::new());
        ConversationJob {
            view,
            list,
            loaded,
            opened: OpenMessage::new(key),
            is_gathered: view == ConversationView::PaperOfOne,
            whole,
            lines,
            is_cut: false,
        }
    }

    pub(super) fn ask(
        &mut self,
        account: AccountId,
        under_way: &mut usize,
        cx: &mut JobContext<'_, '_>,
    ) -> JobProgress {
        if !self.is_gathered {
            self.is_gathered = true;
            self.gather(account, cx.store());
        }
        // Reads one message at a time: the body that arrives belongs to the first message that is
        // not read completely.
        while let Some(opening) = self.reading() {
            match opening.ask(account, under_way, cx) {
                JobProgress::Waiting if *under_way == 0 => {}
                progress => return progress,
            }
        }
        rows::ask(&mut self.lines, account, under_way, cx)
    }

    fn reading(&mut self) -> Option<&mut OpenMessage> {
        core::iter::once(&mut self.opened)
            .chain(&mut self.whole)
            .find(|opening| !opening.is_finished())
    }

    pub(super) fn body_arrived(&mut self, body: &Octets) {
        match self.reading() {
            Some(opening) => opening.body_arrived(body),
            None => rows::body_arrived(&mut self.lines, body),
        }
    }

    pub(super) fn refused(&mut self, refusal: Refusal) {
        if let Some(opening) = self.reading() {
            opening.refused(refusal);
        }
    }

    /// Finds the other messages, and decides which of them are read in full.
    fn gather(&mut self, account: AccountId, store: &Store) {
        let key = self.opened.key();
        let (mailbox, uid) = key.in_store();
        let Some(opened) = store.message(account, mailbox, uid) else { return };
        let mut others = others(store, account, (mailbox, opened));
        // The newest messages are first, since they are read in full.
        others.sort_unstable_by_key(|found| core::cmp::Reverse(moment(&found.info)));
        self.is_cut = others.len() >= SHOWN_MAX;
        others.truncate(SHOWN_MAX - 1);
        let mut octets = 0_u32;
        for found in others {
            octets = octets.saturating_add(found.info.octets);
            if found.mailbox == DRAFTS || self.whole.len() >= WHOLE_MAX || octets > WHOLE_OCTETS_MAX
            {
                self.lines.push(found);
            } else {
                self.whole.push(OpenMessage::new(found.key()));
            }
        }
    }

    pub(super) fn page(
        &mut self,
        client: &AuthenticatedClient,
        cx: &mut JobContext<'_, '_>,
    ) -> Reply {
        let clock = LocalClock { now: cx.now(), zone: cx.zone(client.account) };
        let mut zones = Zones::of(&clock.zone);
        let key = self.opened.key();
        let known = cx.store().account(client.account);
        let opened = match self.opened.shown(self.loaded, known.as_ref(), &mut zones) {
            Ok(shown) => ConversationEntry { info: shown.info, shown: Ok(shown), key },
            Err(Refusal::NoSuchMessage) => return answer::not_found(),
            Err(refusal) => return answer::refused(refusal, why(refusal)),
        };
        let subject =
            opened.shown.as_ref().map_or_else(|_| String::new(), |shown| shown.subject.clone());
        let conversation = opened.info.conversation;
        let here = WebPage::Message(PermanentId::of(&opened.info), self.list.clone()).to_string();
        let newest = WebPage::List { mailbox: key.mailbox, range: ListRange::Newest };
        let back = self.list.as_ref().map_or(newest.to_string(), |list| list.as_str().into());
        let (is_cut, view, list) = (self.is_cut, self.view, self.list.clone());
        let mut entries = self.entries(client.account, &clock, &mut zones, cx);
        entries.push(opened);
        leave_out_copies(&mut entries, key);
        entries.sort_by_key(|entry| moment(&entry.info));
        let attachments: Vec<Vec<Attachment<'_>>> =
            entries.iter().map(ConversationEntry::attachments).collect();
        let bodies: Vec<Vec<MessageBody<'_>>> =
            entries.iter().map(ConversationEntry::bodies).collect();
        let times: Vec<EntryTexts> =
            entries.iter().map(|entry| entry.texts(&clock, list.as_ref())).collect();
        let words = attachments.iter().zip(&bodies).zip(&times);
        let messages: Vec<ConversationMessage<'_>> =
            entries.iter().zip(words).map(|(entry, words)| entry.message(key, words)).collect();
        if view != ConversationView::Screen {
            return answer::page(&PrintPage {
                address: known.as_ref().map_or("", |known| known.address()),
                subject: &subject,
                back: &here,
                is_cut,
                messages: &messages,
            });
        }
        let (mailbox, _) = key.in_store();
        let layout = PageLayout::of(client, cx.store(), Some(mailbox));
        // Actions on the conversation apply to its messages in this mailbox. In the outbox the
        // action applies to the opened message alone.
        let newest = cx.store().conversation_in(client.account, mailbox, conversation).next_back();
        let newest = newest.filter(|_| mailbox != OUTBOX);
        answer::page(&ConversationPage {
            frame: layout.frame(client, &layout.links()),
            subject: &subject,
            back: &back,
            here: &here,
            key: &newest.map_or(key, |uid| MessageKey { uid: uid.0, ..key }).to_string(),
            is_outbox: mailbox == OUTBOX,
            is_cut,
            messages: &messages,
        })
    }

    /// The other messages on the page, in no particular order.
    fn entries(
        &mut self,
        account: AccountId,
        clock: &LocalClock,
        zones: &mut Zones<'_>,
        cx: &JobContext<'_, '_>,
    ) -> Vec<ConversationEntry<'_>> {
        let loaded = self.loaded;
        let known = cx.store().account(account);
        let mut entries = Vec::with_capacity(self.whole.len() + self.lines.len() + 1);
        for opening in &mut self.whole {
            let key = opening.key();
            let (mailbox, uid) = key.in_store();
            match opening.shown(loaded, known.as_ref(), zones) {
                Ok(shown) => {
                    entries.push(ConversationEntry { info: shown.info, shown: Ok(shown), key })
                }
                // A message that was removed in the meantime is left out.
                Err(_) if let Some(info) = cx.store().message(account, mailbox, uid) => {
                    let found = FoundMessage::of(cx.store(), account, mailbox, info);
                    let line =
                        ConversationLine { text: RowText::lost(&found, clock), summary: None };
                    entries.push(ConversationEntry { shown: Err(line), info, key });
                }
                Err(_) => {}
            }
        }
        let lines = self.lines.iter();
        entries.extend(lines.map(|found| ConversationEntry {
            shown: Err(ConversationLine {
                text: RowText::among_others(found, clock),
                summary: found.summary(),
            }),
            info: found.info,
            key: found.key(),
        }));
        entries
    }
}

/// If the page has a sent copy and a received copy of a message, removes one of them. The requested
/// copy stays. If neither copy was requested, the received copy stays.
fn leave_out_copies(entries: &mut Vec<ConversationEntry<'_>>, opened: MessageKey) {
    let is_copy = |entry: &ConversationEntry<'_>| {
        entry.key != opened
            && entries.iter().any(|other| {
                let stays = if entry.is_in_sent() {
                    !other.is_in_sent()
                } else {
                    other.key == opened && other.is_in_sent()
                };
                stays && entry.is_same_as(other)
            })
    };
    let are_copies: Vec<bool> = entries.iter().map(is_copy).collect();
    let mut are_copies = are_copies.into_iter();
    entries.retain(|_| !are_copies.next().unwrap_or_default());
}

impl ConversationEntry<'_> {
    fn is_in_sent(&self) -> bool {
        self.key.in_store().0 == SENT
    }

    /// Whether both entries are copies of the same message, as far as they were read.
    fn is_same_as(&self, other: &ConversationEntry<'_>) -> bool {
        rows::are_copies(self.summary(), other.summary())
            && match (&self.shown, &other.shown) {
                (Ok(one), Ok(other)) => one.has_same_contents(other),
                _ => true,
            }
    }

    fn summary(&self) -> Option<&Summary> {
        match &self.shown {
            Ok(shown) => Some(&shown.summary),
            Err(line) => line.summary,
        }
    }

    fn attachments(&self) -> Vec<Attachment<'_>> {
        self.shown.as_ref().map_or_else(|_| Vec::new(), ShownMessage::attachments)
    }

    fn bodies(&self) -> Vec<MessageBody<'_>> {
        self.shown.as_ref().map_or_else(|_| [MessageBody::Folded].into(), ShownMessage::bodies)
    }

    fn texts(&self, clock: &LocalClock, list: Option<&Destination>) -> EntryTexts {
        let of = |time| {
            let moment = clock.moment(time);
            [moment.in_words(), moment.exact()]
        };
        let sent = self.shown.as_ref().ok().and_then(|shown| shown.sent);
        let href = match self.key.in_store().0 {
            DRAFTS => {
                WebPage::Compose(ComposeStart::Draft { draft: self.key, answers: None }).to_string()
            }
            _ => WebPage::Message(PermanentId::of(&self.info), list.cloned()).to_string(),
        };
        EntryTexts { href, arrived: of(self.info.internal_date), sent: sent.map(of) }
    }

    /// The entry in the form that the page takes. `opened`: the requested message.
    fn message<'a>(
        &'a self,
        opened: MessageKey,
        ((attachments, bodies), texts): (
            (&'a Vec<Attachment<'a>>, &'a Vec<MessageBody<'a>>),
            &'a EntryTexts,
        ),
    ) -> ConversationMessage<'a> {
        let [date, moment] = &texts.arrived;
        let sent = texts.sent.as_ref().map(|[date, moment]| [date.as_str(), moment.as_str()]);
        let is_starred = self.info.flags.contains(Flags::FLAGGED);
        match &self.shown {
            Ok(shown) => ConversationMessage {
                key: &shown.key,
                href: &texts.href,
                from: &shown.from,
                address: &shown.address,
                to: &shown.to,
                people: &shown.people,
                date,
                moment,
                sent,
                snippet: &shown.summary.snippet,
                is_starred,
                is_asked_for: self.key == opened,
                is_unread: !self.info.flags.contains(Flags::SEEN),
                warnings: &shown.warnings,
                notices: &shown.notices,
                loads: shown.loads,
                bodies,
                attachments,
            },
            Err(line) => {
                let row = line.text.row();
                ConversationMessage {
                    key: row.key.0,
                    href: &texts.href,
                    from: if self.key.in_store().0 == DRAFTS { "Draft" } else { row.people.0 },
                    address: "",
                    to: "",
                    people: &[],
                    date,
                    moment,
                    sent,
                    snippet: if row.snippet.0.is_empty() { row.subject.0 } else { row.snippet.0 },
                    is_starred,
                    is_asked_for: false,
                    is_unread: row.is_unread,
                    warnings: &[],
                    notices: &[],
                    loads: Loads::Own,
                    bodies,
                    attachments,
                }
            }
        }
    }
}

/// The key for sorting: the time of arrival, then the GUID. GUIDs ascend, so they order messages of
/// the same second.
fn moment(info: &MessageInfo) -> (machine::UnixTime, u128) {
    (info.internal_date, info.guid.0)
}

/// The other messages in the conversation of the opened message. Only the newest of each mailbox
/// are returned.
fn others(
    store: &Store,
    account: AccountId,
    (mailbox, opened): (MailboxId, MessageInfo),
) -> Vec<FoundMessage> {
    let known = store.account(account);
    let all = known.iter().flat_map(|known| known.mailboxes()).map(|(id, _)| id);
    // A message in the outbox is also in Sent.
    let mailboxes = all.filter(|id| *id == mailbox || !is_trash_or_junk(*id) && *id != OUTBOX);
    let entries = mailboxes.flat_map(|id| {
        let uids = store.conversation_in(account, id, opened.conversation).rev();
        uids.take(SHOWN_MAX + 1).map(move |uid| (id, uid))
    });
    let others =
        entries.take(LOOKED_AT_MAX).filter(|(id, uid)| (*id, *uid) != (mailbox, opened.uid));
    others
        .filter_map(|(id, uid)| {
            Some(FoundMessage::of(store, account, id, store.message(account, id, uid)?))
        })
        .collect()
}
