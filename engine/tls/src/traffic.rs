//! A connection after its handshake: two keys, and the messages that may arrive between records of
//! data.
//!
//! Invariants:
//! - A record is decrypted once. Plaintext that the session did not take stays decrypted at the
//!   start of the stream. `left` is the size of this plaintext. `behind` is the number of bytes
//!   that follow this plaintext in its last record.
//! - The peer may send only [`IDLE_RECORDS_MAX`] records without data in a row: empty records,
//!   warnings, key updates and tickets.
//! - No other record may come between the parts of a message that is split over several records.
//!
//! Implements: RFC 8446 sections 4.6.1 (tickets), 4.6.3 (key updates), 5.1, 5.4, 5.5 and 6; RFC
//! 5246 sections 7.2.1 and 7.4.1.1 (renegotiation).

use core::mem::replace;

use rustls::client::ClientConnectionData;
use rustls::kernel::KernelConnection;
use rustls::server::ServerConnectionData;
use rustls::{ConnectionTrafficSecrets, Error, ExtractedSecrets, ProtocolVersion};

use crate::alert::Alert;
use crate::connection::{Encrypted, Progress, TlsEvent, TlsVersion};
use crate::failure::Failure;
use crate::protection::{DecryptedContent, ENCRYPTION_OVERHEAD_MAX, RecordCipher, SplitPlaintext};
use crate::record::{ContentType, Front, bytes_wanted};

/// The maximum number of records without data in a row.
const IDLE_RECORDS_MAX: u8 = 32;

/// The type of a message with a ticket (RFC 8446 section 4.6.1). Three bytes with the length of the
/// rest of the message follow the type.
const TICKET: u8 = 4;
const MESSAGE_HEADER_BYTES: usize = 4;

/// A key update message (RFC 8446 section 4.6.3), without its last byte.
const KEY_UPDATE: [u8; 4] = [24, 0, 0, 1];
/// Values of the last byte of a key update message.
const UPDATE_NOT_REQUESTED: u8 = 0;
const UPDATE_REQUESTED: u8 = 1;

/// Keys and counters of an established connection.
pub(crate) struct Traffic {
    receive: RecordCipher,
    send: RecordCipher,
    kernel: Kernel,
    /// The number of bytes of a ticket that have not arrived yet.
    ticket_rest: u32,
    /// The number of bytes of plaintext at the start of the stream that the session has not taken.
    /// They come from one or several records.
    left: u32,
    /// The number of bytes that follow the plaintext in the last of these records.
    behind: u16,
    /// The number of bytes that the stream must have after `left` and `behind` bytes, before
    /// another call is useful.
    wanted: u16,
    idle_records: u8,
    is_peer_closed: bool,
    is_closed: bool,
}

/// The state that rustls needs for key updates, for our side of the connection.
pub(crate) enum Kernel {
    OfServer(KernelConnection<ServerConnectionData>),
    OfClient(KernelConnection<ClientConnectionData>),
}

impl Kernel {
    fn protocol_version(&self) -> ProtocolVersion {
        match self {
            Kernel::OfServer(kernel) => kernel.protocol_version(),
            Kernel::OfClient(kernel) => kernel.protocol_version(),
        }
    }

    fn update_tx_secret(&mut self) -> Result<(u64, ConnectionTrafficSecrets), Error> {
        match self {
            Kernel::OfServer(kernel) => kernel.update_tx_secret(),
            Kernel::OfClient(kernel) => kernel.update_tx_secret(),
        }
    }

    fn update_rx_secret(&mut self) -> Result<(u64, ConnectionTrafficSecrets), Error> {
        match self {
            Kernel::OfServer(kernel) => kernel.update_rx_secret(),
            Kernel::OfClient(kernel) => kernel.update_rx_secret(),
        }
    }
}

impl Traffic {
    pub(crate) fn new(secrets: ExtractedSecrets, kernel: Kernel) -> Option<Traffic> {
        let is_tls13 = kernel.protocol_version() == ProtocolVersion::TLSv1_3;
        Some(Traffic {
            receive: RecordCipher::new(secrets.rx.0, secrets.rx.1, is_tls13)?,
            send: RecordCipher::new(secrets.tx.0, secrets.tx.1, is_tls13)?,
            kernel,
            ticket_rest: 0,
            left: 0,
            behind: 0,
            wanted: 0,
            idle_records: 0,
            is_peer_closed: false,
            is_closed: false,
        })
    }

    pub(crate) fn version(&self) -> TlsVersion {
        if self.is_tls13() { TlsVersion::Tls13 } else { TlsVersion::Tls12 }
    }

    fn is_tls13(&self) -> bool {
        self.kernel.protocol_version() == ProtocolVersion::TLSv1_3
    }

    /// Processes the first record of the stream, unless the stream has plaintext already.
    pub(crate) fn receive(&mut self, bytes: &mut [u8], out: &mut [u8]) -> Progress {
        if self.left > 0 {
            return Progress::nothing(TlsEvent::Plaintext(self.left as usize));
        }
        self.more(bytes, out)
    }

