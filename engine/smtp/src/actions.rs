//! The actions of a session: the trait [`Actions`] and its types.

use machine::Micros;

use crate::command::{Mail, RcptTo};
use crate::hold::Holds;
use crate::path::SmtpPath;

/// The actions of a session. Each call acts or queues at once and does not block. The
/// implementation is also the host of a login (`sasl::Host`). It checks the credentials and reports
/// the result through [`crate::Session::login_answered`], but not from within the call. It may
/// delay a refusal, to slow down guessing.
pub trait Actions: sasl::Host {
    /// The settings of the server. The session calls this often, so the settings are small.
    fn settings(&self) -> SmtpSettings;

    /// The number of bytes of replies that can be queued now.
    fn send_room(&self) -> usize;

    /// Queues a reply. The session handles a command only while there is space for
    /// [`crate::REPLY_BYTES_MAX`]. Two kinds of reply do not wait for space: the reply to a
    /// complete message, which has at most 512 bytes, and the 421 of a session that ends, which has
    /// less than 128.
    fn reply(&mut self, bytes: &[u8]);

    /// The server's name, at most 255 bytes.
    fn hostname(&self) -> &str;

    /// MAIL: opens a transaction. The implementation keeps what it needs of `mail`.
    ///
    /// Errors: no transaction was opened. The reply tells the client the reason.
    fn transaction_begin(&mut self, mail: &Mail<'_>) -> Result<(), SenderRefusal>;

    /// Whether [`Actions::recipient`] can answer for `path` now. If a check must end first, the
    /// result is false, and the session does not take RCPT. After [`crate::Session::sender_known`]
    /// the session calls this function again. `greeting_name`: as in [`MessageStart`].
    fn may_answer(&mut self, path: &SmtpPath<'_>, greeting_name: &str) -> bool;

    /// RCPT: adds a recipient to the open transaction.
    ///
    /// Errors: the recipient was not added. The reply tells the client the reason.
    fn recipient(&mut self, recipient: &RcptTo<'_>) -> Result<(), RecipientRefusal>;

    /// The reason for the refusal of all mail from the client, or of its message. The replies to
    /// [`RecipientRefusal::Unwanted`], [`MessageRefusal::Unwanted`] and [`MessageRefusal::Unsure`]
    /// contain it. The session removes bytes that are not printable ASCII, and cuts the reason to
    /// one line.
    fn reason(&self) -> &str;

    /// The transaction has ended, with any result. The session calls this once for each open
    /// transaction, after the end or the abort of its message.
    fn transaction_end(&mut self);

    /// Whether a message of the open transaction, which has a recipient, may begin. If a check of
    /// its sender must end first, the result is false. In this case the session does not take DATA,
    /// or the first BDAT, and the host sets the deadline. After [`crate::Session::sender_known`]
    /// the session calls this function again. `greeting_name`: as in [`MessageStart`].
    fn may_begin(&mut self, greeting_name: &str) -> bool;

    /// DATA or the first BDAT: the message of the open transaction begins.
    ///
    /// Errors: the message does not begin, and none of the calls about messages follows.
    fn message_begin(&mut self, envelope: &MessageStart<'_>) -> Result<(), MessageRefusal>;

    /// Takes the next bytes of the message, in the form to be stored. Returns the number of bytes
    /// taken. If there is no space for all of them, the session offers the rest after
    /// [`crate::Session::message_room`].
    ///
    /// Errors: the host has dropped the message. The session reads and discards its remaining
    /// bytes.
    fn message_bytes(&mut self, bytes: &[u8]) -> Result<usize, MessageRefusal>;

    /// The message is complete. [`crate::Session::message_stored`] reports the result later, but
    /// not from within this call. The session has cleared its deadline, so the host sets one for
    /// this wait.
    ///
    /// Errors: the host has dropped the message, and does not call `message_stored` for it.
    fn message_end(&mut self) -> Result<(), MessageRefusal>;

    /// Drops the message, which will never be complete.
    fn message_abort(&mut self);

    /// Abandons a login. Either the session no longer needs the result of [`sasl::Host::login`], or
    /// the client has not acknowledged a login that was granted.
    fn abandon_login(&mut self);

    /// Sets the deadline, and replaces an earlier one. The host calls
    /// [`crate::Session::deadline_expired`] after this time. `None`: there is no deadline.
    fn set_deadline(&mut self, after: Option<Micros>);

    /// Closes the connection once all queued bytes are sent. The session is over.
    fn close(&mut self);
}

/// The settings of the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SmtpSettings {
    /// The most bytes of a message, after its transport encoding is undone. SIZE announces it. A
    /// longer message is refused with 552.
    pub message_bytes_max: u64,
    /// The most recipients of one message, at least 100 (RFC 5321 section 4.5.3.1.8). LIMITS
    /// announces it. The next recipient is refused with 452, so that the client sends the rest in
    /// another transaction.
    pub recipients_max: u16,
    /// The most invalid or misplaced commands since the last accepted message or login. One more
    /// ends the session with 421.
    pub faults_max: u8,
    /// The most valid commands other than MAIL, RCPT, BDAT and QUIT since the last accepted
    /// message. One more ends the session with 421, unless the client has logged in.
    pub idle_commands_max: u8,
    /// The most refused recipients of a session. One more ends the session with 421.
    pub refused_recipients_max: u8,
    /// The extensions that EHLO announces.
    pub extensions: Extensions,
    /// The limit for holding messages, which EHLO announces (RFC 4865). `None`: no message is held,
    /// and MAIL with a hold is refused.
    pub holds: Option<Holds>,
    /// The state of TLS. EHLO announces STARTTLS in the states [`SmtpTls::Offered`] and
    /// [`SmtpTls::Busy`].
    pub tls: SmtpTls,
    /// The policy for logins. EHLO announces AUTH while a login is possible.
    pub login: LoginPolicy,
    /// The treatment of a client that does not wait for a required reply.
    pub haste: Haste,
    /// The number of failed logins that ends the session with 421.
    pub failed_logins_max: u8,
}

/// The treatment of a client that does not wait for a required reply (RFC 2920 section 3.1). A
/// client must wait for the reply to EHLO or HELO, which says whether pipelining is possible. It
/// must also wait for the 354 after DATA and, unless it has sent EHLO, for every other reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Haste {
    /// The session continues.
    Tolerated,
    /// 554 5.5.0, and the session is over.
    Refused,
}

/// Whether clients log in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoginPolicy {
    /// Logins are not supported, and any client may send mail.
    Absent,
    /// A client must begin TLS and then log in before it sends mail.
    AfterTls,
    /// A client must log in before it sends mail.
    Required,
}

/// Whether the connection uses TLS.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SmtpTls {
    /// TLS is neither active nor available.
    Absent,
    /// TLS is not active. The client may begin it with STARTTLS.
    Offered,
    /// TLS is not active, and too many handshakes are in progress. STARTTLS gets 454.
    Busy,
    /// TLS is active.
    Spoken,
}

