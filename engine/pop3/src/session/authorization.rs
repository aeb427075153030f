//! The AUTHORIZATION state: logins and STLS.
//!
//! A wrong name and a wrong password get the same reply after the same time. The host chooses that
//! time, and the session waits until the host reports the result.
//!
//! Implements: RFC 1939 sections 4 and 7 (USER, PASS), RFC 2595 section 4 (STLS), RFC 3206, RFC
//! 5034 section 4 (AUTH), RFC 6856 section 2.

use alloc::boxed::Box;

use sasl::{Credentials, Exchange, Mechanism, Proof, SaslStep, ServerSignature};

use crate::actions::{Actions, LoginRefusal, Maildrop, PlainLogin, Pop3Tls};
use crate::command::{Command, CommandFault};
use crate::reply::{self, ReplyText};

use super::{AUTOLOGOUT, Expect, MarkedMaildrop, PendingLogin, Pop3WaitsFor, Session};

impl Session {
    pub(super) fn authorization_command_arrived(
        &mut self,
        command: &Command<'_>,
        actions: &mut impl Actions,
    ) {
        match *command {
            Command::User(_) | Command::Password(_) | Command::Login { .. }
                if actions.settings().plain_login == PlainLogin::Refused =>
            {
                self.fault(reply::NO_PLAIN_LOGIN, actions);
            }
            Command::User(name) => {
                self.pending_login = Some(Box::new(PendingLogin::User(name.into())));
                actions.reply(reply::SEND_PASSWORD);
            }
            Command::Password(password) => self.password_arrived(password, actions),
            Command::Login { mechanism, response } => {
                self.login_asked_for(mechanism, response, actions)
            }
            Command::Utf8 => actions.reply(reply::OK),
            Command::StartTls => self.tls_asked_for(actions),
            _ => self.fault(reply::LOG_IN_FIRST, actions),
        }
    }

    /// STLS: this session ends, with all its state.
    fn tls_asked_for(&mut self, actions: &mut impl Actions) {
        match actions.settings().tls {
            Pop3Tls::Absent => self.fault(reply::fault(CommandFault::UnknownCommand), actions),
            Pop3Tls::Spoken => self.fault(reply::TLS_TWICE, actions),
            Pop3Tls::Busy => actions.reply(reply::TLS_BUSY),
            Pop3Tls::Offered => {
                self.pending_login = None;
                actions.reply(reply::START_TLS);
                self.expect = Expect::Handshake;
                self.waits_for = Pop3WaitsFor::Handshake;
            }
        }
    }

    fn password_arrived(&mut self, password: &[u8], actions: &mut impl Actions) {
        let Some(PendingLogin::User(user)) =
            self.pending_login.take().map(|pending_login| *pending_login)
        else {
            return self.fault(reply::SEND_USER_FIRST, actions);
        };
        self.expect = Expect::LoginAnswer;
        self.waits_for = Pop3WaitsFor::Login;
        actions.login(Credentials { name: &user, proof: Proof::Password(password) });
    }

    fn login_asked_for(
        &mut self,
        mechanism: &[u8],
        response: Option<&[u8]>,
        actions: &mut impl Actions,
    ) {
        let Some(mechanism) = Mechanism::named(mechanism) else {
            return self.fault(reply::UNKNOWN_MECHANISM, actions);
        };
        // The name in USER is valid neither for this login nor for a later one.
        self.pending_login = None;
        let mut exchange = Exchange::begin(mechanism);
        let answer = match response {
            None => exchange.opening(),
            Some(response) => exchange.begun_with(response, actions),
        };
        self.exchange_went_on(exchange, answer, actions);
    }

    pub(super) fn login_response_arrived(&mut self, line: &[u8], actions: &mut impl Actions) {
        self.expect = Expect::Authorization;
        let Some(PendingLogin::Exchange(mut exchange)) =
            self.pending_login.take().map(|pending_login| *pending_login)
        else {
            return;
        };
        let answer = exchange.response_arrived(line, actions);
        self.exchange_went_on(exchange, answer, actions);
    }

    fn exchange_went_on(
        &mut self,
        exchange: Exchange,
        answer: SaslStep,
        actions: &mut impl Actions,
    ) {
        let fault = match answer {
            SaslStep::Challenge(challenge) => {
                self.pending_login = Some(Box::new(PendingLogin::Exchange(exchange)));
                self.expect = Expect::LoginResponse;
                return reply::login_challenge(&challenge, actions);
            }
            SaslStep::Complete => {
                self.expect = Expect::LoginAnswer;
                self.waits_for = Pop3WaitsFor::Login;
                return;
            }
            SaslStep::Acknowledged => return self.logged_in(actions),
            SaslStep::GivenUp => reply::LOGIN_CANCELLED,
            SaslStep::Malformed => reply::BAD_LOGIN_RESPONSE,
            SaslStep::NotAllowed => reply::login_refusal(LoginRefusal::Credentials),
        };
        self.pending_login = Some(Box::new(PendingLogin::Exchange(exchange)));
        self.login_over(actions);
        self.fault(fault, actions);
    }

    /// Abandons a login in progress. If the server has accepted it already, the maildrop is
    /// unlocked.
    pub(super) fn login_over(&mut self, actions: &mut impl Actions) {
        let pending_login = self.pending_login.take();
        let is_granted = matches!(pending_login.as_deref(), Some(PendingLogin::Exchange(exchange)) if exchange.is_signed());
        if is_granted && self.maildrop.take().is_some() {
            actions.leave_maildrop();
        }
    }

    /// The host reports the result of a login. `Ok`: it has opened the maildrop. Some mechanisms
    /// also need a signature, which proves to the client that the server knows the password.
    pub fn login_answered(
        &mut self,
        result: Result<(Maildrop, Option<ServerSignature>), LoginRefusal>,
        actions: &mut impl Actions,
    ) {
        if self.expect != Expect::LoginAnswer {
            return;
        }
        self.expect = Expect::Authorization;
        match result {
            Ok((maildrop, signature)) => {
                self.maildrop = Some(MarkedMaildrop {
                    all: maildrop,
                    marked: Maildrop { messages: 0, bytes: 0 },
                });
                match signature {
                    None => self.logged_in(actions),
                    Some(signature) => self.signature_follows(&signature, actions),
                }
            }
            Err(refusal) => self.login_refused(refusal, actions),
        }
    }

    /// Sends the server's signature to the client. The client is logged in once it has acknowledged
    /// the signature.
    fn signature_follows(&mut self, signature: &ServerSignature, actions: &mut impl Actions) {
        let (exchange, answer) = Exchange::signed(signature);
        self.exchange_went_on(exchange, answer, actions);
        self.waits_for = Pop3WaitsFor::Bytes;
        actions.set_deadline(Some(AUTOLOGOUT));
        self.stop_if_stopping(actions);
    }

    fn logged_in(&mut self, actions: &mut impl Actions) {
        let Some(maildrop) = self.maildrop else { return };
        self.faults = 0;
        ReplyText::new()
            .put(b"+OK ")
            .put_decimal(maildrop.all.messages.into())
            .put(b" messages\r\n")
            .send(actions);
        self.command_answered(actions);
    }

    fn login_refused(&mut self, refusal: LoginRefusal, actions: &mut impl Actions) {
        if refusal == LoginRefusal::Credentials {
            self.failed_logins = self.failed_logins.saturating_add(1);
            if self.failed_logins >= actions.settings().failed_logins_max {
                return self.end(reply::login_refusal(refusal), actions);
            }
        }
        actions.reply(reply::login_refusal(refusal));
        self.command_answered(actions);
    }
}
