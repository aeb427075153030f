//! A webmail client. It logs in or resumes a session, lists, reads, searches, stars, moves,
//! deletes, composes, undoes a send, saves drafts, changes settings, and logs out.
//!
//! The client requests one page at a time, like a person. It reads the result of an action from the
//! following page, and the model records the result. From then on the result must hold, even after
//! faults.

use std::collections::BTreeMap;

use chance::Dice;
use machine::Instant;
use sometimes::sometimes;

use super::actions::WebmailAction;
use super::approach::Approach;
use super::context::{ClientProgress, StepContext};
use super::fixture::{ACCOUNTS, AT_WEBMAIL, HOSTNAME, INBOX};
use super::http2_client::Http2Client;
use super::line::{ClientLine, encoded, field, http_request};
use super::lists::{ListExtent, ListRow, View};
use super::message::MessageId;
use super::page::WebmailPage;
use super::reader::ReadScope;
use super::uncertain::Snapshot;

/// A page of a mailbox with at most this many rows shows all messages.
const ROWS_MAX: usize = 49;
/// A page of search results with at most this many rows shows all results.
const FOUND_MAX: usize = 40;
/// The number of mailboxes that every account has. They have the numbers from one.
const MAILBOXES: u32 = 6;

/// The page that the client waits for.
#[derive(Debug)]
pub(super) enum PendingPage {
    /// The response to its login.
    Login,
    /// A redirect to the login page, because the session of the cookie has ended.
    LoginRequired,
    List(u32, View),
    Found(MessageId, View),
    /// `Message`: the page that shows a message. `Octets`: then the download of its octets.
    Message(ListRow, View),
    Octets(ListRow, View),
    /// `ActionResponse`: the response to an action. `ActionResult`: then the page that shows the
    /// result.
    ActionResponse(WebmailAction),
    ActionResult(WebmailAction),
    /// The page of a draft that was saved.
    Draft(MessageId),
    /// The settings page. The snapshot holds the names that the page may show.
    Settings(Snapshot<String>),
    Logout,
}

pub(super) struct WebmailClient {
    pub(super) account: usize,
    scope: ReadScope,
    /// The client's HTTP/2 state, if it uses HTTP/2.
    http2: Option<Http2Client>,
    pub(super) waiting: Option<PendingPage>,
    /// The session cookie, and the token that the session's forms contain.
    ticket: Option<String>,
    pub(super) token: String,
    /// The mailbox that the client listed last, and the rows of that list.
    pub(super) mailbox: u32,
    pub(super) rows: Vec<ListRow>,
    /// The state of the model when the client requested that list.
    pub(super) view: Option<View>,
    /// The key and message of the draft that the client continues to edit.
    pub(super) draft: Option<(String, MessageId)>,
    /// The message that the client sent last, and the key that undoes the send.
    pub(super) undo: Option<(String, MessageId)>,
    /// Until this time the client does nothing. Then it undoes the send of this message.
    pub(super) hesitates: Option<(Instant, String, MessageId)>,
    /// The number of actions that the client still takes.
    left: u64,
    /// The rows of the last list with messages that the client has not read yet.
    unread: Vec<ListRow>,
    /// The messages that the client has read, but not searched for yet.
    sought: Vec<MessageId>,
    /// The number of unread messages of each mailbox, as shown on the first list.
    pub(super) unseen: Option<BTreeMap<u32, u32>>,
    /// The client has received all its pages.
    pub(super) is_done: bool,
}

impl WebmailClient {
    /// `account`: the owner of the mail. Only the account that uses the webmail changes anything.
    pub(super) fn new(
        account: usize,
        approach: Approach,
        scope: ReadScope,
        dice: &mut Dice,
    ) -> WebmailClient {
        WebmailClient {
            account,
            scope,
            http2: approach.is_http_2().then(Http2Client::new),
            waiting: None,
            ticket: None,
            token: String::new(),
            mailbox: INBOX,
            rows: Vec::new(),
            view: None,
            draft: None,
            undo: None,
            hesitates: None,
            left: 1 + dice.below(8),
            unread: Vec::new(),
            sought: Vec::new(),
            unseen: None,
            is_done: false,
        }
    }

