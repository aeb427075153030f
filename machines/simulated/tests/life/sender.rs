//! A client that sends letters by SMTP, one command at a time or several at once, and notes what it hears.

use std::collections::VecDeque;

use simulated::Dice;

use crate::Progress;
use crate::life::ledger::{ACCOUNTS, Ledger, LetterId};
use crate::life::line::Line;
use crate::room::{Room, stuffed};

/// What the reply to something said is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Said {
    /// Nothing that matters.
    Other,
    /// DATA: what comes next must wait for it.
    Data,
    /// A whole letter.
    Letter(LetterId),
}

pub(crate) struct Sender {
    pub(crate) line: Line,
    script: VecDeque<(Vec<u8>, Said)>,
    /// What replies are due to.
    asked: VecDeque<Said>,
    /// Commands that may be on their way at a time.
    at_once: usize,
}

impl Sender {
    pub(crate) fn connect(room: &mut Room, host: usize, ledger: &mut Ledger, dice: &mut Dice) -> Sender {
        let line = Line::connect(room, host, 25);
        let mut script = VecDeque::from([(b"EHLO client.test\r\n".to_vec(), Said::Other)]);
        for _ in 0..=dice.below(4) {
            write_letter(&mut script, ledger, dice);
        }
        if !dice.one_in(4) {
            script.push_back((b"QUIT\r\n".to_vec(), Said::Other));
        }
        let at_once = if dice.one_in(2) { 1 } else { 6 };
        Sender { line, script, asked: VecDeque::from([Said::Other]), at_once }
    }

    pub(crate) fn go_on(&mut self, room: &mut Room, ledger: &mut Ledger, dice: &mut Dice) -> Progress {
        while self.asked.len() < self.at_once && !self.asked.contains(&Said::Data) {
            let Some((bytes, said)) = self.script.pop_front() else { break };
            if let Said::Letter(letter) = said {
                ledger.sent(letter);
            }
            self.line.say(&bytes);
            self.asked.push_back(said);
        }
        self.line.go_on(room, dice);
        while let Some(reply) = self.line.smtp_reply() {
            let said = self.asked.pop_front();
            let is_good = reply.starts_with('2') || reply.starts_with('3');
            match said {
                _ if reply.starts_with("421") => return self.leave(room),
                Some(Said::Letter(letter)) if is_good => ledger.delivered(letter),
                Some(Said::Letter(letter)) => ledger.refused(letter),
                Some(_) if is_good => {}
                // A full disk, or the like: whatever was said behind it means something else now.
                Some(_) => return self.leave(room),
                None => panic!("an unasked reply: {reply}"),
            }
        }
        if self.asked.is_empty() && self.script.is_empty() || self.line.is_dead(room) {
            return self.leave(room);
        }
        Progress::GoesOn
    }

    fn leave(&self, room: &mut Room) -> Progress {
        room.close(&self.line.talk);
        Progress::IsDone
    }
}

fn write_letter(script: &mut VecDeque<(Vec<u8>, Said)>, ledger: &mut Ledger, dice: &mut Dice) {
    let recipients: Vec<usize> = match dice.below(4) {
        0 => vec![0, 1],
        one => vec![one as usize % 2],
    };
    let (letter, body) = ledger.write(&recipients, dice);
    script.push_back((b"MAIL FROM:<sender@elsewhere.test>\r\n".to_vec(), Said::Other));
    for recipient in recipients {
        script.push_back((format!("RCPT TO:<{}>\r\n", ACCOUNTS[recipient]).into_bytes(), Said::Other));
    }
    if dice.one_in(2) {
        script.push_back((b"DATA\r\n".to_vec(), Said::Data));
        script.push_back(([&stuffed(&body), b".\r\n".as_slice()].concat(), Said::Letter(letter)));
        return;
    }
    let mut rest = body.as_slice();
    while rest.len() > 40_000 {
        let (chunk, more) = rest.split_at(40_000);
        script.push_back(([b"BDAT 40000\r\n", chunk].concat(), Said::Other));
        rest = more;
    }
    script.push_back(([format!("BDAT {} LAST\r\n", rest.len()).as_bytes(), rest].concat(), Said::Letter(letter)));
}
