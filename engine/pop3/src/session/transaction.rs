//! The TRANSACTION state: commands on an open maildrop, and QUIT, which enters the UPDATE state.
//!
//! Implements: RFC 1939 sections 5 to 7.

use crate::actions::{Actions, Maildrop};
use crate::command::Command;
use crate::cut::Cut;
use crate::number::MessageNumber;
use crate::reply::{self, Reply, ReplyText};

use super::listing::{Column, MaildropList};
use super::retrieval::Retrieval;
use super::{Expect, Goodbye, MarkedMaildrop, Pop3WaitsFor, Session};

impl Session {
    pub(super) fn transaction_command_arrived(
        &mut self,
        command: &Command<'_>,
        maildrop: MarkedMaildrop,
        actions: &mut impl Actions,
    ) {
        match *command {
            Command::Status => {
                let left = maildrop.left();
                ReplyText::new()
                    .put(b"+OK ")
                    .put_decimal(left.messages.into())
                    .put(b" ")
                    .put_decimal(left.bytes)
                    .put(b"\r\n")
                    .send(actions);
            }
            Command::List(None) => {
                self.list(MaildropList::of(Column::Sizes), reply::LIST_FOLLOWS, actions)
            }
            Command::UniqueIds(None) => {
                self.list(MaildropList::of(Column::UniqueIds), reply::LIST_FOLLOWS, actions)
            }
            Command::List(Some(message)) => {
                self.on_message(message, actions, |_, message, actions| {
                    let bytes = actions.message_bytes(message);
                    ReplyText::new()
                        .put(b"+OK ")
                        .put_listing(message, bytes)
                        .put(b"\r\n")
                        .send(actions);
                })
            }
            Command::UniqueIds(Some(message)) => {
                self.on_message(message, actions, |_, message, actions| {
                    let unique_id = actions.unique_id(message);
                    ReplyText::new()
                        .put(b"+OK ")
                        .put_unique_id(message, &unique_id)
                        .put(b"\r\n")
                        .send(actions);
                })
            }
            Command::Retrieve(message) => {
                self.on_message(message, actions, |session, message, actions| {
                    session.begin_retrieval(
                        Retrieval::whole(actions.message_bytes(message)),
                        message,
                        actions,
                    );
                })
            }
            Command::Top(message, lines) => {
                self.on_message(message, actions, |session, message, actions| {
                    session.begin_retrieval(Retrieval::until(Cut::after(lines)), message, actions);
                })
            }
            Command::Delete(message) => self.on_message(message, actions, Session::delete_arrived),
            Command::Noop => actions.reply(reply::OK),
            Command::Reset => self.reset_arrived(actions),
            Command::Quit => self.quit_arrived(maildrop, actions),
            Command::User(_)
            | Command::Password(_)
            | Command::Login { .. }
            | Command::StartTls
            | Command::Utf8
            | Command::Capabilities => {
                self.fault(reply::LOGGED_IN_ALREADY, actions);
            }
        }
    }

    /// Runs `command` on a message that exists and is not marked, or replies with an error.
    fn on_message<A: Actions>(
        &mut self,
        message: MessageNumber,
        actions: &mut A,
        command: impl FnOnce(&mut Session, MessageNumber, &mut A),
    ) {
        match self.refusal_of(message, actions) {
            Some(refusal) => actions.reply(refusal),
            None => command(self, message, actions),
        }
    }

    /// The error reply for a message that does not exist or is marked. `None`: the message may be
    /// used.
    fn refusal_of(&self, message: MessageNumber, actions: &impl Actions) -> Option<Reply> {
        let messages = self.maildrop.map_or(0, |maildrop| maildrop.all.messages);
        if !(1..=messages).contains(&message.0) {
            return Some(reply::NO_SUCH_MESSAGE);
        }
        actions.is_marked(message).then_some(reply::IS_DELETED)
    }

    fn delete_arrived<A: Actions>(&mut self, message: MessageNumber, actions: &mut A) {
        if let Some(maildrop) = &mut self.maildrop {
            maildrop.marked.messages += 1;
            maildrop.marked.bytes =
                maildrop.marked.bytes.saturating_add(actions.message_bytes(message));
            actions.mark(message);
            actions.reply(reply::MARKED);
        }
    }

    fn reset_arrived(&mut self, actions: &mut impl Actions) {
        if let Some(maildrop) = &mut self.maildrop {
            maildrop.marked = Maildrop { messages: 0, bytes: 0 };
            self.visited = self.visited.saturating_add(maildrop.all.messages);
            actions.unmark_all();
            actions.reply(reply::OK);
        }
    }

    fn quit_arrived(&mut self, maildrop: MarkedMaildrop, actions: &mut impl Actions) {
        if maildrop.marked.messages == 0 {
            return self.end(reply::BYE, actions);
        }
        self.expect = Expect::Update(Goodbye::Aloud);
        self.waits_for = Pop3WaitsFor::Deletion;
        actions.delete_marked();
    }
}

impl MarkedMaildrop {
    /// The number and size of the messages that are not marked.
    fn left(&self) -> Maildrop {
        Maildrop {
            messages: self.all.messages.saturating_sub(self.marked.messages),
            bytes: self.all.bytes.saturating_sub(self.marked.bytes),
        }
    }
}
