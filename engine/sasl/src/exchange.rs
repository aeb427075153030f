//! An exchange, response by response.

use alloc::borrow::Cow;
use alloc::boxed::Box;

use base64ct::{Base64, Encoding};

use crate::answer::Answer;
use crate::grammar::name;
use crate::scram::{ClientFirst, Puzzle, Puzzled, ScramProof};
use crate::verifier::Signature;

/// The longest response that is read, in bytes of base64. Longer ones are refused.
pub const RESPONSE_BYTES_MAX: usize = 1024;

const DECODED_BYTES_MAX: usize = RESPONSE_BYTES_MAX / 4 * 3;

/// The mechanisms that there are, as they are announced: the strongest first.
pub const NAMES: &str = "SCRAM-SHA-256 PLAIN LOGIN";

/// `Username:` and `Password:`, which some clients want letter by letter.
const SEND_NAME: &[u8] = b"VXNlcm5hbWU6";
const SEND_PASSWORD: &[u8] = b"UGFzc3dvcmQ6";

/// What a client responds that gives up.
const GIVEN_UP: &[u8] = b"*";

/// How a client proves who it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mechanism {
    /// RFC 7677: it proves that it knows the password, without saying it.
    ScramSha256,
    /// RFC 4616: name and password in one response.
    Plain,
    /// The same in two.
    Login,
}

impl Mechanism {
    /// The mechanism of that name, in any case.
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

/// Whoever knows the accounts.
pub trait Host {
    /// What a client is asked that wants to prove that it knows the password of `name`, whether anybody has that name or not.
    fn puzzle(&mut self, name: &str) -> Puzzle;

    /// The client has said who it is, and proved it or not: see what came of it, later.
    fn login(&mut self, credentials: Credentials<'_>);
}

/// One exchange. What it waits for is the client's next response.
#[derive(Debug)]
pub struct Exchange {
    expect: Expect,
}

/// What is in the next response.
#[derive(Debug)]
enum Expect {
    /// PLAIN: all of it.
    Message,
    /// LOGIN: the name.
    Name,
    /// LOGIN: the password to that name.
    Password(Box<str>),
    /// SCRAM: who the client is.
    ClientFirst,
    /// SCRAM: the proof.
    ClientFinal(Puzzled),
    /// SCRAM: nothing, by which the client says that it has heard our signature.
    Acknowledgement,
}

/// Who the client says that it is, and its proof.
#[derive(Debug)]
pub struct Credentials<'a> {
    /// The name of its account.
    pub name: &'a str,
    /// What it proves that by.
    pub proof: Proof<'a>,
}

/// What a client proves by who it is.
#[derive(Debug)]
pub enum Proof<'a> {
    /// Its password.
    Password(&'a [u8]),
    /// That it knows its password.
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

    /// What a client is told that has not begun with a response.
    pub fn opening(&self) -> Answer {
        let wants_name = matches!(self.expect, Expect::Name);
        Answer::Challenge(Cow::Borrowed(if wants_name { SEND_NAME } else { b"" }))
    }

    /// The client was let in by its proof, and is told that we know its password too. It is logged in when it has heard that: with [`Answer::Acknowledged`].
    pub fn signed(signature: &Signature) -> (Exchange, Answer) {
        let challenge = Answer::Challenge(Cow::Owned(signature.server_final()));
        (Exchange { expect: Expect::Acknowledgement }, challenge)
    }

    /// Whether the client was let in already, and only has to hear our signature.
    pub fn is_signed(&self) -> bool {
        matches!(self.expect, Expect::Acknowledgement)
    }

    /// The response to a challenge has arrived.
    pub fn response_arrived(&mut self, response: &[u8], host: &mut impl Host) -> Answer {
        if response == GIVEN_UP { Answer::GivenUp } else { self.begun_with(response, host) }
    }

    /// The same of a response that came with the command, in base64. That a client has nothing to say, `=`, is malformed: there is no mechanism in which it has not.
    pub fn begun_with(&mut self, response: &[u8], host: &mut impl Host) -> Answer {
        let mut room = [0; DECODED_BYTES_MAX];
        let Ok(decoded) = Base64::decode(response, &mut room) else { return Answer::Malformed };
        match &self.expect {
            Expect::Message => match Message::parse(decoded) {
                Some(message) if is_for_itself(message.acts_for, message.name) => {
                    host.login(Credentials {
                        name: message.name,
                        proof: Proof::Password(message.password),
                    });
                    Answer::Complete
                }
                Some(_) => Answer::NotAllowed,
                None => Answer::Malformed,
            },
            Expect::Name => match name(decoded) {
                Some(name) => {
                    self.expect = Expect::Password(name.into());
                    Answer::Challenge(Cow::Borrowed(SEND_PASSWORD))
                }
                None => Answer::Malformed,
            },
            Expect::Password(name) => {
                host.login(Credentials { name, proof: Proof::Password(decoded) });
                Answer::Complete
            }
            Expect::ClientFirst => self.client_first_arrived(decoded, host),
            Expect::ClientFinal(puzzled) => match puzzled.proof(decoded) {
                Ok(proof) => {
                    host.login(Credentials { name: puzzled.name(), proof: Proof::Scram(proof) });
                    Answer::Complete
                }
                Err(answer) => answer,
            },
            Expect::Acknowledgement if decoded.is_empty() => Answer::Acknowledged,
            Expect::Acknowledgement => Answer::Malformed,
        }
    }

    fn client_first_arrived(&mut self, message: &[u8], host: &mut impl Host) -> Answer {
        let Some(first) = ClientFirst::parse(message) else { return Answer::Malformed };
        if !is_for_itself(&first.acts_for, &first.name) {
            return Answer::NotAllowed;
        }
        let puzzle = host.puzzle(&first.name);
        let (puzzled, challenge) = first.answered_by(&puzzle);
        self.expect = Expect::ClientFinal(puzzled);
        Answer::Challenge(Cow::Owned(challenge))
    }
}

/// The message of PLAIN (RFC 4616 section 2).
struct Message<'a> {
    /// For whom the client wants to act; empty: for itself.
    acts_for: &'a str,
    name: &'a str,
    password: &'a [u8],
}

impl<'a> Message<'a> {
    fn parse(bytes: &'a [u8]) -> Option<Message<'a>> {
        let mut parts = bytes.splitn(3, |byte| *byte == 0);
        let acts_for = core::str::from_utf8(parts.next()?).ok()?;
        let name = name(parts.next()?)?;
        let password = parts.next().filter(|password| !password.contains(&0))?;
        Some(Message { acts_for, name, password })
    }
}

/// Whether a client that is `name` acts for nobody else.
fn is_for_itself(acts_for: &str, name: &str) -> bool {
    acts_for.is_empty() || acts_for.eq_ignore_ascii_case(name)
}
