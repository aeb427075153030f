//! A client that reads and deletes mail by POP3, and holds what it gets against the ledger.

use std::collections::VecDeque;

use simulated::Dice;

use crate::Progress;
use crate::life::ledger::{ACCOUNTS, Ledger, LetterId};
use crate::life::line::Line;
use crate::room::Room;

#[derive(Clone, PartialEq, Eq, Debug)]
enum Asked {
    Greeting,
    User,
    Password,
    UniqueIds,
    Message(usize),
    Deletion(usize),
    Quit,
}

pub(crate) struct Reader {
    pub(crate) line: Line,
    account: usize,
    asked: VecDeque<Asked>,
    /// The unique-id and, once read, the letter of each message.
    messages: Vec<(String, Option<LetterId>)>,
    deleted: Vec<LetterId>,
}

impl Reader {
    pub(crate) fn connect(room: &mut Room, host: usize, dice: &mut Dice) -> Reader {
        let account = dice.below(2) as usize;
        let line = Line::connect(room, host, 110);
        Reader { line, account, asked: VecDeque::from([Asked::Greeting]), messages: Vec::new(), deleted: Vec::new() }
    }

    fn ask(&mut self, command: &str, asked: Asked) {
        self.line.say(format!("{command}\r\n").as_bytes());
        self.asked.push_back(asked);
    }

    pub(crate) fn go_on(&mut self, room: &mut Room, ledger: &mut Ledger, dice: &mut Dice) -> Progress {
        self.line.go_on(room, dice);
        while let Some(asked) = self.asked.front().cloned() {
            let follow = matches!(asked, Asked::UniqueIds | Asked::Message(_));
            let Some((first, lines)) = self.line.pop3_response(follow) else { break };
            self.asked.pop_front();
            if self.answered(&asked, &first, &lines, ledger, dice) == Progress::IsDone {
                room.close(&self.line.talk);
                return Progress::IsDone;
            }
        }
        if self.line.is_dead(room) { Progress::IsDone } else { Progress::GoesOn }
    }

    fn answered(&mut self, asked: &Asked, first: &str, lines: &[u8], ledger: &mut Ledger, dice: &mut Dice) -> Progress {
        let is_good = first.starts_with("+OK");
        match asked {
            Asked::Greeting => self.ask(&format!("USER {}", ACCOUNTS[self.account]), Asked::User),
            Asked::User => self.ask("PASS lovelace", Asked::Password),
            Asked::Password if is_good => self.ask("UIDL", Asked::UniqueIds),
            Asked::UniqueIds => self.listed(lines, dice),
            Asked::Message(number) if is_good => {
                let (unique_id, found) = &mut self.messages[number - 1];
                let letter = ledger.found(self.account, unique_id, lines);
                *found = Some(letter);
                if dice.one_in(3) {
                    self.ask(&format!("DELE {number}"), Asked::Deletion(*number));
                }
            }
            Asked::Message(_) => panic!("a message of a locked maildrop cannot be read: {first}"),
            Asked::Deletion(number) => self.deleted.extend(self.messages[number - 1].1),
            Asked::Password => return Progress::IsDone,
            Asked::Quit => {
                let result = if is_good { Ledger::deleted } else { Ledger::perhaps_deleted };
                self.deleted.iter().for_each(|letter| result(ledger, *letter, self.account));
                return Progress::IsDone;
            }
        }
        if self.asked.is_empty() && !self.messages.is_empty() || *asked == Asked::UniqueIds && self.messages.is_empty()
        {
            if dice.one_in(5) {
                // No QUIT, no deletion.
                return Progress::IsDone;
            }
            self.deleted.iter().for_each(|letter| ledger.perhaps_deleted(*letter, self.account));
            self.ask("QUIT", Asked::Quit);
        }
        Progress::GoesOn
    }

    /// Asks for some of the messages, all at once.
    fn listed(&mut self, lines: &[u8], dice: &mut Dice) {
        for line in String::from_utf8_lossy(lines).lines() {
            let unique_id = line.split(' ').nth(1).expect("a number and a unique-id");
            self.messages.push((unique_id.to_string(), None));
        }
        for number in 1..=self.messages.len() {
            if dice.one_in(4) {
                self.ask(&format!("RETR {number}"), Asked::Message(number));
            }
        }
    }
}
