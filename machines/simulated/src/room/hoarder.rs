//! A client that makes the machine keep as much memory as possible, and then sends nothing.
//!
//! A hoarder sends half of a message, half of a form with a long head, or HTTP/2 requests without
//! their bodies. Another kind of hoarder tries wrong passwords. A hoarder reads what the machine
//! sends, and stays until the machine ends the connection. No login succeeds.

use chance::Dice;

use super::approach::{Approach, TlsUse};
use super::context::{ClientProgress, StepContext};
use super::fixture::{ACCOUNTS, HOSTNAME};
use super::http2_client::Http2Client;
use super::line::ClientLine;

/// The octets that a hoarder sends of a message that it does not complete.
const HALF_A_MESSAGE: usize = 100_000;
/// The number of HTTP/2 requests, the fields of each, and the octets of a field.
const REQUESTS: usize = 12;
const FIELDS: usize = 60;
const FIELD_OCTETS: usize = 100;
/// NUL, ada@barepost.test, NUL, a wrong password.
const WRONG_LOGIN: &str = "AUTH PLAIN AGFkYUBiYXJlcG9zdC50ZXN0AGJ5cm9u\r\n";
const WRONG_LOGINS: usize = 3;

pub(super) struct Hoarder {
    /// The bytes that the hoarder sends, except those of HTTP/2.
    output: Vec<u8>,
    http2: Option<Http2Client>,
}

impl Hoarder {
    /// The ways in which hoarders connect.
    const WAYS: [Approach; 5] = [
        Approach::new(25, TlsUse::Plain, &[]),
        Approach::new(587, TlsUse::Plain, &[]),
        Approach::new(80, TlsUse::Plain, &[]),
        Approach::new(443, TlsUse::Tls, &["http/1.1"]),
        Approach::new(443, TlsUse::Tls, &["http/1.1", "h2"]),
    ];

    /// Draws one of the ways to connect, and the client that uses it.
    pub(super) fn any(dice: &mut Dice) -> (Approach, Hoarder) {
        let approach = Hoarder::WAYS[dice.below(Hoarder::WAYS.len() as u64) as usize];
        let hoarder = match approach.port {
            25 => Hoarder { output: half_a_message(), http2: None },
            587 => Hoarder {
                output: [HELLO, &WRONG_LOGIN.repeat(WRONG_LOGINS)].concat().into_bytes(),
                http2: None,
            },
            _ if approach.is_http_2() => Hoarder { output: Vec::new(), http2: Some(requests()) },
            _ => Hoarder { output: half_a_form(), http2: None },
        };
        (approach, hoarder)
    }

    pub(super) fn step(
        &mut self,
        line: &mut ClientLine,
        context: &mut StepContext<'_>,
    ) -> ClientProgress {
        line.send_data(&std::mem::take(&mut self.output));
        if let Some(http2) = &mut self.http2 {
            line.send_data(&std::mem::take(&mut http2.to_say));
        }
        line.step(context.host, context.story.now, context.dice);
        let heard = line.input();
        let is_let_in = heard.windows(5).any(|window| window == b"\n235 ");
        assert!(
            !is_let_in,
            "a wrong password has let a client in: {}",
            String::from_utf8_lossy(heard)
        );
        heard.drain(..heard.len().saturating_sub(4));
        ClientProgress::Continues
    }
}

const HELLO: &str = "EHLO client.test\r\n";

fn half_a_message() -> Vec<u8> {
    let begins = format!(
        "{HELLO}MAIL FROM:<hoarder@elsewhere.test>\r\nRCPT TO:<{}>\r\nDATA\r\n",
        ACCOUNTS[0]
    );
    [begins.as_bytes(), &b"So it goes on.\r\n".repeat(HALF_A_MESSAGE / 16)].concat()
}

fn cookies() -> String {
    format!("Cookie: a={}\r\n", "c".repeat(FIELD_OCTETS)).repeat(FIELDS)
}

fn half_a_form() -> Vec<u8> {
    let form = "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 30000\r\n";
    format!("POST /mail/login HTTP/1.1\r\nHost: {HOSTNAME}\r\n{form}{}\r\nname=ada", cookies())
        .into_bytes()
}

fn requests() -> Http2Client {
    let mut http2 = Http2Client::new();
    let form = format!(
        "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 30000\r\n{}",
        cookies()
    );
    (0..REQUESTS).for_each(|_| http2.announce("POST", "/mail/login", &form));
    http2
}