    pub(super) fn step(
        &mut self,
        line: &mut ClientLine,
        context: &mut StepContext<'_>,
    ) -> ClientProgress {
        if let Some((_, what, message)) =
            self.hesitates.take_if(|(until, ..)| *until <= context.story.now)
        {
            self.undo_send(&what, message, line, context);
        } else if self.waiting.is_none() && self.hesitates.is_none() {
            self.begin(line, context);
        }
        if let Some(http2) = &mut self.http2 {
            line.send_data(&std::mem::take(&mut http2.to_say));
        }
        line.step(context.host, context.story.now, context.dice);
        while let Some(page) = self.page(line) {
            context.story.trace(|| {
                format!(
                    "  {} is answered {} {}",
                    ACCOUNTS[self.account],
                    page.status,
                    page.location()
                )
            });
            let Some(waiting) = self.waiting.take() else {
                panic!("a response without a request: {}", page.head)
            };
            // The server is full or overloaded. The request may have been carried out or not.
            if page.status >= 500
                || matches!(page.status, 408 | 429)
                || self.http2.as_ref().is_some_and(|http2| http2.is_over)
            {
                return ClientProgress::Done;
            }
            if self.answered(waiting, &page, line, context) == ClientProgress::Done {
                return ClientProgress::Done;
            }
        }
        let is_over = self.http2.as_ref().is_some_and(|http2| http2.is_over);
        if is_over { ClientProgress::Done } else { ClientProgress::Continues }
    }

    /// The next complete response.
    fn page(&mut self, line: &mut ClientLine) -> Option<WebmailPage> {
        let (head, body) = match &mut self.http2 {
            None => line.http_response(false)?,
            Some(http2) => {
                http2.response(line.input()).map(|(_, response)| (response.head, response.body))?
            }
        };
        Some(WebmailPage::new(head, body))
    }

    /// Sends the first request: with the cookie of a live session, with the cookie of an ended
    /// session, or a login.
    fn begin(&mut self, line: &mut ClientLine, context: &mut StepContext<'_>) {
        if self.account == AT_WEBMAIL && self.scope == ReadScope::Some {
            let model = &mut *context.model;
            if context.dice.one_in(8) && !model.over.is_empty() {
                self.ticket =
                    Some(model.over[context.dice.below(model.over.len() as u64) as usize].clone());
                return self.get("/mail/box/1", PendingPage::LoginRequired, line);
            }
            if context.dice.one_in(2)
                && let Some(ticket) = model.tickets.pop()
            {
                self.ticket = Some(ticket);
                return self.list(INBOX, line, context);
            }
        }
        self.log_in(line);
    }

    fn log_in(&mut self, line: &mut ClientLine) {
        self.ticket = None;
        let name = ACCOUNTS[self.account];
        self.post(
            "/mail/login",
            &[("name", name), ("password", "lovelace"), ("next", "/mail/")],
            PendingPage::Login,
            line,
        );
    }

    pub(super) fn list(&mut self, mailbox: u32, line: &mut ClientLine, context: &StepContext<'_>) {
        let view = context.model.view(self.account);
        self.get(&format!("/mail/box/{mailbox}"), PendingPage::List(mailbox, view), line);
    }

    pub(super) fn get(&mut self, path: &str, waiting: PendingPage, line: &mut ClientLine) {
        self.ask("GET", path, String::new(), &[], waiting, line);
    }

    /// Sends a form.
    pub(super) fn post(
        &mut self,
        path: &str,
        fields: &[(&str, &str)],
        waiting: PendingPage,
        line: &mut ClientLine,
    ) {
        let pairs: Vec<String> =
            fields.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
        let media_type = "Content-Type: application/x-www-form-urlencoded\r\n".to_string();
        self.ask("POST", path, media_type, pairs.join("&").as_bytes(), waiting, line);
    }

    fn ask(
        &mut self,
        method: &str,
        path: &str,
        mut fields: String,
        body: &[u8],
        waiting: PendingPage,
        line: &mut ClientLine,
    ) {
        if let Some(ticket) = &self.ticket {
            fields += &format!("Cookie: {ticket}\r\n");
        }
        match &mut self.http2 {
            Some(http2) => {
                http2.ask(method, path, &fields, body);
                line.send_data(&std::mem::take(&mut http2.to_say));
            }
            None => line.send_request(&http_request(method, path, fields, body, false)),
        }
        self.waiting = Some(waiting);
    }

