//! A remote smarthost that relays mail, with or without a login.

#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test may fail")]

use rustls::SupportedProtocolVersion;
use rustls::version::{TLS12, TLS13};
use sasl::{
    Credentials, Derivation, Exchange, Host, Mechanism, Proof, Puzzle, SaslStep, ServerSignature,
    Verifier,
};
use simulated::Connection;

use super::relay::{LISTENERS, PEER, Taken, nothing, unstuffed};
use super::relay_tls::TlsLayer;
use super::room::Room;
use super::room::tls_stream::Trust;

/// The user name, if the smarthost requires a login.
const USER: &str = "barepost";
pub(super) const PASSWORD: &str = "pencil";

/// The TLS behaviour of the smarthost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SmarthostTls {
    None,
    /// The smarthost offers STARTTLS: `Offered` with TLS 1.3, `Offered12` with TLS 1.2.
    Offered,
    Offered12,
    /// The smarthost offers STARTTLS, and then sends data that is not TLS.
    Babbles,
    /// The smarthost uses TLS from the first byte on.
    Implicit,
}

/// The greeting of the smarthost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Greeting {
    Ready,
    SendsAway,
    /// The smarthost resets every connection.
    Down,
}

/// One connection to the smarthost.
struct Conversation {
    connection: Connection,
    is_greeted: bool,
    heard: Vec<u8>,
    is_message: bool,
    open: Taken,
    login: Option<Exchange>,
    is_logged_in: bool,
    messages: usize,
    tls_layer: TlsLayer,
}

/// The smarthost, at one of its ports.
pub(super) struct Smarthost {
    port: u16,
    trust: Trust,
    pub(super) tls_mode: SmarthostTls,
    pub(super) greeting: Greeting,
    /// The login mechanisms that the smarthost offers; empty: it needs no login.
    pub(super) mechanisms: &'static str,
    password: &'static str,
    verifier: Option<Verifier>,
    conversations: Vec<Conversation>,
    pub(super) taken: Vec<Taken>,
    /// Every line that the smarthost has received, and whether the line came over TLS.
    pub(super) lines: Vec<(String, bool)>,
    /// `accepted`: how often the smarthost has accepted a connection. `messages_max`: the most
    /// messages of one connection.
    pub(super) accepted: usize,
    pub(super) messages_max: usize,
}

/// The state of a login at the smarthost.
struct LoginHost<'a> {
    verifier: &'a Verifier,
    password: &'a str,
    nonce: String,
    /// Whether the client has sent the right credentials.
    is_right: bool,
    signature: Option<ServerSignature>,
}

impl Host for LoginHost<'_> {
    fn puzzle(&mut self, _: &str) -> Puzzle {
        self.verifier.puzzle(self.nonce.clone())
    }

    fn login(&mut self, credentials: Credentials<'_>) {
        self.is_right = credentials.name == USER;
        match credentials.proof {
            Proof::Password(password) => self.is_right &= password == self.password.as_bytes(),
            Proof::Scram(proof) => {
                self.signature = self.verifier.check(&proof);
                self.is_right &= self.signature.is_some();
            }
        }
    }
}

impl Smarthost {
    pub(super) fn new(
        port: u16,
        tls_mode: SmarthostTls,
        trust: Trust,
        room: &mut Room,
    ) -> Smarthost {
        Smarthost {
            port,
            trust,
            tls_mode,
            greeting: Greeting::Ready,
            mechanisms: "",
            password: PASSWORD,
            verifier: None,
            conversations: (0..LISTENERS).map(|_| Conversation::awaited(port, room)).collect(),
            taken: Vec::new(),
            lines: Vec::new(),
            accepted: 0,
            messages_max: 0,
        }
    }

    /// Sets the correct password.
    pub(super) fn knows(&mut self, password: &'static str) {
        (self.password, self.verifier) = (password, None);
    }

    pub(super) fn serve(&mut self, room: &mut Room) {
        for index in 0..self.conversations.len() {
            self.speak(index, room);
        }
    }

