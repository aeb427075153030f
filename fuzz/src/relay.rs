//! Outbound mail: what a peer says to our client, and what else happens in between.
//!
//! A segment ends at a cut or an event, and only then do the client's words go out. Bytes in one
//! segment came before the client said anything more.
//!
//! Oracles:
//! - Any input: no panic, and at the end each recipient of each message has exactly one outcome.
//! - How the bytes of a segment are cut changes neither what is said nor any outcome.
//! - No recipient counts as delivered unless the end of the message was sent and the peer has
//!   confirmed it.
//! - A peer that has not offered to take more than ASCII gets only ASCII.
//! - What waits to be sent is bounded, and after the end only QUIT is said.

use relay::{
    Action, BODY_ROOM_BYTES, ClientLogin, ContentWidth, DeliveryOutcome, Envelope, Lost, Notify,
    OutgoingMessage, OutgoingRecipient, Return, Script, SmtpClient, SmtpClientSettings, Speaker,
    TlsMode,
};

use crate::script::{Event, Step, steps};

/// The commands of a message take no more than this.
const COMMANDS_BYTES_MAX: usize = 2_048;
const MESSAGES_MAX: u16 = 3;
/// Messages, of which one is more than ASCII.
const MESSAGES: [&[u8]; 2] =
    [b".\r\nSubject: x\r\n\r\n..\r\n.", b".\r\nSubject: x\xe6\r\n\r\n..\r\n."];

/// Runs one input.
pub fn run(data: &[u8]) {
    let Some((&how, script)) = data.split_first() else { return };
    let steps = steps(script);
    let [whole, cut] = [usize::MAX, 1].map(|piece| Caller::new(how, piece).follow(&steps));
    assert_eq!(
        String::from_utf8_lossy(&whole.said),
        String::from_utf8_lossy(&cut.said),
        "the output does not depend on cuts"
    );
    assert_eq!(whole.told, cut.told, "outcomes do not depend on cuts");
}

/// The caller that owns the client.
struct Caller {
    client: SmtpClient,
    /// So many bytes arrive together.
    piece: usize,
    message: &'static [u8],
    /// What is said of the message.
    content: ContentWidth,
    recipients: u16,
    messages: u16,
    is_held: bool,
    wants_body: bool,
    is_over: bool,
    heard: Vec<u8>,
    said: Vec<u8>,
    taken: usize,
    told: Vec<(u16, DeliveryOutcome)>,
}

impl Caller {
    fn new(how: u8, piece: usize) -> Caller {
        let tls = [TlsMode::Never, TlsMode::IfOffered, TlsMode::Required, TlsMode::Implicit]
            [usize::from(how & 3)];
        let login = (how & 4 != 0).then(|| ClientLogin {
            user: "ada".to_string(),
            password: "pencil".to_string(),
            nonce: "rOprNGfwEbeRWgbNEkqO".to_string(),
        });
        let client =
            SmtpClient::new(SmtpClientSettings { hello: "us.test".to_string(), tls, login });
        let mut caller = Caller {
            client,
            piece,
            message: MESSAGES[usize::from(how >> 5 & 1)],
            content: [ContentWidth::EightBit, ContentWidth::SevenBit][usize::from(how >> 6 & 1)],
            recipients: 1 + u16::from(how >> 3 & 3),
            messages: 0,
            is_held: false,
            wants_body: false,
            is_over: false,
            heard: Vec::new(),
            said: Vec::new(),
            taken: 0,
            told: Vec::new(),
        };
        caller.deliver();
        caller
    }

    fn follow(mut self, steps: &[Step]) -> Caller {
        for step in steps {
            match step {
                Step::Bytes(bytes) => {
                    self.heard.extend_from_slice(bytes);
                    bytes.chunks(self.piece).for_each(|piece| self.client.arrived(piece));
                }
                Step::Cut => self.work(),
                Step::Event(event) => self.happens(*event),
            }
        }
        self.work();
        self.client.lost(Lost::Closed);
        self.work();
        assert!(self.is_over);
        self.check();
        self
    }

    fn happens(&mut self, event: Event) {
        self.work();
        match event {
            Event::Stopping => self.client.lost(Lost::GivenUp),
            Event::DeadlineExpired => self.client.lost(Lost::Silence),
            Event::PeerClosed => self.client.lost(Lost::Closed),
            Event::Hold => self.is_held = true,
            Event::Answer => self.is_held = false,
        }
        self.work();
    }