    fn answered(
        &mut self,
        waiting: PendingPage,
        page: &WebmailPage,
        line: &mut ClientLine,
        context: &mut StepContext<'_>,
    ) -> ClientProgress {
        self.check_owner(page);
        if let Some(token) = page.token() {
            self.token = token;
        }
        if page.is_login_redirect() && !matches!(waiting, PendingPage::Login | PendingPage::Logout)
        {
            // The account had too many sessions, a power cut came before the store had this
            // session, or the session has expired by the machine's clock.
            if matches!(waiting, PendingPage::LoginRequired) {
                sometimes!(EndedTicketUsed);
            }
            self.ticket = None;
            if matches!(waiting, PendingPage::List(..)) && self.left > 0 {
                self.left -= 1;
                self.log_in(line);
                return ClientProgress::Continues;
            }
            return ClientProgress::Done;
        }
        match waiting {
            PendingPage::Login if page.status == 303 => {
                self.ticket = field(&page.head, "Set-Cookie")
                    .and_then(|value| value.split(';').next())
                    .map(str::to_string);
                assert!(
                    self.ticket.is_some(),
                    "a successful login sets a session cookie: {}",
                    page.head
                );
                self.list(INBOX, line, context);
            }
            PendingPage::Login => {
                assert!(
                    !page.text().contains("email address or password"),
                    "the correct password was rejected"
                );
                return ClientProgress::Done;
            }
            PendingPage::LoginRequired => {
                panic!("a session still works after its logout: {} {}", page.head, page.text())
            }
            PendingPage::List(mailbox, view) => self.listed(mailbox, &view, page, line, context),
            PendingPage::Found(message, view) => self.found(message, &view, page, line, context),
            PendingPage::Message(row, view) => self.opened(row, &view, page, line, context),
            PendingPage::Octets(row, view) => self.octets_arrived(&row, &view, page, line, context),
            PendingPage::ActionResponse(action) => {
                return self.action_answered(action, page, line, context);
            }
            PendingPage::ActionResult(action) => self.result_shown(action, page, line, context),
            PendingPage::Draft(message) => {
                if page.status == 200 {
                    let subject = page.value_of("subject");
                    assert_eq!(subject, Some(message.0.to_string()), "another draft was saved");
                    self.draft = page.value_of("draft").map(|key| (key, message));
                }
                self.next_action(line, context);
            }
            PendingPage::Settings(then) => self.check_settings(&then, page, line, context),
            PendingPage::Logout => {
                self.logged_out(page, context);
                return ClientProgress::Done;
            }
        }
        let is_done = self.waiting.is_none() && self.hesitates.is_none();
        if is_done { ClientProgress::Done } else { ClientProgress::Continues }
    }

    /// Checks that a page shows only the mail of the account that the cookie belongs to.
    fn check_owner(&self, page: &WebmailPage) {
        let owner = page.owner();
        let is_own = owner
            .as_deref()
            .is_none_or(|owner| owner == ACCOUNTS[self.account] || owner == HOSTNAME);
        assert!(is_own, "{} is shown the mail of {owner:?}", ACCOUNTS[self.account]);
    }

    fn listed(
        &mut self,
        mailbox: u32,
        view: &View,
        page: &WebmailPage,
        line: &mut ClientLine,
        context: &mut StepContext<'_>,
    ) {
        assert_eq!(page.status, 200, "the mailbox cannot be listed: {}", page.head);
        self.mailbox = mailbox;
        self.unseen.get_or_insert_with(|| page.unseen());
        self.check_rows(page, view, ListExtent::Mailbox(mailbox), context);
        if self.scope == ReadScope::All {
            self.unread = self.rows.clone();
        }
        self.next_action(line, context);
    }

    fn found(
        &mut self,
        message: MessageId,
        view: &View,
        page: &WebmailPage,
        line: &mut ClientLine,
        context: &mut StepContext<'_>,
    ) {
        assert_eq!(page.status, 200, "a search always answers 200: {}", page.head);
        self.check_rows(page, view, ListExtent::Message(message), context);
        match self.scope {
            ReadScope::All => self.next_check(line, context),
            ReadScope::Some => self.list(INBOX, line, context),
        }
    }

