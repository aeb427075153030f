//! The actions of a webmail client, and how it reads their results from the following page.

use chance::Dice;
use machine::Micros;
use sometimes::sometimes;

use super::around::{Around, Progress};
use super::correspondent::{Correspondent, Waiting};
use super::doubt::{Asked, Snapshot};
use super::fixture::{ACCOUNTS, AT_WEBMAIL, DRAFTS, INBOX};
use super::letter::{LetterId, OWN};
use super::line::Line;
use super::lists::{Row, View};
use super::page::Page;
use super::remote::Mailbox;

/// The mailboxes that have a move button, and the names of the buttons.
const TARGETS: [(u32, &str); 4] = [(INBOX, "inbox"), (4, "archive"), (5, "junk"), (6, "trash")];

/// An action that was requested and not answered yet.
#[derive(Debug)]
pub(super) enum Deed {
    /// Move these copies to a mailbox.
    Moves(Vec<(LetterId, usize, Asked<u32>)>),
    /// Set or clear the star of this copy. The view is the state of the model at the request.
    Stars(LetterId, usize, Asked<bool>, View),
    /// Delete these copies for ever.
    Erases(Vec<(LetterId, usize)>),
    /// Send a message, or save a draft.
    Writes(Written, LetterId),
    /// Undo the send of a held message: it becomes a draft again.
    TakesBack(LetterId, Asked<bool>),
    /// Change the name in the settings.
    Chooses(Asked<String>),
}

/// What is done with a composed message.
#[derive(Clone, Debug)]
pub(super) enum Written {
    /// Send it to these local accounts and these mailboxes of the other server.
    Sent(Vec<usize>, Vec<Mailbox>),
    Kept,
}

impl Written {
    /// The addresses for the form's field.
    pub(super) fn to(&self, station: usize) -> String {
        let Written::Sent(recipients, elsewhere) = self else { return String::new() };
        let own = recipients.iter().map(|account| ACCOUNTS[*account].to_string());
        let names: Vec<String> =
            own.chain(elsewhere.iter().map(|mailbox| mailbox.address(station))).collect();
        names.join(", ")
    }

    pub(super) fn button(&self) -> &'static str {
        if matches!(self, Written::Sent(..)) { "send" } else { "save" }
    }
}

impl Correspondent {
    /// Takes one random action. In accounts that are not the webmail's own, the client only reads.
    pub(super) fn does_something(&mut self, line: &mut Line, around: &mut Around<'_>) {
        let is_own = self.account == AT_WEBMAIL;
        match around.dice.below(if is_own { 13 } else { 4 }) {
            0 if !self.rows.is_empty() => {
                let row = self.row(around.dice);
                self.reads(row, line, around);
            }
            1 if !self.rows.is_empty()
                && let Some(letter) = self
                    .row(around.dice)
                    .letter
                    .filter(|letter| !around.ledger.is_report(*letter)) =>
            {
                self.searches(letter, line, around);
            }
            2 => {
                self.get("/mail/settings", Waiting::Settings(around.ledger.name.snapshot()), line);
            }
            4..=5 => self.moves(line, around),
            6 => self.stars(line, around),
            7..=8 => {
                let (recipients, elsewhere) = recipients(around.dice);
                let (letter, text) = around.ledger.compose(&recipients, &elsewhere, around.dice);
                self.begins(Written::Sent(recipients, elsewhere), letter, &text, line, around);
            }
            9..=10 => {
                let (letter, text) = around.ledger.compose(&[], &[], around.dice);
                self.begins(Written::Kept, letter, &text, line, around);
            }
            11 => {
                let name = format!("Mary {:x}", around.dice.roll());
                let asked = around.ledger.name.asked(name.clone());
                let token = self.token.clone();
                let hold = if around.dice.one_in(2) { "0" } else { "10" };
                let fields = [
                    ("token", token.as_str()),
                    ("name", &name),
                    ("signature", ""),
                    ("hold", hold),
                    ("do", "save"),
                ];
                self.post("/mail/settings", &fields, Waiting::Done(Deed::Chooses(asked)), line);
            }
            12 => {
                let known = self.undo.take().or_else(|| self.held_row(around));
                match known {
                    Some((what, letter)) => self.takes_back(&what, letter, line, around),
                    None => self.list(DRAFTS, line, around),
                }
            }
            _ => {
                let mailbox = 1 + around.dice.below(if is_own { 6 } else { 1 }) as u32;
                self.list(mailbox, line, around);
            }
        }
    }

    fn row(&self, dice: &mut Dice) -> Row {
        self.rows[dice.below(self.rows.len() as u64) as usize].clone()
    }

    /// Some rows that each stand for one copy, with the copy that each stands for.
    fn some_rows(&self, around: &mut Around<'_>) -> Vec<(Row, LetterId, usize)> {
        let most = 1 + around.dice.skewed(4) as usize;
        let mut some = Vec::new();
        for row in &self.rows {
            let Some(letter) = row.letter.filter(|letter| around.ledger.has_one_copy_each(*letter))
            else {
                continue;
            };
            if some.len() < most
                && row.mailbox == self.mailbox
                && row.mailbox != DRAFTS
                && around.dice.one_in(3)
            {
                some.push((
                    row.clone(),
                    letter,
                    around.ledger.copy_in(letter, self.account, row.mailbox),
                ));
            }
        }
        some
    }

