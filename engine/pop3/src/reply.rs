//! The server's replies: constant lines, and a writer for lines with numbers.
//!
//! Invariants:
//! - Every line is at most 512 bytes with its CRLF (RFC 2449 section 4).
//! - A response code is used only in the meaning of RFC 2449 section 8 and RFC 3206.

use crate::actions::{Actions, LoginRefusal, PlainLogin, Pop3Settings, Pop3Tls, ReadError};
use crate::command::CommandFault;
use crate::number::MessageNumber;
use crate::unique_id::{UNIQUE_ID_BYTES_MAX, UniqueId};

/// The longest reply to a command, except for messages and lists, in bytes.
pub const REPLY_BYTES_MAX: usize = 256;

const _: () = assert!(b"+ \r\n".len() + sasl::CHALLENGE_BYTES_MAX <= REPLY_BYTES_MAX);

/// The reply to a client when there are too many sessions. The connection is closed after it.
pub const BUSY: &[u8] = b"-ERR [SYS/TEMP] Too many connections, try again later\r\n";

pub(crate) type Reply = &'static [u8];

pub(crate) const GREETING: Reply = b"+OK Barepost ready\r\n";
pub(crate) const START_TLS: Reply = b"+OK Begin TLS negotiation\r\n";
pub(crate) const OK: Reply = b"+OK\r\n";
pub(crate) const BYE: Reply = b"+OK Bye\r\n";
pub(crate) const SEND_PASSWORD: Reply = b"+OK Send PASS\r\n";
pub(crate) const MARKED: Reply = b"+OK Marked to be deleted\r\n";
pub(crate) const LIST_FOLLOWS: Reply = b"+OK List follows\r\n";
pub(crate) const END: Reply = b".\r\n";

pub(crate) const NO_PLAIN_LOGIN: Reply = b"-ERR Login without encryption is not allowed\r\n";
pub(crate) const TLS_BUSY: Reply =
    b"-ERR [SYS/TEMP] Too many TLS handshakes in progress, try again later\r\n";
pub(crate) const TLS_TWICE: Reply = b"-ERR TLS is already active\r\n";
pub(crate) const LOGIN_CANCELLED: Reply = b"-ERR Authentication cancelled\r\n";
pub(crate) const BAD_LOGIN_RESPONSE: Reply = b"-ERR Invalid authentication response\r\n";
pub(crate) const UNKNOWN_MECHANISM: Reply =
    b"-ERR Unknown authentication mechanism; the reply to CAPA lists those supported\r\n";
pub(crate) const SEND_USER_FIRST: Reply = b"-ERR Send USER first\r\n";
pub(crate) const LOG_IN_FIRST: Reply = b"-ERR Log in first\r\n";
pub(crate) const LOGGED_IN_ALREADY: Reply = b"-ERR Already logged in\r\n";
pub(crate) const NO_SUCH_MESSAGE: Reply = b"-ERR No such message\r\n";
pub(crate) const IS_DELETED: Reply = b"-ERR Message is deleted\r\n";
pub(crate) const NOT_DELETED: Reply =
    b"-ERR [SYS/TEMP] Some messages were not deleted, try again later\r\n";
pub(crate) const LINE_TOO_LONG: Reply = b"-ERR Line too long\r\n";
pub(crate) const TOO_MANY_FAULTS: Reply = b"-ERR Too many errors\r\n";
pub(crate) const PASSWORD_CHANGED: Reply =
    b"-ERR [AUTH] Your password has changed, log in again\r\n";
pub(crate) const TOO_MANY_COMMANDS: Reply = b"-ERR Too many commands without a login\r\n";
pub(crate) const STOPPING: Reply = b"-ERR [SYS/TEMP] Server is shutting down, try again later\r\n";

pub(crate) fn fault(fault: CommandFault) -> Reply {
    match fault {
        CommandFault::UnknownCommand => b"-ERR Unknown command\r\n",
        CommandFault::BadArguments => b"-ERR Invalid arguments\r\n",
    }
}

