//! What a session wants done: the trait [`Actions`] and the words that it uses.

use machine::Micros;

use crate::number::MessageNumber;
use crate::unique_id::UniqueId;

/// The session's hands. Each call is carried out or queued at once; none waits, and what it starts is never answered
/// from within the call. As the host of a login they check what proves it and open the user's maildrop, locked: [`crate::Session::login_answered`] tells what came of
/// it; a refusal may be held back for as long as guessing is to take.
pub trait Actions: sasl::Host {
    /// What the server allows on this connection.
    fn settings(&self) -> Settings;

    /// How many bytes of replies can be queued now.
    fn send_room(&self) -> usize;

    /// Queues bytes of a reply. A command is handled only while there is [`crate::REPLY_BYTES_MAX`] of room, and messages
    /// and lists are written only as far as there is room; the reply that ends a session, or tells of a failure, comes
    /// when it comes and is under 128 bytes.
    fn reply(&mut self, bytes: &[u8]);

    /// Nobody waits any more for the answer to [`sasl::Host::login`]: a maildrop that it opens is left at once.
    fn abandon_login(&mut self);

    /// The size of a message of the open maildrop, in bytes as it is stored.
    fn message_bytes(&self, message: MessageNumber) -> u64;

    /// The name of a message of the open maildrop that no other message ever has.
    fn unique_id(&self, message: MessageNumber) -> UniqueId;

    /// Whether the message was marked as deleted in this session.
    fn is_marked(&self, message: MessageNumber) -> bool;

    /// DELE: marks a message that was not marked.
    fn mark(&mut self, message: MessageNumber);

    /// RSET: takes away all marks.
    fn unmark_all(&mut self);

    /// RETR, TOP: reads a message. [`crate::Session::message_bytes_arrived`] brings its bytes, in order, and
    /// [`crate::Session::message_ended`] its end.
    fn read(&mut self, message: MessageNumber);

    /// The rest of the message that is being read is not wanted; nothing more is to be brought of it.
    fn stop_reading(&mut self);

    /// QUIT: deletes the marked messages, durably. [`crate::Session::deleted`] tells when it is done.
    fn delete_marked(&mut self);

    /// The maildrop is not needed any more: unlocks it.
    fn leave_maildrop(&mut self);

    /// Calls [`crate::Session::deadline_expired`] after so long, instead of any deadline set before; `None`: never.
    fn set_deadline(&mut self, after: Option<Micros>);

    /// Closes the connection once everything queued is sent. The session is over.
    fn close(&mut self);
}

/// What the server allows on a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// Whether a password may come in plain text, by USER and PASS or by AUTH.
    pub plain_login: PlainLogin,
    /// STLS, which CAPA announces while it can be had.
    pub tls: Tls,
    /// Faulty or misplaced commands before and again after the login; one more ends the session.
    pub faults_max: u8,
    /// Commands before the login; one more ends the session.
    pub commands_before_login_max: u8,
    /// Logins with a wrong name or password; the last of them ends the session.
    pub failed_logins_max: u8,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            plain_login: PlainLogin::Refused,
            tls: Tls::Absent,
            faults_max: 20,
            commands_before_login_max: 100,
            failed_logins_max: 3,
        }
    }
}

/// Whether USER, PASS and AUTH are offered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlainLogin {
    /// They are: the connection is safe enough for a password.
    Offered,
    /// They are not.
    Refused,
}

/// Whether TLS hides what is said on a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tls {
    /// It does not, and cannot.
    Absent,
    /// It does once the client asks for it.
    Offered,
    /// The same, but too many ask for it just now: `[SYS/TEMP]`.
    Busy,
    /// It does.
    Spoken,
}

/// An opened maildrop, as it was at login.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Maildrop {
    /// How many messages; they are numbered from 1 on.
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
    /// Something failed that may work later, or too many try at once: `[SYS/TEMP]`.
    TryLater,
}

/// Why a message cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadError {
    /// It may be read later: `[SYS/TEMP]`.
    TryLater,
    /// What the disk has is not what was stored: `[SYS/PERM]`.
    Damaged,
}

/// Marked messages were not deleted, or only some of them: `[SYS/TEMP]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeletionError;
