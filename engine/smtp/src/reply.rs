//! The replies of the server: constant lines, and replies that are composed, such as those with the
//! server's name.
//!
//! Invariants:
//! - Every line is at most 512 bytes with its CRLF (RFC 5321 section 4.5.3.1.5).
//! - Every reply has an enhanced status code (RFC 2034 section 4), except the replies to EHLO and
//!   HELO, the greeting, 334 and 354.

use alloc::format;

use heapless::Vec;

use crate::actions::{
    Actions, AuthRefusal, Extensions, LoginPolicy, MessageRefusal, RecipientRefusal, SenderRefusal,
    SmtpSettings, SmtpTls,
};
use crate::command::CommandError;
use crate::hold::DateTime;
use crate::path::PathError;

/// The longest reply, in bytes: the reply to EHLO, with a name of 255 bytes.
pub const REPLY_BYTES_MAX: usize = 576;

/// The longest line of a reply.
const LINE_BYTES_MAX: usize = 512;

/// The reply to a client from an IP address with too many connections. The connection is closed
/// after it.
pub const TOO_MANY_CONNECTIONS: &[u8] =
    b"421 4.7.0 Too many connections from your IP address, try again later\r\n";

/// The reply to a client that has sent bytes before the greeting. The connection is closed after
/// it.
pub const SPOKE_FIRST: &[u8] = b"554 5.5.0 Client sent data before the server's greeting\r\n";

/// The reply to a client when there are too many sessions. The connection is closed after it.
pub const BUSY: &[u8] = b"421 4.3.2 Too many connections, try again later\r\n";

pub(crate) type Reply = &'static [u8];

pub(crate) const START_TLS: Reply = b"220 2.0.0 Ready to start TLS\r\n";
pub(crate) const LOGGED_IN: Reply = b"235 2.7.0 Authentication successful\r\n";
pub(crate) const BYE: Reply = b"221 2.0.0 Bye\r\n";
pub(crate) const HELP: Reply = b"214 2.0.0 See RFC 5321, or write to postmaster for help\r\n";
pub(crate) const OK: Reply = b"250 2.0.0 OK\r\n";
pub(crate) const SENDER_OK: Reply = b"250 2.1.0 Sender OK\r\n";
pub(crate) const RECIPIENT_OK: Reply = b"250 2.1.5 Recipient OK\r\n";
pub(crate) const CHUNK_OK: Reply = b"250 2.0.0 Chunk received\r\n";
pub(crate) const CANNOT_VERIFY: Reply =
    b"252 2.5.0 Cannot verify the user, but will accept the message and try to deliver it\r\n";
pub(crate) const SEND_MESSAGE: Reply = b"354 End data with <CR><LF>.<CR><LF>\r\n";

const INDEX_FULL: Reply =
    b"452 4.3.1 The server has reached its maximum number of messages, try again later\r\n";
const DISK_FAILED: Reply = b"451 4.3.0 The server's disk has failed, try again later\r\n";
pub(crate) const STOPPING: Reply = b"421 4.3.2 Server is shutting down, try again later\r\n";
pub(crate) const PASSWORD_CHANGED: Reply = b"421 4.7.0 Your password has changed, log in again\r\n";
pub(crate) const TOO_SLOW: Reply = b"421 4.4.2 Timeout exceeded, closing connection\r\n";
pub(crate) const TOO_MANY_FAULTS: Reply = b"421 4.7.0 Too many errors\r\n";
pub(crate) const TOO_MANY_COMMANDS: Reply = b"421 4.7.0 Too many commands without a message\r\n";

pub(crate) const TOO_MANY_UNKNOWN: Reply =
    b"421 4.7.0 Too many unknown recipients from your IP address, try again later\r\n";

pub(crate) const TLS_BUSY: Reply =
    b"454 4.7.0 Too many TLS handshakes in progress, try again later\r\n";

pub(crate) const LINE_TOO_LONG: Reply = b"500 5.5.2 Line too long\r\n";
pub(crate) const LOGIN_CANCELLED: Reply = b"501 5.7.0 Authentication cancelled\r\n";
pub(crate) const BAD_LOGIN_RESPONSE: Reply = b"501 5.5.2 Invalid authentication response\r\n";
pub(crate) const UNKNOWN_MECHANISM: Reply =
    b"504 5.5.4 Unknown authentication mechanism; the reply to EHLO lists those supported\r\n";
pub(crate) const LOGIN_TWICE: Reply = b"503 5.5.1 Already authenticated\r\n";
pub(crate) const LOGIN_WITHIN_TRANSACTION: Reply =
    b"503 5.5.1 AUTH is not allowed during a mail transaction\r\n";
