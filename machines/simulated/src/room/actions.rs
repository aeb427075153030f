//! The actions of a webmail client, and how it reads their results from the following page.

use chance::Dice;
use machine::Micros;
use sometimes::sometimes;

use super::context::{ClientProgress, StepContext};
use super::fixture::{ACCOUNTS, AT_WEBMAIL, DRAFTS, INBOX};
use super::line::ClientLine;
use super::lists::{ListRow, View};
use super::message::{MessageId, OWN};
use super::page::WebmailPage;
use super::remote::RemoteMailbox;
use super::uncertain::{RequestedChange, Snapshot};
use super::webmail_client::{PendingPage, WebmailClient};

/// The mailboxes to which a button of the webmail moves messages, and the names of the buttons.
const TARGETS: [(u32, &str); 4] = [(INBOX, "inbox"), (4, "archive"), (5, "junk"), (6, "trash")];

/// An action that was requested and not answered yet.
#[derive(Debug)]
pub(super) enum WebmailAction {
    /// Move these copies to a mailbox.
    Move(Vec<(MessageId, usize, RequestedChange<u32>)>),
    /// Set or clear the star of this copy. The view is the state of the model when the client sent
    /// the request.
    Star(MessageId, usize, RequestedChange<bool>, View),
    /// Delete these copies for ever.
    Delete(Vec<(MessageId, usize)>),
    /// Send a message, or save a draft.
    Compose(ComposeAction, MessageId),
    /// Undo the send of a held message: it becomes a draft again.
    Undo(MessageId, RequestedChange<bool>),
    /// Change the name in the settings.
    Rename(RequestedChange<String>),
}

/// What the client does with a composed message.
#[derive(Clone, Debug)]
pub(super) enum ComposeAction {
    /// Send it to these local accounts and these mailboxes of the other server.
    Send(Vec<usize>, Vec<RemoteMailbox>),
    SaveDraft,
}

impl ComposeAction {
    /// The addresses for the `to` field of the form.
    pub(super) fn to(&self, station: usize) -> String {
        let ComposeAction::Send(recipients, remote) = self else { return String::new() };
        let own = recipients.iter().map(|account| ACCOUNTS[*account].to_string());
        let names: Vec<String> =
            own.chain(remote.iter().map(|mailbox| mailbox.address(station))).collect();
        names.join(", ")
    }

    pub(super) fn button(&self) -> &'static str {
        if matches!(self, ComposeAction::Send(..)) { "send" } else { "save" }
    }
}

impl WebmailClient {
    /// Takes one random action. In accounts other than the webmail account the client only reads.
    pub(super) fn take_random_action(
        &mut self,
        line: &mut ClientLine,
        context: &mut StepContext<'_>,
    ) {
        let is_own = self.account == AT_WEBMAIL;
        match context.dice.below(if is_own { 13 } else { 4 }) {
            0 if !self.rows.is_empty() => {
                let row = self.row(context.dice);
                self.open_message(row, line, context);
            }
            1 if !self.rows.is_empty()
                && let Some(message) = self
                    .row(context.dice)
                    .message
                    .filter(|message| !context.model.is_report(*message)) =>
            {
                self.search(message, line, context);
            }
            2 => {
                self.get(
                    "/mail/settings",
                    PendingPage::Settings(context.model.name.snapshot()),
                    line,
                );
            }
            4..=5 => self.move_or_erase(line, context),
            6 => self.toggle_star(line, context),
            7..=8 => {
                let (recipients, remote) = recipients(context.dice);
                let (message, text) = context.model.compose(&recipients, &remote, context.dice);
                self.begin_compose(
                    ComposeAction::Send(recipients, remote),
                    message,
                    &text,
                    line,
                    context,
                );
            }
            9..=10 => {
                let (message, text) = context.model.compose(&[], &[], context.dice);
                self.begin_compose(ComposeAction::SaveDraft, message, &text, line, context);
            }
            11 => {
                let name = format!("Mary {:x}", context.dice.roll());
                let change = context.model.name.requested(name.clone());
                let token = self.token.clone();
                let hold = if context.dice.one_in(2) { "0" } else { "10" };
                let fields = [
                    ("token", token.as_str()),
                    ("name", &name),
                    ("signature", ""),
                    ("hold", hold),
                    ("do", "save"),
                ];
                self.post(
                    "/mail/settings",
                    &fields,
                    PendingPage::ActionResponse(WebmailAction::Rename(change)),
                    line,
                );
            }
            12 => {
                let known = self.undo.take().or_else(|| self.held_row(context));
                match known {
                    Some((what, message)) => self.undo_send(&what, message, line, context),
                    None => self.list(DRAFTS, line, context),
                }
            }
            _ => {
                let mailbox = 1 + context.dice.below(if is_own { 6 } else { 1 }) as u32;
                self.list(mailbox, line, context);
            }
        }
    }

