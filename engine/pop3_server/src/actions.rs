//! The actions of a POP3 session, on the connection, the logins and the store.

use connections::Channel;
use machine::Micros;
use pop3::{MessageNumber, PlainLogin, Pop3Settings, Pop3Tls};
use sasl::{Credentials, Puzzle};

use super::host::Pop3Host;
use super::{deletion, login, reading};

/// The most bytes of unread replies for a client without a login. The limit keeps such clients from
/// exhausting the memory.
const UNREAD_BYTES_MAX: usize = 4 * 1024;

impl sasl::Host for Pop3Host<'_, '_> {
    fn puzzle(&mut self, name: &str) -> Puzzle {
        self.cx.logins.puzzle(name, self.cx.directory, self.cx.store)
    }

    fn login(&mut self, credentials: Credentials<'_>) {
        login::begin(credentials, self);
    }
}

impl pop3::Actions for Pop3Host<'_, '_> {
    fn settings(&self) -> Pop3Settings {
        let is_hidden = self.caller.channel == Channel::Tls;
        let plain_login =
            match is_hidden || self.cx.logins.access().allows_plaintext_auth(self.caller.address) {
                true => PlainLogin::Offered,
                false => PlainLogin::Refused,
            };
        let tls = match self.cx.connections.tls() {
            _ if is_hidden => Pop3Tls::Spoken,
            secure if !secure.serves(self.caller.service) => Pop3Tls::Absent,
            secure if !secure.may_begin() => Pop3Tls::Busy,
            _ => Pop3Tls::Offered,
        };
        Pop3Settings { plain_login, tls, ..Pop3Settings::default() }
    }

    fn send_room(&self) -> usize {
        match self.state.maildrop {
            Some(_) => self.cx.connections.send_room(self.caller),
            None => self.cx.connections.send_room_within(self.caller, UNREAD_BYTES_MAX),
        }
    }

    fn reply(&mut self, bytes: &[u8]) {
        self.cx.connections.say(self.cx.turn.now, self.caller, bytes);
    }

    fn abandon_login(&mut self) {
        login::drop_attempt(self);
    }

    fn message_bytes(&self, message: MessageNumber) -> u64 {
        self.state
            .maildrop
            .as_ref()
            .map_or(0, |maildrop| u64::from(maildrop.octets(message.index())))
    }

    fn unique_id(&self, message: MessageNumber) -> pop3::UniqueId {
        match &self.state.maildrop {
            Some(maildrop) => {
                let uid = maildrop.uid(message.index()).map_or(0, |uid| uid.0);
                pop3::UniqueId::from_uid(maildrop.uid_validity(), uid)
            }
            None => pop3::UniqueId::from_uid(0, 0),
        }
    }

    fn is_marked(&self, message: MessageNumber) -> bool {
        self.state.maildrop.as_ref().is_some_and(|maildrop| maildrop.is_marked(message.index()))
    }

    fn mark(&mut self, message: MessageNumber) {
        if let Some(maildrop) = &mut self.state.maildrop {
            maildrop.mark(message.index());
        }
    }

    fn unmark_all(&mut self) {
        if let Some(maildrop) = &mut self.state.maildrop {
            maildrop.unmark_all();
        }
    }

    fn read(&mut self, message: MessageNumber) {
        reading::begin(message, self);
    }

    fn stop_reading(&mut self) {
        reading::stop(self);
    }

    fn delete_marked(&mut self) {
        deletion::begin(self);
    }

    fn leave_maildrop(&mut self) {
        if let Some(maildrop) = self.state.maildrop.take() {
            self.cx.store.close_maildrop(maildrop);
        }
    }

    fn set_deadline(&mut self, after: Option<Micros>) {
        self.cx.connections.set_deadline(self.cx.turn.now, self.caller.connection, after);
    }

    fn close(&mut self) {
        self.cx.connections.close(self.cx.turn.now, self.caller);
    }
}