impl Default for SmtpSettings {
    fn default() -> SmtpSettings {
        SmtpSettings {
            message_bytes_max: 52_428_800,
            recipients_max: 1_000,
            faults_max: 20,
            idle_commands_max: 100,
            refused_recipients_max: 100,
            extensions: Extensions::ALL,
            holds: None,
            tls: SmtpTls::Absent,
            login: LoginPolicy::Absent,
            haste: Haste::Tolerated,
            failed_logins_max: 3,
        }
    }
}

/// A set of extensions to announce. Some large clients fail on rare extensions, so each extension
/// can be left out. The session supports an extension even if EHLO does not announce it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extensions(u8);

impl Extensions {
    /// RFC 2920.
    pub const PIPELINING: Extensions = Extensions(1 << 0);
    /// RFC 1870.
    pub const SIZE: Extensions = Extensions(1 << 1);
    /// RFC 6152.
    pub const EIGHT_BIT_MIME: Extensions = Extensions(1 << 2);
    /// RFC 6531.
    pub const SMTPUTF8: Extensions = Extensions(1 << 3);
    /// RFC 2034.
    pub const ENHANCED_STATUS_CODES: Extensions = Extensions(1 << 4);
    /// RFC 3030.
    pub const CHUNKING: Extensions = Extensions(1 << 5);
    /// RFC 9422.
    pub const LIMITS: Extensions = Extensions(1 << 6);
    /// RFC 3461.
    pub const DSN: Extensions = Extensions(1 << 7);
    /// All extensions that the session supports.
    pub const ALL: Extensions = Extensions(0xff);

    /// This set without the extensions in `other`.
    pub const fn without(self, other: Extensions) -> Extensions {
        Extensions(self.0 & !other.0)
    }

    /// Whether everything in `other` is in this set.
    pub const fn contains(self, other: Extensions) -> bool {
        self.0 & other.0 == other.0
    }
}