    pub(super) fn search(
        &mut self,
        message: MessageId,
        line: &mut ClientLine,
        context: &StepContext<'_>,
    ) {
        let view = context.model.view(self.account);
        self.get(
            &format!("/mail/search?q=subject%3A{}", message.0),
            PendingPage::Found(message, view),
            line,
        );
    }

    /// Requests the page of a message and then its octets.
    pub(super) fn open_message(
        &mut self,
        row: ListRow,
        line: &mut ClientLine,
        context: &StepContext<'_>,
    ) {
        let view = context.model.view(self.account);
        let path = format!("/mail/box/{}/{}", row.mailbox, row.uid);
        self.get(&path, PendingPage::Message(row, view), line);
    }

    fn row(&self, dice: &mut Dice) -> ListRow {
        self.rows[dice.below(self.rows.len() as u64) as usize].clone()
    }

    /// Draws some rows for moves and stars, each with its message and copy. Each row must identify
    /// exactly one copy.
    fn some_rows(&self, context: &mut StepContext<'_>) -> Vec<(ListRow, MessageId, usize)> {
        let most = 1 + context.dice.skewed(4) as usize;
        let mut some = Vec::new();
        for row in &self.rows {
            let Some(message) =
                row.message.filter(|message| context.model.has_one_copy_each(*message))
            else {
                continue;
            };
            if some.len() < most
                && row.mailbox == self.mailbox
                && row.mailbox != DRAFTS
                && context.dice.one_in(3)
            {
                some.push((
                    row.clone(),
                    message,
                    context.model.copy_in(message, self.account, row.mailbox),
                ));
            }
        }
        some
    }

    fn move_or_erase(&mut self, line: &mut ClientLine, context: &mut StepContext<'_>) {
        let rows = self.some_rows(context);
        let here = format!("/mail/box/{}", self.mailbox);
        if rows.is_empty() {
            return self.list(self.mailbox, line, context);
        }
        let keys: Vec<String> = rows.iter().map(|(row, ..)| row.key()).collect();
        let erases = self.mailbox >= 5 && context.dice.one_in(2);
        let (button, action) = if erases {
            rows.iter()
                .for_each(|(_, message, copy)| context.model.perhaps_deleted(*message, *copy));
            (
                "erase",
                WebmailAction::Delete(
                    rows.into_iter().map(|(_, message, copy)| (message, copy)).collect(),
                ),
            )
        } else {
            let others: Vec<(u32, &str)> =
                TARGETS.into_iter().filter(|(to, _)| *to != self.mailbox).collect();
            let (to, button) = others[context.dice.below(others.len() as u64) as usize];
            let with_change = |(_, message, copy)| {
                (message, copy, context.model.move_requested(message, copy, to))
            };
            (button, WebmailAction::Move(rows.into_iter().map(with_change).collect()))
        };
        let token = self.token.clone();
        let mut fields = vec![
            ("token", token.as_str()),
            ("here", &here),
            ("whole", "conversation"),
            ("do", button),
        ];
        fields.extend(keys.iter().map(|key| ("key", key.as_str())));
        self.post("/mail/act", &fields, PendingPage::ActionResponse(action), line);
    }

    fn toggle_star(&mut self, line: &mut ClientLine, context: &mut StepContext<'_>) {
        let rows = self.some_rows(context);
        // The button toggles the star. The client can only know the result if it knows the present
        // state of the star and that the message still exists.
        let view = self.view.as_ref();
        let known = rows.into_iter().find_map(|(row, message, copy)| {
            let is_sure = view.is_some_and(|view| context.model.is_unchanged(view, message, copy));
            let star = context.model.star(message, copy).filter(|_| is_sure);
            star.map(|is_starred| (row, message, copy, is_starred))
        });
        let Some((row, message, copy, is_starred)) = known else {
            return self.list(self.mailbox, line, context);
        };
        let change = context.model.star_requested(message, copy, !is_starred);
        let view = context.model.view(self.account);
        let (token, here, key) =
            (self.token.clone(), format!("/mail/box/{}", self.mailbox), row.key());
        let fields =
            [("token", token.as_str()), ("here", &here), ("whole", "conversation"), ("star", &key)];
        self.post(
            "/mail/act",
            &fields,
            PendingPage::ActionResponse(WebmailAction::Star(message, copy, change, view)),
            line,
        );
    }

