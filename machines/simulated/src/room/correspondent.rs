//! A client at the webmail: logs in or comes again, looks at lists, reads, searches, stars, moves, throws away, writes, takes back, keeps drafts, chooses, and logs out.
//!
//! It asks for one page at a time, as people do, and knows of a deed what the page says that follows. What that says is in the ledger from then on, whatever becomes of the machine.

use std::collections::BTreeMap;

use chance::Dice;
use machine::Instant;
use sometimes::sometimes;

use super::approach::Approach;
use super::around::{Around, Progress};
use super::deeds::{Deed, Written};
use super::doubt::Snapshot;
use super::fixture::{ACCOUNTS, AT_WEBMAIL, HOSTNAME, INBOX};
use super::letter::LetterId;
use super::line::{Line, field, in_one};
use super::lists::{Extent, Row, View};
use super::page::Page;
use super::reader::Appetite;
use super::two::Two;

/// Rows of a page that is not full.
const ROWS_MAX: usize = 49;
/// What a search finds on a page that is not full.
const FOUND_MAX: usize = 40;
/// Mailboxes that everybody has.
const MAILBOXES: u32 = 6;

/// What a client waits for.
#[derive(Debug)]
pub(super) enum Waiting {
    /// To be let in.
    Login,
    /// To be asked who it is: its session is over.
    Stranger,
    List(u32, View),
    Found(LetterId, View),
    /// The page on which a message is read, and the message as it came.
    Opened(Row, View),
    Octets(Row, View),
    /// What comes of a deed, and the page that says it.
    Done(Deed),
    Told(Deed),
    /// The page of a draft that was kept.
    Draft(LetterId),
    /// Its settings, where the name may be one of these.
    Settings(Snapshot<String>),
    Goodbye,
}

pub(super) struct Correspondent {
    pub(super) account: usize,
    appetite: Appetite,
    /// Who speaks HTTP/2 has this.
    two: Option<Two>,
    pub(super) waiting: Option<Waiting>,
    /// What it shows to be known, and what its forms carry.
    ticket: Option<String>,
    pub(super) token: String,
    /// The list that it looked at last, and the mailbox of that.
    pub(super) mailbox: u32,
    pub(super) rows: Vec<Row>,
    /// What was known when it asked for that.
    pub(super) view: Option<View>,
    /// The draft that it goes on with.
    pub(super) draft: Option<(String, LetterId)>,
    /// The letter that it sent last, and what takes that back.
    pub(super) undo: Option<(String, LetterId)>,
    /// It does nothing until then, and takes that letter back.
    pub(super) hesitates: Option<(Instant, String, LetterId)>,
    /// How much it still does.
    left: u64,
    /// Rows of the last list that it has still to read.
    unread: Vec<Row>,
    /// Messages that it has read, and has yet to search for.
    sought: Vec<LetterId>,
    /// Unread messages of each mailbox, as its first list counts them.
    pub(super) unseen: Option<BTreeMap<u32, u32>>,
    /// It has got all that it wanted.
    pub(super) is_done: bool,
}