    fn version(&self) -> &'static SupportedProtocolVersion {
        if self.tls_mode == SmarthostTls::Offered12 { &TLS12 } else { &TLS13 }
    }

    fn speak(&mut self, index: usize, room: &mut Room) {
        let version = self.version();
        let talk = &mut self.conversations[index];
        let connection = talk.connection;
        if room.hosts[PEER].is_over(connection) {
            *talk = Conversation::awaited(self.port, room);
            return;
        }
        let is_open = room.hosts[PEER].is_open(connection);
        if is_open && !talk.is_greeted {
            self.accepted += 1;
            talk.is_greeted = true;
            if self.greeting == Greeting::Down {
                return room.hosts[PEER].abort(connection);
            }
            if self.tls_mode == SmarthostTls::Implicit {
                talk.tls_layer.start(&self.trust, version, room);
            }
            let is_away = self.greeting == Greeting::SendsAway;
            talk.say(
                room,
                if is_away { "554 5.7.1 You are blocked\r\n" } else { "220 smart.test ready\r\n" },
            );
        }
        let heard = talk.tls_layer.heard(room, connection);
        talk.heard.extend(heard);
        if talk.is_greeted && !room.hosts[PEER].is_open(connection) {
            room.hosts[PEER].close(connection);
        }
        while self.take(index, room) {}
    }

    /// Handles the next message or line, if it is complete. Returns whether it was.
    fn take(&mut self, index: usize, room: &mut Room) -> bool {
        let version = self.version();
        let talk = &mut self.conversations[index];
        if talk.is_message {
            let Some(end) =
                talk.heard.windows(5).rposition(|five| five == b"\r\n.\r\n").map(|at| at + 2)
            else {
                return false;
            };
            talk.open.content = unstuffed(&talk.heard[..end]);
            talk.heard.drain(..end + 3);
            talk.is_message = false;
            talk.messages += 1;
            self.messages_max = talk.messages.max(self.messages_max);
            self.taken.push(talk.open.clone());
            talk.say(room, "250 2.0.0 Taken\r\n");
            return true;
        }
        let Some(end) = talk.heard.windows(2).position(|two| two == b"\r\n") else { return false };
        let line: Vec<u8> = talk.heard.drain(..end + 2).take(end).collect();
        let line = String::from_utf8(line).expect("commands are text");
        self.lines.push((line.clone(), talk.tls_layer.is_on()));
        if line == "STARTTLS" {
            talk.say(room, "220 2.0.0 Go on\r\n");
            match self.tls_mode {
                SmarthostTls::Babbles => talk.say(room, "I speak no TLS\r\n"),
                _ => talk.tls_layer.start(&self.trust, version, room),
            }
            return true;
        }
        let answer = self.answer(index, &line, room);
        self.conversations[index].say(room, &answer);
        true
    }

    fn answer(&mut self, index: usize, line: &str, room: &Room) -> String {
        let talk = &mut self.conversations[index];
        let path = || line.split(['<', '>']).nth(1).unwrap_or_default().to_string();
        if talk.login.is_some() || line.starts_with("AUTH ") {
            return self.log_in(index, line, room);
        }
        match line.get(..4).unwrap_or_default() {
            "EHLO" => {
                let is_offered = !talk.tls_layer.is_on()
                    && !matches!(self.tls_mode, SmarthostTls::None | SmarthostTls::Implicit);
                let tls = if is_offered { "250-STARTTLS\r\n" } else { "" };
                let login = match self.mechanisms {
                    "" => String::new(),
                    mechanisms => format!("250-AUTH {mechanisms}\r\n"),
                };
                format!("250-smart.test\r\n{tls}{login}250-8BITMIME\r\n250 PIPELINING\r\n")
            }
            "MAIL" if !self.mechanisms.is_empty() && !talk.is_logged_in => {
                "530 5.7.0 Log in\r\n".to_string()
            }
            "MAIL" => {
                talk.open =
                    Taken { from: path(), is_over_tls: talk.tls_layer.is_on(), ..nothing() };
                "250 2.1.0 OK\r\n".to_string()
            }
            "RCPT" => {
                talk.open.to.push(path());
                "250 2.1.5 OK\r\n".to_string()
            }
            "DATA" => {
                talk.is_message = true;
                "354 Go on\r\n".to_string()
            }
            "QUIT" => "221 2.0.0 Bye\r\n".to_string(),
            _ => "250 2.0.0 OK\r\n".to_string(),
        }
    }

    fn log_in(&mut self, index: usize, line: &str, room: &Room) -> String {
        let password = self.password;
        let verifier = self.verifier.get_or_insert_with(|| {
            let mut derivation = Derivation::begin(password.as_bytes(), [5; 16]);
            std::iter::repeat_with(|| derivation.step())
                .find_map(|made| made)
                .expect("the derivation ends")
        });
        let nonce = format!("smart{}", room.turns);
        let mut login_host =
            LoginHost { verifier, password, nonce, is_right: false, signature: None };
        let talk = &mut self.conversations[index];
        let (mut exchange, answer) = match talk.login.take() {
            Some(mut exchange) => {
                let answer = exchange.response_arrived(line.as_bytes(), &mut login_host);
                (exchange, answer)
            }
            None => {
                let mut words = line.split(' ').skip(1);
                let mechanism = words.next().unwrap_or_default();
                assert!(self.mechanisms.split(' ').any(|offered| offered == mechanism), "{line}");
                let mut exchange = Exchange::begin(
                    Mechanism::named(mechanism.as_bytes()).expect("the mechanism is known"),
                );
                let answer = match words.next() {
                    Some(first) => exchange.response_arrived(first.as_bytes(), &mut login_host),
                    None => exchange.opening(),
                };
                (exchange, answer)
            }
        };
        let answer = match (answer, login_host.signature) {
            (SaslStep::Complete, Some(signature)) if login_host.is_right => {
                let (signed, answer) = Exchange::signed(&signature);
                exchange = signed;
                answer
            }
            (answer, _) => answer,
        };
        match answer {
            SaslStep::Challenge(text) => {
                talk.login = Some(exchange);
                format!("334 {}\r\n", String::from_utf8_lossy(&text))
            }
            SaslStep::Complete if !login_host.is_right => "535 5.7.8 No\r\n".to_string(),
            SaslStep::Complete | SaslStep::Acknowledged => {
                talk.is_logged_in = true;
                "235 2.7.0 Welcome\r\n".to_string()
            }
            wrong => panic!("{wrong:?} after {line}"),
        }
    }
}

impl Conversation {
    fn awaited(port: u16, room: &mut Room) -> Conversation {
        Conversation {
            connection: room.hosts[PEER].listen(port),
            is_greeted: false,
            heard: Vec::new(),
            is_message: false,
            open: nothing(),
            login: None,
            is_logged_in: false,
            messages: 0,
            tls_layer: TlsLayer::default(),
        }
    }

    fn say(&mut self, room: &mut Room, text: &str) {
        self.tls_layer.say(room, self.connection, text.as_bytes());
    }
}
