//! A client that reads and deletes mail over POP3, and checks the responses against the model.

use std::collections::VecDeque;

use chance::Dice;

use super::approach::TlsUse;
use super::context::{ClientProgress, StepContext};
use super::departure::SendState;
use super::fixture::{ACCOUNTS, INBOX};
use super::line::ClientLine;
use super::message::{DeletionMoment, FoundMessage, MessageId};
use super::model::Model;

#[derive(Clone, PartialEq, Eq, Debug)]
enum PendingCommand {
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
pub(super) enum ReadScope {
    /// The reader reads some messages, and deletes some of these.
    Some,
    /// The reader reads all messages, and deletes none.
    All,
}

pub(super) struct Reader {
    account: usize,
    scope: ReadScope,
    security: TlsUse,
    pending: VecDeque<PendingCommand>,
    /// The unique-id of each message and, once the message is read, its number.
    messages: Vec<(String, Option<MessageId>)>,
    deleted: Vec<MessageId>,
    /// The moment of the login in the order of deletions.
    logged_in_at: Option<DeletionMoment>,
    /// The messages that the client has read completely.
    pub(super) read: Vec<FoundMessage>,
    pub(super) has_quit: bool,
}

impl Reader {
    pub(super) fn new(account: usize, scope: ReadScope, security: TlsUse) -> Reader {
        Reader {
            account,
            scope,
            security,
            pending: VecDeque::from([PendingCommand::Greeting]),
            messages: Vec::new(),
            deleted: Vec::new(),
            logged_in_at: None,
            read: Vec::new(),
            has_quit: false,
        }
    }

    /// The number of messages that the server listed.
    pub(super) fn messages_shown(&self) -> usize {
        self.messages.len()
    }

    fn ask(&mut self, line: &mut ClientLine, command: &str, pending_command: PendingCommand) {
        line.send_request(format!("{command}\r\n").as_bytes());
        self.pending.push_back(pending_command);
    }

    /// Draws whether the client disconnects without waiting for the result of its deletions.
    pub(super) fn hangs_up_early(&self, line: &ClientLine, dice: &mut Dice) -> bool {
        let waits_for_deletions =
            self.pending.front() == Some(&PendingCommand::Quit) && !self.deleted.is_empty();
        waits_for_deletions && self.scope == ReadScope::Some && line.is_all_sent() && dice.one_in(4)
    }

    pub(super) fn step(
        &mut self,
        line: &mut ClientLine,
        context: &mut StepContext<'_>,
    ) -> ClientProgress {
        line.step(context.host, context.story.now, context.dice);
        while let Some(pending_command) = self.pending.front().cloned() {
            let follow =
                matches!(pending_command, PendingCommand::UniqueIds | PendingCommand::Message(_));
            let Some((first, lines)) = line.pop3_response(follow) else { break };
            context.story.trace(|| format!("  a reader of {} hears {first}", self.account));
            self.pending.pop_front();
            if self.answered(&pending_command, &first, lines, line, context) == ClientProgress::Done
            {
                return ClientProgress::Done;
            }
        }
        ClientProgress::Continues
    }

    fn answered(
        &mut self,
        pending_command: &PendingCommand,
        first: &str,
        lines: Vec<u8>,
        line: &mut ClientLine,
        context: &mut StepContext<'_>,
    ) -> ClientProgress {
        let is_good = first.starts_with("+OK");
        match pending_command {
            PendingCommand::Greeting if self.security == TlsUse::StartTls => {
                self.ask(line, "STLS", PendingCommand::Tls)
            }
            // The server refuses STLS if it has no capacity for another handshake.
            PendingCommand::Tls if !is_good => return ClientProgress::Done,
            PendingCommand::Greeting | PendingCommand::Tls => {
                if *pending_command == PendingCommand::Tls {
                    line.start_tls(context.story.now);
                }
                self.ask(line, &format!("USER {}", ACCOUNTS[self.account]), PendingCommand::User);
            }
            PendingCommand::User => {
                self.logged_in_at = Some(context.model.moment());
                self.ask(line, "PASS lovelace", PendingCommand::Password);
            }
            PendingCommand::Password if first.starts_with("-ERR [AUTH]") => {
                panic!("the correct password was rejected: {first}")
            }
            PendingCommand::Password if is_good => {
                self.ask(line, "UIDL", PendingCommand::UniqueIds)
            }
            PendingCommand::UniqueIds if is_good => self.listed(&lines, line, context.dice),
            PendingCommand::Message(number) if is_good => {
                self.message_read(*number, lines, line, context)
            }
            PendingCommand::Message(_) => {
                let is_excused = context.disk_has_failed || context.model.harmed() > 0;
                assert!(is_excused, "a message of a locked maildrop cannot be read: {first}");
            }
            PendingCommand::Deletion(number) => self.deleted.extend(self.messages[number - 1].1),
            PendingCommand::Password | PendingCommand::UniqueIds => return ClientProgress::Done,
            PendingCommand::Quit => {
                self.has_quit = true;
                let result = if is_good { Model::deleted } else { Model::perhaps_deleted };
                self.deleted
                    .iter()
                    .for_each(|message| result(context.model, *message, self.account));
                context.story.counts.deleted += self.deleted.len() as u64;
                return ClientProgress::Done;
            }
        }
        if self.pending.is_empty() {
            if self.scope == ReadScope::Some && context.dice.one_in(5) {
                // A session without QUIT deletes nothing.
                return ClientProgress::Done;
            }
            self.deleted
                .iter()
                .for_each(|message| context.model.perhaps_deleted(*message, self.account));
            self.ask(line, "QUIT", PendingCommand::Quit);
        }
        ClientProgress::Continues
    }

    fn message_read(
        &mut self,
        number: usize,
        message: Vec<u8>,
        line: &mut ClientLine,
        context: &mut StepContext<'_>,
    ) {
        let (unique_id, found) = &mut self.messages[number - 1];
        let logged_in_at = self.logged_in_at.expect("a reader has logged in");
        let read = FoundMessage {
            mailbox: INBOX,
            unique_id: unique_id.clone(),
            is_starred: false,
            send_state: SendState::Sent,
            message,
        };
        let (message, _) = context.model.found(self.account, &read, logged_in_at);
        *found = Some(message);
        context.story.counts.read += 1;
        self.read.push(read);
        if self.scope == ReadScope::Some && context.dice.one_in(3) {
            self.ask(line, &format!("DELE {number}"), PendingCommand::Deletion(number));
        }
    }

    /// Requests some of the messages, or all, at once.
    fn listed(&mut self, lines: &[u8], line: &mut ClientLine, dice: &mut Dice) {
        for listed in String::from_utf8_lossy(lines).lines() {
            let unique_id = listed.split(' ').nth(1).expect("a number and a unique-id");
            self.messages.push((unique_id.to_string(), None));
        }
        for number in 1..=self.messages.len() {
            if self.scope == ReadScope::All || dice.one_in(4) {
                self.ask(line, &format!("RETR {number}"), PendingCommand::Message(number));
            }
        }
    }
}
