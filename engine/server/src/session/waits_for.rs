//! What a session waits for, in any protocol.

/// What a session waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WaitsFor {
    /// The client's next bytes, and nothing else.
    Bytes,
    /// Buffer space: the client must read.
    SendRoom,
    /// The TLS handshake that it asks for.
    Handshake,
    /// Its next turn.
    Turn,
    /// The store, or the result of a login.
    Us,
    /// The end of the connection.
    Nothing,
}

impl From<smtp::WaitsFor> for WaitsFor {
    fn from(waits_for: smtp::WaitsFor) -> WaitsFor {
        match waits_for {
            smtp::WaitsFor::Bytes => WaitsFor::Bytes,
            smtp::WaitsFor::SendRoom => WaitsFor::SendRoom,
            smtp::WaitsFor::Sender | smtp::WaitsFor::MessageRoom | smtp::WaitsFor::Stored | smtp::WaitsFor::Login => {
                WaitsFor::Us
            }
            smtp::WaitsFor::Handshake => WaitsFor::Handshake,
            smtp::WaitsFor::Nothing => WaitsFor::Nothing,
        }
    }
}

impl From<pop3::WaitsFor> for WaitsFor {
    fn from(waits_for: pop3::WaitsFor) -> WaitsFor {
        match waits_for {
            pop3::WaitsFor::Bytes => WaitsFor::Bytes,
            pop3::WaitsFor::SendRoom => WaitsFor::SendRoom,
            pop3::WaitsFor::Turn => WaitsFor::Turn,
            pop3::WaitsFor::Message | pop3::WaitsFor::Login | pop3::WaitsFor::Deletion => WaitsFor::Us,
            pop3::WaitsFor::Handshake => WaitsFor::Handshake,
            pop3::WaitsFor::Nothing => WaitsFor::Nothing,
        }
    }
}

impl From<http::WaitsFor> for WaitsFor {
    fn from(waits_for: http::WaitsFor) -> WaitsFor {
        match waits_for {
            http::WaitsFor::Bytes => WaitsFor::Bytes,
            http::WaitsFor::SendRoom => WaitsFor::SendRoom,
            http::WaitsFor::Us => WaitsFor::Us,
            http::WaitsFor::Nothing => WaitsFor::Nothing,
        }
    }
}
