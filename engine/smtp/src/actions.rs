//! What a session wants done: the trait [`Actions`] and the words that it uses.

use machine::Micros;

use crate::command::{Mail, Recipient};
use crate::hold::Holds;
use crate::path::ForwardPath;

/// The session's hands. Each call is carried out or queued at once; none waits. As the host of a login they check what proves it: [`crate::Session::login_answered`] tells what came of
/// that, not from within the call; a refusal may be held back for as long as guessing is to take.
pub trait Actions: sasl::Host {
    /// What the server allows. Asked for often: a copy of a few words.
    fn settings(&self) -> Settings;

    /// How many bytes of replies can be queued now.
    fn send_room(&self) -> usize;

    /// Queues a reply. A command is handled only while there is [`crate::REPLY_BYTES_MAX`] of room; the reply to
    /// a finished message, and the 421 of a session that ends, come when they come and are under 128 bytes.
    fn reply(&mut self, bytes: &[u8]);

    /// The server's name, at most 255 bytes.
    fn hostname(&self) -> &str;

    /// MAIL: opens a transaction. What the server wants to know of it later, it keeps.
    ///
    /// Errors: no transaction was opened, and the client is told why.
    fn transaction_begin(&mut self, mail: &Mail<'_>) -> Result<(), SenderRefusal>;

    /// Whether [`Actions::recipient`] can answer for this path now. No: something has to be found out first. Then RCPT is not taken before
    /// [`crate::Session::sender_known`], when this is asked again. `greeting_name`: as in [`Envelope`].
    fn may_answer(&mut self, path: &ForwardPath<'_>, greeting_name: &str) -> bool;

    /// RCPT: adds a recipient to the open transaction.
    ///
    /// Errors: it was not added, and the client is told why.
    fn recipient(&mut self, recipient: &Recipient<'_>) -> Result<(), RecipientRefusal>;

    /// Why no mail is taken from the client, or not this message, which [`RecipientRefusal::Unwanted`], [`MessageRefusal::Unwanted`] and [`MessageRefusal::Unsure`] tell him: of what is no printable ASCII, and of what is longer than a line, he hears nothing.
    fn reason(&self) -> &str;

    /// The transaction is over, whatever came of it. Called once for each that was opened, and after the end or the
    /// abort of its message.
    fn transaction_end(&mut self);

    /// Whether a message of the open transaction, which has a recipient, may begin. No: something has to be found out about its sender first. Then DATA, or the first BDAT, is
    /// not taken before [`crate::Session::sender_known`], when this is asked again; until then the deadline is the host's to set. `greeting_name`: as in [`Envelope`].
    fn may_begin(&mut self, greeting_name: &str) -> bool;

    /// DATA or the first BDAT: the message of the open transaction begins.
    ///
    /// Errors: there is no message then, and none of the calls below follows for it.
    fn message_begin(&mut self, envelope: &Envelope<'_>) -> Result<(), MessageRefusal>;

    /// The next bytes of the message, as they are to be stored. Returns how many were taken; fewer than offered means
    /// that there is no room, and nothing more is offered before [`crate::Session::message_room`].
    ///
    /// Errors: the server has dropped the message; its remaining bytes are read and thrown away.
    fn message_bytes(&mut self, bytes: &[u8]) -> Result<usize, MessageRefusal>;

    /// The message is whole. [`crate::Session::message_stored`] tells later what came of it; not from within this call. Until then the deadline is the host's to
    /// set: there is none.
    ///
    /// Errors: the server has dropped the message, and `message_stored` is not called for it.
    fn message_end(&mut self) -> Result<(), MessageRefusal>;

    /// The message will never be whole: drop it.
    fn message_abort(&mut self);

    /// Nobody waits any more for the answer to [`sasl::Host::login`], which [`crate::Session::login_answered`] tells; or the client does not want what it was granted.
    fn abandon_login(&mut self);

    /// Calls [`crate::Session::deadline_expired`] after so long, instead of any deadline set before; `None`: never.
    fn set_deadline(&mut self, after: Option<Micros>);

    /// Closes the connection once everything queued is sent. The session is over.
    fn close(&mut self);
}

/// What the server allows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Bytes of a message, after its transport encoding is undone. Announced by SIZE; a longer one is refused by 552.
    pub message_bytes_max: u64,
    /// Recipients of one message, at least 100 (RFC 5321 section 4.5.3.1.8). Announced by LIMITS; one more is refused by
    /// 452, so that the client sends the rest in another transaction.
    pub recipients_max: u16,
    /// Faulty or misplaced commands since the last accepted message; one more ends the session by 421.
    pub faults_max: u8,
    /// Commands other than MAIL and RCPT of a client that has not logged in, since the last
    /// accepted message; one more ends the session by 421.
    pub idle_commands_max: u8,
    /// Refused recipients of a session; one more ends it by 421.
    pub refused_recipients_max: u8,
    /// What EHLO announces.
    pub extensions: Extensions,
    /// For how long messages may be held, which EHLO announces (RFC 4865). `None`: they are not, and who asks for that is refused.
    pub holds: Option<Holds>,
    /// STARTTLS, which EHLO announces while it can be had.
    pub tls: Tls,
    /// AUTH, which EHLO announces while it may be used.
    pub login: Login,
    /// What becomes of a client that says more before it has heard what it has to wait for.
    pub haste: Haste,
    /// Failed logins of a session; the last of them ends it by 421.
    pub failed_logins_max: u8,
}

/// What becomes of a client that does not wait: for the reply to EHLO or HELO, which says whether commands may be pipelined, for any reply after HELO, or for the 354 after DATA (RFC 2920 section 3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Haste {
    /// Nothing.
    Tolerated,
    /// 554 5.5.0, and the session is over.
    Refused,
}

/// Whether clients say who they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Login {
    /// They do not, and cannot: mail comes from everybody.
    Absent,
    /// They have to before they send mail, and to speak TLS before that.
    AfterTls,
    /// They have to before they send mail.
    Required,
}

/// Whether TLS hides what is said on a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tls {
    /// It does not, and cannot.
    Absent,
    /// It does once the client asks for it.
    Offered,
    /// The same, but too many ask for it just now: 454.
    Busy,
    /// It does.
    Spoken,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            message_bytes_max: 52_428_800,
            recipients_max: 1_000,
            faults_max: 20,
            idle_commands_max: 100,
            refused_recipients_max: 100,
            extensions: Extensions::ALL,
            holds: None,
            tls: Tls::Absent,
            login: Login::Absent,
            haste: Haste::Tolerated,
            failed_logins_max: 3,
        }
    }
}