impl Correspondent {
    /// `account`: whose mail it is. Only at the webmail's own more is done than looked.
    pub(super) fn new(
        account: usize,
        approach: Approach,
        appetite: Appetite,
        dice: &mut Dice,
    ) -> Correspondent {
        Correspondent {
            account,
            appetite,
            two: approach.is_http_2().then(Two::new),
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

    pub(super) fn go_on(&mut self, line: &mut Line, around: &mut Around<'_>) -> Progress {
        if let Some((_, what, letter)) =
            self.hesitates.take_if(|(until, ..)| *until <= around.story.now)
        {
            self.takes_back(&what, letter, line, around);
        } else if self.waiting.is_none() && self.hesitates.is_none() {
            self.come(line, around);
        }
        if let Some(two) = &mut self.two {
            line.mention(&std::mem::take(&mut two.to_say));
        }
        line.go_on(around.host, around.story.now, around.dice);
        while let Some(page) = self.page(line) {
            around.story.tell(|| {
                format!(
                    "  {} is answered {} {}",
                    ACCOUNTS[self.account],
                    page.status,
                    page.location()
                )
            });
            let Some(waiting) = self.waiting.take() else {
                panic!("an unasked response: {}", page.head)
            };
            // The house is full, or has too much to do: what was asked for may be done or not.
            if page.status >= 500
                || matches!(page.status, 408 | 429)
                || self.two.as_ref().is_some_and(|two| two.is_over)
            {
                return Progress::IsDone;
            }
            if self.answered(waiting, &page, line, around) == Progress::IsDone {
                return Progress::IsDone;
            }
        }
        let is_over = self.two.as_ref().is_some_and(|two| two.is_over);
        if is_over { Progress::IsDone } else { Progress::GoesOn }
    }

    /// The next response that is there.
    fn page(&mut self, line: &mut Line) -> Option<Page> {
        let (head, body) = match &mut self.two {
            None => line.http_response(false)?,
            Some(two) => {
                two.response(line.heard()).map(|(_, response)| (response.head, response.body))?
            }
        };
        Some(Page::new(head, body))
    }

    /// Comes with the ticket of a session that goes on, or of one that is over, or says who it is.
    fn come(&mut self, line: &mut Line, around: &mut Around<'_>) {
        if self.account == AT_WEBMAIL && self.appetite == Appetite::Some {
            let ledger = &mut *around.ledger;
            if around.dice.one_in(8) && !ledger.over.is_empty() {
                self.ticket =
                    Some(ledger.over[around.dice.below(ledger.over.len() as u64) as usize].clone());
                return self.get("/mail/box/1", Waiting::Stranger, line);
            }
            if around.dice.one_in(2)
                && let Some(ticket) = ledger.tickets.pop()
            {
                self.ticket = Some(ticket);
                return self.list(INBOX, line, around);
            }
        }
        self.log_in(line);
    }

    fn log_in(&mut self, line: &mut Line) {
        self.ticket = None;
        let name = ACCOUNTS[self.account];
        self.post(
            "/mail/login",
            &[("name", name), ("password", "lovelace"), ("next", "/mail/")],
            Waiting::Login,
            line,
        );
    }

    pub(super) fn list(&mut self, mailbox: u32, line: &mut Line, around: &Around<'_>) {
        let view = around.ledger.view(self.account);
        self.get(&format!("/mail/box/{mailbox}"), Waiting::List(mailbox, view), line);
    }

    pub(super) fn get(&mut self, path: &str, waiting: Waiting, line: &mut Line) {
        self.ask("GET", path, String::new(), &[], waiting, line);
    }

    /// Sends a form.
    pub(super) fn post(
        &mut self,
        path: &str,
        fields: &[(&str, &str)],
        waiting: Waiting,
        line: &mut Line,
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
        waiting: Waiting,
        line: &mut Line,
    ) {
        if let Some(ticket) = &self.ticket {
            fields += &format!("Cookie: {ticket}\r\n");
        }
        match &mut self.two {
            Some(two) => {
                two.ask(method, path, &fields, body);
                line.mention(&std::mem::take(&mut two.to_say));
            }
            None => line.say(&in_one(method, path, fields, body, false)),
        }
        self.waiting = Some(waiting);
    }

    fn answered(
        &mut self,
        waiting: Waiting,
        page: &Page,
        line: &mut Line,
        around: &mut Around<'_>,
    ) -> Progress {
        self.is_own(page);
        if let Some(token) = page.token() {
            self.token = token;
        }
        if page.is_asked_who_it_is() && !matches!(waiting, Waiting::Login | Waiting::Goodbye) {
            // Its session was one too many, or a power cut came before the store knew of it, or the clock says that it is over.
            if matches!(waiting, Waiting::Stranger) {
                sometimes!(StrangerComes);
            }
            self.ticket = None;
            if matches!(waiting, Waiting::List(..)) && self.left > 0 {
                self.left -= 1;
                self.log_in(line);
                return Progress::GoesOn;
            }
            return Progress::IsDone;
        }
        match waiting {
            Waiting::Login if page.status == 303 => {
                self.ticket = field(&page.head, "Set-Cookie")
                    .and_then(|value| value.split(';').next())
                    .map(str::to_string);
                assert!(self.ticket.is_some(), "who is let in gets a ticket: {}", page.head);
                self.list(INBOX, line, around);
            }
            Waiting::Login => {
                assert!(!page.text().contains("password is wrong"), "the right password is none");
                return Progress::IsDone;
            }
            Waiting::Stranger => {
                panic!("who has logged out is known: {} {}", page.head, page.text())
            }
            Waiting::List(mailbox, view) => self.listed(mailbox, &view, page, line, around),
            Waiting::Found(letter, view) => self.found(letter, &view, page, line, around),
            Waiting::Opened(row, view) => self.opened(row, &view, page, line, around),
            Waiting::Octets(row, view) => self.has_read(&row, &view, page, line, around),
            Waiting::Done(deed) => return self.deed_answered(deed, page, line, around),
            Waiting::Told(deed) => self.deed_told(deed, page, line, around),
            Waiting::Draft(letter) => {
                if page.status == 200 {
                    let subject = page.value_of("subject");
                    assert_eq!(
                        subject,
                        Some(letter.0.to_string()),
                        "the draft that was kept is another one"
                    );
                    self.draft = page.value_of("draft").map(|key| (key, letter));
                }
                self.goes_on(line, around);
            }
            Waiting::Settings(then) => self.saw_settings(&then, page, line, around),
            Waiting::Goodbye => {
                self.said_goodbye(page, around);
                return Progress::IsDone;
            }
        }
        let is_done = self.waiting.is_none() && self.hesitates.is_none();
        if is_done { Progress::IsDone } else { Progress::GoesOn }
    }

    /// A page of somebody's is his whose ticket was shown.
    fn is_own(&self, page: &Page) {
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
        page: &Page,
        line: &mut Line,
        around: &mut Around<'_>,
    ) {
        assert_eq!(page.status, 200, "a mailbox is there: {}", page.head);
        self.mailbox = mailbox;
        self.unseen.get_or_insert_with(|| page.unseen());
        self.holds_rows(page, view, Extent::Mailbox(mailbox), around);
        if self.appetite == Appetite::All {
            self.unread = self.rows.clone();
        }
        self.goes_on(line, around);
    }

    fn found(
        &mut self,
        letter: LetterId,
        view: &View,
        page: &Page,
        line: &mut Line,
        around: &mut Around<'_>,
    ) {
        assert_eq!(page.status, 200, "a search finds or does not: {}", page.head);
        self.holds_rows(page, view, Extent::Letter(letter), around);
        match self.appetite {
            Appetite::All => self.reads_on(line, around),
            Appetite::Some => self.list(INBOX, line, around),
        }
    }

    fn holds_rows(&mut self, page: &Page, view: &View, extent: Extent, around: &mut Around<'_>) {
        self.rows = page.rows(self.account, around.ledger);
        self.view = Some(view.clone());
        let most = if matches!(extent, Extent::Letter(_)) { FOUND_MAX } else { ROWS_MAX };
        let is_excused = around.disk_has_failed || around.ledger.harmed() > 0;
        let can_be_read = self.rows.iter().all(|row| row.letter.is_some());
        // Or it was found, and has gone before it was looked at.
        let may_be_gone = around.ledger.may_have_gone(view);
        assert!(can_be_read || is_excused || may_be_gone, "a row cannot be read: {:?}", self.rows);
        // A search passes over what it cannot read, and a list says so.
        let is_sound = if matches!(extent, Extent::Letter(_)) { !is_excused } else { can_be_read };
        let is_whole = self.rows.len() <= most && is_sound;
        around.ledger.listed(view, &self.rows, if is_whole { extent } else { Extent::Some });
        around.ledger.seen(view, &self.rows);
        around.story.counts.pages += 1;
    }

    /// A message has come as it is read. It may have gone meanwhile.
    fn opened(
        &mut self,
        row: Row,
        view: &View,
        page: &Page,
        line: &mut Line,
        around: &mut Around<'_>,
    ) {
        self.is_there(&row, view, page, around);
        let path = format!("/mail/download/{}", row.key());
        self.get(&path, Waiting::Octets(row, around.ledger.view(self.account)), line);
    }

    fn has_read(
        &mut self,
        row: &Row,
        view: &View,
        page: &Page,
        line: &mut Line,
        around: &mut Around<'_>,
    ) {
        if self.is_there(row, view, page, around) {
            let letter = around.ledger.is_whole(&page.body);
            assert!(
                row.letter.is_none_or(|of_row| of_row == letter),
                "a row leads to another message: {row:?}"
            );
            around.story.counts.read += 1;
            self.sought.extend(Some(letter).filter(|letter| !around.ledger.is_report(*letter)));
        }
        self.goes_on(line, around);
    }

    fn is_there(&self, row: &Row, view: &View, page: &Page, around: &Around<'_>) -> bool {
        let Some(letter) = row.letter else { return page.status == 200 };
        let copy = around.ledger.copy_in(letter, self.account, row.mailbox);
        let is_surely_there = around.ledger.is_surely_in(letter, copy, row.mailbox);
        let may_be_gone = !around.ledger.is_unchanged(view, letter, copy) || !is_surely_there;
        let is_excused = may_be_gone || around.disk_has_failed || around.ledger.harmed() > 0;
        assert!(
            page.status == 200 || is_excused,
            "letter {} cannot be read: {}",
            letter.0,
            page.head
        );
        page.status == 200
    }

    /// Does something more, or leaves.
    pub(super) fn goes_on(&mut self, line: &mut Line, around: &mut Around<'_>) {
        if self.appetite == Appetite::All {
            return self.reads_on(line, around);
        }
        if self.left == 0 {
            if self.account != AT_WEBMAIL {
                return;
            }
            if around.dice.one_in(3) {
                let token = self.token.clone();
                return self.post("/mail/logout", &[("token", &token)], Waiting::Goodbye, line);
            }
            around.ledger.tickets.extend(self.ticket.take());
            return;
        }
        self.left -= 1;
        self.does_something(line, around);
    }

    /// Looks at every mailbox and every message, and searches for each.
    fn reads_on(&mut self, line: &mut Line, around: &mut Around<'_>) {
        if let Some(letter) = self.sought.pop() {
            return self.searches(letter, line, around);
        }
        if let Some(row) = self.unread.pop() {
            return self.reads(row, line, around);
        }
        if self.mailbox < MAILBOXES {
            return self.list(self.mailbox + 1, line, around);
        }
        self.is_done = true;
    }

    pub(super) fn searches(&mut self, letter: LetterId, line: &mut Line, around: &Around<'_>) {
        let view = around.ledger.view(self.account);
        self.get(
            &format!("/mail/search?q=subject%3A{}", letter.0),
            Waiting::Found(letter, view),
            line,
        );
    }

    /// Reads a message: as a page, if that is not a draft's, and as it came.
    pub(super) fn reads(&mut self, row: Row, line: &mut Line, around: &Around<'_>) {
        let view = around.ledger.view(self.account);
        let path = format!("/mail/box/{}/{}", row.mailbox, row.uid);
        self.get(&path, Waiting::Opened(row, view), line);
    }

    fn said_goodbye(&mut self, page: &Page, around: &mut Around<'_>) {
        assert_eq!(page.status, 303, "who wants to leave does: {}", page.head);
        // A disk that fails does not note it.
        if !around.disk_has_failed {
            around.ledger.over.extend(self.ticket.take());
        }
    }

    /// A letter to write, or a draft.
    pub(super) fn writes(
        &mut self,
        written: Written,
        letter: LetterId,
        text: &str,
        line: &mut Line,
        station: usize,
    ) {
        let (token, to) = (self.token.clone(), written.to(station));
        let key = self.draft.take().map_or(String::new(), |(key, _)| key);
        let fields = [
            ("token", token.as_str()),
            ("draft", &key),
            ("to", &to),
            ("subject", &letter.0.to_string()),
            ("text", text),
            ("do", written.button()),
        ];
        self.post("/mail/compose", &fields, Waiting::Done(Deed::Writes(written, letter)), line);
    }
}

fn encoded(text: &str) -> String {
    text.bytes()
        .map(|byte| {
            if byte.is_ascii_alphanumeric() {
                char::from(byte).to_string()
            } else {
                format!("%{byte:02X}")
            }
        })
        .collect()
}
