//! Our own server as the peer: it understands what the client sends, and the message arrives
//! unchanged.

use alloc::boxed::Box;

use machine::Micros;
use proptest::prelude::*;
use sasl::{Credentials, Host, Proof, Puzzle, ServerSignature};
use smtp::{
    Actions, Extensions, Mail, MessageRefusal, MessageStart, RecipientRefusal, SenderRefusal,
    Session, SmtpPath, SmtpWaitsFor,
};
use testkit::scram;

use super::*;

/// The state of the server.
struct World {
    settings: smtp::SmtpSettings,
    sent: Vec<u8>,
    envelope: Vec<String>,
    message: Vec<u8>,
    taken: Vec<(Vec<String>, Vec<u8>)>,
    is_over: bool,
    logins: Vec<String>,
    /// The server signature for the last SCRAM proof.
    signature: Option<ServerSignature>,
}

impl Host for World {
    fn puzzle(&mut self, _: &str) -> Puzzle {
        scram::puzzle()
    }

    fn login(&mut self, credentials: Credentials<'_>) {
        self.logins.push(credentials.name.to_string());
        if let Proof::Scram(proof) = credentials.proof {
            self.signature = scram::check(&proof);
        }
    }
}

impl Actions for World {
    fn settings(&self) -> smtp::SmtpSettings {
        self.settings
    }

    fn send_room(&self) -> usize {
        usize::MAX
    }

    fn reply(&mut self, bytes: &[u8]) {
        self.sent.extend_from_slice(bytes);
    }

    fn hostname(&self) -> &str {
        "mail.test"
    }

    fn transaction_begin(&mut self, mail: &Mail<'_>) -> Result<(), SenderRefusal> {
        self.envelope = Vec::from([mail.reverse_path.text().to_string()]);
        if mail.reverse_path.text().starts_with("busy") { Err(SenderRefusal::Busy) } else { Ok(()) }
    }

    fn may_answer(&mut self, _: &SmtpPath<'_>, _: &str) -> bool {
        true
    }

    fn recipient(
        &mut self,
        smtp::RcptTo { path, .. }: &smtp::RcptTo<'_>,
    ) -> Result<(), RecipientRefusal> {
        match path.text().split_once('@') {
            Some(("nobody", _)) => return Err(RecipientRefusal::UnknownUser),
            Some(("full", _)) => return Err(RecipientRefusal::MailboxFull),
            _ => self.envelope.push(path.text().to_string()),
        }
        Ok(())
    }

    fn reason(&self) -> &str {
        "mail is not accepted here"
    }

    fn transaction_end(&mut self) {}

    fn may_begin(&mut self, _: &str) -> bool {
        true
    }

    fn message_begin(&mut self, _: &MessageStart<'_>) -> Result<(), MessageRefusal> {
        self.message.clear();
        Ok(())
    }

    fn message_bytes(&mut self, bytes: &[u8]) -> Result<usize, MessageRefusal> {
        self.message.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn message_end(&mut self) -> Result<(), MessageRefusal> {
        self.taken.push((self.envelope.clone(), core::mem::take(&mut self.message)));
        Ok(())
    }

    fn message_abort(&mut self) {}

    fn abandon_login(&mut self) {}

    fn set_deadline(&mut self, _: Option<Micros>) {}

    fn close(&mut self) {
        self.is_over = true;
    }
}

/// The client and the server, with a connection between them.
struct Pair {
    harness: ClientHarness,
    session: Box<Session>,
    world: World,
    kept: Vec<u8>,
}

impl Pair {
    fn new(harness: ClientHarness, settings: smtp::SmtpSettings) -> Pair {
        let (sent, envelope, message, taken, logins, signature) = Default::default();
        let mut world =
            World { settings, sent, envelope, message, taken, is_over: false, logins, signature };
        let session = Box::new(Session::connected(&mut world));
        Pair { harness, session, world, kept: Vec::new() }
    }

    fn deliver(&mut self, outgoing: OutgoingMessage) -> Vec<String> {
        let from_client = self.harness.deliver(outgoing);
        self.talk(from_client);
        self.harness.outcomes()
    }