pub(crate) const LOG_IN_FIRST: Reply = b"530 5.7.0 Authentication required\r\n";
pub(crate) const START_TLS_FIRST: Reply = b"530 5.7.0 Encryption required, send STARTTLS first\r\n";
pub(crate) const NO_LOGIN_IN_THE_CLEAR: Reply =
    b"538 5.7.11 Encryption required for authentication, send STARTTLS first\r\n";
pub(crate) const TLS_TWICE: Reply = b"503 5.5.1 TLS is already active\r\n";
pub(crate) const GREET_FIRST: Reply = b"503 5.5.1 Send EHLO or HELO first\r\n";
pub(crate) const MAIL_FIRST: Reply = b"503 5.5.1 Send MAIL first\r\n";
pub(crate) const MAIL_TWICE: Reply = b"503 5.5.1 MAIL already sent, send RSET to start again\r\n";
pub(crate) const CHUNKS_BEGAN: Reply = b"503 5.5.1 BDAT already sent, send BDAT or RSET\r\n";
pub(crate) const NO_RECIPIENT: Reply = b"554 5.5.1 No valid recipients\r\n";
pub(crate) const TOO_SOON: Reply =
    b"554 5.5.0 Improper pipelining: wait for the server's reply before you send more\r\n";
pub(crate) const BARE_LINE_END_IN_MESSAGE: Reply =
    b"554 5.6.0 Message contains a bare CR or LF; lines must end with CRLF\r\n";
pub(crate) const NUL_IN_MESSAGE: Reply = b"554 5.6.0 Message contains a NUL byte\r\n";
pub(crate) const BARE_LINE_END_IN_COMMAND: Reply =
    b"521 5.5.2 Command contains a bare CR or LF; lines must end with CRLF\r\n";
pub(crate) const RECIPIENT_NEEDS_SMTPUTF8: Reply =
    b"553 5.6.7 Non-ASCII address requires SMTPUTF8\r\n";
pub(crate) const TOO_MANY_RECIPIENTS: Reply = b"452 4.5.3 Too many recipients\r\n";
pub(crate) const MAILBOX_FULL: Reply = b"452 4.2.2 Mailbox is full, try again later\r\n";
pub(crate) const NEVER_FITS: Reply = b"552 5.2.2 Message is larger than the mailbox quota\r\n";
pub(crate) const TOO_BIG: Reply = b"552 5.3.4 Message size exceeds the limit\r\n";

pub(crate) fn fault(fault: CommandError) -> Reply {
    match fault {
        CommandError::UnknownCommand => b"500 5.5.1 Unknown command\r\n",
        CommandError::NotImplemented => b"502 5.5.1 Command not implemented\r\n",
        CommandError::NotSmtp => b"521 5.5.1 This is an SMTP server\r\n",
        CommandError::NotUtf8 => b"500 5.5.2 Line is not valid UTF-8\r\n",
        CommandError::BadArguments => b"501 5.5.4 Invalid arguments\r\n",
        CommandError::BadGreetingName => b"501 5.5.4 Send your host name or an address literal\r\n",
        CommandError::BadSender(PathError::Malformed) => {
            b"501 5.1.7 Invalid sender address, must be <local-part@domain>\r\n"
        }
        CommandError::BadSender(PathError::TooLong) => b"501 5.1.7 Sender address is too long\r\n",
        CommandError::BadRecipient(PathError::Malformed) => {
            b"501 5.1.3 Invalid recipient address, must be <local-part@domain>\r\n"
        }
        CommandError::BadRecipient(PathError::TooLong) => {
            b"501 5.1.3 Recipient address is too long\r\n"
        }
        CommandError::BadParameter => b"501 5.5.4 Invalid parameter value\r\n",
        CommandError::UnknownParameter => b"555 5.5.4 Unsupported parameter\r\n",
        CommandError::NeedsSmtpUtf8 => RECIPIENT_NEEDS_SMTPUTF8,
        CommandError::BadChunk => b"521 5.5.4 Syntax: BDAT size [LAST]\r\n",
    }
}

pub(crate) fn sender_refusal(refusal: SenderRefusal) -> Reply {
    match refusal {
        SenderRefusal::StorageFull => b"452 4.3.1 Insufficient system storage, try again later\r\n",
        SenderRefusal::IndexFull => INDEX_FULL,
        SenderRefusal::TooBig => TOO_BIG,
        SenderRefusal::Busy => b"451 4.3.2 Server is busy, try again later\r\n",
        SenderRefusal::DiskFailed => DISK_FAILED,
        SenderRefusal::TooOften => {
            b"450 4.7.1 Too many messages from your IP address, try again later\r\n"
        }
        SenderRefusal::NotTheirs => {
            b"553 5.7.1 Sender address rejected: not owned by the logged-in user\r\n"
        }
    }
}