    /// Processes the first encrypted record. Moves the plaintext at the start of the stream
    /// directly before the plaintext of this record.
    pub(crate) fn more(&mut self, bytes: &mut [u8], out: &mut [u8]) -> Progress {
        let left = self.left as usize;
        if self.is_peer_closed {
            let done = if left == 0 { bytes.len() } else { 0 };
            return Progress { done, written: 0, event: TlsEvent::Bytes };
        }
        let first = left + usize::from(self.behind);
        let unopened = bytes.get_mut(first..).unwrap_or_default();
        let (content, length) = match Front::of(unopened) {
            Front::Partial => {
                self.wanted = bytes_wanted(unopened);
                return Progress::nothing(TlsEvent::Bytes);
            }
            Front::NoRecord(alert) => return self.fail(alert, out),
            Front::TooLong => return self.fail(Alert::RECORD_OVERFLOW, out),
            Front::Record { content, length } => (content, length),
        };
        self.wanted = 0;
        let record = unopened.get_mut(..length).unwrap_or_default();
        let DecryptedContent { content, start, length: text } =
            match self.receive.open(content, record) {
                Ok(opened) => opened,
                Err(alert) => return self.fail(alert, out),
            };
        if self.ticket_rest > 0 && content != ContentType::Handshake {
            return self.fail(Alert::UNEXPECTED_MESSAGE, out);
        }
        if content == ContentType::ApplicationData && text > 0 {
            self.idle_records = 0;
            self.left += text as u32;
            self.behind = (length - start - text) as u16;
            let done = move_up(bytes, left, first + start);
            return Progress { done, written: 0, event: TlsEvent::Plaintext(left + text) };
        }
        self.idle_records += 1;
        if self.idle_records > IDLE_RECORDS_MAX {
            return self.fail(Alert::UNEXPECTED_MESSAGE, out);
        }
        let message = record.get(start..start + text).unwrap_or_default();
        match self.message_arrived(content, message, out) {
            Ok((written, event)) => {
                self.behind = 0;
                Progress { done: move_up(bytes, left, first + length), written, event }
            }
            Err(alert) => self.fail(alert, out),
        }
    }

    /// The number of bytes of plaintext at the start of the stream.
    pub(crate) fn held(&self) -> usize {
        self.left as usize
    }

    /// The number of bytes that the stream must have before another record can be decrypted.
    pub(crate) fn wanted(&self) -> usize {
        self.left as usize + usize::from(self.behind) + usize::from(self.wanted)
    }

    /// Removes the first `count` bytes of plaintext, which the session took. Returns the number of
    /// bytes of the stream that are processed now.
    pub(crate) fn taken(&mut self, count: usize) -> usize {
        assert!(count <= self.left as usize, "the session takes at most the offered plaintext");
        self.left -= count as u32;
        if self.left > 0 || count == 0 {
            count
        } else {
            count + usize::from(replace(&mut self.behind, 0))
        }
    }

    fn message_arrived(
        &mut self,
        content: ContentType,
        text: &[u8],
        out: &mut [u8],
    ) -> Result<(usize, TlsEvent), Alert> {
        match content {
            ContentType::ApplicationData => Ok((0, TlsEvent::Nothing)),
            ContentType::Alert => self.alert_arrived(text).map(|event| (0, event)),
            ContentType::Handshake if self.is_tls13() => {
                let text = self.behind_tickets(text)?;
                if text.is_empty() {
                    return Ok((0, TlsEvent::Nothing));
                }
                self.new_keys_arrived(text, out).map(|written| (written, TlsEvent::Nothing))
            }
            ContentType::Handshake => Err(Alert::NO_RENEGOTIATION),
            ContentType::ChangeCipherSpec => Err(Alert::UNEXPECTED_MESSAGE),
        }
    }

