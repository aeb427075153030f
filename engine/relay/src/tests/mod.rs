//! Conversations with peers that follow SMTP, and with peers that do not.

mod bodies;
mod envelopes;
mod filters;
mod hostile;
mod messages;
mod opening;
mod ours;
mod policies;
mod properties;
mod replies;
mod reports;
mod routes;
mod schedules;
mod srs;
mod tallies;

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use crate::{
    Action, ClientLogin, ContentWidth, DeliveryOutcome, Envelope, Lost, OutgoingMessage,
    OutgoingRecipient, Script, SmtpClient, SmtpClientSettings, Speaker, TlsMode,
};

/// The extensions of a peer that supports everything, and of one that supports nothing.
const ABLE: &str = "250-mail.test\r\n250-PIPELINING\r\n250-SIZE 1000\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n250-DSN\r\n250-STARTTLS\r\n250-AUTH LOGIN PLAIN\r\n250 HELP\r\n";
const PLAIN: &str = "250 mail.test\r\n";

/// A client with its peer and its caller.
struct ClientHarness {
    client: SmtpClient,
    sent: Vec<u8>,
    outcomes: Vec<(u16, DeliveryOutcome)>,
    message: Vec<u8>,
    /// The number of bytes of the message that were taken.
    taken: usize,
    /// Whether the caller gives the message when it is asked for.
    is_bringing: bool,
    wants_body: bool,
    wants_tls: bool,
    is_idle: bool,
    is_over: bool,
}

impl ClientHarness {
    fn new(settings: SmtpClientSettings) -> ClientHarness {
        ClientHarness {
            client: SmtpClient::new(settings),
            sent: Vec::new(),
            outcomes: Vec::new(),
            message: b"Subject: x\r\n\r\n.dot\r\n".to_vec(),
            taken: 0,
            is_bringing: true,
            wants_body: false,
            wants_tls: false,
            is_idle: false,
            is_over: false,
        }
    }

    fn with_tls(tls: TlsMode) -> ClientHarness {
        ClientHarness::new(SmtpClientSettings { hello: "us.test".to_string(), tls, login: None })
    }

    fn with_login(tls: TlsMode) -> ClientHarness {
        let [user, password, nonce] = ["user", "pencil", "rOprNGfwEbeRWgbNEkqO"].map(String::from);
        let login = Some(ClientLogin { user, password, nonce });
        ClientHarness::new(SmtpClientSettings { hello: "us.test".to_string(), tls, login })
    }

    /// An idle client after the peer sent this reply to EHLO.
    fn greeted(hello: &str) -> ClientHarness {
        let mut harness = ClientHarness::with_tls(TlsMode::Never);
        harness.exchange(&[("220 mail.test ESMTP\r\n", "EHLO us.test\r\n"), (hello, "")]);
        assert!(core::mem::take(&mut harness.is_idle));
        harness
    }

    fn deliver(&mut self, outgoing: OutgoingMessage) -> String {
        self.taken = 0;
        self.client.deliver(outgoing);
        self.says()
    }

    /// For each pair: the peer sends the first, and gets the second.
    fn exchange(&mut self, lines: &[(&str, &str)]) {
        for (theirs, ours) in lines {
            assert_eq!(self.hears(theirs), *ours, "after {theirs:?}");
        }
    }

    fn hears(&mut self, text: &str) -> String {
        self.client.arrived(text.as_bytes());
        self.says()
    }

    /// Carries out the client's actions. Returns the bytes that it sent.
    fn says(&mut self) -> String {
        loop {
            let output = self.client.output();
            self.sent.extend_from_slice(output);
            self.client.sent(output.len());
            match self.client.next_action() {
                Some(Action::StartTls) => self.wants_tls = true,
                Some(Action::Compute) => self.client.compute(),
                Some(Action::NeedBody) if self.is_bringing => self.bring(),
                Some(Action::NeedBody) => self.wants_body = true,
                Some(Action::BodyAnew) => self.taken = 0,
                Some(Action::Done { recipient, outcome }) => {
                    self.outcomes.push((recipient, outcome))
                }
                Some(Action::Idle) => self.is_idle = true,
                Some(Action::HangUp) => self.is_over = true,
                None if self.client.output().is_empty() => break,
                None => {}
            }
        }
        String::from_utf8(core::mem::take(&mut self.sent)).unwrap()
    }

    fn bring(&mut self) {
        let rest = &self.message[self.taken..];
        match rest {
            [] => self.client.body_ended(),
            rest => self.taken += self.client.body(rest),
        }
    }

    fn lost(&mut self, lost: Lost) {
        self.client.lost(lost);
        assert_eq!(self.says(), "");
        assert!(self.is_over);
    }

    /// The outcomes since the last call: `1 delivered 250 2.0.0 taken`.
    fn outcomes(&mut self) -> Vec<String> {
        let tell = |(number, outcome): &(u16, DeliveryOutcome)| match outcome {
            DeliveryOutcome::Delivered(reply) => std::format!("{number} delivered {reply}"),
            DeliveryOutcome::Later(reason) => {
                std::format!("{number} later {} {reason}", reason.status(4))
            }
            DeliveryOutcome::Never(reason) => {
                std::format!("{number} never {} {reason}", reason.status(5))
            }
        };
        core::mem::take(&mut self.outcomes).iter().map(tell).collect()
    }
}

fn to(number: u16, address: &str) -> OutgoingRecipient {
    OutgoingRecipient { number, address: address.to_string(), notify: None, original: None }
}

fn outgoing(recipients: &[&str]) -> OutgoingMessage {
    let envelope = Envelope {
        reverse_path: "ada@us.test".to_string(),
        recipients: recipients
            .iter()
            .zip(1..)
            .map(|(address, number)| to(number, address))
            .collect(),
        content: ContentWidth::SevenBit,
        script: Script::Ascii,
        returned: None,
        envelope_id: None,
        held_until: None,
    };
    OutgoingMessage { envelope, bytes: 19 }
}
