//! A client's TLS in one connection, between its dialogue and the wire. It uses rustls, because the
//! client's TLS is not measured.

use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;

use rustls::client::ClientConfig;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, HandshakeKind};

use crate::trusting::NAME;

/// The most plaintext that is read at once, in bytes.
const TEXT_BYTES: usize = 16 << 10;

pub(crate) struct TlsClient {
    tls: ClientConnection,
    text: Box<[u8]>,
    /// Whether bytes have arrived after the end of the handshake.
    heard_more: bool,
}

impl TlsClient {
    pub(crate) fn new(settings: &Arc<ClientConfig>) -> Result<TlsClient, String> {
        let name = ServerName::try_from(NAME).map_err(|error| error.to_string())?;
        let tls =
            ClientConnection::new(Arc::clone(settings), name).map_err(|error| error.to_string())?;
        Ok(TlsClient { tls, text: vec![0; TEXT_BYTES].into_boxed_slice(), heard_more: false })
    }

    /// The bytes to send to the server next.
    pub(crate) fn words(&mut self) -> Vec<u8> {
        let mut words = Vec::new();
        // Writing to memory never fails.
        while self.tls.wants_write() && self.tls.write_tls(&mut words).is_ok() {}
        words
    }

    /// Encrypts `text` for the server.
    pub(crate) fn say(&mut self, text: &[u8]) -> Result<(), String> {
        self.tls.writer().write_all(text).map_err(|error| error.to_string())
    }

    /// Sends close_notify.
    pub(crate) fn close(&mut self) {
        self.tls.send_close_notify();
    }

    /// The kind of the handshake. `None` until the handshake has ended on both sides. The server
    /// sends session tickets when its side has ended. So this returns a value after the client's
    /// side has ended and the first bytes of those tickets have arrived.
    pub(crate) fn handshake(&self) -> Option<HandshakeKind> {
        self.tls.handshake_kind().filter(|_| self.heard_more)
    }

    /// Handles bytes from the server. Passes their plaintext to `hear`.
    pub(crate) fn heard(
        &mut self,
        mut bytes: &[u8],
        mut hear: impl FnMut(&[u8]) -> Result<(), String>,
    ) -> Result<(), String> {
        self.heard_more |= !self.tls.is_handshaking() && !bytes.is_empty();
        while !bytes.is_empty() {
            self.tls.read_tls(&mut bytes).map_err(|error| error.to_string())?;
            self.tls.process_new_packets().map_err(|error| error.to_string())?;
            loop {
                match self.tls.reader().read(&mut self.text) {
                    Ok(0) => break,
                    Ok(count) => hear(self.text.get(..count).unwrap_or_default())?,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error.to_string()),
                }
            }
        }
        Ok(())
    }
}
