//! A handshake. rustls has the state machine of the handshake. This file gives rustls one record at
//! a time.
//!
//! So one call does at most one operation with the private key, and takes a bounded time. Bytes
//! that follow the handshake in the same segment are left to [`crate::traffic`].
//!
//! Before our first flight there are no keys. So if rustls would send no alert, or not the alert of
//! RFC 8446, we write the alert ourselves. Later an alert may need keys, which only rustls has. If
//! rustls fails without an alert, or if we reject a record, we pass rustls bytes that it answers
//! with an alert.
//!
//! Invariant: while a handshake message is split over several records, its bytes stay in the
//! stream. `joined` is the number of these bytes.

use alloc::boxed::Box;

use rustls::client::UnbufferedClientConnection;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{ConnectionState, UnbufferedStatus};
use rustls::{HandshakeKind, ProtocolVersion};

use crate::alert::Alert;
use crate::client::ClientSettings;
use crate::connection::{NegotiatedParameters, Progress, TlsEvent};
use crate::failure::Failure;
use crate::hello::HelloFields;
use crate::record::{ContentType, Front, HEADER_BYTES, bytes_wanted, header};
use crate::settings::TlsSettings;
use crate::traffic::{Kernel, Traffic};

/// The maximum number of bytes that one step of a handshake writes. An output buffer of this size
/// is always large enough.
pub const FLIGHT_BYTES_MAX: usize = 16 * 1024;

/// The longest handshake message, in bytes, that may be split over several records.
const JOINED_BYTES_MAX: usize = crate::record::RECORD_BYTES_MAX;

/// A record header without a content type. rustls answers it with the alert `decode_error`.
const NO_RECORD: [u8; HEADER_BYTES] = [0; HEADER_BYTES];

/// A handshake that is not complete.
pub(crate) struct Handshake {
    side: Side,
    /// The number of bytes of records that rustls has seen and needs to see again.
    joined: usize,
    /// The number of bytes that the stream must have after the `joined` bytes, before another call
    /// is useful.
    wanted: u16,
    has_sent: bool,
    /// The first message of a client.
    hello: HelloFields,
    protocols: &'static [&'static [u8]],
}

/// Our side of the handshake.
enum Side {
    Server(UnbufferedServerConnection),
    Client(UnbufferedClientConnection),
}

/// The result of one call of rustls.
enum CallResult {
    /// This number of bytes was written, and must be sent.
    Wrote(usize),
    /// The output does not fit into the buffer.
    TooMuch,
    /// The written bytes were marked as sent.
    Sent,
    /// The handshake is complete.
    Done,
    /// The handshake continues with the next record.
    Blocked,
    /// The peer has closed the connection.
    Left,
    Failed(rustls::Error),
}

/// The result of a step.
pub(crate) enum Stepped {
    /// The handshake continues.
    On(Progress),
    /// The handshake is complete. `written` bytes were written.
    Done { done: usize, written: usize },
}

impl Handshake {
    pub(crate) fn new(settings: &TlsSettings) -> Result<Handshake, Failure> {
        let connection =
            UnbufferedServerConnection::new(settings.config.clone()).map_err(Failure::Handshake)?;
        Ok(Handshake::of(Side::Server(connection), settings.protocols))
    }

    /// Begins the handshake of a client. `host`: the server name to send.
    pub(crate) fn of_client(
        settings: &ClientSettings,
        host: Option<&str>,
    ) -> Result<Handshake, Failure> {
        let side = Side::Client(settings.begin(host).map_err(Failure::Handshake)?);
        Ok(Handshake::of(side, &[]))
    }