/// The properties of a message that are known when it begins, except its sender and recipients.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MessageStart<'a> {
    /// The client's name in EHLO or HELO: a domain or an address literal, not verified.
    pub greeting_name: &'a str,
    /// The protocol of the message, for its `Received:` field.
    pub protocol: TransmissionType,
    /// The number of accepted recipients, at least one.
    pub recipients: u16,
}

/// The protocol by which the client sends a message (RFC 5321 section 4.4, RFC 6531 section 4.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TransmissionType {
    /// The client sent HELO.
    Smtp,
    /// The client sent EHLO.
    Esmtp,
    /// The client sent EHLO and gave MAIL the parameter SMTPUTF8.
    Utf8Smtp,
}

/// Why a transaction is not opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SenderRefusal {
    /// There is no space for a message of the declared size, or for any message: 452 4.3.1.
    StorageFull,
    /// The server has as many messages as its memory has space for: 452 4.3.1.
    IndexFull,
    /// The message is larger than any that the server could store: 552 5.3.4.
    TooBig,
    /// All records for transactions are in use: 451 4.3.2.
    Busy,
    /// The disk has failed: 451 4.3.0.
    DiskFailed,
    /// The client has sent too many messages lately: 450 4.7.1.
    TooOften,
    /// The address does not belong to the account that the client has logged in to: 553 5.7.1.
    NotTheirs,
}

/// Why a login is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AuthRefusal {
    /// The user or the password is wrong: 535 5.7.8.
    Credentials,
    /// A temporary failure, or too many logins in progress: 454 4.7.0.
    TryLater,
}

/// Why a recipient is not accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecipientRefusal {
    /// The domain is the server's but the mailbox does not exist: 550 5.1.1.
    UnknownUser,
    /// The domain is not the server's, which does not relay for this client: 550 5.7.1.
    NotLocal,
    /// The domain is not fully-qualified: 554 5.1.2 (RFC 6409 section 4.2).
    NotFullyQualified,
    /// The transaction accepts no more recipients: 452 4.5.3.
    TooMany,
    /// The mailbox has no space: 452 4.2.2.
    MailboxFull,
    /// The message is larger than the mailbox's quota: 552 5.2.2.
    NeverFits,
    /// The mailbox exists but cannot be used now: 450 4.2.1.
    Unavailable,
    /// The client has named too many recipients lately: 450 4.7.1.
    TooOften,
    /// The sender is greylisted, and the client has to try again: 450 4.7.1.
    Greylisted,
    /// The server is too busy to check the client: 451 4.7.0.
    Unchecked,
    /// The client has named too many unknown recipients, so the server no longer tells it which
    /// recipients exist: 421 4.7.0. The session is over.
    Guessing,
    /// No mail is accepted from the client: 554 5.7.1, with [`Actions::reason`].
    Unwanted,
}

/// Why a message is not accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MessageRefusal {
    /// The disk is full: 452 4.3.1.
    StorageFull,
    /// The server has as many messages as its memory has space for: 452 4.3.1.
    IndexFull,
    /// A temporary failure: 451 4.3.0.
    TryLater,
    /// The disk has failed: 451 4.3.0.
    DiskFailed,
    /// The message has passed through this server too often: 554 5.4.6.
    Loop,
    /// The header has more than 1,000 fields: 550 5.6.0.
    TooManyFields,
    /// The message is too large: 552 5.3.4.
    TooBig,
    /// The mailbox of one of its recipients has no space: 452 4.2.2.
    MailboxFull,
    /// The message is larger than the quota of one of its recipients: 552 5.2.2.
    NeverFits,
    /// The account has sent as many messages today as it may: 451 4.7.0.
    TooManyToday,
    /// The account's outbox is full: 452 4.2.2.
    OutboxFull,
    /// The message has more new recipients than the account may write to today: 451 4.7.0.
    TooManyNewToday,
    /// The `From` field has an address that does not belong to the account: 550 5.7.1.
    NotTheirs,
    /// The message does not have exactly one `From` field with unambiguous addresses: 550 5.6.0.
    NoAuthor,
    /// A limit was reached before the check of the author's domain had a result: 451 4.7.0.
    Unchecked,
    /// No check proves that the message comes from its author's domain, and the domain's policy is
    /// to reject such mail: 550 5.7.26 (RFC 7372).
    Unproved,
    /// A filter refuses the message: 550 5.7.1, with [`Actions::reason`] unless it is empty.
    Unwanted,
    /// A filter defers the message, or could not be asked: 451 4.7.1, with [`Actions::reason`]
    /// unless it is empty.
    Unsure,
}
