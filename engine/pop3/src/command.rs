//! The commands of a client: one line each, without the line end.
//!
//! Implements: RFC 1939 sections 3 and 5 to 7, RFC 2449 section 5, RFC 2595 section 4, RFC 5034
//! section 4, RFC 6856 section 2.

use crate::number::MessageNumber;

/// A parsed command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Command<'a> {
    /// USER with the name.
    User(&'a str),
    /// PASS with the password: everything after one space, with further spaces (RFC 1939 section
    /// 7).
    Password(&'a [u8]),
    /// AUTH with the mechanism (RFC 5034), and perhaps with the initial response.
    Login {
        mechanism: &'a [u8],
        response: Option<&'a [u8]>,
    },
    Capabilities,
    /// STLS.
    StartTls,
    Utf8,
    Status,
    List(Option<MessageNumber>),
    UniqueIds(Option<MessageNumber>),
    Retrieve(MessageNumber),
    /// TOP with the message and the number of body lines to send after its header.
    Top(MessageNumber, u32),
    Delete(MessageNumber),
    Noop,
    Reset,
    Quit,
}

/// Why a line is invalid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CommandFault {
    /// The server has no such command.
    UnknownCommand,
    /// Arguments are missing, superfluous or malformed.
    BadArguments,
}

/// Parses a line.
pub(crate) fn parse(line: &[u8]) -> Result<Command<'_>, CommandFault> {
    let (verb, arguments) = split_at_space(line);
    match &uppercase(verb) {
        b"USER" => user(arguments),
        b"PASS" => arguments.map(Command::Password).ok_or(CommandFault::BadArguments),
        b"AUTH" => login(arguments),
        b"CAPA" => without_arguments(arguments, Command::Capabilities),
        b"STLS" => without_arguments(arguments, Command::StartTls),
        b"UTF8" => without_arguments(arguments, Command::Utf8),
        b"STAT" => without_arguments(arguments, Command::Status),
        b"LIST" => optional_number(arguments).map(Command::List),
        b"UIDL" => optional_number(arguments).map(Command::UniqueIds),
        b"RETR" => number(arguments).map(Command::Retrieve),
        b"TOP " => top(arguments),
        b"DELE" => number(arguments).map(Command::Delete),
        b"NOOP" => without_arguments(arguments, Command::Noop),
        b"RSET" => without_arguments(arguments, Command::Reset),
        b"QUIT" => without_arguments(arguments, Command::Quit),
        _ => Err(CommandFault::UnknownCommand),
    }
}

/// The bytes before the first space, and the bytes after it. `None`: there is no space.
fn split_at_space(bytes: &[u8]) -> (&[u8], Option<&[u8]>) {
    let Some(space) = memchr::memchr(b' ', bytes) else { return (bytes, None) };
    (bytes.get(..space).unwrap_or_default(), bytes.get(space + 1..))
}

/// A verb in upper case, padded with spaces, which no verb contains. For a word of more than four
/// bytes the result is four spaces, which equals no verb.
fn uppercase(verb: &[u8]) -> [u8; 4] {
    let mut word = [b' '; 4];
    if let Some(target) = word.get_mut(..verb.len()) {
        target.copy_from_slice(verb);
    }
    word.map(|byte| byte.to_ascii_uppercase())
}

fn user(arguments: Option<&[u8]>) -> Result<Command<'_>, CommandFault> {
    let name = core::str::from_utf8(arguments.unwrap_or_default())
        .map_err(|_| CommandFault::BadArguments)?
        .trim_ascii();
    if name.is_empty() || name.bytes().any(|byte| byte.is_ascii_control()) {
        return Err(CommandFault::BadArguments);
    }
    Ok(Command::User(name))
}

fn login(arguments: Option<&[u8]>) -> Result<Command<'_>, CommandFault> {
    match split_at_space(arguments.unwrap_or_default().trim_ascii()) {
        (b"", _) => Err(CommandFault::BadArguments),
        (mechanism, response) => Ok(Command::Login { mechanism, response }),
    }
}

/// Returns `command`, which takes no arguments, if there are none.
fn without_arguments<'a>(
    arguments: Option<&[u8]>,
    command: Command<'a>,
) -> Result<Command<'a>, CommandFault> {
    if arguments.unwrap_or_default().trim_ascii().is_empty() {
        Ok(command)
    } else {
        Err(CommandFault::BadArguments)
    }
}

fn optional_number(arguments: Option<&[u8]>) -> Result<Option<MessageNumber>, CommandFault> {
    match arguments.unwrap_or_default().trim_ascii() {
        b"" => Ok(None),
        digits => decimal(digits).map(|number| Some(MessageNumber(number))),
    }
}

fn number(arguments: Option<&[u8]>) -> Result<MessageNumber, CommandFault> {
    optional_number(arguments)?.ok_or(CommandFault::BadArguments)
}

fn top<'a>(arguments: Option<&[u8]>) -> Result<Command<'a>, CommandFault> {
    let (number, lines) = split_at_space(arguments.unwrap_or_default().trim_ascii());
    let lines = decimal(lines.unwrap_or_default().trim_ascii())?;
    Ok(Command::Top(MessageNumber(decimal(number)?), lines))
}

/// A number of at least one digit. A number that is too large becomes the largest `u32`, which no
/// maildrop reaches.
fn decimal(digits: &[u8]) -> Result<u32, CommandFault> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(CommandFault::BadArguments);
    }
    let append =
        |number: u32, digit: &u8| number.saturating_mul(10).saturating_add(u32::from(digit - b'0'));
    Ok(digits.iter().fold(0, append))
}