    fn of(side: Side, protocols: &'static [&'static [u8]]) -> Handshake {
        let hello = HelloFields::new();
        Handshake { side, joined: 0, wanted: 0, has_sent: false, hello, protocols }
    }

    /// Whether we send first, and have not sent yet.
    fn is_to_begin(&self) -> bool {
        matches!(self.side, Side::Client(_)) && !self.has_sent
    }

    /// Returns `Work` if [`Handshake::step`] can make progress, and `Bytes` if more bytes are
    /// needed.
    pub(crate) fn look(&mut self, bytes: &[u8]) -> TlsEvent {
        if self.is_to_begin() {
            return TlsEvent::Work;
        }
        let rest = bytes.get(self.joined..).unwrap_or_default();
        match Front::of(rest) {
            Front::Partial => {
                self.wanted = bytes_wanted(rest);
                TlsEvent::Bytes
            }
            Front::Record { .. } | Front::NoRecord(_) | Front::TooLong => TlsEvent::Work,
        }
    }

    /// The number of bytes at the start of the stream that must stay unchanged.
    pub(crate) fn held(&self) -> usize {
        self.joined
    }

    /// The number of bytes that the stream must have before another call is useful.
    pub(crate) fn wanted(&self) -> usize {
        self.joined + usize::from(self.wanted)
    }

    /// Processes the next record. At the start of a client's handshake it writes the first message
    /// instead.
    pub(crate) fn step(&mut self, bytes: &mut [u8], out: &mut [u8]) -> Stepped {
        let end = match Front::of(bytes.get(self.joined..).unwrap_or_default()) {
            _ if self.is_to_begin() => 0,
            Front::Partial => return Stepped::On(Progress::nothing(TlsEvent::Bytes)),
            Front::NoRecord(alert) => return Stepped::On(self.refuse(alert, bytes, out)),
            Front::TooLong => return Stepped::On(self.refuse(Alert::RECORD_OVERFLOW, bytes, out)),
            Front::Record { length, .. } => self.joined + length,
        };
        self.wanted = 0;
        if end > JOINED_BYTES_MAX {
            return Stepped::On(self.refuse(Alert::RECORD_OVERFLOW, bytes, out));
        }
        self.read_hello(bytes.get(self.joined..end).unwrap_or_default());
        // RFC 8446 section D.5 demands an alert, although TLS 1.3 ignores the field otherwise.
        if self.hello.is_of_ssl() {
            return Stepped::On(self.refuse(Alert::PROTOCOL_VERSION, bytes, out));
        }
        let (mut done, mut written) = (0, 0);
        loop {
            let rest = bytes.get_mut(done..end).unwrap_or_default();
            let (discard, result) =
                self.side.process(rest, out.get_mut(written..).unwrap_or_default());
            done += discard;
            match result {
                CallResult::Wrote(_) if self.is_fallback() => {
                    return Stepped::On(self.refuse(Alert::INAPPROPRIATE_FALLBACK, bytes, out));
                }
                CallResult::Wrote(count) => {
                    written += count;
                    self.has_sent = true;
                }
                CallResult::TooMuch => {
                    return Stepped::On(self.refuse(Alert::INTERNAL_ERROR, bytes, out));
                }
                CallResult::Sent => {}
                CallResult::Done => return Stepped::Done { done, written },
                CallResult::Blocked => {
                    self.joined = end.saturating_sub(done);
                    return Stepped::On(Progress { done, written, event: TlsEvent::Nothing });
                }
                CallResult::Left => {
                    return Stepped::On(Progress {
                        done,
                        written,
                        event: TlsEvent::Failed(Failure::PeerLeft),
                    });
                }
                CallResult::Failed(error) => {
                    let rest = bytes.get_mut(done..end).unwrap_or_default();
                    let seen = self.joined.saturating_sub(done);
                    let out = out.get_mut(written..).unwrap_or_default();
                    let (count, failure) = self.fail(error, rest, seen, out);
                    return Stepped::On(Progress {
                        done,
                        written: written + count,
                        event: TlsEvent::Failed(failure),
                    });
                }
            }
        }
    }

    /// Reads a record that arrives before our first flight. It contains the first message of a
    /// client, or a part of that message.
    fn read_hello(&mut self, record: &[u8]) {
        if !self.has_sent && record.first() == Some(&(ContentType::Handshake as u8)) {
            self.hello.read(record.get(HEADER_BYTES..).unwrap_or_default());
        }
    }

    /// Whether our first flight answers a client that has fallen back to TLS 1.2 (RFC 7507 section
    /// 3). rustls selects TLS 1.3 whenever a client offers it, so a client that gets TLS 1.2 has
    /// not offered TLS 1.3.
    fn is_fallback(&self) -> bool {
        !self.has_sent
            && self.hello.names_fallback()
            && self.side.version() == Some(ProtocolVersion::TLSv1_2)
    }

    /// Ends a handshake in which rustls has failed, with an alert. Returns the number of bytes
    /// written. `rest`: the bytes that rustls has seen and not discarded. Its first `seen` bytes
    /// are from earlier calls.
    fn fail(
        &mut self,
        error: rustls::Error,
        rest: &mut [u8],
        seen: usize,
        out: &mut [u8],
    ) -> (usize, Failure) {
        if let rustls::Error::AlertReceived(alert) = error {
            return (self.last_words(rest, out), Failure::PeerGaveUp(Alert(alert.into())));
        }
        let own = Alert::instead_of_rustls(&error).filter(|_| !self.has_sent);
        let written = match own {
            Some(alert) => write_plain(alert, out),
            None if self.side.wants_write() => self.last_words(rest, out),
            None if self.has_sent => self.provoke_alert(rest, seen, out),
            None => write_plain(Alert::DECODE_ERROR, out),
        };
        (written, Failure::Handshake(error))
    }

    /// Lets rustls write an alert, because it has the keys: it gets bytes that are no record.
    /// Returns the number of bytes written.
    ///
    /// rustls continues after the first `seen` bytes of `rest`, or after all of `rest`. So the
    /// bytes that are no record are in both places. rustls also needs the earlier bytes, so the
    /// buffer is never shorter than `rest`.
    fn provoke_alert(&mut self, rest: &[u8], seen: usize, out: &mut [u8]) -> usize {
        let mut bytes = [rest, &NO_RECORD].concat();
        if let Some(header) = bytes.get_mut(seen..seen + HEADER_BYTES) {
            header.copy_from_slice(&NO_RECORD);
        }
        match self.side.process(&mut bytes, out) {
            (_, CallResult::Failed(_)) => self.last_words(&mut bytes, out),
            _ => 0,
        }
    }

    /// Writes the alert of rustls after an error. Returns the number of bytes written. `rest`: the
    /// bytes that rustls has seen and not discarded, which it needs again.
    fn last_words(&mut self, rest: &mut [u8], out: &mut [u8]) -> usize {
        let mut written = 0;
        while self.side.wants_write() {
            let (_, result) = self.side.process(rest, out.get_mut(written..).unwrap_or_default());
            let CallResult::Wrote(count) = result else { break };
            written += count;
        }
        written
    }

    /// Ends a handshake that cannot continue, with an alert. `bytes`: the stream.
    fn refuse(&mut self, alert: Alert, bytes: &mut [u8], out: &mut [u8]) -> Progress {
        let written = match self.has_sent {
            // rustls has seen these bytes. After them it gets bytes that are no record, and then
            // nothing else.
            true => {
                let joined = bytes.get(..self.joined).unwrap_or_default();
                self.provoke_alert(joined, self.joined, out)
            }
            false => write_plain(alert, out),
        };
        Progress { done: 0, written, event: TlsEvent::Failed(Failure::Refused(alert)) }
    }

    /// Takes the keys from rustls after the handshake is complete.
    pub(crate) fn into_traffic(self) -> Result<(Box<Traffic>, NegotiatedParameters), Failure> {
        let (named, kind) = match &self.side {
            Side::Server(connection) => (connection.alpn_protocol(), connection.handshake_kind()),
            Side::Client(connection) => (connection.alpn_protocol(), connection.handshake_kind()),
        };
        let protocol = self.protocols.iter().copied().find(|protocol| Some(*protocol) == named);
        let is_resumed = kind == Some(HandshakeKind::Resumed);
        let keys = match self.side {
            Side::Server(connection) => connection
                .dangerous_into_kernel_connection()
                .map(|(keys, kernel)| (keys, Kernel::OfServer(kernel))),
            Side::Client(connection) => connection
                .dangerous_into_kernel_connection()
                .map(|(keys, kernel)| (keys, Kernel::OfClient(kernel))),
        };
        let (secrets, kernel) = keys.map_err(Failure::Handshake)?;
        let traffic =
            Traffic::new(secrets, kernel).ok_or(Failure::Refused(Alert::INTERNAL_ERROR))?;
        let agreed = NegotiatedParameters { protocol, is_resumed, version: traffic.version() };
        Ok((Box::new(traffic), agreed))
    }
}