    fn moves(&mut self, line: &mut Line, around: &mut Around<'_>) {
        let rows = self.some_rows(around);
        let here = format!("/mail/box/{}", self.mailbox);
        if rows.is_empty() {
            return self.list(self.mailbox, line, around);
        }
        let keys: Vec<String> = rows.iter().map(|(row, ..)| row.key()).collect();
        let erases = self.mailbox >= 5 && around.dice.one_in(2);
        let (button, deed) = if erases {
            rows.iter().for_each(|(_, letter, copy)| around.ledger.perhaps_deleted(*letter, *copy));
            (
                "erase",
                Deed::Erases(rows.into_iter().map(|(_, letter, copy)| (letter, copy)).collect()),
            )
        } else {
            let others: Vec<(u32, &str)> =
                TARGETS.into_iter().filter(|(to, _)| *to != self.mailbox).collect();
            let (to, button) = others[around.dice.below(others.len() as u64) as usize];
            let asked =
                |(_, letter, copy)| (letter, copy, around.ledger.move_asked(letter, copy, to));
            (button, Deed::Moves(rows.into_iter().map(asked).collect()))
        };
        let token = self.token.clone();
        let mut fields = vec![
            ("token", token.as_str()),
            ("here", &here),
            ("whole", "conversation"),
            ("do", button),
        ];
        fields.extend(keys.iter().map(|key| ("key", key.as_str())));
        self.post("/mail/act", &fields, Waiting::Done(deed), line);
    }

    fn stars(&mut self, line: &mut Line, around: &mut Around<'_>) {
        let rows = self.some_rows(around);
        // The button toggles the star. The client must know whether there is one now, and that the
        // message is still there. Otherwise it cannot know the result.
        let view = self.view.as_ref();
        let known = rows.into_iter().find_map(|(row, letter, copy)| {
            let is_sure = view.is_some_and(|view| around.ledger.is_unchanged(view, letter, copy));
            let star = around.ledger.star(letter, copy).filter(|_| is_sure);
            star.map(|is_starred| (row, letter, copy, is_starred))
        });
        let Some((row, letter, copy, is_starred)) = known else {
            return self.list(self.mailbox, line, around);
        };
        let asked = around.ledger.star_asked(letter, copy, !is_starred);
        let view = around.ledger.view(self.account);
        let (token, here, key) =
            (self.token.clone(), format!("/mail/box/{}", self.mailbox), row.key());
        let fields =
            [("token", token.as_str()), ("here", &here), ("whole", "conversation"), ("star", &key)];
        self.post(
            "/mail/act",
            &fields,
            Waiting::Done(Deed::Stars(letter, copy, asked, view)),
            line,
        );
    }

    fn begins(
        &mut self,
        written: Written,
        letter: LetterId,
        text: &str,
        line: &mut Line,
        around: &mut Around<'_>,
    ) {
        around.ledger.sent(letter);
        if let Some((_, old)) = &self.draft {
            around.ledger.perhaps_deleted(*old, OWN);
        }
        self.writes(written, letter, text, line, around.ledger.station);
    }