    /// Skips tickets, which our client never uses. A record may contain several tickets, and a part
    /// of one. Returns the text after the tickets.
    fn behind_tickets<'a>(&mut self, mut text: &'a [u8]) -> Result<&'a [u8], Alert> {
        if text.is_empty() {
            return Err(Alert::UNEXPECTED_MESSAGE);
        }
        if matches!(self.kernel, Kernel::OfServer(_)) {
            return Ok(text);
        }
        loop {
            let passed = text.len().min(self.ticket_rest as usize);
            self.ticket_rest -= passed as u32;
            text = text.get(passed..).unwrap_or_default();
            match *text {
                [TICKET, high, middle, low, ..] => {
                    self.ticket_rest = u32::from_be_bytes([0, high, middle, low]);
                    text = text.get(MESSAGE_HEADER_BYTES..).unwrap_or_default();
                }
                _ => return Ok(text),
            }
        }
    }

    fn alert_arrived(&mut self, text: &[u8]) -> Result<TlsEvent, Alert> {
        const WARNING: u8 = 1;
        let &[level, description] = text else { return Err(Alert::DECODE_ERROR) };
        match Alert(description) {
            Alert::CLOSE_NOTIFY => {
                self.is_peer_closed = true;
                Ok(TlsEvent::PeerClosed)
            }
            Alert::USER_CANCELED => Ok(TlsEvent::Nothing),
            _ if level == WARNING && !self.is_tls13() => Ok(TlsEvent::Nothing),
            alert => {
                self.end();
                Ok(TlsEvent::Failed(Failure::PeerGaveUp(alert)))
            }
        }
    }

    /// Processes a key update: the peer encrypts with new keys from now on, and may ask us to do
    /// the same.
    fn new_keys_arrived(&mut self, text: &[u8], out: &mut [u8]) -> Result<usize, Alert> {
        let request = match (text.split_last(), text.first_chunk::<4>()) {
            (Some((request, message)), _) if message == KEY_UPDATE => *request,
            (_, Some(&[kind, length @ ..]))
                if kind == KEY_UPDATE[0] && length != KEY_UPDATE[1..] =>
            {
                return Err(Alert::DECODE_ERROR);
            }
            _ => return Err(Alert::UNEXPECTED_MESSAGE),
        };
        let (number, secrets) =
            self.kernel.update_rx_secret().map_err(|_| Alert::INTERNAL_ERROR)?;
        self.receive = RecordCipher::new(number, secrets, true).ok_or(Alert::INTERNAL_ERROR)?;
        match request {
            UPDATE_REQUESTED if self.is_closed => Ok(0),
            UPDATE_REQUESTED => self.renew_keys(out).ok_or(Alert::INTERNAL_ERROR),
            UPDATE_NOT_REQUESTED => Ok(0),
            _ => Err(Alert::ILLEGAL_PARAMETER),
        }
    }

    /// Announces new keys, and then encrypts with the new keys. `None` if `out` has no space for
    /// the announcement.
    fn renew_keys(&mut self, out: &mut [u8]) -> Option<usize> {
        let [a, b, c, d] = KEY_UPDATE;
        let message = [a, b, c, d, UPDATE_NOT_REQUESTED];
        let room = message.len() + ENCRYPTION_OVERHEAD_MAX;
        let (_, written) =
            self.send.encrypt(ContentType::Handshake, &message, out.get_mut(..room)?);
        let (number, secrets) = self.kernel.update_tx_secret().ok()?;
        self.send = RecordCipher::new(number, secrets, true)?;
        Some(written)
    }

    /// Encrypts the next record of plaintext.
    pub(crate) fn encrypt(&mut self, plaintext: SplitPlaintext<'_>, into: &mut [u8]) -> Encrypted {
        let mut written = 0;
        if self.is_closed {
            return Encrypted { taken: 0, written };
        }
        if self.send.is_at_its_end() {
            if !self.is_tls13() {
                return Encrypted { taken: 0, written: self.close(into) };
            }
            written = self.renew_keys(into).unwrap_or_default();
            if written == 0 {
                return Encrypted { taken: 0, written };
            }
        }
        let (taken, encrypted) = self.send.encrypt(
            ContentType::ApplicationData,
            plaintext,
            into.get_mut(written..).unwrap_or_default(),
        );
        Encrypted { taken, written: written + encrypted }
    }

    /// Writes `close_notify`, once. Returns the number of bytes written, which is zero if `into`
    /// has no space.
    pub(crate) fn close(&mut self, into: &mut [u8]) -> usize {
        if self.is_closed {
            return 0;
        }
        let written = self.write_alert(Alert::CLOSE_NOTIFY, into);
        self.is_closed = written > 0;
        written
    }

    fn write_alert(&mut self, alert: Alert, out: &mut [u8]) -> usize {
        if out.len() < alert.bytes().len() + ENCRYPTION_OVERHEAD_MAX {
            return 0;
        }
        let (taken, written) = self.send.encrypt(ContentType::Alert, &alert.bytes(), out);
        assert!(
            taken == 0 || taken == alert.bytes().len(),
            "an alert is encrypted as a whole or not at all"
        );
        written
    }

    /// Ends the connection with an alert, unless our side is already closed.
    fn fail(&mut self, alert: Alert, out: &mut [u8]) -> Progress {
        let written = if self.is_closed { 0 } else { self.write_alert(alert, out) };
        self.end();
        Progress { done: 0, written, event: TlsEvent::Failed(Failure::Refused(alert)) }
    }

    /// Ends both directions. Drops the plaintext that the session did not take.
    fn end(&mut self) {
        self.is_closed = true;
        self.is_peer_closed = true;
        self.left = 0;
        self.behind = 0;
    }

    /// Makes our key behave as if it may encrypt only `left` more records.
    #[cfg(test)]
    pub(crate) fn set_records_left(&mut self, left: u64) {
        self.send.set_records_left(left);
    }
}

/// Moves the first `count` bytes so that they end at `end`. Returns the distance by which they
/// moved.
fn move_up(bytes: &mut [u8], count: usize, end: usize) -> usize {
    let by = end - count;
    bytes.copy_within(..count, by);
    by
}