impl Side {
    /// Passes `bytes` to rustls, and writes its output into `out`. Returns the number of bytes that
    /// rustls has finished with, and the result.
    fn process(&mut self, bytes: &mut [u8], out: &mut [u8]) -> (usize, CallResult) {
        match self {
            Side::Server(connection) => call_result(connection.process_tls_records(bytes), out),
            Side::Client(connection) => call_result(connection.process_tls_records(bytes), out),
        }
    }

    fn wants_write(&self) -> bool {
        match self {
            Side::Server(connection) => connection.wants_write(),
            Side::Client(connection) => connection.wants_write(),
        }
    }

    /// The version of the connection, once rustls has selected it.
    fn version(&self) -> Option<ProtocolVersion> {
        match self {
            Side::Server(connection) => connection.protocol_version(),
            Side::Client(connection) => connection.protocol_version(),
        }
    }
}

/// Writes an alert without encryption. Returns the number of bytes written.
fn write_plain(alert: Alert, out: &mut [u8]) -> usize {
    let bytes = alert.bytes();
    let record = header(ContentType::Alert, bytes.len());
    let Some(place) = out.get_mut(..HEADER_BYTES + bytes.len()) else { return 0 };
    place.iter_mut().zip(record.iter().chain(&bytes)).for_each(|(place, byte)| *place = *byte);
    place.len()
}

fn call_result<Data>(
    status: UnbufferedStatus<'_, '_, Data>,
    out: &mut [u8],
) -> (usize, CallResult) {
    let result = match status.state {
        Ok(ConnectionState::EncodeTlsData(mut data)) => {
            data.encode(out).map_or(CallResult::TooMuch, CallResult::Wrote)
        }
        Ok(ConnectionState::TransmitTlsData(data)) => {
            data.done();
            CallResult::Sent
        }
        Ok(ConnectionState::WriteTraffic(_)) => CallResult::Done,
        Ok(ConnectionState::BlockedHandshake) => CallResult::Blocked,
        Ok(_) => CallResult::Left,
        Err(error) => CallResult::Failed(error),
    };
    (status.discard, result)
}