    /// Submits a composed message, or saves a draft.
    fn writes(
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

    /// A held message among the drafts of the last list, and the key that undoes its send.
    fn held_row(&self, around: &Around<'_>) -> Option<(String, LetterId)> {
        let drafts = self.rows.iter().filter(|row| row.mailbox == DRAFTS);
        let mut letters =
            drafts.filter_map(|row| Some((format!("sending.{}", row.key()), row.letter?)));
        letters.find(|(_, letter)| around.ledger.is_for_somebody(*letter))
    }

    pub(super) fn takes_back(
        &mut self,
        what: &str,
        letter: LetterId,
        line: &mut Line,
        around: &mut Around<'_>,
    ) {
        let asked = around.ledger.back_asked(letter);
        let token = self.token.clone();
        let fields = [("token", token.as_str()), ("what", what)];
        self.post("/mail/undo", &fields, Waiting::Done(Deed::TakesBack(letter, asked)), line);
    }

    /// A message is held. The client undoes the send at once, shortly before it leaves, at some
    /// later time, or never.
    fn is_held(&mut self, letter: LetterId, page: &Page, line: &mut Line, around: &mut Around<'_>) {
        sometimes!(HeldAtWebmail);
        let Some(what) = page.undo() else { return self.list(self.mailbox, line, around) };
        match around.dice.below(4) {
            0 => self.takes_back(&what, letter, line, around),
            1 => {
                let span = Micros(8_000_000 + around.dice.below(4_000_000));
                self.hesitates = Some((around.story.now + span, what, letter));
            }
            _ => {
                self.undo = Some((what, letter));
                self.list(self.mailbox, line, around);
            }
        }
    }

    /// The response to an action: it says where the result is shown.
    pub(super) fn deed_answered(
        &mut self,
        deed: Deed,
        page: &Page,
        line: &mut Line,
        around: &mut Around<'_>,
    ) -> Progress {
        if page.status == 303 {
            let location = page.location().to_string();
            if let Deed::Writes(written, letter) = &deed {
                around.story.counts.acknowledged += 1;
                match written {
                    Written::Sent(..) => {
                        around.ledger.promised(*letter);
                        sometimes!(SentAtWebmail);
                    }
                    Written::Kept => {
                        around.ledger.delivered(*letter);
                        sometimes!(DraftKept);
                        self.get(&location, Waiting::Draft(*letter), line);
                        return Progress::GoesOn;
                    }
                }
            }
            self.get(&location, Waiting::Told(deed), line);
            return Progress::GoesOn;
        }
        if let Deed::Writes(_, letter) = &deed
            && page.status == 200
            && !around.disk_has_failed
        {
            around.ledger.refused(*letter);
        }
        Progress::IsDone
    }

    /// The page that shows the result of an action.
    pub(super) fn deed_told(
        &mut self,
        deed: Deed,
        page: &Page,
        line: &mut Line,
        around: &mut Around<'_>,
    ) {
        let notice = page.notice();
        let is_wrong = notice.is_some_and(|(_, is_wrong)| is_wrong);
        let words = notice.map_or("", |(words, _)| words);
        let is_done = |count: usize, what: &str| {
            let is_all = if count == 1 {
                words.starts_with("The message was ")
            } else {
                words.starts_with(&format!("{count} messages were "))
            };
            is_all && words.contains(what)
        };
        match &deed {
            Deed::Moves(moved) => {
                let is_moved = is_done(moved.len(), "moved to");
                let is_nothing = words == "Nothing was selected.";
                for (letter, copy, asked) in moved.iter().filter(|_| is_moved || is_nothing) {
                    around.ledger.moved(*letter, *copy, asked, is_moved);
                }
                if is_moved {
                    sometimes!(MovedAtWebmail);
                }
            }
            Deed::Erases(erased) if is_done(erased.len(), "deleted for ever") => {
                erased.iter().for_each(|(letter, copy)| around.ledger.deleted(*letter, *copy));
                around.story.counts.deleted += erased.len() as u64;
            }
            // A message that is gone meanwhile is not starred, and the page does not say so.
            Deed::Stars(letter, copy, asked, view) if page.status == 200 && !is_wrong => {
                if around.ledger.is_unchanged(view, *letter, *copy) {
                    around.ledger.starred(*letter, *copy, asked);
                }
            }
            Deed::Chooses(asked) if words == "Saved." => {
                around.ledger.name.done(asked);
                return self.get(
                    "/mail/settings",
                    Waiting::Settings(around.ledger.name.snapshot()),
                    line,
                );
            }
            // A message that also goes to another server leaves a moment later.
            Deed::Writes(Written::Sent(_, elsewhere), letter)
                if words == "Your letter was sent." =>
            {
                if elsewhere.is_empty() {
                    around.ledger.delivered(*letter);
                }
            }
            Deed::Writes(Written::Sent(..), letter) if words == "Sending…" => {
                return self.is_held(*letter, page, line, around);
            }
            Deed::TakesBack(letter, asked)
                if words == "Your letter was not sent: it is a draft again." =>
            {
                around.ledger.back_told(*letter, asked, true);
                sometimes!(TakenBackAtWebmail);
                if page.value_of("subject") == Some(letter.0.to_string()) {
                    self.draft = page.value_of("draft").map(|key| (key, *letter));
                }
            }
            Deed::TakesBack(letter, asked) if words.starts_with("It is too late") => {
                around.ledger.back_told(*letter, asked, false);
                sometimes!(TooLateAtWebmail);
            }
            Deed::Stars(..)
            | Deed::Erases(_)
            | Deed::Chooses(_)
            | Deed::Writes(..)
            | Deed::TakesBack(..) => {}
        }
        self.list(self.mailbox, line, around);
    }

    /// The settings page shows a name that was chosen.
    pub(super) fn saw_settings(
        &mut self,
        then: &Snapshot<String>,
        page: &Page,
        line: &mut Line,
        around: &mut Around<'_>,
    ) {
        if let Some(name) = page.value_of("name").filter(|_| self.account == AT_WEBMAIL) {
            assert!(
                around.ledger.name.was_since(then, &name),
                "{name} is the name, and was not chosen since it was one of {then:?}"
            );
        }
        self.list(self.mailbox, line, around);
    }
}

/// Draws the local accounts and the mailboxes of the other server that a message is for.
fn recipients(dice: &mut Dice) -> (Vec<usize>, Vec<Mailbox>) {
    match dice.below(8) {
        0 => (vec![0, 1], vec![]),
        1 => (vec![AT_WEBMAIL], vec![]),
        2 => (vec![1, AT_WEBMAIL], vec![]),
        3 => (vec![0], Mailbox::some(dice)),
        4 | 5 => (vec![], Mailbox::some(dice)),
        one => (vec![one as usize % 2], vec![]),
    }
}
