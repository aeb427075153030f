//! A client that reads and deletes mail over POP3, and checks what it gets against the model.

use std::collections::VecDeque;

use chance::Dice;

use super::approach::Way;
use super::around::{Around, Progress};
use super::departure::Course;
use super::fixture::{ACCOUNTS, INBOX};
use super::ledger::Ledger;
use super::letter::{Found, LetterId, Moment};
use super::line::Line;

#[derive(Clone, PartialEq, Eq, Debug)]
enum Asked {
    Greeting,
    Tls,
    User,
    Password,
    UniqueIds,
    Message(usize),
    Deletion(usize),
    Quit,
}

/// How much a reader reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Appetite {
    /// Some messages. It deletes some of them.
    Some,
    /// All messages. It deletes none.
    All,
}

pub(super) struct Reader {
    account: usize,
    appetite: Appetite,
    way: Way,
    asked: VecDeque<Asked>,
    /// The unique-id and, once it is read, the number of each message.
    messages: Vec<(String, Option<LetterId>)>,
    deleted: Vec<LetterId>,
    /// The moment of its login in the order of deletions.
    came: Option<Moment>,
    /// The messages that it has read whole.
    pub(super) read: Vec<Found>,
    pub(super) has_quit: bool,
}

impl Reader {
    pub(super) fn new(account: usize, appetite: Appetite, way: Way) -> Reader {
        Reader {
            account,
            appetite,
            way,
            asked: VecDeque::from([Asked::Greeting]),
            messages: Vec::new(),
            deleted: Vec::new(),
            came: None,
            read: Vec::new(),
            has_quit: false,
        }
    }

    /// How many messages the server listed.
    pub(super) fn messages_shown(&self) -> usize {
        self.messages.len()
    }

    fn ask(&mut self, line: &mut Line, command: &str, asked: Asked) {
        line.say(format!("{command}\r\n").as_bytes());
        self.asked.push_back(asked);
    }

    /// Whether it disconnects without waiting for the result of its deletions.
    pub(super) fn is_hasty(&self, line: &Line, dice: &mut Dice) -> bool {
        let waits_for_deletions =
            self.asked.front() == Some(&Asked::Quit) && !self.deleted.is_empty();
        waits_for_deletions
            && self.appetite == Appetite::Some
            && line.has_said_all()
            && dice.one_in(4)
    }

    pub(super) fn go_on(&mut self, line: &mut Line, around: &mut Around<'_>) -> Progress {
        line.go_on(around.host, around.story.now, around.dice);
        while let Some(asked) = self.asked.front().cloned() {
            let follow = matches!(asked, Asked::UniqueIds | Asked::Message(_));
            let Some((first, lines)) = line.pop3_response(follow) else { break };
            around.story.tell(|| format!("  a reader of {} hears {first}", self.account));
            self.asked.pop_front();
            if self.answered(&asked, &first, lines, line, around) == Progress::IsDone {
                return Progress::IsDone;
            }
        }
        Progress::GoesOn
    }

    fn answered(
        &mut self,
        asked: &Asked,
        first: &str,
        lines: Vec<u8>,
        line: &mut Line,
        around: &mut Around<'_>,
    ) -> Progress {
        let is_good = first.starts_with("+OK");
        match asked {
            Asked::Greeting if self.way == Way::Asks => self.ask(line, "STLS", Asked::Tls),
            // The server has no capacity for another handshake.
            Asked::Tls if !is_good => return Progress::IsDone,
            Asked::Greeting | Asked::Tls => {
                if *asked == Asked::Tls {
                    line.cover(around.story.now);
                }
                self.ask(line, &format!("USER {}", ACCOUNTS[self.account]), Asked::User);
            }
            Asked::User => {
                self.came = Some(around.ledger.moment());
                self.ask(line, "PASS lovelace", Asked::Password);
            }
            Asked::Password if first.starts_with("-ERR [AUTH]") => {
                panic!("the correct password was rejected: {first}")
            }
            Asked::Password if is_good => self.ask(line, "UIDL", Asked::UniqueIds),
            Asked::UniqueIds if is_good => self.listed(&lines, line, around.dice),
            Asked::Message(number) if is_good => self.message_read(*number, lines, line, around),
            Asked::Message(_) => {
                let is_excused = around.disk_has_failed || around.ledger.harmed() > 0;
                assert!(is_excused, "a message of a locked maildrop cannot be read: {first}");
            }
            Asked::Deletion(number) => self.deleted.extend(self.messages[number - 1].1),
            Asked::Password | Asked::UniqueIds => return Progress::IsDone,
            Asked::Quit => {
                self.has_quit = true;
                let result = if is_good { Ledger::deleted } else { Ledger::perhaps_deleted };
                self.deleted.iter().for_each(|letter| result(around.ledger, *letter, self.account));
                around.story.counts.deleted += self.deleted.len() as u64;
                return Progress::IsDone;
            }
        }
        if self.asked.is_empty() {
            if self.appetite == Appetite::Some && around.dice.one_in(5) {
                // Without QUIT nothing is deleted.
                return Progress::IsDone;
            }
            self.deleted
                .iter()
                .for_each(|letter| around.ledger.perhaps_deleted(*letter, self.account));
            self.ask(line, "QUIT", Asked::Quit);
        }
        Progress::GoesOn
    }

    fn message_read(
        &mut self,
        number: usize,
        message: Vec<u8>,
        line: &mut Line,
        around: &mut Around<'_>,
    ) {
        let (unique_id, found) = &mut self.messages[number - 1];
        let came = self.came.expect("a reader has logged in");
        let read = Found {
            mailbox: INBOX,
            unique_id: unique_id.clone(),
            is_starred: false,
            course: Course::Sent,
            message,
        };
        let (letter, _) = around.ledger.found(self.account, &read, came);
        *found = Some(letter);
        around.story.counts.read += 1;
        self.read.push(read);
        if self.appetite == Appetite::Some && around.dice.one_in(3) {
            self.ask(line, &format!("DELE {number}"), Asked::Deletion(number));
        }
    }

    /// Requests some of the messages, or all, at once.
    fn listed(&mut self, lines: &[u8], line: &mut Line, dice: &mut Dice) {
        for listed in String::from_utf8_lossy(lines).lines() {
            let unique_id = listed.split(' ').nth(1).expect("a number and a unique-id");
            self.messages.push((unique_id.to_string(), None));
        }
        for number in 1..=self.messages.len() {
            if self.appetite == Appetite::All || dice.one_in(4) {
                self.ask(line, &format!("RETR {number}"), Asked::Message(number));
            }
        }
    }
}
