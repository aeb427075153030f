//! The page for writing a message, and its initial contents.

use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use http::Reply;
use message::header::HeaderMailbox;
use store::{AccountId, Body, DRAFTS, Refusal};

use crate::answer;
use crate::compose::ComposePage;
use crate::context::JobContext;
use crate::layout::{AuthenticatedClient, PageLayout};
use crate::step::{JobProgress, why};
use crate::zone::Zone;
use crate::{ComposeStart, ListRange, MessageKey, WebPage};

use super::message_contents::MessageContents;
use super::message_date::{for_attribution, for_forwarding};
use super::open_message::{OpenMessage, QuotedMessage};
use super::people::listed;
use super::undo_send::flash_if_sending;

/// A compose page that is being prepared.
#[derive(Debug)]
pub(crate) struct ComposeJob {
    start: ComposeStart,
    /// The message to reply to, to forward, or to continue.
    opening: Option<OpenMessage>,
}

/// The error text when the page does not list all recipients.
const MORE_PEOPLE: &str =
    "This message has too many recipients to list. Only the first 1,000 of each field are shown.";

/// The initial contents of the page.
#[derive(Default)]
struct InitialFields {
    to: String,
    cc: String,
    bcc: String,
    subject: String,
    text: String,
    /// A warning for the user.
    error: Option<&'static str>,
    /// The attached files: their parts in the draft or in the forwarded message, and their names.
    files: Vec<(u16, String)>,
}

impl ComposeJob {
    pub(super) fn new(start: ComposeStart) -> ComposeJob {
        ComposeJob { start, opening: source(start).map(OpenMessage::to_answer) }
    }

    pub(super) fn ask(
        &mut self,
        account: AccountId,
        under_way: &mut usize,
        cx: &mut JobContext<'_, '_>,
    ) -> JobProgress {
        match &mut self.opening {
            Some(opening) => opening.ask(account, under_way, cx),
            None => JobProgress::Waiting,
        }
    }

    pub(super) fn body_arrived(&mut self, body: &Body) {
        if let Some(opening) = &mut self.opening {
            opening.body_arrived(body);
        }
    }

    pub(super) fn refused(&mut self, refusal: Refusal) {
        if let Some(opening) = &mut self.opening {
            opening.refused(refusal);
        }
    }

    /// Replies with the page. If the draft is in transit, redirects to Drafts instead. The flash
    /// message there has an undo button while the message is held.
    pub(super) fn done(
        &mut self,
        client: &AuthenticatedClient,
        cx: &mut JobContext<'_, '_>,
    ) -> JobProgress {
        if let ComposeStart::Draft { draft, .. } = self.start
            && let Some(flash) = flash_if_sending(draft, client.account, cx)
        {
            let drafts = WebPage::List { mailbox: DRAFTS.0, range: ListRange::Newest };
            return JobProgress::Redirect(drafts.to_string(), flash);
        }
        JobProgress::Reply(self.page(client, cx))
    }

    fn page(&mut self, client: &AuthenticatedClient, cx: &mut JobContext<'_, '_>) -> Reply {
        let zone = cx.zone(client.account);
        let known = cx.store().account(client.account);
        let own: Vec<String> = known
            .iter()
            .flat_map(|known| core::iter::once(known.address()).chain(known.aliases()))
            .map(String::from)
            .collect();
        let beginning = match &mut self.opening {
            None => InitialFields::default(),
            Some(opening) => match opening.quoted() {
                Err(refusal) => return answer::refused(refusal, why(refusal)),
                Ok(mut message) => {
                    let files = core::mem::take(&mut message.files);
                    let beginning = InitialFields::of(self.start, message, &zone, &own);
                    let is_with_files =
                        matches!(self.start, ComposeStart::Draft { .. } | ComposeStart::Forward(_));
                    InitialFields {
                        files: if is_with_files { files } else { Vec::new() },
                        ..beginning
                    }
                }
            },
        };
        let [draft, answers] = match self.start {
            ComposeStart::Draft { draft, answers } => {
                [draft.to_string(), answers.map_or_else(String::new, |key| key.to_string())]
            }
            ComposeStart::Reply(key) | ComposeStart::ReplyToAll(key) => {
                [String::new(), key.to_string()]
            }
            // The draft is not saved yet, so the files are parts of the forwarded message. Its key
            // takes the place of the draft's key.
            ComposeStart::Forward(key) if key.mailbox != DRAFTS.0 => {
                [key.to_string(), String::new()]
            }
            ComposeStart::New | ComposeStart::Forward(_) => [const { String::new() }; 2],
        };
        let title = match self.start {
            ComposeStart::New => "New message",
            ComposeStart::Reply(_) => "Reply",
            ComposeStart::ReplyToAll(_) => "Reply all",
            ComposeStart::Forward(_) => "Forward",
            ComposeStart::Draft { .. } => "Draft",
        };
        let layout = PageLayout::of(client, cx.store(), None);
        let text = match self.start {
            ComposeStart::New | ComposeStart::Reply(_) | ComposeStart::ReplyToAll(_) => {
                layout.preferences().signed(&beginning.text)
            }
            ComposeStart::Forward(_) | ComposeStart::Draft { .. } => beginning.text,
        };
        answer::page(&ComposePage {
            frame: layout.frame(client, &layout.links()),
            title,
            draft: &draft,
            answers: &answers,
            to: &beginning.to,
            cc: &beginning.cc,
            bcc: &beginning.bcc,
            subject: &beginning.subject,
            text: &text,
            attachments: &attachments(&beginning.files),
            error: beginning.error,
            is_unsaved: beginning.error.is_some(),
        })
    }
}

