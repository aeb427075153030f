//! An exchange: handles the responses of a client one by one.

use alloc::borrow::Cow;
use alloc::boxed::Box;

use base64ct::{Base64, Encoding};

use crate::answer::SaslStep;
use crate::grammar::name;
use crate::scram::{ClientFirst, Puzzle, Puzzled, ScramProof};
use crate::verifier::ServerSignature;

/// The longest response that is accepted, in bytes of base64.
pub const RESPONSE_BYTES_MAX: usize = 1024;

const DECODED_BYTES_MAX: usize = RESPONSE_BYTES_MAX / 4 * 3;

/// The names of the supported mechanisms, as protocols announce them: the strongest first.
pub const NAMES: &str = "SCRAM-SHA-256 PLAIN LOGIN";

/// `Username:` and `Password:` in base64. Some clients need exactly these texts.
const SEND_NAME: &[u8] = b"VXNlcm5hbWU6";
const SEND_PASSWORD: &[u8] = b"UGFzc3dvcmQ6";

/// The response of a client that cancels.
const GIVEN_UP: &[u8] = b"*";

/// The mechanism by which a client authenticates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mechanism {
    /// RFC 7677: the client proves that it knows the password, without sending the password.
    ScramSha256,
    /// RFC 4616: user name and password in one response.
    Plain,
    /// User name and password in two responses.
    Login,
}

impl Mechanism {
    /// The mechanism with that name, in upper or lower case.
    pub fn named(name: &[u8]) -> Option<Mechanism> {
        let known = [
            (&b"SCRAM-SHA-256"[..], Mechanism::ScramSha256),
            (b"PLAIN", Mechanism::Plain),
            (b"LOGIN", Mechanism::Login),
        ];
        known
            .into_iter()
            .find_map(|(known, mechanism)| name.eq_ignore_ascii_case(known).then_some(mechanism))
    }
}

/// The owner of the accounts.
pub trait Host {
    /// Returns the puzzle for a client that wants to prove that it knows the password of `name`.
    /// The host must return a puzzle even if no account has that name.
    fn puzzle(&mut self, name: &str) -> Puzzle;

    /// The client has sent its credentials. The host reports the result later.
    fn login(&mut self, credentials: Credentials<'_>);
}

/// One exchange. It waits for the client's next response.
#[derive(Debug)]
pub struct Exchange {
    expect: Expect,
}

/// The expected content of the next response.
#[derive(Debug)]
enum Expect {
    /// PLAIN: user name and password.
    Message,
    /// LOGIN: the user name.
    Name,
    /// LOGIN: the password for that user name.
    Password(Box<str>),
    /// SCRAM: the client-first-message.
    ClientFirst,
    /// SCRAM: the client-final-message, with the proof.
    ClientFinal(Puzzled),
    /// SCRAM: an empty response, which acknowledges our signature.
    Acknowledgement,
}

/// A user name and the proof for it.
#[derive(Debug)]
pub struct Credentials<'a> {
    /// The user name.
    pub name: &'a str,
    /// The proof.
    pub proof: Proof<'a>,
}

/// The proof of an identity.
#[derive(Debug)]
pub enum Proof<'a> {
    /// The password.
    Password(&'a [u8]),
    /// A proof that the client knows the password.
    Scram(ScramProof),
}

impl Exchange {
    /// Begins an exchange.
    pub fn begin(mechanism: Mechanism) -> Exchange {
        let expect = match mechanism {
            Mechanism::Plain => Expect::Message,
            Mechanism::Login => Expect::Name,
            Mechanism::ScramSha256 => Expect::ClientFirst,
        };
        Exchange { expect }
    }

    /// The challenge to a client that has not sent an initial response.
    pub fn opening(&self) -> SaslStep {
        let wants_name = matches!(self.expect, Expect::Name);
        SaslStep::Challenge(Cow::Borrowed(if wants_name { SEND_NAME } else { b"" }))
    }

