//! A client that sends messages over SMTP, one command at a time or with pipelining. The model
//! records the replies.

use std::collections::VecDeque;

use chance::Dice;
use sometimes::sometimes;

use super::approach::{Approach, TlsUse};
use super::context::{ClientProgress, StepContext};
use super::fixture::{ACCOUNTS, BY_POP3};
use super::line::ClientLine;
use super::message::MessageId;
use super::model::Model;
use super::posted::PostedId;
use super::remote::RemoteMailbox;

/// The step of the conversation that a reply answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SmtpStep {
    /// The greeting. The client sends nothing before it.
    Greeting,
    /// A command with a reply that has no consequence.
    Other,
    /// STARTTLS: the next command is sent within TLS.
    Tls,
    /// The login.
    Login,
    /// DATA: the next line must wait for its reply.
    Data,
    /// A whole message for local accounts.
    Local(MessageId),
    /// A whole message for another server.
    Posted(PostedId),
}

/// The argument of AUTH PLAIN for each account: NUL, its name, NUL, its password, in base64.
const LOGINS: [&str; ACCOUNTS.len()] = [
    "AGFkYUBiYXJlcG9zdC50ZXN0AGxvdmVsYWNl",
    "AGdyYWNlQGJhcmVwb3N0LnRlc3QAbG92ZWxhY2U=",
    "AG1hcnlAYmFyZXBvc3QudGVzdABsb3ZlbGFjZQ==",
];

/// The sender's login, and the protocol.
struct Submitter {
    user: Option<usize>,
    protocol: &'static str,
}

pub(super) struct Sender {
    script: VecDeque<(Vec<u8>, SmtpStep)>,
    /// The steps that the server has not answered yet.
    pending: VecDeque<SmtpStep>,
    /// The most commands that may be outstanding at a time.
    at_once: usize,
}

impl Sender {
    pub(super) fn new(approach: Approach, model: &mut Model, dice: &mut Dice) -> Sender {
        let hello = (b"EHLO client.test\r\n".to_vec(), SmtpStep::Other);
        let mut script = VecDeque::from([hello.clone()]);
        if approach.security == TlsUse::StartTls {
            script.extend([(b"STARTTLS\r\n".to_vec(), SmtpStep::Tls), hello]);
        }
        let user = approach.is_for_users().then(|| dice.below(ACCOUNTS.len() as u64) as usize);
        if let Some(user) = user {
            script.push_back((
                format!("AUTH PLAIN {}\r\n", LOGINS[user]).into_bytes(),
                SmtpStep::Login,
            ));
        }
        let protocol = match (user, approach.security) {
            (None, TlsUse::Plain) => "ESMTP",
            (None, _) => "ESMTPS",
            (Some(_), TlsUse::Plain) => "ESMTPA",
            (Some(_), _) => "ESMTPSA",
        };
        let origin = Submitter { user, protocol };
        for _ in 0..=dice.below(4) {
            match user.filter(|user| *user < BY_POP3) {
                Some(user) if dice.one_in(3) => {
                    write_posted(&mut script, &origin, user, model, dice)
                }
                _ => write_local(&mut script, &origin, model, dice),
            }
        }
        if !dice.one_in(4) {
            script.push_back((b"QUIT\r\n".to_vec(), SmtpStep::Other));
        }
        let at_once = if dice.one_in(2) { 1 } else { 6 };
        Sender { script, pending: VecDeque::from([SmtpStep::Greeting]), at_once }
    }

