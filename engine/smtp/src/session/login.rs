//! AUTH: who is there, and may they?
//!
//! A wrong name and a wrong password get the same answer after the same time; that time is the server's to choose, and the session waits for as long as it takes.
//!
//! Answers to: RFC 4954 sections 4 and 6, RFC 3207 section 4, RFC 6409 section 4.3, RFC 8314 section 3.3.

use alloc::boxed::Box;

use sasl::{Answer, Exchange, Mechanism};

use crate::actions::{Actions, Login, LoginRefusal};
use crate::command::Fault;
use crate::reply::{self, Reply};

use super::{Expect, Greeted, Identity, Session, WaitsFor};

impl Session {
    /// What a client is told whose mail is not taken before it has said who it is.
    pub(super) fn needs_login(&self, actions: &impl Actions) -> Option<Reply> {
        match (self.identity, actions.settings().login) {
            (Identity::Proved, _) | (_, Login::Absent) => None,
            (Identity::Unknown, Login::AfterTls) => Some(reply::START_TLS_FIRST),
            (Identity::Unknown, Login::Required) => Some(reply::LOG_IN_FIRST),
        }
    }

    pub(super) fn login_asked_for(&mut self, mechanism: &str, response: Option<&str>, actions: &mut impl Actions) {
        let known = Mechanism::named(mechanism.as_bytes());
        let fault = match (actions.settings().login, known) {
            (Login::Absent, _) => reply::fault(Fault::NotImplemented),
            _ if self.greeted == Greeted::NotYet => reply::GREET_FIRST,
            _ if self.identity == Identity::Proved => reply::LOGIN_TWICE,
            _ if self.transaction.is_some() => reply::LOGIN_WITHIN_TRANSACTION,
            (Login::AfterTls, _) => reply::NO_LOGIN_IN_THE_CLEAR,
            (Login::Required, None) => reply::UNKNOWN_MECHANISM,
            (Login::Required, Some(mechanism)) => return self.login_begins(mechanism, response, actions),
        };
        self.fault(fault, actions);
    }

    fn login_begins(&mut self, mechanism: Mechanism, response: Option<&str>, actions: &mut impl Actions) {
        let mut exchange = Box::new(Exchange::begin(mechanism));
        let answer = match response {
            None => Answer::Challenge(exchange.challenge()),
            Some(response) => {
                exchange.begun_with(response.as_bytes(), |heard| actions.login(heard.name, heard.password))
            }
        };
        self.exchange_went_on(exchange, answer, actions);
    }

    pub(super) fn login_response_arrived(&mut self, line: &[u8], actions: &mut impl Actions) {
        self.expect = Expect::Command;
        let Some(mut exchange) = self.exchange.take() else { return };
        let answer = exchange.response_arrived(line, |heard| actions.login(heard.name, heard.password));
        self.exchange_went_on(exchange, answer, actions);
    }

    fn exchange_went_on(&mut self, exchange: Box<Exchange>, answer: Answer, actions: &mut impl Actions) {
        match answer {
            Answer::Challenge(challenge) => {
                self.exchange = Some(exchange);
                self.expect = Expect::LoginResponse;
                reply::login_challenge(challenge, actions);
            }
            Answer::Complete => {
                self.expect = Expect::LoginAnswer;
                self.waits_for = WaitsFor::Login;
            }
            Answer::GivenUp => self.fault(reply::LOGIN_CANCELLED, actions),
            Answer::Malformed => self.fault(reply::BAD_LOGIN_RESPONSE, actions),
            Answer::NotAllowed => self.fault(reply::login_refusal(LoginRefusal::Credentials), actions),
        }
    }

    /// The client is who it says it is, or was refused. Bytes are taken again afterwards.
    pub fn login_answered(&mut self, result: Result<(), LoginRefusal>, actions: &mut impl Actions) {
        if self.expect != Expect::LoginAnswer {
            return;
        }
        self.expect = Expect::Command;
        self.waits_for = WaitsFor::Bytes;
        match result {
            Ok(()) => {
                self.identity = Identity::Proved;
                self.faults = 0;
                actions.reply(reply::LOGGED_IN);
            }
            Err(LoginRefusal::Credentials) => {
                self.failed_logins = self.failed_logins.saturating_add(1);
                actions.reply(reply::login_refusal(LoginRefusal::Credentials));
                if self.failed_logins >= actions.settings().failed_logins_max {
                    return self.end(reply::TOO_MANY_FAULTS, actions);
                }
            }
            Err(refusal @ LoginRefusal::TryLater) => actions.reply(reply::login_refusal(refusal)),
        }
        self.renew_deadline(actions);
        self.stop_if_stopping(actions);
    }
}