    fn begin_compose(
        &mut self,
        written: ComposeAction,
        message: MessageId,
        text: &str,
        line: &mut ClientLine,
        context: &mut StepContext<'_>,
    ) {
        context.model.sent(message);
        if let Some((_, old)) = &self.draft {
            context.model.perhaps_deleted(*old, OWN);
        }
        self.submit_compose(written, message, text, line, context.model.station);
    }

    /// Submits a composed message, or saves a draft.
    fn submit_compose(
        &mut self,
        written: ComposeAction,
        message: MessageId,
        text: &str,
        line: &mut ClientLine,
        station: usize,
    ) {
        let (token, to) = (self.token.clone(), written.to(station));
        let key = self.draft.take().map_or(String::new(), |(key, _)| key);
        let fields = [
            ("token", token.as_str()),
            ("draft", &key),
            ("to", &to),
            ("subject", &message.0.to_string()),
            ("text", text),
            ("do", written.button()),
        ];
        self.post(
            "/mail/compose",
            &fields,
            PendingPage::ActionResponse(WebmailAction::Compose(written, message)),
            line,
        );
    }

    /// A held message among the drafts of the last list, and the key that undoes its send.
    fn held_row(&self, context: &StepContext<'_>) -> Option<(String, MessageId)> {
        let drafts = self.rows.iter().filter(|row| row.mailbox == DRAFTS);
        let mut messages =
            drafts.filter_map(|row| Some((format!("sending.{}", row.key()), row.message?)));
        messages.find(|(_, message)| context.model.is_sent_by_webmail(*message))
    }

    pub(super) fn undo_send(
        &mut self,
        what: &str,
        message: MessageId,
        line: &mut ClientLine,
        context: &mut StepContext<'_>,
    ) {
        let change = context.model.undo_requested(message);
        let token = self.token.clone();
        let fields = [("token", token.as_str()), ("what", what)];
        self.post(
            "/mail/undo",
            &fields,
            PendingPage::ActionResponse(WebmailAction::Undo(message, change)),
            line,
        );
    }

    /// Handles the page after a send that is held. The client undoes the send at once, shortly
    /// before the message leaves, at some later time, or never.
    fn send_was_held(
        &mut self,
        message: MessageId,
        page: &WebmailPage,
        line: &mut ClientLine,
        context: &mut StepContext<'_>,
    ) {
        sometimes!(HeldAtWebmail);
        let Some(what) = page.undo() else { return self.list(self.mailbox, line, context) };
        match context.dice.below(4) {
            0 => self.undo_send(&what, message, line, context),
            1 => {
                let span = Micros(8_000_000 + context.dice.below(4_000_000));
                self.hesitates = Some((context.story.now + span, what, message));
            }
            _ => {
                self.undo = Some((what, message));
                self.list(self.mailbox, line, context);
            }
        }
    }

    /// Handles the response to an action. A redirect names the page that shows the result.
    pub(super) fn action_answered(
        &mut self,
        action: WebmailAction,
        page: &WebmailPage,
        line: &mut ClientLine,
        context: &mut StepContext<'_>,
    ) -> ClientProgress {
        if page.status == 303 {
            let location = page.location().to_string();
            if let WebmailAction::Compose(written, message) = &action {
                context.story.counts.acknowledged += 1;
                match written {
                    ComposeAction::Send(..) => {
                        context.model.promised(*message);
                        sometimes!(SentAtWebmail);
                    }
                    ComposeAction::SaveDraft => {
                        context.model.delivered(*message);
                        sometimes!(DraftKept);
                        self.get(&location, PendingPage::Draft(*message), line);
                        return ClientProgress::Continues;
                    }
                }
            }
            self.get(&location, PendingPage::ActionResult(action), line);
            return ClientProgress::Continues;
        }
        if let WebmailAction::Compose(_, message) = &action
            && page.status == 200
            && !context.disk_has_failed
        {
            context.model.refused(*message);
        }
        ClientProgress::Done
    }

