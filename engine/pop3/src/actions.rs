//! The actions of a session: the trait [`Actions`] and its types.

use machine::Micros;

use crate::number::MessageNumber;
use crate::unique_id::UniqueId;

/// The actions of a session. Each call acts or queues at once and does not block. An operation that
/// it starts never answers from within the call. As the host of a login ([`sasl::Host`]), the
/// implementation checks the credentials and opens and locks the user's maildrop.
/// [`crate::Session::login_answered`] tells the result; a refusal may be delayed to slow down
/// guessing.
pub trait Actions: sasl::Host {
    /// What the server allows on this connection.
    fn settings(&self) -> Pop3Settings;

    /// How many bytes of replies can be queued now.
    fn send_room(&self) -> usize;

    /// Queues bytes of a reply. A command is handled only while there is space for
    /// [`crate::REPLY_BYTES_MAX`], and messages and lists are written only as far as there is
    /// space. The reply that ends a session or tells of a failure may come at any time and is under
    /// 128 bytes.
    fn reply(&mut self, bytes: &[u8]);

    /// Abandons the login of [`sasl::Host::login`]: a maildrop that it opens is left at once.
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

    /// RETR, TOP: reads a message. [`crate::Session::message_bytes_arrived`] delivers its bytes, in
    /// order, and [`crate::Session::message_ended`] its end.
    fn read(&mut self, message: MessageNumber);

    /// Stops the read of the message: no more of it may be delivered.
    fn stop_reading(&mut self);

    /// QUIT: deletes the marked messages durably. [`crate::Session::deleted`] tells the result.
    fn delete_marked(&mut self);

    /// The session ends: unlocks the maildrop.
    fn leave_maildrop(&mut self);

    /// Sets the deadline: [`crate::Session::deadline_expired`] is called after that time. It
    /// replaces an earlier one; `None`: never.
    fn set_deadline(&mut self, after: Option<Micros>);

    /// Closes the connection once everything queued is sent. The session is over.
    fn close(&mut self);
}

/// What the server allows on a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pop3Settings {
    /// Whether a password may be sent in plain text, by USER and PASS or by AUTH.
    pub plain_login: PlainLogin,
    /// STLS. CAPA announces it while it is available.
    pub tls: Pop3Tls,
    /// Invalid or misplaced commands, before the login and again after it. One more ends the
    /// session.
    pub faults_max: u8,
    /// Commands before the login; one more ends the session.
    pub commands_before_login_max: u8,
    /// Logins with a wrong name or password; the last of them ends the session.
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
    /// They are: a password is safe on the connection.
    Offered,
    /// They are not.
    Refused,
}

/// Whether TLS encrypts the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pop3Tls {
    /// It does not, and is not available.
    Absent,
    /// It does once the client asks for it.
    Offered,
    /// The same, but too many handshakes are in progress: `[SYS/TEMP]`.
    Busy,
    /// It does.
    Spoken,
}

/// An open maildrop, in its state at the login.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Maildrop {
    /// The number of messages. They are numbered from 1.
    pub messages: u32,
    /// The sum of their sizes in bytes.
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
    /// The data on the disk differ from what was stored: `[SYS/PERM]`.
    Damaged,
}

/// Some or all marked messages were not deleted: `[SYS/TEMP]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeletionError;