pub(crate) fn login_refusal(refusal: LoginRefusal) -> Reply {
    match refusal {
        LoginRefusal::Credentials => b"-ERR [AUTH] Wrong user name or password\r\n",
        LoginRefusal::InUse => b"-ERR [IN-USE] Mailbox is in use by another session\r\n",
        LoginRefusal::TryLater => {
            b"-ERR [SYS/TEMP] Temporary authentication failure, try again later\r\n"
        }
    }
}

pub(crate) fn read_error(error: ReadError) -> Reply {
    match error {
        ReadError::TryLater => b"-ERR [SYS/TEMP] Message cannot be read now, try again later\r\n",
        ReadError::Damaged => b"-ERR [SYS/PERM] Message is damaged and cannot be read\r\n",
    }
}

/// A challenge of the login mechanism.
pub(crate) fn login_challenge(challenge: &[u8], actions: &mut impl Actions) {
    actions.reply(b"+ ");
    actions.reply(challenge);
    actions.reply(b"\r\n");
}

pub(crate) fn capabilities(actions: &mut impl Actions) {
    let Pop3Settings { plain_login, tls, .. } = actions.settings();
    actions.reply(b"+OK Capabilities follow\r\nTOP\r\nUIDL\r\n");
    if matches!(tls, Pop3Tls::Offered | Pop3Tls::Busy) {
        actions.reply(b"STLS\r\n");
    }
    match plain_login {
        PlainLogin::Offered => {
            let mut sasl = ReplyText::new();
            sasl.put(b"USER\r\nUTF8 USER\r\nSASL ")
                .put(sasl::NAMES.as_bytes())
                .put(b"\r\n")
                .send(actions);
        }
        PlainLogin::Refused => actions.reply(b"UTF8\r\n"),
    }
    actions.reply(b"RESP-CODES\r\nAUTH-RESP-CODE\r\nPIPELINING\r\nEXPIRE NEVER\r\nIMPLEMENTATION Barepost\r\n.\r\n");
}

/// The longest line that [`ReplyText`] is used for.
pub(crate) const REPLY_TEXT_BYTES_MAX: usize = UNIQUE_ID_BYTES_MAX + 42;

/// A line that is being written. It is sent in one call, since every call of [`Actions::reply`] has
/// a cost.
pub(crate) struct ReplyText(heapless::Vec<u8, REPLY_TEXT_BYTES_MAX>);

impl ReplyText {
    pub(crate) fn new() -> ReplyText {
        ReplyText(heapless::Vec::new())
    }

    /// Appends `bytes`, which always fit: see [`REPLY_TEXT_BYTES_MAX`].
    pub(crate) fn put(&mut self, bytes: &[u8]) -> &mut ReplyText {
        let fitted = self.0.extend_from_slice(bytes);
        debug_assert!(fitted.is_ok());
        self
    }

    pub(crate) fn put_decimal(&mut self, mut number: u64) -> &mut ReplyText {
        let mut digits = [0; 20];
        let mut first = digits.len();
        for (index, digit) in digits.iter_mut().enumerate().rev() {
            *digit = b'0' + (number % 10) as u8;
            first = index;
            number /= 10;
            if number == 0 {
                break;
            }
        }
        self.put(digits.get(first..).unwrap_or_default())
    }

    /// Appends the number of a message, a space and its size.
    pub(crate) fn put_listing(&mut self, message: MessageNumber, bytes: u64) -> &mut ReplyText {
        self.put_decimal(message.0.into()).put(b" ").put_decimal(bytes)
    }

    /// Appends the number of a message, a space and its unique identifier.
    pub(crate) fn put_unique_id(
        &mut self,
        message: MessageNumber,
        unique_id: &UniqueId,
    ) -> &mut ReplyText {
        self.put_decimal(message.0.into()).put(b" ").put(unique_id.as_str().as_bytes())
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn send(&self, actions: &mut impl Actions) {
        actions.reply(&self.0);
    }
}
