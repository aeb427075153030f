//! The sockets of a script, and their connections.
//!
//! A socket belongs to the script. A *line* is a connection of the engine with its pending
//! operations. A line outlives its socket: bytes that were written before `close` are still sent.
//!
//! How a socket maps onto the engine's interface:
//! - A line keeps written bytes until TCP has space for them. So a write always takes all bytes.
//! - TCP keeps received bytes until the program reads them. So the window closes as in a kernel.
//! - `close` with unread bytes, and bytes that arrive after `close`, reset the connection (RFC 1122
//!   section 4.2.2.13).

use std::collections::{BTreeMap, VecDeque};

use net::ConnectionId;
use net::tcp::CloseReason;

use super::host::{Happened, HostUnderTest};

/// The byte at a position of a stream. The bytes that a script's program writes have this pattern,
/// and so have the bytes of the packets in the script.
pub(super) fn pattern(place: u32) -> u8 {
    let [first, ..] = place.wrapping_mul(2_654_435_761).to_be_bytes();
    first
}

/// The most bytes that a line gives to TCP in one call.
const WRITE_AT_ONCE: usize = 64 * 1024;

/// A connection, as the program sees it.
#[derive(Clone, Debug)]
pub(super) struct SocketLine {
    pub(super) connection: ConnectionId,
    /// The index of the connection's flow.
    pub(super) flow: usize,
    /// The number of bytes that the program has written, and the number that TCP has taken.
    pub(super) written: u32,
    pub(super) handed_over: u32,
    /// The number of bytes that the program has read.
    pub(super) taken: u32,
    /// The bytes that were unread when the connection ended.
    pub(super) held: VecDeque<u8>,
    pub(super) connected: bool,
    pub(super) peer_closed: bool,
    /// The reason why the connection ended; `None`: it has not ended.
    pub(super) over: Option<CloseReason>,
    /// The error that the next call reports.
    pub(super) error: Option<&'static str>,
    /// `shut`: the program has ended our direction of the stream. `shut_passed_on`: TCP was told,
    /// after it had taken all written bytes.
    pub(super) shut: bool,
    pub(super) shut_passed_on: bool,
    /// The program has closed the socket, so further received bytes reset the connection.
    pub(super) deaf: bool,
    /// The number of events in each direction, for edge-triggered polling.
    pub(super) events_in: u64,
    pub(super) events_out: u64,
}

impl SocketLine {
    pub(super) fn new(connection: ConnectionId, flow: usize, connected: bool) -> SocketLine {
        SocketLine {
            connection,
            flow,
            written: 0,
            handed_over: 0,
            taken: 0,
            held: VecDeque::new(),
            connected,
            peer_closed: false,
            over: None,
            error: None,
            shut: false,
            shut_passed_on: false,
            deaf: false,
            events_in: 0,
            events_out: u64::from(connected),
        }
    }

    /// Gives TCP as many of the written bytes as it has space for. After the last written byte,
    /// also passes on the end of the stream.
    pub(super) fn push(&mut self, host: &mut HostUnderTest) {
        while self.connected && self.over.is_none() && self.handed_over != self.written {
            let left =
                usize::try_from(self.written.wrapping_sub(self.handed_over)).unwrap_or(usize::MAX);
            let start = self.handed_over;
            let end = start.wrapping_add(u32::try_from(left.min(WRITE_AT_ONCE)).unwrap_or(0));
            let bytes: Vec<u8> = (0..end.wrapping_sub(start))
                .map(|step| pattern(start.wrapping_add(step)))
                .collect();
            let sent = host.net.send(host.now, self.connection, &bytes);
            self.handed_over = self.handed_over.wrapping_add(u32::try_from(sent).unwrap_or(0));
            if sent < bytes.len() {
                break;
            }
        }
        let all = self.handed_over == self.written;
        if self.shut && !self.shut_passed_on && all && self.connected && self.over.is_none() {
            self.shut_passed_on = true;
            host.net.close(self.connection);
        }
        host.speak();
    }

    /// The first `most` readable bytes, without reading them.
    pub(super) fn readable(&self, host: &HostUnderTest, most: usize) -> Vec<u8> {
        let mut bytes: Vec<u8> = self.held.iter().take(most).copied().collect();
        if self.over.is_none() {
            let more = host.waiting(self.connection, most.saturating_sub(bytes.len()));
            bytes.extend(more);
        }
        bytes
    }

    /// Drops the first `count` readable bytes, which the program has read.
    pub(super) fn take(&mut self, host: &mut HostUnderTest, count: usize) {
        let held = count.min(self.held.len());
        self.held.drain(..held);
        self.taken = self.taken.wrapping_add(u32::try_from(count).unwrap_or(0));
        if count > held {
            host.net.consumed(self.connection, count - held);
            host.speak();
        }
    }

    /// Resets the connection.
    pub(super) fn abort(&mut self, host: &mut HostUnderTest) {
        if self.over.is_none() {
            self.over = Some(CloseReason::Aborted);
            host.net.abort(self.connection);
            host.speak();
        }
    }

    /// Handles an event of the connection.
    pub(super) fn learn(&mut self, happened: &Happened, host: &mut HostUnderTest) {
        match happened {
            Happened::Accepted { .. } => {}
            Happened::Connected(_) => {
                self.connected = true;
                self.events_out += 1;
                self.push(host);
            }
            Happened::Received(_) => {
                self.events_in += 1;
                if self.deaf {
                    self.abort(host);
                }
            }
            Happened::SendRoom(_) => self.push(host),
            Happened::PeerClosed(_) => {
                self.peer_closed = true;
                self.events_in += 1;
            }
            Happened::Left(_, bytes) => self.held.extend(bytes),
            Happened::Closed(_, reason) => self.ended(*reason),
        }
    }

    fn ended(&mut self, reason: CloseReason) {
        self.over = Some(reason);
        self.events_in += 1;
        self.events_out += 1;
        self.error = match reason {
            CloseReason::Normal | CloseReason::Aborted => None,
            CloseReason::Reset => Some("ECONNRESET"),
            CloseReason::Refused => Some("ECONNREFUSED"),
            CloseReason::TimedOut => Some("ETIMEDOUT"),
        };
    }
}

/// The kind of a socket.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Kind {
    /// A socket that neither listens nor is connected.
    Fresh,
    /// A listener with this number, and the lines of connections that the program has not accepted
    /// yet.
    Listens { service: u8, waiting: VecDeque<usize> },
    /// A socket that is connected or connecting, with the index of its line.
    SocketLine(usize),
    /// An epoll instance that watches other sockets.
    Watcher(BTreeMap<i64, Watched>),
    /// A file of zeros.
    File,
}

/// A socket that an epoll instance watches.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Watched {
    pub(super) events: i64,
    /// The data that `epoll_wait` returns with the events.
    pub(super) data: i64,
    /// The event counters at the last report, for edge triggering.
    pub(super) reported: (u64, u64),
}

/// A socket.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Socket {
    pub(super) kind: Kind,
    /// Whether calls return at once.
    pub(super) nonblocking: bool,
    pub(super) port: Option<u16>,
    /// Whether `close` resets the connection.
    pub(super) linger_zero: bool,
    /// The options that were set, by name.
    pub(super) options: BTreeMap<String, i64>,
    /// Whether `connect` was called, and its result was not reported yet.
    pub(super) connecting: bool,
}

impl Socket {
    pub(super) fn new(kind: Kind, nonblocking: bool) -> Socket {
        Socket {
            kind,
            nonblocking,
            port: None,
            linger_zero: false,
            options: BTreeMap::new(),
            connecting: false,
        }
    }
}
