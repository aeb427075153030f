//! A handshake: rustls' state machine, given one record at a time.
//!
//! One at a time, so that a call does at most one operation with the private key, and so that what follows the handshake in the same segment is left to
//! [`crate::traffic`].
//!
//! Invariant: of a message that is cut over several records, the bytes stay in the stream until it is whole; `joined` says how many.

use alloc::boxed::Box;

use rustls::HandshakeKind;
use rustls::client::UnbufferedClientConnection;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{ConnectionState, UnbufferedStatus};

use crate::alert::Alert;
use crate::client::ClientSettings;
use crate::connection::{Agreed, Event, Progress};
use crate::failure::Failure;
use crate::record::{Content, Front, HEADER_BYTES, bytes_wanted, header};
use crate::settings::Settings;
use crate::traffic::{Kernel, Traffic};

/// The most bytes that one step of a handshake writes: a buffer of this size is never too small.
pub const FLIGHT_BYTES_MAX: usize = 16 * 1024;

/// The most bytes that a handshake's message may take when it is cut over several records.
const JOINED_BYTES_MAX: usize = crate::record::RECORD_BYTES_MAX;

/// A handshake that is not done.
pub(crate) struct Handshake {
    side: Side,
    /// Bytes of records that rustls has seen and wants to see again.
    joined: usize,
    /// So many bytes behind them make another look worth it.
    wanted: u16,
    has_sent: bool,
    protocols: &'static [&'static [u8]],
}

/// Whose side of the handshake is ours.
enum Side {
    Server(UnbufferedServerConnection),
    Client(UnbufferedClientConnection),
}

/// What one call of rustls' has come to.
enum Went {
    /// So many bytes are to be sent.
    Wrote(usize),
    /// More bytes than there was room for are.
    TooMuch,
    /// What was written counts as sent.
    Sent,
    /// The handshake is done.
    Done,
    /// It goes on with the next record.
    Blocked,
    /// The peer has left.
    Left,
    Failed(rustls::Error),
}

/// What a step has brought.
pub(crate) enum Stepped {
    /// The handshake goes on.
    On(Progress),
    /// It is done. So many bytes were written.
    Done { done: usize, written: usize },
}

impl Handshake {
    pub(crate) fn new(settings: &Settings) -> Result<Handshake, Failure> {
        let connection =
            UnbufferedServerConnection::new(settings.config.clone()).map_err(Failure::Handshake)?;
        let side = Side::Server(connection);
        Ok(Handshake { side, joined: 0, wanted: 0, has_sent: false, protocols: settings.protocols })
    }

    /// `host`: as whom the server knows itself.
    pub(crate) fn of_client(
        settings: &ClientSettings,
        host: Option<&str>,
    ) -> Result<Handshake, Failure> {
        let side = Side::Client(settings.begin(host).map_err(Failure::Handshake)?);
        Ok(Handshake { side, joined: 0, wanted: 0, has_sent: false, protocols: &[] })
    }

    /// Whether the first word is ours, and is not said.
    fn is_to_begin(&self) -> bool {
        matches!(self.side, Side::Client(_)) && !self.has_sent
    }

    /// Whether there is anything to work on.
    pub(crate) fn look(&mut self, bytes: &[u8]) -> Event {
        if self.is_to_begin() {
            return Event::Work;
        }
        let rest = bytes.get(self.joined..).unwrap_or_default();
        match Front::of(rest) {
            Front::Partial => {
                self.wanted = bytes_wanted(rest);
                Event::Bytes
            }
            Front::Record { .. } | Front::NoRecord | Front::TooLong => Event::Work,
        }
    }

    /// Bytes at the stream's front that stay as they are now.
    pub(crate) fn held(&self) -> usize {
        self.joined
    }

    /// How many bytes there have to be before another look is worth it.
    pub(crate) fn wanted(&self) -> usize {
        self.joined + usize::from(self.wanted)
    }

