//! TLS records on their way to a session.
//!
//! Invariant: decrypted bytes that the session left stay decrypted at the start of the stream.

use connections::{Channel, RecordAction};
use sometimes::sometimes;
use tls::{Failure, TlsEvent};

use crate::parts::Parts;

use super::{Context, Session, WaitsFor};

impl Session {
    /// Whether the next record is still incomplete, so that the session cannot continue.
    pub(crate) fn is_within_record(&self, parts: &Parts) -> bool {
        let connection = self.caller.connection;
        self.caller.channel == Channel::Tls
            && self.waits_for() == WaitsFor::Bytes
            && parts
                .connections
                .tls()
                .of(connection)
                .is_some_and(|tls| parts.connections.net().waiting_bytes(connection) < tls.wanted())
    }

    /// Lets the session continue, with the records that wait in the connection.
    pub(crate) fn records_wait(&mut self, cx: &mut Context<'_>) {
        let connection = self.caller.connection;
        if cx.parts.connections.tls().held(connection) == 0 {
            self.text_arrived(&[], cx);
        }
        if cx.parts.connections.net().waiting_bytes(connection) == 0 {
            return;
        }
        loop {
            let mut waiting = cx.parts.connections.take_waiting(connection);
            let done = self.records_arrived(waiting.bytes(), cx);
            if !cx.parts.connections.put_back(waiting, done) {
                return;
            }
        }
    }

    /// Processes received records, or parts of them. Returns the number of bytes processed.
    pub(crate) fn records_arrived(&mut self, bytes: &mut [u8], cx: &mut Context<'_>) -> usize {
        if !self.may_hear_records(cx.parts) {
            return 0;
        }
        let connection = self.caller.connection;
        let (mut done, mut opening) = (0, RecordAction::Next);
        loop {
            // A session that is over drops all input.
            if self.waits_for() == WaitsFor::Nothing {
                return bytes.len();
            }
            let Some(left) = bytes.get_mut(done..) else {
                unreachable!("at most all bytes are done")
            };
            let (count, event) =
                cx.parts.connections.open(cx.parts.turn, connection, left, opening);
            done += count;
            if cx.parts.connections.is_reset() {
                return bytes.len();
            }
            match event {
                TlsEvent::Plaintext(length) => {
                    let Some(text) = bytes.get(done..done + length) else {
                        unreachable!("the plaintext is in place")
                    };
                    let taken = self.text_arrived(text, cx);
                    if cx.parts.connections.is_reset() {
                        return bytes.len();
                    }
                    done += cx
                        .parts
                        .connections
                        .tls_mut()
                        .of_mut(connection)
                        .map_or(taken, |tls| tls.taken(taken));
                    if taken < length && self.waits_for() != WaitsFor::Bytes {
                        return done;
                    }
                    opening = if taken < length { RecordAction::More } else { RecordAction::Next };
                }
                TlsEvent::Nothing => {}
                TlsEvent::Bytes | TlsEvent::Established(_) => return done,
                TlsEvent::Work => {
                    self.handshake_is_due(cx.parts);
                    return done;
                }
                TlsEvent::PeerClosed | TlsEvent::Failed(_) => {
                    if let TlsEvent::Failed(Failure::Refused(_)) = event {
                        sometimes!(RecordRefused);
                    }
                    self.hears_no_more(cx.parts);
                    return done;
                }
            }
        }
    }
}