pub(crate) fn login_refusal(refusal: AuthRefusal) -> Reply {
    match refusal {
        AuthRefusal::Credentials => b"535 5.7.8 Wrong user name or password\r\n",
        AuthRefusal::TryLater => b"454 4.7.0 Temporary authentication failure, try again later\r\n",
    }
}

pub(crate) fn recipient_refusal(refusal: RecipientRefusal, actions: &mut impl Actions) {
    actions.reply(match refusal {
        RecipientRefusal::TooOften => {
            b"450 4.7.1 Too many recipients from your IP address, try again later\r\n"
        }
        RecipientRefusal::Greylisted => b"450 4.7.1 Greylisted, try again in a few minutes\r\n",
        RecipientRefusal::Unchecked => {
            b"451 4.7.0 Cannot check your IP address now, try again later\r\n"
        }
        RecipientRefusal::Guessing => TOO_MANY_UNKNOWN,
        RecipientRefusal::Unwanted => return unwanted(actions),
        RecipientRefusal::UnknownUser => b"550 5.1.1 No such user here\r\n",
        RecipientRefusal::NotLocal => b"550 5.7.1 Relaying denied\r\n",
        RecipientRefusal::NotFullyQualified => b"554 5.1.2 Domain name is not fully qualified\r\n",
        RecipientRefusal::TooMany => TOO_MANY_RECIPIENTS,
        RecipientRefusal::MailboxFull => MAILBOX_FULL,
        RecipientRefusal::NeverFits => NEVER_FITS,
        RecipientRefusal::Unavailable => {
            b"450 4.2.1 Mailbox temporarily unavailable, try again later\r\n"
        }
    });
}

/// Refuses all mail from the client, with the server's reason.
fn unwanted(actions: &mut impl Actions) {
    let reason = reason(actions);
    Composed::default().put(b"554 5.7.1 ").put(&reason).put(LINE_END).send(actions);
}

const LINE_END: &[u8] = b"\r\n";
/// The length of the text before a reason.
const CODE_BYTES: usize = b"554 5.7.1 ".len();
const REASON_BYTES_MAX: usize = LINE_BYTES_MAX - CODE_BYTES - LINE_END.len();

/// The printable part of the server's reason, cut to one line.
fn reason(actions: &impl Actions) -> Vec<u8, REASON_BYTES_MAX> {
    let reason = actions.reason().bytes().filter(|byte| byte.is_ascii_graphic() || *byte == b' ');
    reason.take(REASON_BYTES_MAX).collect()
}

/// Replies to a complete message that is refused.
pub(crate) fn message_refused(refusal: MessageRefusal, actions: &mut impl Actions) {
    let code: &[u8] = match refusal {
        MessageRefusal::Unwanted => b"550 5.7.1 ",
        MessageRefusal::Unsure => b"451 4.7.1 ",
        _ => return actions.reply(message_refusal(refusal)),
    };
    let reason = reason(actions);
    if reason.is_empty() {
        return actions.reply(message_refusal(refusal));
    }
    Composed::default().put(code).put(&reason).put(LINE_END).send(actions);
}

pub(crate) fn message_refusal(refusal: MessageRefusal) -> Reply {
    match refusal {
        MessageRefusal::StorageFull => b"452 4.3.1 Insufficient system storage, try again later\r\n",
        MessageRefusal::IndexFull => INDEX_FULL,
        MessageRefusal::TryLater => b"451 4.3.0 Message could not be stored, try again later\r\n",
        MessageRefusal::DiskFailed => DISK_FAILED,
        MessageRefusal::Loop => b"554 5.4.6 Too many hops, mail loop detected\r\n",
        MessageRefusal::TooManyFields => b"550 5.6.0 Message header has more than 1,000 fields\r\n",
        MessageRefusal::TooBig => TOO_BIG,
        MessageRefusal::MailboxFull => MAILBOX_FULL,
        MessageRefusal::NeverFits => NEVER_FITS,
        MessageRefusal::OutboxFull => b"452 4.2.2 Too many of your messages are waiting to be sent, try again later\r\n",
        MessageRefusal::TooManyToday => b"451 4.7.0 Daily message limit reached, try again tomorrow\r\n",
        MessageRefusal::TooManyNewToday => {
            b"451 4.7.0 Daily limit for new recipients reached, try again tomorrow or with fewer recipients\r\n"
        }
        MessageRefusal::NotTheirs => b"550 5.7.1 From address rejected: not owned by the logged-in user\r\n",
        MessageRefusal::NoAuthor => b"550 5.6.0 Message must have exactly one From field with valid addresses\r\n",
        MessageRefusal::Unchecked => b"451 4.7.0 Cannot check the message now, try again later\r\n",
        MessageRefusal::Unproved => {
            b"550 5.7.26 Unauthenticated mail rejected because of the From domain's DMARC policy\r\n"
        }
        MessageRefusal::Unwanted => b"550 5.7.1 Message rejected by the content filter\r\n",
        MessageRefusal::Unsure => b"451 4.7.1 Message deferred by the content filter, try again later\r\n",
    }
}

