//! The page for writing a message, and its initial contents.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use http::Reply;
use message::header::Mailbox;
use store::{AccountId, Body, DRAFTS, Refusal};

use crate::answer;
use crate::compose::ComposePage;
use crate::context::JobContext;
use crate::moments::Moment;
use crate::step::{Progress, why};
use crate::surroundings::{Surroundings, Visitor};
use crate::{Key, Page, Start, Stretch};

use super::holding::about_to_leave;
use super::letters::{Heard, Opening};

/// A compose page that is being prepared.
#[derive(Debug)]
pub(crate) struct Composing {
    start: Start,
    /// The message to reply to, to forward, or to continue.
    opening: Option<Opening>,
}

/// The error text when the page does not list all recipients.
const MORE_PEOPLE: &str = "This message has more recipients than fit here: only the first 1,000 of each field are listed.";

/// The initial contents of the page.
#[derive(Default)]
struct Beginning {
    to: String,
    cc: String,
    bcc: String,
    subject: String,
    text: String,
    /// A warning for the writer.
    error: Option<&'static str>,
    /// The attached files, by their parts of the draft or of the forwarded message.
    files: Vec<(u16, String)>,
}

impl Composing {
    pub(super) fn new(start: Start) -> Composing {
        Composing { start, opening: source(start).map(Opening::to_answer) }
    }

