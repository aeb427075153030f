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

/// What a client says that has nothing to say (RFC 4954 section 4).
const EMPTY: &str = "=";
/// What a client says that gives up.
const GIVEN_UP: &[u8] = b"*";

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
        let exchange = Exchange::begin(mechanism);
        let challenge = exchange.challenge();
        self.exchange = Some(Box::new(exchange));
        match response {
            None => self.ask_for_response(challenge, actions),
            Some(EMPTY) => self.response_arrived(b"", actions),
            Some(response) => self.response_arrived(response.as_bytes(), actions),
        }
    }

    pub(super) fn login_response_arrived(&mut self, line: &[u8], actions: &mut impl Actions) {
        self.expect = Expect::Command;
        match line {
            GIVEN_UP => {
                self.exchange = None;
                self.fault(reply::LOGIN_CANCELLED, actions);
            }
            _ => self.response_arrived(line, actions),
        }
    }

    fn response_arrived(&mut self, response: &[u8], actions: &mut impl Actions) {
        let Some(mut exchange) = self.exchange.take() else { return };
        match exchange.response_arrived(response, |heard| actions.login(heard.name, heard.password)) {
            Answer::Challenge(challenge) => {
                self.exchange = Some(exchange);
                self.ask_for_response(challenge, actions);
            }
            Answer::Complete(()) => {
                self.expect = Expect::LoginAnswer;
                self.waits_for = WaitsFor::Login;
            }
            Answer::Malformed => self.fault(reply::BAD_LOGIN_RESPONSE, actions),
            Answer::NotAllowed => self.fault(reply::login_refusal(LoginRefusal::Credentials), actions),
        }
    }

    fn ask_for_response(&mut self, challenge: &[u8], actions: &mut impl Actions) {
        self.expect = Expect::LoginResponse;
        reply::login_challenge(challenge, actions);
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