/// A reply that is composed in a buffer, and sent in one call.
#[derive(Default)]
struct Composed(Vec<u8, REPLY_BYTES_MAX>);

impl Composed {
    /// Appends `text`, which must fit.
    fn put(&mut self, text: &[u8]) -> &mut Composed {
        let fitted = self.0.extend_from_slice(text);
        debug_assert!(fitted.is_ok(), "the reply fits into its buffer");
        self
    }

    fn put_decimal(&mut self, mut number: u64) -> &mut Composed {
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

    fn send(&self, actions: &mut impl Actions) {
        actions.reply(&self.0);
    }
}

/// Sends the greeting.
pub(crate) fn greeting(actions: &mut impl Actions) {
    let mut reply = Composed::default();
    reply.put(b"220 ").put(actions.hostname().as_bytes()).put(b" ESMTP Barepost\r\n");
    reply.send(actions);
}

/// Sends the reply to HELO.
pub(crate) fn hello(actions: &mut impl Actions) {
    let mut reply = Composed::default();
    reply.put(b"250 ").put(actions.hostname().as_bytes()).put(b"\r\n");
    reply.send(actions);
}

/// Sends the reply to EHLO. The last line is HELP, which every server supports.
pub(crate) fn extended_hello(actions: &mut impl Actions) {
    let SmtpSettings { message_bytes_max, recipients_max, extensions, holds, tls, login, .. } =
        actions.settings();
    let mut reply = Composed::default();
    reply.put(b"250-").put(actions.hostname().as_bytes()).put(b"\r\n");
    for (extension, line) in PLAIN_EXTENSIONS {
        if extensions.contains(*extension) {
            reply.put(line);
        }
    }
    if extensions.contains(Extensions::SIZE) {
        reply.put(b"250-SIZE ").put_decimal(message_bytes_max).put(b"\r\n");
    }
    if extensions.contains(Extensions::LIMITS) {
        reply.put(b"250-LIMITS RCPTMAX=").put_decimal(recipients_max.into()).put(b"\r\n");
    }
    if let Some(holds) = holds {
        let latest = DateTime(holds.latest());
        reply.put(format!("250-FUTURERELEASE {} {latest}\r\n", holds.seconds_max).as_bytes());
    }
    if matches!(tls, SmtpTls::Offered | SmtpTls::Busy) {
        reply.put(b"250-STARTTLS\r\n");
    }
    if login == LoginPolicy::Required {
        reply.put(b"250-AUTH ").put(sasl::NAMES.as_bytes()).put(b"\r\n");
    }
    reply.put(b"250 HELP\r\n");
    reply.send(actions);
}

const PLAIN_EXTENSIONS: &[(Extensions, Reply)] = &[
    (Extensions::PIPELINING, b"250-PIPELINING\r\n"),
    (Extensions::EIGHT_BIT_MIME, b"250-8BITMIME\r\n"),
    (Extensions::SMTPUTF8, b"250-SMTPUTF8\r\n"),
    (Extensions::ENHANCED_STATUS_CODES, b"250-ENHANCEDSTATUSCODES\r\n"),
    (Extensions::CHUNKING, b"250-CHUNKING\r\n"),
    (Extensions::DSN, b"250-DSN\r\n"),
];

/// Sends a challenge of a login, to which the client must respond.
pub(crate) fn login_challenge(challenge: &[u8], actions: &mut impl Actions) {
    Composed::default().put(b"334 ").put(challenge).put(b"\r\n").send(actions);
}

/// Sends the reply to a message that is on the disk. A long `identifier` is cut.
pub(crate) fn stored(identifier: &[u8], actions: &mut impl Actions) {
    const IDENTIFIER_BYTES_MAX: usize = 64;
    let name = identifier.get(..IDENTIFIER_BYTES_MAX).unwrap_or(identifier);
    Composed::default().put(b"250 2.0.0 Stored as ").put(name).put(b"\r\n").send(actions);
}