    fn talk(&mut self, from_client: String) {
        self.kept.extend_from_slice(from_client.as_bytes());
        self.serve();
        loop {
            let from_server = core::mem::take(&mut self.world.sent);
            self.harness.client.arrived(&from_server);
            let from_client = self.harness.says();
            if from_server.is_empty() && from_client.is_empty() {
                break;
            }
            self.kept.extend_from_slice(from_client.as_bytes());
            self.serve();
        }
    }

    fn serve(&mut self) {
        loop {
            let taken = self.session.bytes_arrived(&self.kept, &mut self.world);
            self.kept.drain(..taken);
            match self.session.waits_for() {
                SmtpWaitsFor::Stored => self.session.message_stored(Ok(b"4D2"), &mut self.world),
                SmtpWaitsFor::Login => {
                    self.session.login_answered(Ok(self.world.signature.take()), &mut self.world)
                }
                SmtpWaitsFor::Handshake => {
                    let from_server = core::mem::take(&mut self.world.sent);
                    self.harness.client.arrived(&from_server);
                    assert_eq!(self.harness.says(), "");
                    assert!(core::mem::take(&mut self.harness.wants_tls));
                    self.world.settings.tls = smtp::SmtpTls::Spoken;
                    self.world.settings.login = smtp::LoginPolicy::Required;
                    *self.session = Session::secured(&mut self.world);
                    self.harness.client.secured();
                    self.kept.extend_from_slice(self.harness.says().as_bytes());
                }
                _ => break,
            }
        }
    }
}

#[test]
fn our_own_server_accepts_what_the_client_sends() {
    let pipelined = smtp::SmtpSettings::default();
    let poor = smtp::SmtpSettings {
        extensions: Extensions::ALL.without(Extensions::PIPELINING),
        ..pipelined
    };
    for settings in [pipelined, poor] {
        let mut pair = Pair::new(ClientHarness::with_tls(TlsMode::IfOffered), settings);
        for round in 1..=3 {
            let outcomes = pair.deliver(outgoing(&[
                "bob@mail.test",
                "nobody@mail.test",
                "full@mail.test",
                "\"e e\"@mail.test",
            ]));
            assert_eq!(outcomes.len(), 4);
            assert!(
                outcomes[0].starts_with("2 never 5.1.1")
                    && outcomes[1].starts_with("3 later 4.2.2"),
                "{outcomes:?}"
            );
            assert!(
                outcomes[2].starts_with("1 delivered 250 2.0.0")
                    && outcomes[3].starts_with("4 delivered 250 2.0.0")
            );
            assert_eq!(pair.world.taken.len(), round);
        }
        let envelope =
            ["ada@us.test", "bob@mail.test", "\"e e\"@mail.test"].map(String::from).to_vec();
        assert_eq!(
            pair.world.taken.last(),
            Some(&(envelope, b"Subject: x\r\n\r\n.dot\r\n".to_vec()))
        );
        assert!(pair.deliver(outgoing(&["nobody@mail.test"]))[0].starts_with("1 never 5.1.1"));
        let mut busy = outgoing(&["bob@mail.test"]);
        busy.envelope.reverse_path = "busy@us.test".to_string();
        assert!(pair.deliver(busy)[0].starts_with("1 later 4.3.2"));
        pair.harness.client.quit();
        let from_client = pair.harness.says();
        pair.talk(from_client);
        assert!(pair.harness.is_over && pair.world.is_over);
    }
}

#[test]
fn our_own_server_accepts_a_login_under_tls() {
    let settings = smtp::SmtpSettings {
        tls: smtp::SmtpTls::Offered,
        login: smtp::LoginPolicy::AfterTls,
        ..smtp::SmtpSettings::default()
    };
    let mut pair = Pair::new(ClientHarness::with_login(TlsMode::Required), settings);
    let outcomes = pair.deliver(outgoing(&["bob@mail.test"]));
    assert!(outcomes[0].starts_with("1 delivered"), "{outcomes:?}");
    assert_eq!(pair.world.logins, ["user"]);
}

proptest! {
    #[test]
    fn received_message_equals_sent_message(message in "([.]{0,2}[ab.]{0,3}\r\n){0,12}") {
        let mut pair = Pair::new(ClientHarness::with_tls(TlsMode::IfOffered), smtp::SmtpSettings::default());
        pair.harness.message = message.clone().into_bytes();
        pair.deliver(outgoing(&["bob@mail.test"]));
        prop_assert_eq!(&pair.world.taken[0].1, message.as_bytes());
    }
}