    fn deliver(&mut self) {
        let number = |place| self.messages * 16 + place;
        let recipients = (0..self.recipients).map(|place| OutgoingRecipient {
            number: number(place),
            address: format!("u{place}@there.test"),
            notify: Some(Notify { success: place & 1 == 0, failure: true, delay: place & 2 == 0 }),
            original: Some("rfc822;u@old.test".to_string()),
        });
        let envelope = Envelope {
            reverse_path: "ada@us.test".to_string(),
            recipients: recipients.collect(),
            content: self.content,
            script: Script::Ascii,
            returned: Some(Return::Header),
            envelope_id: Some("QQ+20".to_string()),
            held_until: None,
        };
        self.messages += 1;
        self.taken = 0;
        self.client.deliver(OutgoingMessage { envelope, bytes: self.message.len() as u64 });
    }

    /// Does what the client wants done, until it wants nothing.
    fn work(&mut self) {
        loop {
            let output = self.client.output();
            assert!(output.len() <= BODY_ROOM_BYTES + COMMANDS_BYTES_MAX, "what waits is bounded");
            assert!(!self.is_over || output.is_empty(), "nothing is sent after the end");
            self.said.extend_from_slice(output);
            self.client.sent(output.len());
            if self.wants_body && !self.is_held {
                self.wants_body = false;
                self.bring();
            }
            match self.client.next_action() {
                Some(Action::StartTls) => self.client.secured(),
                Some(Action::Compute) => self.client.compute(),
                Some(Action::NeedBody) => self.wants_body = true,
                Some(Action::BodyAnew) => self.taken = 0,
                Some(Action::Done { recipient, outcome }) => self.told.push((recipient, outcome)),
                Some(Action::Idle) if self.messages < MESSAGES_MAX => self.deliver(),
                Some(Action::Idle) => self.client.quit(),
                Some(Action::HangUp) => {
                    assert!(
                        !std::mem::replace(&mut self.is_over, true),
                        "the connection ends once"
                    );
                    self.said.extend_from_slice(self.client.output());
                    self.client.sent(self.client.output().len());
                }
                None if self.client.output().is_empty() && (!self.wants_body || self.is_held) => {
                    break;
                }
                None => {}
            }
        }
    }

    fn bring(&mut self) {
        match &self.message[self.taken..] {
            [] => self.client.body_ended(),
            rest => self.taken += self.client.body(&rest[..rest.len().min(7)]),
        }
    }

    fn check(&self) {
        let mut numbers: Vec<_> = self.told.iter().map(|(number, _)| *number).collect();
        numbers.sort_unstable();
        let expected: Vec<_> = (0..self.messages)
            .flat_map(|message| (0..self.recipients).map(move |place| message * 16 + place))
            .collect();
        assert_eq!(numbers, expected, "each recipient has one outcome");
        let delivered = self
            .told
            .iter()
            .filter(|(_, outcome)| matches!(outcome, DeliveryOutcome::Delivered(_)));
        let messages = delivered
            .map(|(number, _)| number / 16)
            .collect::<std::collections::BTreeSet<_>>()
            .len();
        let count = |text: &[u8], word: &[u8]| {
            text.windows(word.len()).filter(|window| *window == word).count()
        };
        let [start, end] = [&b"..\r\nSubject: x"[..], b"\r\n\r\n...\r\n..\r\n.\r\n"];
        let middle = if self.message.is_ascii() { &[][..] } else { b"\xe6" };
        let whole = [start, middle, end].concat();
        assert!(
            count(&self.said, &whole) >= messages,
            "a peer that accepted a message has all of it"
        );
        let offers = count(&self.heard.to_ascii_uppercase(), b"8BITMIME");
        assert!(offers > 0 || self.said.is_ascii(), "a peer without 8BITMIME gets only ASCII");
        // For MAIL, for RCPT and for the whole; and for DATA.
        let (twos, threes) = (count(&self.heard, b"2"), count(&self.heard, b"3"));
        assert!(
            twos >= 3 * messages && threes >= messages,
            "each delivered message was accepted by the peer"
        );
    }
}