/// A set of extensions to announce. Some large clients break on what is rarely announced, so each can be left out;
/// one that is left out is understood all the same.
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
    /// All that the session knows.
    pub const ALL: Extensions = Extensions(0xff);

    /// This set less what is in `other`.
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
pub struct Envelope<'a> {
    /// What the client called itself: a domain or an address literal, not verified.
    pub greeting_name: &'a str,
    /// How the message comes, for its `Received:` field.
    pub protocol: Protocol,
    /// How many recipients were accepted, at least one.
    pub recipients: u16,
}

/// What a message came by (RFC 5321 section 4.4, RFC 6531 section 4.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    /// The client said HELO.
    Smtp,
    /// The client said EHLO.
    Esmtp,
    /// The client said EHLO and gave MAIL the parameter SMTPUTF8.
    Utf8Smtp,
}

/// Why a transaction is not opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SenderRefusal {
    /// No room for a message of the size that was announced, or for any: 452 4.3.1.
    StorageFull,
    /// All records for transactions are lent: 451 4.3.2.
    Busy,
    /// The disk has failed: 451 4.3.0.
    DiskFailed,
    /// The client has sent so many lately: 450 4.7.1.
    TooOften,
    /// The address is another's than that of whom the client has said that it is: 553 5.7.1.
    NotTheirs,
}

/// Why a login is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoginRefusal {
    /// The user or the password is wrong: 535 5.7.8.
    Credentials,
    /// Something failed that may work later, or too many try at once: 454 4.7.0.
    TryLater,
}

/// Why a recipient is not accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecipientRefusal {
    /// The domain is the server's and the mailbox is not there: 550 5.1.1.
    UnknownUser,
    /// The domain is not the server's, and it relays for nobody: 550 5.7.1.
    NotLocal,
    /// The domain is not fully-qualified: 554 5.1.2 (RFC 6409 section 4.2).
    NotFullyQualified,
    /// No more recipients in this transaction: 452 4.5.3.
    TooMany,
    /// The mailbox has no room: 452 4.2.2.
    MailboxFull,
    /// The message is larger than all that the mailbox may hold: 552 5.2.2.
    NeverFits,
    /// The mailbox is there and cannot be used now: 450 4.2.1.
    Unavailable,
    /// The client has named so many lately: 450 4.7.1.
    TooOften,
    /// Nobody knows who sends; he is to come again: 450 4.7.1.
    ComeAgain,
    /// The server is too busy to check whether it takes mail from the client: 451 4.7.0.
    Unchecked,
    /// The client has named so many who are not here that it is told of nobody whether he is: 421 4.7.0, and the session is over.
    Guessing,
    /// No mail is taken from the client: 554 5.7.1, with [`Actions::reason`].
    Unwanted,
}

/// Why a message is not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MessageRefusal {
    /// The disk is full: 452 4.3.1.
    StorageFull,
    /// Something failed that may work later: 451 4.3.0.
    TryLater,
    /// The disk has failed: 451 4.3.0.
    DiskFailed,
    /// It came by here too often: 554 5.4.6.
    Loop,
    /// Its header has more than 1,000 fields: 550 5.6.0.
    TooManyFields,
    /// It is too big: 552 5.3.4.
    TooBig,
    /// The mailbox of one of its recipients has no room: 452 4.2.2.
    MailboxFull,
    /// It is larger than all that the mailbox of one of them may hold: 552 5.2.2.
    NeverFits,
    /// As many were sent today as may be: 451 4.7.0.
    TooManyToday,
    /// The account's outbox holds as much as it may: 452 4.2.2.
    OutboxFull,
    /// It would be for more people to whom nothing was sent before than today may be written to: 451 4.7.0.
    TooManyNewToday,
    /// An address in its `From` field is not one of the account's: 550 5.7.1.
    NotTheirs,
    /// It does not have one `From` field whose addresses all readers read alike: 550 5.6.0.
    NoAuthor,
    /// A limit was reached before it was known whether it is its author's: 451 4.7.0.
    Unchecked,
    /// Nobody proves that it is of the domain of its author, which wants such refused: 550 5.7.26 (RFC 7372).
    Unproved,
    /// A filter does not want it: 550 5.7.1, with [`Actions::reason`] if there is one.
    Unwanted,
    /// A filter does not want it now, or nobody knows whether it does: 451 4.7.1, with the same.
    Unsure,
}