    pub(super) fn ask(
        &mut self,
        account: AccountId,
        under_way: &mut usize,
        cx: &mut JobContext<'_, '_>,
    ) -> Progress {
        match &mut self.opening {
            Some(opening) => opening.ask(account, under_way, cx),
            None => Progress::Waiting,
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

    /// The page. For a message that is about to leave, the reply is a redirect with an undo button
    /// instead.
    pub(super) fn done(&mut self, visitor: &Visitor, cx: &JobContext<'_, '_>) -> Progress {
        if let Start::Draft { draft, .. } = self.start
            && let Some(said) = about_to_leave(draft, visitor.account, cx)
        {
            let drafts = Page::List { mailbox: DRAFTS.0, stretch: Stretch::Newest };
            return Progress::Redirect(drafts.to_string(), said);
        }
        Progress::Reply(self.page(visitor, cx))
    }

    fn page(&mut self, visitor: &Visitor, cx: &JobContext<'_, '_>) -> Reply {
        let own = cx
            .store()
            .account(visitor.account)
            .map_or_else(String::new, |known| known.address().to_string());
        let beginning = match &mut self.opening {
            None => Beginning::default(),
            Some(opening) => match opening.heard() {
                Err(refusal) => return answer::refused(refusal, why(refusal)),
                Ok((heard, info, files)) => {
                    let beginning = Beginning::of(
                        self.start,
                        heard,
                        &Moment::of(info.internal_date).in_words(),
                        &own,
                    );
                    let files = if let Start::Draft { .. } | Start::Forward(_) = self.start {
                        files
                    } else {
                        Vec::new()
                    };
                    let error = heard.has_more_people.then_some(MORE_PEOPLE);
                    Beginning { files, error, ..beginning }
                }
            },
        };
        let [draft, answers] = match self.start {
            Start::Draft { draft, answers } => {
                [draft.to_string(), answers.map_or_else(String::new, |key| key.to_string())]
            }
            Start::Reply(key) | Start::ReplyToAll(key) => [String::new(), key.to_string()],
            // Until the draft is saved, its files are parts of the forwarded message.
            Start::Forward(key) if key.mailbox != DRAFTS.0 => [key.to_string(), String::new()],
            Start::New | Start::Forward(_) => [const { String::new() }; 2],
        };
        let title = match self.start {
            Start::New => "New message",
            Start::Reply(_) => "Reply",
            Start::ReplyToAll(_) => "Reply to all",
            Start::Forward(_) => "Forward",
            Start::Draft { .. } => "Draft",
        };
        let surroundings = Surroundings::of(visitor, cx.store(), None);
        let text = match self.start {
            Start::New | Start::Reply(_) | Start::ReplyToAll(_) => {
                surroundings.chosen().signed(&beginning.text)
            }
            Start::Forward(_) | Start::Draft { .. } => beginning.text,
        };
        answer::page(&ComposePage {
            frame: surroundings.frame(visitor, &surroundings.links()),
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
        })
    }
}

/// Files as the page names them: the part of the draft and the name.
pub(super) fn attachments(files: &[(u16, String)]) -> Vec<(u16, &str)> {
    files.iter().map(|(part, name)| (*part, name.as_str())).collect()
}

/// The message that the page starts from.
fn source(start: Start) -> Option<Key> {
    match start {
        Start::New => None,
        Start::Reply(key)
        | Start::ReplyToAll(key)
        | Start::Forward(key)
        | Start::Draft { draft: key, .. } => Some(key),
    }
}

impl Beginning {
    /// `own`: the writer's address.
    fn of(start: Start, heard: &Heard, date: &str, own: &str) -> Beginning {
        let subject = heard.subject.as_deref().unwrap_or_default();
        let author = heard.from.iter();
        match start {
            Start::New => Beginning::default(),
            Start::Draft { .. } => Beginning {
                to: listed(heard.to.iter()),
                cc: listed(heard.cc.iter()),
                bcc: listed(heard.bcc.iter()),
                subject: subject.into(),
                text: heard.text.clone(),
                ..Beginning::default()
            },
            Start::Forward(_) => Beginning {
                subject: prefixed("Fwd: ", subject),
                text: format!(
                    "\n\n---------- Forwarded message ----------\nFrom: {}\nDate: {date}\nSubject: {subject}\nTo: {}\n\n{}",
                    listed(author),
                    listed(heard.to.iter()),
                    heard.text
                ),
                ..Beginning::default()
            },
            Start::Reply(_) | Start::ReplyToAll(_) => {
                let is_own = |mailbox: &&Mailbox| mailbox.address.eq_ignore_ascii_case(own);
                // A reply to one's own message goes to that message's recipients.
                let wrote_it = heard.from.as_ref().is_some_and(|from| is_own(&from));
                let to = match (wrote_it, heard.reply_to.is_empty()) {
                    (true, _) => listed(heard.to.iter()),
                    (false, false) => listed(heard.reply_to.iter()),
                    (false, true) => listed(author),
                };
                let all = matches!(start, Start::ReplyToAll(_));
                let others = heard.to.iter().filter(|_| !wrote_it).chain(&heard.cc);
                Beginning {
                    to,
                    cc: if all {
                        listed(others.filter(|mailbox| !is_own(mailbox)))
                    } else {
                        String::new()
                    },
                    bcc: String::new(),
                    subject: prefixed("Re: ", subject),
                    text: quoted(heard, date),
                    ..Beginning::default()
                }
            }
        }
    }
}

fn quoted(heard: &Heard, date: &str) -> String {
    let nobody = Mailbox::default();
    let from = heard.from.as_ref().unwrap_or(&nobody);
    let name = if from.name.is_empty() { &from.address } else { &from.name };
    let mut text = format!("\n\nOn {date} UTC, {name} wrote:\n");
    for line in heard.text.trim_end().lines() {
        text.push_str(if line.starts_with('>') { ">" } else { "> " });
        text.push_str(line);
        text.push('\n');
    }
    text
}

/// A subject with the prefix, once.
fn prefixed(prefix: &str, subject: &str) -> String {
    let has_it = subject
        .get(..prefix.len() - 1)
        .is_some_and(|start| start.eq_ignore_ascii_case(prefix.trim_end()));
    if has_it { subject.into() } else { format!("{prefix}{subject}") }
}

/// Mailboxes as a user types them.
fn listed<'a>(mailboxes: impl Iterator<Item = &'a Mailbox>) -> String {
    let mut list = String::new();
    for mailbox in mailboxes.filter(|mailbox| !mailbox.address.is_empty()) {
        if !list.is_empty() {
            list.push_str(", ");
        }
        if mailbox.name.is_empty() {
            list.push_str(&mailbox.address);
        } else {
            let name = mailbox.name.replace(['"', '\\'], "");
            list.push_str(&format!("\"{name}\" <{}>", mailbox.address));
        }
    }
    list
}