    pub(super) fn step(
        &mut self,
        line: &mut ClientLine,
        context: &mut StepContext<'_>,
    ) -> ClientProgress {
        while self.pending.len() < self.at_once
            && !self.pending.iter().any(|sent| sent.must_be_answered())
        {
            let Some((bytes, sent_step)) = self.script.pop_front() else { break };
            if let SmtpStep::Local(message) = sent_step {
                context.model.sent(message);
            }
            line.send_request(&bytes);
            self.pending.push_back(sent_step);
        }
        line.step(context.host, context.story.now, context.dice);
        while let Some(reply) = line.smtp_reply() {
            context.story.trace(|| format!("  a sender hears {reply}"));
            let answered_step = self.pending.pop_front();
            let is_good = reply.starts_with('2') || reply.starts_with('3');
            match answered_step {
                _ if reply.starts_with("421") => return ClientProgress::Done,
                Some(SmtpStep::Tls) if is_good => line.start_tls(context.story.now),
                Some(SmtpStep::Login) if reply.starts_with("535") => {
                    panic!("the correct password was rejected: {reply}")
                }
                Some(SmtpStep::Local(message)) if is_good => {
                    if line.tls_client().is_some() {
                        sometimes!(AcknowledgedOverTls);
                    }
                    context.story.counts.acknowledged += 1;
                    context.model.delivered(message);
                }
                Some(SmtpStep::Posted(posted)) if is_good => {
                    context.story.counts.acknowledged += 1;
                    context.model.posted.answered(posted, true);
                }
                Some(SmtpStep::Local(_) | SmtpStep::Posted(_)) if context.disk_has_failed => {}
                Some(SmtpStep::Posted(posted)) => context.model.posted.answered(posted, false),
                Some(SmtpStep::Local(message)) => context.model.refused(message),
                Some(_) if is_good => {}
                // The disk is full, for example. The following commands would now have another
                // meaning.
                Some(_) => return ClientProgress::Done,
                None => panic!("a reply without a command: {reply}"),
            }
        }
        if self.pending.is_empty() && self.script.is_empty() {
            ClientProgress::Done
        } else {
            ClientProgress::Continues
        }
    }
}

impl SmtpStep {
    /// Whether the client must wait for the reply before it sends more.
    fn must_be_answered(self) -> bool {
        matches!(self, SmtpStep::Greeting | SmtpStep::Tls | SmtpStep::Login | SmtpStep::Data)
    }
}

fn write_local(
    script: &mut VecDeque<(Vec<u8>, SmtpStep)>,
    origin: &Submitter,
    model: &mut Model,
    dice: &mut Dice,
) {
    let recipients: Vec<usize> = match dice.below(5) {
        0 => vec![0, 1, 2],
        one => vec![one as usize % ACCOUNTS.len()],
    };
    let (message, body) = model.write(&recipients, origin.protocol, dice);
    let recipients: Vec<String> =
        recipients.iter().map(|account| format!("<{}>", ACCOUNTS[*account])).collect();
    script_message(script, origin, &recipients, (&body, SmtpStep::Local(message)), dice);
}

fn write_posted(
    script: &mut VecDeque<(Vec<u8>, SmtpStep)>,
    origin: &Submitter,
    user: usize,
    model: &mut Model,
    dice: &mut Dice,
) {
    let mailboxes = RemoteMailbox::some(dice);
    let (posted, content) = model.write_posted(user, &mailboxes, dice);
    let recipients: Vec<String> =
        mailboxes.iter().map(|mailbox| format!("<{}>", mailbox.address(model.station))).collect();
    script_message(script, origin, &recipients, (&content, SmtpStep::Posted(posted)), dice);
}

fn script_message(
    script: &mut VecDeque<(Vec<u8>, SmtpStep)>,
    origin: &Submitter,
    recipients: &[String],
    (body, answered_step): (&[u8], SmtpStep),
    dice: &mut Dice,
) {
    let address = origin.user.map_or("sender@elsewhere.test", |user| ACCOUNTS[user]);
    script.push_back((format!("MAIL FROM:<{address}>\r\n").into_bytes(), SmtpStep::Other));
    for recipient in recipients {
        script.push_back((format!("RCPT TO:{recipient}\r\n").into_bytes(), SmtpStep::Other));
    }
    if dice.one_in(2) {
        script.push_back((b"DATA\r\n".to_vec(), SmtpStep::Data));
        script.push_back(([&stuffed(body), b".\r\n".as_slice()].concat(), answered_step));
        return;
    }
    let mut rest = body;
    let most = if dice.one_in(4) { 700 } else { 40_000 };
    while rest.len() > most {
        let (chunk, more) = rest.split_at(most);
        script
            .push_back(([format!("BDAT {most}\r\n").as_bytes(), chunk].concat(), SmtpStep::Other));
        rest = more;
    }
    script.push_back((
        [format!("BDAT {} LAST\r\n", rest.len()).as_bytes(), rest].concat(),
        answered_step,
    ));
}

/// `body` with a dot doubled at the start of each line that begins with one.
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
