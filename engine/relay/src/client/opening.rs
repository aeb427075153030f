//! The opening of a conversation, from the greeting until messages can be sent: EHLO, STARTTLS,
//! AUTH.
//!
//! Implements: RFC 5321 sections 3.1 and 3.2; RFC 3207 section 4; RFC 4954 section 4, RFC 4616
//! (PLAIN); RFC 7677 (SCRAM-SHA-256); draft-murchison-sasl-login (LOGIN).

use alloc::string::String;

use base64ct::{Base64, Encoding as _};
use sasl::Claim;

use super::{Action, Asked, Client, State, Tls};
use crate::extensions::Extensions;
use crate::outcome::{Cause, Misbehaviour, Outcome, Reason, Stage};
use crate::reply::Reply;

impl Client {
    /// TLS is in use from now on: the extensions are asked for again.
    pub(super) fn begin_anew(&mut self) {
        if self.state == State::Handshake {
            self.state = State::Opening;
            self.is_secured = true;
            self.extensions = Extensions::default();
            self.say_hello();
        }
    }

    pub(super) fn greeting_arrived(&mut self, reply: Reply) {
        match reply.class() {
            2 => self.say_hello(),
            _ => self.refuse(Stage::Greeting, reply),
        }
    }

    fn say_hello(&mut self) {
        let line = ["EHLO ", &self.settings.hello].concat();
        self.ask(Asked::Hello, &line);
    }

    pub(super) fn hello_answered(&mut self, reply: Reply, extensions: Extensions) {
        match reply.class() {
            2 => {
                self.extensions = extensions;
                self.greeted();
            }
            // The server is from before 1995, or pretends to be (RFC 5321 section 3.2).
            5 => {
                let line = ["HELO ", &self.settings.hello].concat();
                self.ask(Asked::PlainHello, &line);
            }
            _ => self.refuse(Stage::Hello, reply),
        }
    }

    pub(super) fn plain_hello_answered(&mut self, reply: Reply) {
        match reply.class() {
            2 => self.greeted(),
            _ => self.refuse(Stage::Hello, reply),
        }
    }

    fn greeted(&mut self) {
        let wants_tls = !self.is_secured && self.settings.tls != Tls::Never;
        if wants_tls && self.extensions.starttls {
            self.ask(Asked::StartTls, "STARTTLS");
        } else {
            self.tls_is_decided(None);
        }
    }

    pub(super) fn start_tls_answered(&mut self, reply: Reply) {
        match reply.class() {
            2 => {
                self.state = State::Handshake;
                self.actions.push_back(Action::StartTls);
            }
            _ => self.tls_is_decided(Some(reply)),
        }
    }

    /// Whether TLS is used is decided now; `refusal`: the reply that prevented it.
    fn tls_is_decided(&mut self, refusal: Option<Reply>) {
        let may_do_without = match self.settings.tls {
            Tls::Never | Tls::Implicit => true,
            // An active attacker could hide the offer, and read the password.
            Tls::IfOffered => self.settings.login.is_none(),
            Tls::Required => false,
        };
        if self.is_secured || may_do_without {
            return self.log_in();
        }
        self.give_up(Stage::Tls, refusal.map_or(Cause::NoTls, Cause::Refused));
    }

    fn log_in(&mut self) {
        let Some(login) = &self.settings.login else { return self.rest() };
        if self.extensions.scram {
            let (claim, first) = Claim::begin(&login.user, login.nonce.clone());
            self.claim = Some(claim);
            let line = ["AUTH SCRAM-SHA-256 ", &first].concat();
            self.ask(Asked::ScramName, &line);
        } else if self.extensions.plain {
            let plain = ["", &login.user, &login.password].join("\0");
            let line = ["AUTH PLAIN ", &base64(&plain)].concat();
            self.ask(Asked::Plain, &line);
        } else if self.extensions.login {
            self.ask(Asked::LoginName, "AUTH LOGIN");
        } else {
            self.give_up(Stage::Login, Cause::NoLogin);
        }
    }

    pub(super) fn login_answered(&mut self, asked: Asked, reply: Reply) {
        let Some(login) = &self.settings.login else { return };
        match (asked, reply.class()) {
            (Asked::Plain | Asked::LoginEnd, 2) => self.rest(),
            (Asked::LoginName, 3) => {
                let name = base64(&login.user);
                self.ask(Asked::LoginPassword, &name);
            }
            (Asked::LoginPassword, 3) => {
                let password = base64(&login.password);
                self.ask(Asked::LoginEnd, &password);
            }
            // A wrong password is no fault of the message: the operator may correct it.
            _ => self.give_up(Stage::Login, Cause::Refused(reply)),
        }
    }

    /// The peer asks for a proof, or says whether it was right. Before it accepts the login, it has
    /// to show that it knows the password too.
    pub(super) fn claim_answered(&mut self, asked: Asked, reply: Reply) {
        let Client { settings, claim: Some(claim), .. } = self else { return };
        let Some(login) = &settings.login else { return };
        match (asked, reply.class()) {
            (Asked::ScramName, 3) => match claim.challenged(&login.password, &reply.text) {
                Ok(()) => self.state = State::Proof,
                Err(_) => self.give_up(Stage::Login, Cause::Misbehaved(Misbehaviour::NoChallenge)),
            },
            (Asked::ScramProof, 3) if claim.is_answered_by(&reply.text) => {
                self.ask(Asked::ScramEnd, "")
            }
            (Asked::ScramProof, 3) => {
                self.give_up(Stage::Login, Cause::Misbehaved(Misbehaviour::NoProof))
            }
            (Asked::ScramEnd, 2) => {
                self.claim = None;
                self.rest();
            }
            _ => self.give_up(Stage::Login, Cause::Refused(reply)),
        }
    }

    /// Computes a part of the password's proof.
    pub fn compute(&mut self) {
        if self.state == State::Proof
            && let Some(proof) = self.claim.as_mut().and_then(Claim::step)
        {
            self.state = State::Opening;
            self.ask(Asked::ScramProof, &proof);
        }
    }

    /// The peer does not accept the connection.
    fn refuse(&mut self, stage: Stage, reply: Reply) {
        let class = if reply.class() == 5 { Outcome::Never } else { Outcome::Later };
        self.end = Some(class(Reason { stage, cause: Cause::Refused(reply) }));
        self.leave();
    }

    /// Nothing can be sent on this connection.
    fn give_up(&mut self, stage: Stage, cause: Cause) {
        self.end = Some(Outcome::Later(Reason { stage, cause }));
        self.leave();
    }

    /// Sends QUIT, and does not wait for the answer.
    fn leave(&mut self) {
        self.close();
        self.output.line("QUIT");
    }
}

fn base64(text: &str) -> String {
    Base64::encode_string(text.as_bytes())
}
