//! The opening of a conversation, from the greeting until messages can be sent: EHLO, STARTTLS,
//! AUTH.
//!
//! Implements: RFC 5321 sections 3.1 and 3.2; RFC 3207 section 4; RFC 4954 section 4, RFC 4616
//! (PLAIN); RFC 7677 (SCRAM-SHA-256); draft-murchison-sasl-login (LOGIN).

use alloc::string::String;

use base64ct::{Base64, Encoding as _};
use sasl::ClientExchange;

use super::{Action, SentCommand, SmtpClient, State, TlsMode};
use crate::extensions::ServerExtensions;
use crate::outcome::{Cause, DeliveryFailure, DeliveryOutcome, Misbehaviour, Stage};
use crate::reply::Reply;

impl SmtpClient {
    /// Begins the conversation again under TLS, and asks for the extensions again.
    pub(super) fn begin_anew(&mut self) {
        if self.state == State::Handshake {
            self.state = State::Opening;
            self.is_secured = true;
            self.extensions = ServerExtensions::default();
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
        self.ask(SentCommand::Hello, &line);
    }

    pub(super) fn hello_answered(&mut self, reply: Reply, extensions: ServerExtensions) {
        match reply.class() {
            2 => {
                self.extensions = extensions;
                self.greeted();
            }
            // The server is from before 1995, or behaves like one (RFC 5321 section 3.2).
            5 => {
                let line = ["HELO ", &self.settings.hello].concat();
                self.ask(SentCommand::PlainHello, &line);
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

    /// Continues after EHLO or HELO: begins TLS if it is wanted and offered.
    fn greeted(&mut self) {
        let wants_tls = !self.is_secured && self.settings.tls != TlsMode::Never;
        if wants_tls && self.extensions.starttls {
            self.ask(SentCommand::StartTls, "STARTTLS");
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

    /// Continues when it is decided whether TLS is used. `refusal`: the reply that prevented TLS.
    fn tls_is_decided(&mut self, refusal: Option<Reply>) {
        let may_do_without = match self.settings.tls {
            TlsMode::Never | TlsMode::Implicit => true,
            // An active attacker could hide the offer of TLS, and read the password.
            TlsMode::IfOffered => self.settings.login.is_none(),
            TlsMode::Required => false,
        };
        if self.is_secured || may_do_without {
            return self.log_in();
        }
        self.give_up(Stage::Tls, refusal.map_or(Cause::NoTls, Cause::Refused));
    }

    fn log_in(&mut self) {
        let Some(login) = &self.settings.login else { return self.rest() };
        if self.extensions.scram {
            let (scram, first) = ClientExchange::begin(&login.user, login.nonce.clone());
            self.scram = Some(scram);
            let line = ["AUTH SCRAM-SHA-256 ", &first].concat();
            self.ask(SentCommand::ScramName, &line);
        } else if self.extensions.plain {
            let plain = ["", &login.user, &login.password].join("\0");
            let line = ["AUTH PLAIN ", &base64(&plain)].concat();
            self.ask(SentCommand::Plain, &line);
        } else if self.extensions.login {
            self.ask(SentCommand::LoginName, "AUTH LOGIN");
        } else {
            self.give_up(Stage::Login, Cause::NoLogin);
        }
    }

    pub(super) fn login_answered(&mut self, asked: SentCommand, reply: Reply) {
        let Some(login) = &self.settings.login else { return };
        match (asked, reply.class()) {
            (SentCommand::Plain | SentCommand::LoginEnd, 2) => self.rest(),
            (SentCommand::LoginName, 3) => {
                let name = base64(&login.user);
                self.ask(SentCommand::LoginPassword, &name);
            }
            (SentCommand::LoginPassword, 3) => {
                let password = base64(&login.password);
                self.ask(SentCommand::LoginEnd, &password);
            }
            // A wrong password is no fault of the message: the operator may correct it.
            _ => self.give_up(Stage::Login, Cause::Refused(reply)),
        }
    }

    /// Processes a reply to a SCRAM command: the challenge, the peer's proof, or the result. The
    /// login is complete only when the peer has proved that it knows the password too.
    pub(super) fn scram_answered(&mut self, asked: SentCommand, reply: Reply) {
        let SmtpClient { settings, scram: Some(scram), .. } = self else { return };
        let Some(login) = &settings.login else { return };
        match (asked, reply.class()) {
            (SentCommand::ScramName, 3) => match scram.challenged(&login.password, &reply.text) {
                Ok(()) => self.state = State::Proof,
                Err(_) => self.give_up(Stage::Login, Cause::Misbehaved(Misbehaviour::NoChallenge)),
            },
            (SentCommand::ScramProof, 3) if scram.is_answered_by(&reply.text) => {
                self.ask(SentCommand::ScramEnd, "")
            }
            (SentCommand::ScramProof, 3) => {
                self.give_up(Stage::Login, Cause::Misbehaved(Misbehaviour::NoProof))
            }
            (SentCommand::ScramEnd, 2) => {
                self.scram = None;
                self.rest();
            }
            _ => self.give_up(Stage::Login, Cause::Refused(reply)),
        }
    }

    /// Computes a part of the password's proof.
    pub fn compute(&mut self) {
        if self.state == State::Proof
            && let Some(proof) = self.scram.as_mut().and_then(ClientExchange::step)
        {
            self.state = State::Opening;
            self.ask(SentCommand::ScramProof, &proof);
        }
    }

    /// Ends the conversation: the peer does not accept the connection.
    fn refuse(&mut self, stage: Stage, reply: Reply) {
        let class =
            if reply.class() == 5 { DeliveryOutcome::Never } else { DeliveryOutcome::Later };
        self.end = Some(class(DeliveryFailure { stage, cause: Cause::Refused(reply) }));
        self.leave();
    }

    /// Ends the conversation: nothing can be sent on this connection.
    fn give_up(&mut self, stage: Stage, cause: Cause) {
        self.end = Some(DeliveryOutcome::Later(DeliveryFailure { stage, cause }));
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
