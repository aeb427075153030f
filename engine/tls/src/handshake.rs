//! A handshake: rustls' state machine, given one record at a time.
//!
//! One at a time, so that a call does at most one operation with the private key, and so that what follows the handshake in the same segment is left to
//! [`crate::traffic`].
//!
//! Invariant: of a message that is cut over several records, the bytes stay in the stream until it is whole; `joined` says how many.

use alloc::boxed::Box;

use rustls::HandshakeKind;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::ConnectionState;

use crate::alert::Alert;
use crate::connection::{Agreed, Event, Progress};
use crate::failure::Failure;
use crate::record::{Content, Front, HEADER_BYTES, bytes_wanted, header};
use crate::settings::Settings;
use crate::traffic::Traffic;

/// The most bytes that one step of a handshake writes: a buffer of this size is never too small.
pub const FLIGHT_BYTES_MAX: usize = 16 * 1024;

/// The most bytes that a handshake's message may take when it is cut over several records.
const JOINED_BYTES_MAX: usize = crate::record::RECORD_BYTES_MAX;

/// A handshake that is not done.
pub(crate) struct Handshake {
    connection: UnbufferedServerConnection,
    /// Bytes of records that rustls has seen and wants to see again.
    joined: usize,
    /// So many bytes behind them make another look worth it.
    wanted: u16,
    has_sent: bool,
    protocols: &'static [&'static [u8]],
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
        let connection = UnbufferedServerConnection::new(settings.config.clone()).map_err(Failure::Handshake)?;
        Ok(Handshake { connection, joined: 0, wanted: 0, has_sent: false, protocols: settings.protocols })
    }

    /// Whether there is anything to work on.
    pub(crate) fn look(&mut self, bytes: &[u8]) -> Event {
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

    /// Works on the next record.
    pub(crate) fn step(&mut self, bytes: &mut [u8], out: &mut [u8]) -> Stepped {
        let end = match Front::of(bytes.get(self.joined..).unwrap_or_default()) {
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
            let status = self.connection.process_tls_records(rest);
            done += status.discard;
            match status.state {
                Ok(ConnectionState::EncodeTlsData(mut data)) => {
                    match data.encode(out.get_mut(written..).unwrap_or_default()) {
                        Ok(count) => written += count,
                        Err(_) => return Stepped::On(self.refuse(Alert::INTERNAL_ERROR, out)),
                    }
                    self.has_sent = true;
                }
                Ok(ConnectionState::TransmitTlsData(data)) => data.done(),
                Ok(ConnectionState::WriteTraffic(_)) => return Stepped::Done { done, written },
                Ok(ConnectionState::BlockedHandshake) => {
                    self.joined = end.saturating_sub(done);
                    return Stepped::On(Progress { done, written, event: Event::Nothing });
                }
                Ok(_) => {
                    return Stepped::On(Progress { done, written, event: Event::Failed(Failure::PeerLeft) });
                }
                Err(error) => {
                    let rest = bytes.get_mut(done..end).unwrap_or_default();
                    written += self.last_words(rest, out.get_mut(written..).unwrap_or_default());
                    let failure = match error {
                        rustls::Error::AlertReceived(alert) => Failure::PeerGaveUp(Alert(alert.into())),
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
        while self.connection.wants_write() {
            let status = self.connection.process_tls_records(rest);
            let Ok(ConnectionState::EncodeTlsData(mut data)) = status.state else { break };
            let Ok(count) = data.encode(out.get_mut(written..).unwrap_or_default()) else { break };
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
            place.iter_mut().zip(record.iter().chain(&bytes)).for_each(|(place, byte)| *place = *byte);
        }
        Progress { done: 0, written, event: Event::Failed(Failure::Refused(alert)) }
    }

    /// The handshake is done: the keys change hands.
    pub(crate) fn into_traffic(self) -> Result<(Box<Traffic>, Agreed), Failure> {
        let named = self.connection.alpn_protocol();
        let protocol = self.protocols.iter().copied().find(|protocol| Some(*protocol) == named);
        let is_resumed = self.connection.handshake_kind() == Some(HandshakeKind::Resumed);
        let (secrets, kernel) = self.connection.dangerous_into_kernel_connection().map_err(Failure::Handshake)?;
        let traffic = Traffic::new(secrets, kernel).ok_or(Failure::Refused(Alert::INTERNAL_ERROR))?;
        let agreed = Agreed { protocol, is_resumed, version: traffic.version() };
        Ok((Box::new(traffic), agreed))
    }
}