/// The files in the form that the page takes: the part of the draft, and the name.
pub(super) fn attachments(files: &[(u16, String)]) -> Vec<(u16, &str)> {
    files.iter().map(|(part, name)| (*part, name.as_str())).collect()
}

/// The message with the contents that the page starts with.
fn source(start: ComposeStart) -> Option<MessageKey> {
    match start {
        ComposeStart::New => None,
        ComposeStart::Reply(key)
        | ComposeStart::ReplyToAll(key)
        | ComposeStart::Forward(key)
        | ComposeStart::Draft { draft: key, .. } => Some(key),
    }
}

impl InitialFields {
    /// The initial fields of a page that starts from `message`. `own`: the user's addresses.
    fn of(
        start: ComposeStart,
        message: QuotedMessage<'_>,
        zone: &Zone,
        own: &[String],
    ) -> InitialFields {
        let QuotedMessage { contents, text, info, .. } = message;
        let written_at = match start {
            ComposeStart::Forward(_) => for_forwarding,
            _ => for_attribution,
        };
        let date = &written_at(contents.sent, info.internal_date, zone);
        let error = contents.has_more_people.then_some(MORE_PEOPLE);
        let subject = contents.subject.as_deref().unwrap_or_default();
        let author = contents.from.iter();
        match start {
            ComposeStart::New => InitialFields::default(),
            ComposeStart::Draft { .. } => InitialFields {
                to: listed(contents.to.iter()),
                cc: listed(contents.cc.iter()),
                bcc: listed(contents.bcc.iter()),
                subject: subject.into(),
                text,
                error,
                ..InitialFields::default()
            },
            ComposeStart::Forward(_) => InitialFields {
                subject: prefixed("Fwd: ", subject),
                text: format!(
                    "\n\n---------- Forwarded message ----------\nFrom: {}\nDate: {date}\nSubject: {subject}\nTo: {}\n\n{}",
                    listed(author),
                    listed(contents.to.iter()),
                    text
                ),
                error,
                ..InitialFields::default()
            },
            ComposeStart::Reply(_) | ComposeStart::ReplyToAll(_) => {
                let is_own = |mailbox: &&HeaderMailbox| {
                    own.iter().any(|own| own.eq_ignore_ascii_case(&mailbox.address))
                };
                // A reply to the user's own message is addressed to the recipients of that message.
                let wrote_it = contents.from.as_ref().is_some_and(|from| is_own(&from));
                let to: Vec<&HeaderMailbox> = match (wrote_it, contents.reply_to.is_empty()) {
                    (true, _) => contents.to.iter().collect(),
                    (false, false) => contents.reply_to.iter().collect(),
                    (false, true) => author.collect(),
                };
                let all = matches!(start, ComposeStart::ReplyToAll(_));
                let others = contents.to.iter().filter(|_| !wrote_it).chain(&contents.cc);
                let others = others.filter(|mailbox| all && !is_own(mailbox));
                let mut known = BTreeSet::new();
                let mut once =
                    |mailbox: &&HeaderMailbox| known.insert(mailbox.address.to_ascii_lowercase());
                InitialFields {
                    to: listed(to.into_iter().filter(&mut once)),
                    cc: listed(others.filter(&mut once)),
                    bcc: String::new(),
                    subject: prefixed("Re: ", subject),
                    text: quoted(contents, &text, date),
                    error,
                    ..InitialFields::default()
                }
            }
        }
    }
}

fn quoted(contents: &MessageContents, shown: &str, date: &str) -> String {
    let no_author = HeaderMailbox::default();
    let from = contents.from.as_ref().unwrap_or(&no_author);
    let name = if from.name.is_empty() { &from.address } else { &from.name };
    let mut text = format!("\n\nOn {date}, {name} wrote:\n");
    for line in shown.trim_end().lines() {
        text.push_str(if line.starts_with('>') { ">" } else { "> " });
        text.push_str(line);
        text.push('\n');
    }
    text
}

/// Adds the prefix to the subject, unless the subject has it already.
fn prefixed(prefix: &str, subject: &str) -> String {
    let has_it = subject
        .get(..prefix.len() - 1)
        .is_some_and(|start| start.eq_ignore_ascii_case(prefix.trim_end()));
    if has_it { subject.into() } else { format!("{prefix}{subject}") }
}
