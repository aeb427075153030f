//! The commands of a client: one line each, without its CRLF.
//!
//! The parser is more lenient than the grammar where real clients need it. White space may follow
//! `MAIL FROM:` and `RCPT TO:`, and stand before the CRLF, as RFC 5321 section 4.1.1 asks. EHLO and
//! HELO may have any name. `path.rs` says which paths are accepted.
//!
//! Implements: RFC 5321 sections 4.1.1 and 4.2.4, RFC 3030 section 2 (BDAT), RFC 3207 section 4
//! (STARTTLS), RFC 4954 section 4 (AUTH).

use machine::UnixTime;

use crate::dsn::{EnvelopeId, Notify, Original, Return};
use crate::hold::Hold;
use crate::parameters::{RecipientParameters, decimal, mail_parameters, recipient_parameters};
use crate::path::{PathError, ReversePath, SmtpPath, split_at_byte, without_leading_space};

/// A valid command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Command<'a> {
    /// HELO, and the client's name, of any bytes.
    Hello(&'a [u8]),
    /// EHLO, and the client's name, of any bytes.
    ExtendedHello(&'a [u8]),
    /// MAIL, and the hold that the client requests for the message.
    Mail(Mail<'a>, Option<Hold>),
    Recipient(RcptTo<'a>),
    Data,
    /// BDAT.
    Chunk {
        bytes: u64,
        place: ChunkPlace,
    },
    Reset,
    Noop,
    Quit,
    Verify,
    Help,
    /// STARTTLS.
    StartTls,
    /// AUTH with the mechanism, and perhaps with the client's first response.
    Login {
        mechanism: &'a str,
        response: Option<&'a str>,
    },
}

/// Whether a chunk is the last of its message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ChunkPlace {
    /// More chunks follow.
    NotLast,
    /// The chunk ends the message.
    Last,
}

/// MAIL: the beginning of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mail<'a> {
    /// The sender.
    pub reverse_path: ReversePath<'a>,
    /// The size in bytes that the client expects (RFC 1870). It may be wrong.
    pub declared_bytes: Option<u64>,
    /// The declared content of the message's body (RFC 6152).
    pub body: BodyType,
    /// Whether addresses and header fields may have non-ASCII characters (RFC 6531).
    pub character_set: CharacterSet,
    /// The part of the message that a failure report returns (RFC 3461).
    pub returned: Option<Return>,
    /// The client's identifier of this envelope, for reports.
    pub envelope_id: Option<EnvelopeId<'a>>,
    /// The time until which the message is held (RFC 4865). `None`: it is not held.
    pub held_until: Option<UnixTime>,
}

/// RCPT: a recipient of the message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RcptTo<'a> {
    /// The recipient's address.
    pub path: SmtpPath<'a>,
    /// The reports that the client wants (RFC 3461).
    pub notify: Option<Notify>,
    /// The recipient that the sender originally named.
    pub original: Option<Original<'a>>,
}

/// The characters that addresses and header fields may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CharacterSet {
    /// ASCII, by RFC 5321 and 5322.
    Ascii,
    /// The client gave the parameter SMTPUTF8.
    Utf8,
}

/// The declared content of a message's body. The server neither refuses nor changes a message
/// because of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BodyType {
    /// ASCII only.
    SevenBit,
    /// Any bytes, in lines.
    EightBitMime,
}

/// Why a line is invalid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CommandError {
    /// An unknown command.
    UnknownCommand,
    /// A command of SMTP that this server does not support.
    NotImplemented,
    /// The first word of an HTTP request: an attacker may have made a browser connect to this port.
    NotSmtp,
    /// Bytes that are not UTF-8.
    NotUtf8,
    /// The command has superfluous, missing or malformed arguments.
    BadArguments,
    /// EHLO or HELO without a name, or with one that is too long.
    BadGreetingName,
    /// The path of a sender is missing, breaks the grammar, or exceeds a limit.
    BadSender(PathError),
    /// The path of a recipient is missing, breaks the grammar, or exceeds a limit.
    BadRecipient(PathError),
    /// A parameter's value is wrong.
    BadParameter,
    /// A parameter of an extension that was not announced.
    UnknownParameter,
    /// A non-ASCII address without SMTPUTF8.
    NeedsSmtpUtf8,
    /// BDAT has an invalid size, so the start of the next command is unknown.
    BadChunk,
}

/// Parses a line. The session checks whether a non-ASCII recipient is allowed, since this depends
/// on an earlier MAIL.
pub(crate) fn parse(line: &[u8]) -> Result<Command<'_>, CommandError> {
    let line = line.trim_ascii_end();
    if let Some(greeting) = greeting(line) {
        return greeting;
    }
    let line = core::str::from_utf8(line).map_err(|_| CommandError::NotUtf8)?;
    let (verb, arguments) = split_at_byte(line, b' ').unwrap_or((line, ""));
    let arguments = without_leading_space(arguments);
    match &uppercase(verb) {
        b"MAIL" => mail(arguments),
        b"RCPT" => recipient(arguments).map(Command::Recipient),
        b"DATA" => without_arguments(arguments, Command::Data),
        b"BDAT" => chunk(arguments),
        b"QUIT" => without_arguments(arguments, Command::Quit),
        b"RSET" => without_arguments(arguments, Command::Reset),
        b"NOOP" => Ok(Command::Noop),
        b"VRFY" if !arguments.is_empty() => Ok(Command::Verify),
        b"VRFY" => Err(CommandError::BadArguments),
        b"HELP" => Ok(Command::Help),
        b"EXPN" | b"TURN" | b"SEND" | b"SOML" | b"SAML" | b"ETRN" => {
            Err(CommandError::NotImplemented)
        }
        b"AUTH" => login(arguments),
        b"POST" => Err(CommandError::NotSmtp),
        _ if verb.eq_ignore_ascii_case("STARTTLS") => {
            without_arguments(arguments, Command::StartTls)
        }
        _ if ["GET", "PUT", "CONNECT", "OPTIONS"].contains(&verb) => Err(CommandError::NotSmtp),
        _ => Err(CommandError::UnknownCommand),
    }
}

