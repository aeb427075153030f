//! Outbound mail: the bytes of a peer, and events between them.
//!
//! The client's output is sent only when a segment of the peer ends: at the end of a piece of the
//! input, or at an event. So the client gets all bytes of a segment before it sends more.
//!
//! Oracles:
//! - Any input: no panic, and at the end each recipient of each message has exactly one outcome.
//! - The pieces in which a segment arrives change neither the client's output nor any outcome.
//! - No recipient counts as delivered unless the end of the message was sent and the peer has
//!   confirmed it.
//! - A peer that does not offer 8BITMIME gets only ASCII.
//! - The waiting output is bounded, and the client sends nothing after the end.

use relay::{
    Action, BODY_ROOM_BYTES, ClientLogin, ContentWidth, DeliveryOutcome, Envelope, Lost, Notify,
    OutgoingMessage, OutgoingRecipient, Return, Script, SmtpClient, SmtpClientSettings, Speaker,
    TlsMode,
};

use crate::script::{Event, Step, steps};

/// The most bytes of the commands of a message.
const COMMANDS_BYTES_MAX: usize = 2_048;
const MESSAGES_MAX: u16 = 3;
/// A message that is ASCII, and one that is not.
const MESSAGES: [&[u8]; 2] =
    [b".\r\nSubject: x\r\n\r\n..\r\n.", b".\r\nSubject: x\xe6\r\n\r\n..\r\n."];

/// Runs one input.
pub fn run(data: &[u8]) {
    let Some((&modes, script)) = data.split_first() else { return };
    let steps = steps(script);
    let [whole, cut] = [usize::MAX, 1].map(|piece| Caller::new(modes, piece).follow(&steps));
    assert_eq!(
        String::from_utf8_lossy(&whole.output),
        String::from_utf8_lossy(&cut.output),
        "the output does not depend on cuts"
    );
    assert_eq!(whole.outcomes, cut.outcomes, "outcomes do not depend on cuts");
}

/// The owner of the client: it moves bytes, and carries out the client's actions.
struct Caller {
    client: SmtpClient,
    /// The number of bytes that arrive together.
    piece: usize,
    /// The content of every message.
    message: &'static [u8],
    /// The declared width of the message, which may be wrong.
    content: ContentWidth,
    /// The number of recipients of each message.
    recipients: u16,
    /// The number of messages so far.
    messages: u16,
    /// Whether the script holds back the bodies of messages.
    is_held: bool,
    /// Whether the client waits for the next part of a body.
    wants_body: bool,
    is_over: bool,
    received: Vec<u8>,
    output: Vec<u8>,
    /// The number of bytes of the present body that the client has taken.
    taken: usize,
    /// The outcomes so far, by the number of the recipient.
    outcomes: Vec<(u16, DeliveryOutcome)>,
}

impl Caller {
    fn new(modes: u8, piece: usize) -> Caller {
        let tls = [TlsMode::Never, TlsMode::IfOffered, TlsMode::Required, TlsMode::Implicit]
            [usize::from(modes & 3)];
        let login = (modes & 4 != 0).then(|| ClientLogin {
            user: "ada".to_string(),
            password: "pencil".to_string(),
            nonce: "rOprNGfwEbeRWgbNEkqO".to_string(),
        });
        let client =
            SmtpClient::new(SmtpClientSettings { hello: "us.test".to_string(), tls, login });
        let mut caller = Caller {
            client,
            piece,
            message: MESSAGES[usize::from(modes >> 5 & 1)],
            content: [ContentWidth::EightBit, ContentWidth::SevenBit][usize::from(modes >> 6 & 1)],
            recipients: 1 + u16::from(modes >> 3 & 3),
            messages: 0,
            is_held: false,
            wants_body: false,
            is_over: false,
            received: Vec::new(),
            output: Vec::new(),
            taken: 0,
            outcomes: Vec::new(),
        };
        caller.deliver();
        caller
    }

    fn follow(mut self, steps: &[Step]) -> Caller {
        for step in steps {
            match step {
                Step::Bytes(bytes) => {
                    self.received.extend_from_slice(bytes);
                    bytes.chunks(self.piece).for_each(|piece| self.client.arrived(piece));
                }
                Step::Cut => self.work(),
                Step::Event(event) => self.handle_event(*event),
            }
        }
        self.work();
        self.client.lost(Lost::Closed);
        self.work();
        assert!(self.is_over);
        self.check();
        self
    }

    fn handle_event(&mut self, event: Event) {
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

    /// Carries out the client's actions until the client has no more.
    fn work(&mut self) {
        loop {
            let output = self.client.output();
            assert!(output.len() <= BODY_ROOM_BYTES + COMMANDS_BYTES_MAX, "output is bounded");
            assert!(!self.is_over || output.is_empty(), "nothing is sent after the end");
            self.output.extend_from_slice(output);
            self.client.sent(output.len());
            if self.wants_body && !self.is_held {
                self.wants_body = false;
                self.send_body();
            }
            match self.client.next_action() {
                Some(Action::StartTls) => self.client.secured(),
                Some(Action::Compute) => self.client.compute(),
                Some(Action::NeedBody) => self.wants_body = true,
                Some(Action::BodyAnew) => self.taken = 0,
                Some(Action::Done { recipient, outcome }) => {
                    self.outcomes.push((recipient, outcome))
                }
                Some(Action::Idle) if self.messages < MESSAGES_MAX => self.deliver(),
                Some(Action::Idle) => self.client.quit(),
                Some(Action::HangUp) => {
                    assert!(
                        !std::mem::replace(&mut self.is_over, true),
                        "the connection ends once"
                    );
                    self.output.extend_from_slice(self.client.output());
                    self.client.sent(self.client.output().len());
                }
                None if self.client.output().is_empty() && (!self.wants_body || self.is_held) => {
                    break;
                }
                None => {}
            }
        }
    }

    fn send_body(&mut self) {
        match &self.message[self.taken..] {
            [] => self.client.body_ended(),
            rest => self.taken += self.client.body(&rest[..rest.len().min(7)]),
        }
    }

    fn check(&self) {
        let mut numbers: Vec<_> = self.outcomes.iter().map(|(number, _)| *number).collect();
        numbers.sort_unstable();
        let expected: Vec<_> = (0..self.messages)
            .flat_map(|message| (0..self.recipients).map(move |place| message * 16 + place))
            .collect();
        assert_eq!(numbers, expected, "each recipient has one outcome");
        let delivered = self
            .outcomes
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
        assert!(count(&self.output, &whole) >= messages, "a peer accepts only whole messages");
        let offers = count(&self.received.to_ascii_uppercase(), b"8BITMIME");
        assert!(offers > 0 || self.output.is_ascii(), "a peer without 8BITMIME gets only ASCII");
        // A delivered message has replies of 2xx to MAIL, RCPT and the end of data, and one of 3xx
        // to DATA.
        let (twos, threes) = (count(&self.received, b"2"), count(&self.received, b"3"));
        assert!(
            twos >= 3 * messages && threes >= messages,
            "each delivered message was accepted by the peer"
        );
    }
}
