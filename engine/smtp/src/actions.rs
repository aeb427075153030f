//! The actions of a session: the trait [`Actions`] and its types.

use machine::Micros;

use crate::command::{Mail, RcptTo};
use crate::hold::Holds;
use crate::path::ForwardPath;

/// What a session acts through. Each call is carried out or queued at once; none waits. As the host
/// of a login, the implementation checks the credentials and reports the result through
/// [`crate::Session::login_answered`], but not from within the call. It may delay a refusal, to
/// slow down guessing.
pub trait Actions: sasl::Host {
    /// The settings of the server. Called often: they are a copy of a few words.
    fn settings(&self) -> SmtpSettings;

    /// How many bytes of replies can be queued now.
    fn send_room(&self) -> usize;

    /// Queues a reply. A command is handled only while there is space for
    /// [`crate::REPLY_BYTES_MAX`]. Two kinds of reply do not wait for space: the reply to a
    /// finished message, and the 421 of a session that ends. They are under 128 bytes.
    fn reply(&mut self, bytes: &[u8]);

    /// The server's name, at most 255 bytes.
    fn hostname(&self) -> &str;

    /// MAIL: opens a transaction. The implementation keeps what it needs of `mail`.
    ///
    /// Errors: no transaction was opened, and the client is told why.
    fn transaction_begin(&mut self, mail: &Mail<'_>) -> Result<(), SenderRefusal>;

    /// Whether [`Actions::recipient`] can answer for this path now. No: something must be found out
    /// first. Then RCPT is not taken before [`crate::Session::sender_known`], when this is asked
    /// again. `greeting_name`: as in [`MessageStart`].
    fn may_answer(&mut self, path: &ForwardPath<'_>, greeting_name: &str) -> bool;

    /// RCPT: adds a recipient to the open transaction.
    ///
    /// Errors: it was not added, and the client is told why.
    fn recipient(&mut self, recipient: &RcptTo<'_>) -> Result<(), RecipientRefusal>;

    /// Why no mail, or not this message, is accepted from the client.
    /// [`RecipientRefusal::Unwanted`], [`MessageRefusal::Unwanted`] and [`MessageRefusal::Unsure`]
    /// tell the client, without bytes that are not printable ASCII, and cut to one line.
    fn reason(&self) -> &str;

    /// The transaction is over, whatever its result. Called once for each that was opened, and
    /// after the end or the abort of its message.
    fn transaction_end(&mut self);

    /// Whether a message of the open transaction, which has a recipient, may begin. No: something
    /// must be found out about its sender first. Then DATA, or the first BDAT, is not taken before
    /// [`crate::Session::sender_known`], when this is asked again; until then the host sets the
    /// deadline. `greeting_name`: as in [`MessageStart`].
    fn may_begin(&mut self, greeting_name: &str) -> bool;

    /// DATA or the first BDAT: the message of the open transaction begins.
    ///
    /// Errors: there is no message then, and none of the calls below follows for it.
    fn message_begin(&mut self, envelope: &MessageStart<'_>) -> Result<(), MessageRefusal>;

    /// The next bytes of the message, as they are to be stored. Returns how many were taken. Fewer
    /// than offered means that there is no space, and nothing more is offered before
    /// [`crate::Session::message_room`].
    ///
    /// Errors: the server has dropped the message; its remaining bytes are read and thrown away.
    fn message_bytes(&mut self, bytes: &[u8]) -> Result<usize, MessageRefusal>;

    /// The message is complete. [`crate::Session::message_stored`] reports the result later, but
    /// not from within this call. Until then the host sets the deadline: there is none at first.
    ///
    /// Errors: the server has dropped the message, and `message_stored` is not called for it.
    fn message_end(&mut self) -> Result<(), MessageRefusal>;

    /// The message will never be complete: drop it.
    fn message_abort(&mut self);

    /// The answer to [`sasl::Host::login`], which [`crate::Session::login_answered`] reports, is
    /// not needed any more; or the client does not want the granted login.
    fn abandon_login(&mut self);

    /// Calls [`crate::Session::deadline_expired`] after this time, instead of any deadline set
    /// before. `None`: never.
    fn set_deadline(&mut self, after: Option<Micros>);

    /// Closes the connection once everything queued is sent. The session is over.
    fn close(&mut self);
}

/// The settings of the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SmtpSettings {
    /// The most bytes of a message, after its transport encoding is undone. Announced by SIZE; a
    /// longer message is refused with 552.
    pub message_bytes_max: u64,
    /// The most recipients of one message, at least 100 (RFC 5321 section 4.5.3.1.8). Announced by
    /// LIMITS. A further one is refused with 452, so that the client sends the rest in another
    /// transaction.
    pub recipients_max: u16,
    /// The most invalid or misplaced commands since the last accepted message. A further one ends
    /// the session with 421.
    pub faults_max: u8,
    /// The most commands other than MAIL and RCPT since the last accepted message, from a client
    /// that has not logged in. A further one ends the session with 421.
    pub idle_commands_max: u8,
    /// The most refused recipients of a session. A further one ends it with 421.
    pub refused_recipients_max: u8,
    /// The extensions that EHLO announces.
    pub extensions: Extensions,
    /// How long messages may be held, which EHLO announces (RFC 4865). `None`: they are not held,
    /// and a client that asks for it is refused.
    pub holds: Option<Holds>,
    /// STARTTLS, which EHLO announces while it is possible.
    pub tls: SmtpTls,
    /// AUTH, which EHLO announces while it is possible.
    pub login: LoginPolicy,
    /// The treatment of a client that sends more before a reply that it has to wait for.
    pub haste: Haste,
    /// Failed logins of a session; the last of them ends it with 421.
    pub failed_logins_max: u8,
}

/// The treatment of a client that does not wait for a required reply (RFC 2920 section 3.1): the
/// reply to EHLO or HELO, which says whether pipelining is possible, any reply after HELO, or the
/// 354 after DATA.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Haste {
    /// The session goes on.
    Tolerated,
    /// 554 5.5.0, and the session is over.
    Refused,
}

/// Whether clients log in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoginPolicy {
    /// They do not, and cannot: anyone may send mail here.
    Absent,
    /// They have to log in before they send mail, and to use TLS before that.
    AfterTls,
    /// They have to log in before they send mail.
    Required,
}

/// Whether the connection uses TLS.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SmtpTls {
    /// It does not, and cannot.
    Absent,
    /// It does once the client asks for it.
    Offered,
    /// The same, but too many handshakes are under way: 454.
    Busy,
    /// It does.
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

/// A set of extensions to announce. Some large clients fail on rare extensions, so each can be left
/// out. One that is left out is supported all the same.
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

/// What is known of a message when it begins, beside its sender and its recipients.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MessageStart<'a> {
    /// The client's name in EHLO or HELO: a domain or an address literal, not verified.
    pub greeting_name: &'a str,
    /// The protocol of the message, for its `Received:` field.
    pub protocol: TransmissionType,
    /// The number of accepted recipients, at least one.
    pub recipients: u16,
}