/// The four characters of a verb in upper case. If the word has another length, the result equals
/// no verb.
fn uppercase(verb: &str) -> [u8; 4] {
    <[u8; 4]>::try_from(verb.as_bytes()).unwrap_or_default().map(|byte| byte.to_ascii_uppercase())
}

/// Returns `command`, which takes no arguments, if there are none.
fn without_arguments<'a>(
    arguments: &str,
    command: Command<'a>,
) -> Result<Command<'a>, CommandError> {
    if arguments.is_empty() { Ok(command) } else { Err(CommandError::BadArguments) }
}

fn login(arguments: &str) -> Result<Command<'_>, CommandError> {
    let (mechanism, response) = match split_at_byte(arguments, b' ') {
        None => (arguments, None),
        Some((mechanism, response)) => (mechanism, Some(without_leading_space(response))),
    };
    match mechanism {
        "" => Err(CommandError::BadArguments),
        _ => Ok(Command::Login { mechanism, response }),
    }
}

/// The longest name in EHLO and HELO, as for a domain.
const GREETING_NAME_BYTES_MAX: usize = 255;

/// Parses EHLO or HELO. `None`: the line is another command.
fn greeting(line: &[u8]) -> Option<Result<Command<'_>, CommandError>> {
    let (verb, name) = line.split_at_checked("EHLO".len())?;
    if !name.is_empty() && !name.starts_with(b" ") {
        return None;
    }
    let name = greeting_name(name.trim_ascii_start());
    match verb {
        verb if verb.eq_ignore_ascii_case(b"EHLO") => Some(name.map(Command::ExtendedHello)),
        verb if verb.eq_ignore_ascii_case(b"HELO") => Some(name.map(Command::Hello)),
        _ => None,
    }
}

/// A name of any bytes: clients send machine names that are not domains, in any character set. RFC
/// 5321 section 4.1.4 forbids a server to refuse mail because of a name. The session keeps only
/// bytes that are harmless in a header field (`ClientName`).
fn greeting_name(name: &[u8]) -> Result<&[u8], CommandError> {
    let is_valid = (1..=GREETING_NAME_BYTES_MAX).contains(&name.len());
    if is_valid { Ok(name) } else { Err(CommandError::BadGreetingName) }
}

fn mail(arguments: &str) -> Result<Command<'_>, CommandError> {
    let path = after_keyword(arguments, "FROM:")?;
    let (reverse_path, rest) = ReversePath::read(path).map_err(CommandError::BadSender)?;
    let parameters = mail_parameters(rest)?;
    if !parameters.smtputf8 && !reverse_path.text().is_ascii() {
        return Err(CommandError::NeedsSmtpUtf8);
    }
    let mail = Mail {
        reverse_path,
        declared_bytes: parameters.declared_bytes,
        body: parameters.body.unwrap_or(BodyType::SevenBit),
        character_set: if parameters.smtputf8 { CharacterSet::Utf8 } else { CharacterSet::Ascii },
        returned: parameters.returned,
        envelope_id: parameters.envelope_id,
        held_until: None,
    };
    Ok(Command::Mail(mail, parameters.hold))
}

fn recipient(arguments: &str) -> Result<RcptTo<'_>, CommandError> {
    let path = after_keyword(arguments, "TO:")?;
    let (path, rest) = SmtpPath::read(path).map_err(CommandError::BadRecipient)?;
    let RecipientParameters { notify, original } = recipient_parameters(rest)?;
    Ok(RcptTo { path, notify, original })
}

/// The text after a keyword such as `FROM:` and the white space after it.
fn after_keyword<'a>(arguments: &'a str, keyword: &str) -> Result<&'a str, CommandError> {
    match arguments.split_at_checked(keyword.len()) {
        Some((start, rest)) if start.eq_ignore_ascii_case(keyword) => {
            Ok(without_leading_space(rest))
        }
        _ => Err(CommandError::BadArguments),
    }
}

fn chunk<'a>(arguments: &str) -> Result<Command<'a>, CommandError> {
    let (size, place) = match split_at_byte(arguments, b' ') {
        None => (arguments, ChunkPlace::NotLast),
        Some((size, last)) if without_leading_space(last).eq_ignore_ascii_case("LAST") => {
            (size, ChunkPlace::Last)
        }
        Some(_) => return Err(CommandError::BadChunk),
    };
    // Not even the number of bytes to discard is known if the size has more than 64 bits.
    let bytes = decimal(size).filter(|_| size.parse::<u64>().is_ok());
    bytes.map(|bytes| Command::Chunk { bytes, place }).ok_or(CommandError::BadChunk)
}