    /// Works on the next record; or says the first word, whatever there is.
    pub(crate) fn step(&mut self, bytes: &mut [u8], out: &mut [u8]) -> Stepped {
        let end = match Front::of(bytes.get(self.joined..).unwrap_or_default()) {
            _ if self.is_to_begin() => 0,
            Front::Partial => return Stepped::On(Progress::nothing(Event::Bytes)),
            Front::NoRecord => return Stepped::On(self.refuse(Alert::DECODE_ERROR, out)),
            Front::TooLong => return Stepped::On(self.refuse(Alert::RECORD_OVERFLOW, out)),
            Front::Record { length, .. } => self.joined + length,
        };
        self.wanted = 0;
        if end > JOINED_BYTES_MAX {
            return Stepped::On(self.refuse(Alert::RECORD_OVERFLOW, out));
        }
        let (mut done, mut written) = (0, 0);
        loop {
            let rest = bytes.get_mut(done..end).unwrap_or_default();
            let (discard, went) =
                self.side.process(rest, out.get_mut(written..).unwrap_or_default());
            done += discard;
            match went {
                Went::Wrote(count) => {
                    written += count;
                    self.has_sent = true;
                }
                Went::TooMuch => return Stepped::On(self.refuse(Alert::INTERNAL_ERROR, out)),
                Went::Sent => {}
                Went::Done => return Stepped::Done { done, written },
                Went::Blocked => {
                    self.joined = end.saturating_sub(done);
                    return Stepped::On(Progress { done, written, event: Event::Nothing });
                }
                Went::Left => {
                    return Stepped::On(Progress {
                        done,
                        written,
                        event: Event::Failed(Failure::PeerLeft),
                    });
                }
                Went::Failed(error) => {
                    let rest = bytes.get_mut(done..end).unwrap_or_default();
                    written += self.last_words(rest, out.get_mut(written..).unwrap_or_default());
                    let failure = match error {
                        rustls::Error::AlertReceived(alert) => {
                            Failure::PeerGaveUp(Alert(alert.into()))
                        }
                        error => Failure::Handshake(error),
                    };
                    return Stepped::On(Progress { done, written, event: Event::Failed(failure) });
                }
            }
        }
    }

    /// The alert that rustls has for the peer after an error. `rest`: what it has not discarded of what it was shown, which it looks at again.
    fn last_words(&mut self, rest: &mut [u8], out: &mut [u8]) -> usize {
        let mut written = 0;
        while self.side.wants_write() {
            let (_, went) = self.side.process(rest, out.get_mut(written..).unwrap_or_default());
            let Went::Wrote(count) = went else { break };
            written += count;
        }
        written
    }

    /// Ends a handshake with bytes that are no record of any kind. Once there may be keys, only rustls could tell the peer; then it is told nothing.
    fn refuse(&mut self, alert: Alert, out: &mut [u8]) -> Progress {
        let bytes = alert.bytes();
        let record = header(Content::Alert, bytes.len());
        let mut written = 0;
        if let Some(place) = out.get_mut(..HEADER_BYTES + bytes.len()).filter(|_| !self.has_sent) {
            written = place.len();
            place
                .iter_mut()
                .zip(record.iter().chain(&bytes))
                .for_each(|(place, byte)| *place = *byte);
        }
        Progress { done: 0, written, event: Event::Failed(Failure::Refused(alert)) }
    }

    /// The handshake is done: the keys change hands.
    pub(crate) fn into_traffic(self) -> Result<(Box<Traffic>, Agreed), Failure> {
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
        let agreed = Agreed { protocol, is_resumed, version: traffic.version() };
        Ok((Box::new(traffic), agreed))
    }
}

impl Side {
    /// Has rustls look at `bytes`, and write into `out` what it has to say. Answers how many of the bytes are done with.
    fn process(&mut self, bytes: &mut [u8], out: &mut [u8]) -> (usize, Went) {
        match self {
            Side::Server(connection) => went(connection.process_tls_records(bytes), out),
            Side::Client(connection) => went(connection.process_tls_records(bytes), out),
        }
    }

    fn wants_write(&self) -> bool {
        match self {
            Side::Server(connection) => connection.wants_write(),
            Side::Client(connection) => connection.wants_write(),
        }
    }
}

fn went<Data>(status: UnbufferedStatus<'_, '_, Data>, out: &mut [u8]) -> (usize, Went) {
    let went = match status.state {
        Ok(ConnectionState::EncodeTlsData(mut data)) => {
            data.encode(out).map_or(Went::TooMuch, Went::Wrote)
        }
        Ok(ConnectionState::TransmitTlsData(data)) => {
            data.done();
            Went::Sent
        }
        Ok(ConnectionState::WriteTraffic(_)) => Went::Done,
        Ok(ConnectionState::BlockedHandshake) => Went::Blocked,
        Ok(_) => Went::Left,
        Err(error) => Went::Failed(error),
    };
    (status.discard, went)
}
