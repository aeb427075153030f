//! The events that a session may wait for, in any protocol.

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WaitsFor {
    /// Only the client's next bytes.
    Bytes,
    /// Buffer space, which becomes free when the client reads.
    SendRoom,
    /// The start of the TLS handshake, which the session requests.
    Handshake,
    /// The next turn.
    Turn,
    /// Work or a delay of this server, such as the store, a check, a login or the greeting delay.
    Us,
    /// The end of the connection.
    Nothing,
}

impl From<smtp::SmtpWaitsFor> for WaitsFor {
    fn from(waits_for: smtp::SmtpWaitsFor) -> WaitsFor {
        match waits_for {
            smtp::SmtpWaitsFor::Bytes => WaitsFor::Bytes,
            smtp::SmtpWaitsFor::SendRoom => WaitsFor::SendRoom,
            smtp::SmtpWaitsFor::Sender
            | smtp::SmtpWaitsFor::MessageRoom
            | smtp::SmtpWaitsFor::Stored
            | smtp::SmtpWaitsFor::Login => WaitsFor::Us,
            smtp::SmtpWaitsFor::Handshake => WaitsFor::Handshake,
            smtp::SmtpWaitsFor::Nothing => WaitsFor::Nothing,
        }
    }
}

impl From<pop3::Pop3WaitsFor> for WaitsFor {
    fn from(waits_for: pop3::Pop3WaitsFor) -> WaitsFor {
        match waits_for {
            pop3::Pop3WaitsFor::Bytes => WaitsFor::Bytes,
            pop3::Pop3WaitsFor::SendRoom => WaitsFor::SendRoom,
            pop3::Pop3WaitsFor::Turn => WaitsFor::Turn,
            pop3::Pop3WaitsFor::Message
            | pop3::Pop3WaitsFor::Login
            | pop3::Pop3WaitsFor::Deletion => WaitsFor::Us,
            pop3::Pop3WaitsFor::Handshake => WaitsFor::Handshake,
            pop3::Pop3WaitsFor::Nothing => WaitsFor::Nothing,
        }
    }
}

impl From<http::HttpWaitsFor> for WaitsFor {
    fn from(waits_for: http::HttpWaitsFor) -> WaitsFor {
        match waits_for {
            http::HttpWaitsFor::Bytes => WaitsFor::Bytes,
            http::HttpWaitsFor::SendRoom => WaitsFor::SendRoom,
            http::HttpWaitsFor::Us => WaitsFor::Us,
            http::HttpWaitsFor::Nothing => WaitsFor::Nothing,
        }
    }
}
