//! An exchange, response by response.

use alloc::boxed::Box;

use base64ct::{Base64, Encoding};

/// The longest response that is read, in bytes of base64. Longer ones are refused.
pub const RESPONSE_BYTES_MAX: usize = 1024;

const DECODED_BYTES_MAX: usize = RESPONSE_BYTES_MAX / 4 * 3;

/// The mechanisms that there are, as they are announced.
pub const NAMES: &str = "PLAIN LOGIN";

/// `Username:` and `Password:`, which some clients want letter by letter.
const SEND_NAME: &[u8] = b"VXNlcm5hbWU6";
const SEND_PASSWORD: &[u8] = b"UGFzc3dvcmQ6";

/// What a client responds that gives up.
const GIVEN_UP: &[u8] = b"*";

/// How a client proves who it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mechanism {
    /// RFC 4616: name and password in one response.
    Plain,
    /// The same in two.
    Login,
}

impl Mechanism {
    /// The mechanism of that name, in any case.
    pub fn named(name: &[u8]) -> Option<Mechanism> {
        [(&b"PLAIN"[..], Mechanism::Plain), (b"LOGIN", Mechanism::Login)]
            .into_iter()
            .find_map(|(known, mechanism)| name.eq_ignore_ascii_case(known).then_some(mechanism))
    }
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
}

/// Who the client says that it is, and its proof.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Credentials<'a> {
    /// The name of its account.
    pub name: &'a str,
    /// Its password.
    pub password: &'a [u8],
}

/// What comes of a response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// The client is to be told this, as it is, and responds to it.
    Challenge(&'static [u8]),
    /// The exchange is over: its [`Credentials`] were told.
    Complete,
    /// The exchange is over: the client has given up.
    GivenUp,
    /// The exchange is over: the response is no base64, too long, or not what the mechanism asks for.
    Malformed,
    /// The exchange is over: the client wants to act for somebody else than itself.
    NotAllowed,
}

impl Exchange {
    /// Begins an exchange.
    pub fn begin(mechanism: Mechanism) -> Exchange {
        let expect = match mechanism {
            Mechanism::Plain => Expect::Message,
            Mechanism::Login => Expect::Name,
        };
        Exchange { expect }
    }

    /// What a client is told that has not begun with a response: to be sent as it is.
    pub fn challenge(&self) -> &'static [u8] {
        match self.expect {
            Expect::Message => b"",
            Expect::Name => SEND_NAME,
            Expect::Password(_) => SEND_PASSWORD,
        }
    }

    /// The response to a challenge has arrived. `hear` is told of the credentials once they are complete.
    pub fn response_arrived(&mut self, response: &[u8], hear: impl FnOnce(Credentials<'_>)) -> Answer {
        if response == GIVEN_UP { Answer::GivenUp } else { self.begun_with(response, hear) }
    }

    /// The same of a response that came with the command, in base64. That a client has nothing to say, `=`, is malformed: there is no mechanism in which it has not.
    pub fn begun_with(&mut self, response: &[u8], hear: impl FnOnce(Credentials<'_>)) -> Answer {
        let mut room = [0; DECODED_BYTES_MAX];
        let Ok(decoded) = Base64::decode(response, &mut room) else { return Answer::Malformed };
        match &self.expect {
            Expect::Message => match Message::parse(decoded) {
                Some(message) if message.is_for_itself() => {
                    hear(message.credentials);
                    Answer::Complete
                }
                Some(_) => Answer::NotAllowed,
                None => Answer::Malformed,
            },
            Expect::Name => match name(decoded) {
                Some(name) => {
                    self.expect = Expect::Password(name.into());
                    Answer::Challenge(SEND_PASSWORD)
                }
                None => Answer::Malformed,
            },
            Expect::Password(name) => {
                hear(Credentials { name, password: decoded });
                Answer::Complete
            }
        }
    }
}

/// The message of PLAIN (RFC 4616 section 2).
struct Message<'a> {
    /// For whom the client wants to act; empty: for itself.
    acts_for: &'a str,
    credentials: Credentials<'a>,
}

impl<'a> Message<'a> {
    fn parse(bytes: &'a [u8]) -> Option<Message<'a>> {
        let mut parts = bytes.splitn(3, |byte| *byte == 0);
        let acts_for = core::str::from_utf8(parts.next()?).ok()?;
        let name = name(parts.next()?)?;
        let password = parts.next().filter(|password| !password.contains(&0))?;
        Some(Message { acts_for, credentials: Credentials { name, password } })
    }

    fn is_for_itself(&self) -> bool {
        self.acts_for.is_empty() || self.acts_for.eq_ignore_ascii_case(self.credentials.name)
    }
}

fn name(bytes: &[u8]) -> Option<&str> {
    let name = core::str::from_utf8(bytes).ok()?;
    (!name.is_empty() && !name.chars().any(char::is_control)).then_some(name)
}
