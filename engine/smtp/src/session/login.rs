//! AUTH: logging in.
//!
//! A wrong name and a wrong password get the same answer after the same time. The host chooses that
//! time. The session waits until the host reports the result.
//!
//! With SCRAM, the server accepts the client's proof before the client knows whether the server
//! knows the password too. The client is logged in only when it has acknowledged the server's
//! signature. The signature is one more challenge, to which the client responds with an empty line.
//! By RFC 4954 section 4, the final reply cannot carry the signature.
//!
//! Implements: RFC 4954 sections 4 and 6, RFC 3207 section 4, RFC 6409 section 4.3, RFC 8314
//! section 3.3.

use alloc::boxed::Box;

use sasl::{Exchange, Mechanism, SaslStep, ServerSignature};

use crate::actions::{Actions, AuthRefusal, LoginPolicy};
use crate::command::CommandError;
use crate::reply::{self, Reply};

use super::{ClientIdentity, Expect, Greeted, Session, SmtpWaitsFor};

impl Session {
    /// The reply to a client that must log in before its mail is accepted.
    pub(super) fn needs_login(&self, actions: &impl Actions) -> Option<Reply> {
        match (self.identity, actions.settings().login) {
            (ClientIdentity::Proved, _) | (_, LoginPolicy::Absent) => None,
            (ClientIdentity::Unknown, LoginPolicy::AfterTls) => Some(reply::START_TLS_FIRST),
            (ClientIdentity::Unknown, LoginPolicy::Required) => Some(reply::LOG_IN_FIRST),
        }
    }

    pub(super) fn login_asked_for(
        &mut self,
        mechanism: &str,
        response: Option<&str>,
        actions: &mut impl Actions,
    ) {
        let known = Mechanism::named(mechanism.as_bytes());
        let fault = match (actions.settings().login, known) {
            (LoginPolicy::Absent, _) => reply::fault(CommandError::NotImplemented),
            _ if self.greeted == Greeted::NotYet => reply::GREET_FIRST,
            _ if self.identity == ClientIdentity::Proved => reply::LOGIN_TWICE,
            _ if self.transaction.is_some() => reply::LOGIN_WITHIN_TRANSACTION,
            (LoginPolicy::AfterTls, _) => reply::NO_LOGIN_IN_THE_CLEAR,
            (LoginPolicy::Required, None) => reply::UNKNOWN_MECHANISM,
            (LoginPolicy::Required, Some(mechanism)) => {
                return self.login_begins(mechanism, response, actions);
            }
        };
        self.fault(fault, actions);
    }

    fn login_begins(
        &mut self,
        mechanism: Mechanism,
        response: Option<&str>,
        actions: &mut impl Actions,
    ) {
        let mut exchange = Exchange::begin(mechanism);
        let answer = match response {
            None => exchange.opening(),
            Some(response) => exchange.begun_with(response.as_bytes(), actions),
        };
        self.exchange = Some(Box::new(exchange));
        self.exchange_went_on(answer, actions);
    }

    pub(super) fn login_response_arrived(&mut self, line: &[u8], actions: &mut impl Actions) {
        self.expect = Expect::Command;
        let Some(exchange) = &mut self.exchange else { return };
        let answer = exchange.response_arrived(line, actions);
        self.exchange_went_on(answer, actions);
    }

    fn exchange_went_on(&mut self, answer: SaslStep, actions: &mut impl Actions) {
        let fault = match answer {
            SaslStep::Challenge(challenge) => {
                self.expect = Expect::LoginResponse;
                return reply::login_challenge(&challenge, actions);
            }
            SaslStep::Complete => {
                self.exchange = None;
                self.expect = Expect::LoginAnswer;
                self.waits_for = SmtpWaitsFor::Login;
                return;
            }
            SaslStep::Acknowledged => {
                self.exchange = None;
                return self.logged_in(actions);
            }
            SaslStep::GivenUp => reply::LOGIN_CANCELLED,
            SaslStep::Malformed => reply::BAD_LOGIN_RESPONSE,
            SaslStep::NotAllowed => reply::login_refusal(AuthRefusal::Credentials),
        };
        self.exchange_over(actions);
        self.fault(fault, actions);
    }

    /// Ends an exchange in progress. If the host has already granted the login, the login is
    /// abandoned.
    pub(super) fn exchange_over(&mut self, actions: &mut impl Actions) {
        if self.exchange.take().is_some_and(|exchange| exchange.is_signed()) {
            actions.abandon_login();
        }
    }

    /// The host reports the result of a login. `Ok`: the login is granted. Some mechanisms also
    /// need a signature, which proves to the client that the server knows the password. Afterwards
    /// the session takes bytes again.
    pub fn login_answered(
        &mut self,
        result: Result<Option<ServerSignature>, AuthRefusal>,
        actions: &mut impl Actions,
    ) {
        if self.expect != Expect::LoginAnswer {
            return;
        }
        self.expect = Expect::Command;
        self.waits_for = SmtpWaitsFor::Bytes;
        match result {
            Ok(None) => self.logged_in(actions),
            Ok(Some(signature)) => {
                let (exchange, answer) = Exchange::signed(&signature);
                self.exchange = Some(Box::new(exchange));
                self.exchange_went_on(answer, actions);
            }
            Err(AuthRefusal::Credentials) => {
                self.failed_logins = self.failed_logins.saturating_add(1);
                actions.reply(reply::login_refusal(AuthRefusal::Credentials));
                if self.failed_logins >= actions.settings().failed_logins_max {
                    return self.end(reply::TOO_MANY_FAULTS, actions);
                }
            }
            Err(refusal @ AuthRefusal::TryLater) => actions.reply(reply::login_refusal(refusal)),
        }
        self.renew_deadline(actions);
        self.stop_if_stopping(actions);
    }

    fn logged_in(&mut self, actions: &mut impl Actions) {
        self.identity = ClientIdentity::Proved;
        self.faults = 0;
        actions.reply(reply::LOGGED_IN);
    }
}