    fn check_rows(
        &mut self,
        page: &WebmailPage,
        view: &View,
        extent: ListExtent,
        context: &mut StepContext<'_>,
    ) {
        self.rows = page.rows(self.account, context.model);
        self.view = Some(view.clone());
        let most = if matches!(extent, ListExtent::Message(_)) { FOUND_MAX } else { ROWS_MAX };
        let is_excused = context.disk_has_failed || context.model.harmed() > 0;
        let can_be_read = self.rows.iter().all(|row| row.message.is_some());
        // The server may have found the row, and the message was deleted before its summary was
        // read.
        let may_be_gone = context.model.may_have_gone(view);
        assert!(can_be_read || is_excused || may_be_gone, "a row cannot be read: {:?}", self.rows);
        // A search omits messages that cannot be read. A list shows them as unreadable.
        let is_sound =
            if matches!(extent, ListExtent::Message(_)) { !is_excused } else { can_be_read };
        let is_whole = self.rows.len() <= most && is_sound;
        context.model.listed(view, &self.rows, if is_whole { extent } else { ListExtent::Some });
        context.model.seen(view, &self.rows);
        context.story.counts.pages += 1;
    }

    /// Handles the page of a message. Another client may have deleted the message since the
    /// request.
    fn opened(
        &mut self,
        row: ListRow,
        view: &View,
        page: &WebmailPage,
        line: &mut ClientLine,
        context: &mut StepContext<'_>,
    ) {
        self.check_readable(&row, view, page, context);
        let path = format!("/mail/download/{}", row.key());
        self.get(&path, PendingPage::Octets(row, context.model.view(self.account)), line);
    }

    fn octets_arrived(
        &mut self,
        row: &ListRow,
        view: &View,
        page: &WebmailPage,
        line: &mut ClientLine,
        context: &mut StepContext<'_>,
    ) {
        if self.check_readable(row, view, page, context) {
            let message = context.model.identify(&page.body);
            assert!(
                row.message.is_none_or(|of_row| of_row == message),
                "a row links to another message: {row:?}"
            );
            context.story.counts.read += 1;
            self.sought.extend(Some(message).filter(|message| !context.model.is_report(*message)));
        }
        self.next_action(line, context);
    }

    /// Whether the page shows the message. Panics if the page must show it, and does not.
    fn check_readable(
        &self,
        row: &ListRow,
        view: &View,
        page: &WebmailPage,
        context: &StepContext<'_>,
    ) -> bool {
        let Some(message) = row.message else { return page.status == 200 };
        let copy = context.model.copy_in(message, self.account, row.mailbox);
        let is_surely_there = context.model.is_surely_in(message, copy, row.mailbox);
        let may_be_gone = !context.model.is_unchanged(view, message, copy) || !is_surely_there;
        let is_excused = may_be_gone || context.disk_has_failed || context.model.harmed() > 0;
        assert!(
            page.status == 200 || is_excused,
            "message {} cannot be read: {}",
            message.0,
            page.head
        );
        page.status == 200
    }

    /// Takes another action, or leaves.
    pub(super) fn next_action(&mut self, line: &mut ClientLine, context: &mut StepContext<'_>) {
        if self.scope == ReadScope::All {
            return self.next_check(line, context);
        }
        if self.left == 0 {
            if self.account != AT_WEBMAIL {
                return;
            }
            if context.dice.one_in(3) {
                let token = self.token.clone();
                return self.post("/mail/logout", &[("token", &token)], PendingPage::Logout, line);
            }
            context.model.tickets.extend(self.ticket.take());
            return;
        }
        self.left -= 1;
        self.take_random_action(line, context);
    }

    /// Lists every mailbox, reads every message, and searches for each.
    fn next_check(&mut self, line: &mut ClientLine, context: &mut StepContext<'_>) {
        if let Some(message) = self.sought.pop() {
            return self.search(message, line, context);
        }
        if let Some(row) = self.unread.pop() {
            return self.open_message(row, line, context);
        }
        if self.mailbox < MAILBOXES {
            return self.list(self.mailbox + 1, line, context);
        }
        self.is_done = true;
    }

    fn logged_out(&mut self, page: &WebmailPage, context: &mut StepContext<'_>) {
        assert_eq!(page.status, 303, "a logout always succeeds: {}", page.head);
        // A failed disk does not record the logout.
        if !context.disk_has_failed {
            context.model.over.extend(self.ticket.take());
        }
    }
}