    /// Begins the last step of an exchange: the client has proved its identity, and gets
    /// `signature`. The client is logged in once it has acknowledged the signature. The result of
    /// that step is [`SaslStep::Acknowledged`].
    pub fn signed(signature: &ServerSignature) -> (Exchange, SaslStep) {
        let challenge = SaslStep::Challenge(Cow::Owned(signature.server_final()));
        (Exchange { expect: Expect::Acknowledgement }, challenge)
    }

    /// Whether the client has proved its identity already, and only has to acknowledge our
    /// signature.
    pub fn is_signed(&self) -> bool {
        matches!(self.expect, Expect::Acknowledgement)
    }

    /// The response to a challenge has arrived.
    pub fn response_arrived(&mut self, mut response: &[u8], host: &mut impl Host) -> SaslStep {
        // Some clients send white space after a response.
        while let [text @ .., b' ' | b'\t'] = response {
            response = text;
        }
        if response == GIVEN_UP { SaslStep::GivenUp } else { self.begun_with(response, host) }
    }

    /// Handles an initial response, which came with the command, in base64. An empty response, `=`,
    /// is malformed, since no supported mechanism begins with one.
    pub fn begun_with(&mut self, response: &[u8], host: &mut impl Host) -> SaslStep {
        let mut room = [0; DECODED_BYTES_MAX];
        let Ok(decoded) = Base64::decode(response, &mut room) else { return SaslStep::Malformed };
        match &self.expect {
            Expect::Message => match PlainMessage::parse(decoded) {
                Some(message) if is_for_itself(message.acts_for, message.name) => {
                    host.login(Credentials {
                        name: message.name,
                        proof: Proof::Password(message.password),
                    });
                    SaslStep::Complete
                }
                Some(_) => SaslStep::NotAllowed,
                None => SaslStep::Malformed,
            },
            Expect::Name => match name(decoded) {
                Some(name) => {
                    self.expect = Expect::Password(name.into());
                    SaslStep::Challenge(Cow::Borrowed(SEND_PASSWORD))
                }
                None => SaslStep::Malformed,
            },
            Expect::Password(name) => {
                host.login(Credentials { name, proof: Proof::Password(decoded) });
                SaslStep::Complete
            }
            Expect::ClientFirst => self.client_first_arrived(decoded, host),
            Expect::ClientFinal(puzzled) => match puzzled.proof(decoded) {
                Ok(proof) => {
                    host.login(Credentials { name: puzzled.name(), proof: Proof::Scram(proof) });
                    SaslStep::Complete
                }
                Err(answer) => answer,
            },
            Expect::Acknowledgement if decoded.is_empty() => SaslStep::Acknowledged,
            Expect::Acknowledgement => SaslStep::Malformed,
        }
    }

    fn client_first_arrived(&mut self, message: &[u8], host: &mut impl Host) -> SaslStep {
        let Some(first) = ClientFirst::parse(message) else { return SaslStep::Malformed };
        if !is_for_itself(&first.acts_for, &first.name) {
            return SaslStep::NotAllowed;
        }
        let puzzle = host.puzzle(&first.name);
        let (puzzled, challenge) = first.answered_by(&puzzle);
        self.expect = Expect::ClientFinal(puzzled);
        SaslStep::Challenge(Cow::Owned(challenge))
    }
}

/// The message of PLAIN (RFC 4616 section 2).
struct PlainMessage<'a> {
    /// The identity to act as. Empty: the client's own.
    acts_for: &'a str,
    name: &'a str,
    password: &'a [u8],
}

impl<'a> PlainMessage<'a> {
    fn parse(bytes: &'a [u8]) -> Option<PlainMessage<'a>> {
        let mut parts = bytes.splitn(3, |byte| *byte == 0);
        let acts_for = core::str::from_utf8(parts.next()?).ok()?;
        let name = name(parts.next()?)?;
        let password = parts.next().filter(|password| !password.contains(&0))?;
        Some(PlainMessage { acts_for, name, password })
    }
}

/// Whether the client `name` acts as itself.
fn is_for_itself(acts_for: &str, name: &str) -> bool {
    acts_for.is_empty() || acts_for.trim().eq_ignore_ascii_case(name.trim())
}
