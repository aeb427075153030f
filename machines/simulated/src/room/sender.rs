//! A client that sends letters by SMTP, one command at a time or several at once, and notes what it hears.

use std::collections::VecDeque;

use super::client::{Around, Progress};
use super::ledger::{ACCOUNTS, Ledger, LetterId};
use super::line::Line;
use crate::Dice;

/// What the reply to something said is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Said {
    /// The greeting: nothing may be said before it.
    Greeting,
    /// Nothing that matters.
    Other,
    /// DATA: what comes next must wait for it.
    Data,
    /// A whole letter.
    Letter(LetterId),
}

pub(super) struct Sender {
    script: VecDeque<(Vec<u8>, Said)>,
    /// What replies are due to.
    asked: VecDeque<Said>,
    /// Commands that may be on their way at a time.
    at_once: usize,
}

impl Sender {
    pub(super) fn new(ledger: &mut Ledger, dice: &mut Dice) -> Sender {
        let mut script = VecDeque::from([(b"EHLO client.test\r\n".to_vec(), Said::Other)]);
        for _ in 0..=dice.below(4) {
            write_letter(&mut script, ledger, dice);
        }
        if !dice.one_in(4) {
            script.push_back((b"QUIT\r\n".to_vec(), Said::Other));
        }
        let at_once = if dice.one_in(2) { 1 } else { 6 };
        Sender { script, asked: VecDeque::from([Said::Greeting]), at_once }
    }

    pub(super) fn go_on(&mut self, line: &mut Line, around: &mut Around<'_>) -> Progress {
        while self.asked.len() < self.at_once && !self.asked.iter().any(|said| said.holds_up()) {
            let Some((bytes, said)) = self.script.pop_front() else { break };
            if let Said::Letter(letter) = said {
                around.ledger.sent(letter);
            }
            line.say(&bytes);
            self.asked.push_back(said);
        }
        line.go_on(around.host, around.story.now, around.dice);
        while let Some(reply) = line.smtp_reply() {
            around.story.tell(|| format!("  a sender hears {reply}"));
            let said = self.asked.pop_front();
            let is_good = reply.starts_with('2') || reply.starts_with('3');
            match said {
                _ if reply.starts_with("421") => return Progress::IsDone,
                Some(Said::Letter(letter)) if is_good => {
                    around.story.counts.acknowledged += 1;
                    around.ledger.delivered(letter);
                }
                Some(Said::Letter(_)) if around.disk_has_failed => {}
                Some(Said::Letter(letter)) => around.ledger.refused(letter),
                Some(_) if is_good => {}
                // A full disk, or the like: whatever was said behind it means something else now.
                Some(_) => return Progress::IsDone,
                None => panic!("an unasked reply: {reply}"),
            }
        }
        if self.asked.is_empty() && self.script.is_empty() { Progress::IsDone } else { Progress::GoesOn }
    }
}

impl Said {
    fn holds_up(self) -> bool {
        matches!(self, Said::Greeting | Said::Data)
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
    let most = if dice.one_in(4) { 700 } else { 40_000 };
    while rest.len() > most {
        let (chunk, more) = rest.split_at(most);
        script.push_back(([format!("BDAT {most}\r\n").as_bytes(), chunk].concat(), Said::Other));
        rest = more;
    }
    script.push_back(([format!("BDAT {} LAST\r\n", rest.len()).as_bytes(), rest].concat(), Said::Letter(letter)));
}

/// `body` with its dots doubled where they begin a line.
fn stuffed(body: &[u8]) -> Vec<u8> {
    let mut stuffed = Vec::new();
    for line in body.split_inclusive(|byte| *byte == b'\n') {
        if line.starts_with(b".") {
            stuffed.push(b'.');
        }
        stuffed.extend_from_slice(line);
    }
    stuffed
}