/// The protocol by which a message came (RFC 5321 section 4.4, RFC 6531 section 4.3).
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
    /// No space for a message of the declared size, or for any: 452 4.3.1.
    StorageFull,
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
    /// Something failed that may work later, or too many logins are under way: 454 4.7.0.
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
    /// No more recipients in this transaction: 452 4.5.3.
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
    /// The client has named so many unknown recipients that it does not learn of any more whether
    /// they exist: 421 4.7.0, and the session is over.
    Guessing,
    /// No mail is accepted from the client: 554 5.7.1, with [`Actions::reason`].
    Unwanted,
}

/// Why a message is not accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MessageRefusal {
    /// The disk is full: 452 4.3.1.
    StorageFull,
    /// Something failed that may work later: 451 4.3.0.
    TryLater,
    /// The disk has failed: 451 4.3.0.
    DiskFailed,
    /// It came through this server too often: 554 5.4.6.
    Loop,
    /// Its header has more than 1,000 fields: 550 5.6.0.
    TooManyFields,
    /// It is too big: 552 5.3.4.
    TooBig,
    /// The mailbox of one of its recipients has no space: 452 4.2.2.
    MailboxFull,
    /// It is larger than the quota of one of its recipients: 552 5.2.2.
    NeverFits,
    /// The account has sent as many messages today as it may: 451 4.7.0.
    TooManyToday,
    /// The account's outbox is full: 452 4.2.2.
    OutboxFull,
    /// It has more new recipients than the account may write to today: 451 4.7.0.
    TooManyNewToday,
    /// An address in its `From` field is not one of the account's: 550 5.7.1.
    NotTheirs,
    /// It does not have exactly one `From` field with unambiguous addresses: 550 5.6.0.
    NoAuthor,
    /// A limit was reached before it was known whether it is its author's: 451 4.7.0.
    Unchecked,
    /// Nothing proves that it is of its author's domain, which wants such mail refused: 550 5.7.26
    /// (RFC 7372).
    Unproved,
    /// A filter refuses it: 550 5.7.1, with [`Actions::reason`] if there is one.
    Unwanted,
    /// A filter refuses it for now, or could not be asked: 451 4.7.1, with the same.
    Unsure,
}