    /// Handles the page that shows the result of an action.
    pub(super) fn result_shown(
        &mut self,
        action: WebmailAction,
        page: &WebmailPage,
        line: &mut ClientLine,
        context: &mut StepContext<'_>,
    ) {
        let notice = page.notice();
        let is_wrong = notice.is_some_and(|(_, is_wrong)| is_wrong);
        let words = notice.map_or("", |(words, _)| words);
        let is_done = |count: usize, what: &str| {
            let is_all = if count == 1 {
                words.starts_with("Message ")
            } else {
                words.starts_with(&format!("{count} messages "))
            };
            is_all && words.contains(what)
        };
        match &action {
            WebmailAction::Move(moved) => {
                let is_moved = is_done(moved.len(), "moved to");
                let is_nothing =
                    words == "No messages selected, or the selected ones cannot be changed.";
                for (message, copy, change) in moved.iter().filter(|_| is_moved || is_nothing) {
                    context.model.moved(*message, *copy, change, is_moved);
                }
                if is_moved {
                    sometimes!(MovedAtWebmail);
                }
            }
            WebmailAction::Delete(erased) if is_done(erased.len(), "deleted forever") => {
                erased.iter().for_each(|(message, copy)| context.model.deleted(*message, *copy));
                context.story.counts.deleted += erased.len() as u64;
            }
            // If another client has deleted the message, the server does not star it, and the page
            // does not say so.
            WebmailAction::Star(message, copy, change, view) if page.status == 200 && !is_wrong => {
                if context.model.is_unchanged(view, *message, *copy) {
                    context.model.starred(*message, *copy, change);
                }
            }
            WebmailAction::Rename(change) if words == "Settings saved." => {
                context.model.name.done(change);
                return self.get(
                    "/mail/settings",
                    PendingPage::Settings(context.model.name.snapshot()),
                    line,
                );
            }
            // The webmail says "Message sent." before the other server has its part of the message.
            WebmailAction::Compose(ComposeAction::Send(_, remote), message)
                if words == "Message sent." =>
            {
                if remote.is_empty() {
                    context.model.delivered(*message);
                }
            }
            WebmailAction::Compose(ComposeAction::Send(..), message) if words == "Sending…" => {
                return self.send_was_held(*message, page, line, context);
            }
            WebmailAction::Undo(message, change)
                if words == "Sending undone. The message is back in Drafts." =>
            {
                context.model.undo_answered(*message, change, true);
                sometimes!(TakenBackAtWebmail);
                if page.value_of("subject") == Some(message.0.to_string()) {
                    self.draft = page.value_of("draft").map(|key| (key, *message));
                }
            }
            WebmailAction::Undo(message, change) if words.starts_with("Too late") => {
                context.model.undo_answered(*message, change, false);
                sometimes!(TooLateAtWebmail);
            }
            WebmailAction::Star(..)
            | WebmailAction::Delete(_)
            | WebmailAction::Rename(_)
            | WebmailAction::Compose(..)
            | WebmailAction::Undo(..) => {}
        }
        self.list(self.mailbox, line, context);
    }

    /// Checks that the settings page shows a name that a request has set.
    pub(super) fn check_settings(
        &mut self,
        then: &Snapshot<String>,
        page: &WebmailPage,
        line: &mut ClientLine,
        context: &mut StepContext<'_>,
    ) {
        if let Some(name) = page.value_of("name").filter(|_| self.account == AT_WEBMAIL) {
            assert!(
                context.model.name.was_since(then, &name),
                "the settings show {name}: not one of {then:?}, and not set since"
            );
        }
        self.list(self.mailbox, line, context);
    }
}

/// Draws the recipients of a message: local accounts, and mailboxes of the other server.
fn recipients(dice: &mut Dice) -> (Vec<usize>, Vec<RemoteMailbox>) {
    match dice.below(8) {
        0 => (vec![0, 1], vec![]),
        1 => (vec![AT_WEBMAIL], vec![]),
        2 => (vec![1, AT_WEBMAIL], vec![]),
        3 => (vec![0], RemoteMailbox::some(dice)),
        4 | 5 => (vec![], RemoteMailbox::some(dice)),
        one => (vec![one as usize % 2], vec![]),
    }
}
