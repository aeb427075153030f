//! The actions of a session: the trait [`Actions`] and its types.

use machine::Micros;

use crate::number::MessageNumber;
use crate::unique_id::UniqueId;

/// The actions of a session. Each call acts or queues at once and does not block. An operation that
/// a call starts reports its result later, never from within the call. The implementation is also
/// the host of a login ([`sasl::Host`]). It checks the credentials, and opens and locks the user's
/// maildrop. It reports the result by [`crate::Session::login_answered`]. It may delay a refusal to
/// slow down guessing.
pub trait Actions: sasl::Host {
    /// The server's settings for this connection.
    fn settings(&self) -> Pop3Settings;

    /// The number of bytes of replies that can be queued now.
    fn send_room(&self) -> usize;

    /// Queues bytes of a reply. The session handles a command only while there is space for
    /// [`crate::REPLY_BYTES_MAX`]. It writes messages and lists only as far as there is space. A
    /// reply that ends the session or reports a failure needs no such space: it may come at any
    /// time, and has less than 128 bytes.
    fn reply(&mut self, bytes: &[u8]);

    /// Abandons the login of [`sasl::Host::login`]. If the login opens a maildrop later, the host
    /// unlocks it at once.
    fn abandon_login(&mut self);

    /// The size of a message of the open maildrop, in bytes as stored.
    fn message_bytes(&self, message: MessageNumber) -> u64;

    /// The unique identifier of a message of the open maildrop.
    fn unique_id(&self, message: MessageNumber) -> UniqueId;

    /// Whether the message was marked as deleted in this session.
    fn is_marked(&self, message: MessageNumber) -> bool;

    /// DELE: marks a message that is not marked.
    fn mark(&mut self, message: MessageNumber);

    /// RSET: clears all marks.
    fn unmark_all(&mut self);

    /// RETR, TOP: reads a message. The host passes its bytes, in order, to
    /// [`crate::Session::message_bytes_arrived`]. It reports the end by
    /// [`crate::Session::message_ended`].
    fn read(&mut self, message: MessageNumber);

    /// Stops the read of the message: the host passes no more of its bytes to the session.
    fn stop_reading(&mut self);

    /// QUIT: deletes the marked messages durably. The host reports the result by
    /// [`crate::Session::deleted`].
    fn delete_marked(&mut self);

    /// The session ends: unlocks the maildrop.
    fn leave_maildrop(&mut self);

    /// Sets the deadline, and replaces an earlier one. The host calls
    /// [`crate::Session::deadline_expired`] after that time. `None`: there is no deadline.
    fn set_deadline(&mut self, after: Option<Micros>);

    /// Closes the connection once all queued bytes are sent. The session is over.
    fn close(&mut self);
}

/// The server's settings for a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pop3Settings {
    /// Whether the client may send a password in plain text, by USER and PASS or by AUTH.
    pub plain_login: PlainLogin,
    /// The state of STLS. CAPA announces STLS while it is available.
    pub tls: Pop3Tls,
    /// The maximum number of invalid or misplaced commands before the login, and again after it.
    /// One more ends the session.
    pub faults_max: u8,
    /// The maximum number of commands before the login. One more ends the session.
    pub commands_before_login_max: u8,
    /// The number of logins with a wrong name or password that ends the session.
    pub failed_logins_max: u8,
}

impl Default for Pop3Settings {
    fn default() -> Pop3Settings {
        Pop3Settings {
            plain_login: PlainLogin::Refused,
            tls: Pop3Tls::Absent,
            faults_max: 20,
            commands_before_login_max: 100,
            failed_logins_max: 3,
        }
    }
}

/// Whether USER, PASS and AUTH are offered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlainLogin {
    /// USER, PASS and AUTH are offered: a password is safe on the connection.
    Offered,
    /// USER, PASS and AUTH are refused.
    Refused,
}

/// Whether TLS encrypts the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pop3Tls {
    /// TLS is neither active nor available.
    Absent,
    /// TLS is not active. The client may begin it with STLS.
    Offered,
    /// TLS is not active, and too many handshakes are in progress. STLS gets `[SYS/TEMP]`.
    Busy,
    /// TLS is active.
    Spoken,
}

/// An open maildrop, in its state at the login.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Maildrop {
    /// The number of messages. Their numbers start at 1.
    pub messages: u32,
    /// The sum of the messages' sizes in bytes.
    pub bytes: u64,
}

/// Why a login is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LoginRefusal {
    /// The user or the password is wrong: `[AUTH]`.
    Credentials,
    /// Another session has the maildrop: `[IN-USE]`.
    InUse,
    /// A temporary failure, or too many logins at a time: `[SYS/TEMP]`.
    TryLater,
}

/// Why a message cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadError {
    /// A later attempt may succeed: `[SYS/TEMP]`.
    TryLater,
    /// The data on the disk are damaged: `[SYS/PERM]`.
    Damaged,
}

/// Some or all marked messages were not deleted: `[SYS/TEMP]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeletionError;
