//! One end of the conversation: a network, its card, and a session that writes one stream and reads
//! another.

use std::net::Ipv4Addr;

use machine::{Checksum, Frame, Instant, Offloads};
use net::tcp::{CloseReason, PoolSizes};
use net::{
    Addressing, Config, ConnectionId, Cores, Event, Events, Ipv4Interface, Ipv6Addressing, Net,
    OutputProgress, Route, Service,
};
use tasks::Budget;

use super::Choices;
use crate::network::card::CheckedCard;
use crate::network::{hardware, limits};

const PORT: u16 = 25;

/// The byte at position `at` of the stream that `side` writes.
fn pattern(at: u32, side: u8) -> u8 {
    at.wrapping_mul(2_654_435_761).to_be_bytes()[0] ^ side
}

pub(super) struct End {
    pub(super) net: Net,
    card: CheckedCard,
    side: u8,
    connection: Option<ConnectionId>,
    /// The lengths of our stream and of the peer's stream, in bytes.
    totals: [u32; 2],
    /// The queued bytes of our stream.
    queued: u32,
    /// The received bytes of the peer's stream.
    received: u32,
    connected: bool,
    peer_closed: bool,
    has_closed: bool,
    pub(super) has_aborted: bool,
    /// The reason of the close, once the network has reported it.
    pub(super) closed: Option<CloseReason>,
    /// Whether the last output stopped because the card was full or the budget was spent.
    is_card_full: bool,
}

impl End {
    pub(super) fn new(
        side: u8,
        address: Ipv4Addr,
        sizes: PoolSizes,
        totals: [u32; 2],
        offloads: u8,
        now: Instant,
    ) -> End {
        let has = offloads >> side & 1 == 1;
        let card = CheckedCard::new(
            hardware(side + 1),
            Offloads { checksum: has, segmentation_ipv4: has, ..Offloads::default() },
        );
        let own = Ipv4Interface { address, prefix_bits: 24, gateway: None };
        let config = Config {
            addressing: Addressing::Static(own),
            ipv6: Ipv6Addressing::None,
            limits: limits(sizes),
            cores: Cores::ALONE,
        };
        let mut net = Net::new(&config, &machine::Machine::card(&card), &[side + 1; 32], now);
        assert!(net.listen(PORT, Service(1)));
        End {
            net,
            card,
            side,
            connection: None,
            totals,
            queued: 0,
            received: 0,
            connected: false,
            peer_closed: false,
            has_closed: false,
            has_aborted: false,
            closed: None,
            is_card_full: false,
        }
    }

    pub(super) fn connect(&mut self, now: Instant, to: Ipv4Addr) {
        self.connection = self.net.connect(now, (to, PORT).into()).ok();
        assert!(self.connection.is_some(), "there is space for the first connection");
    }

    /// Whether the conversation is over on this side.
    pub(super) fn is_over(&self) -> bool {
        self.net.connection_count() == 0
            && (self.closed.is_some() || self.has_aborted || self.connection.is_none())
    }

    /// Whether the session or the network needs a turn even without an arriving frame.
    pub(super) fn is_busy(&self) -> bool {
        let Some(connection) = self.connection.filter(|_| self.closed.is_none()) else {
            return self.is_card_full;
        };
        self.is_card_full
            || !self.net.waiting(connection).is_empty()
            || self.connected && !self.has_closed
    }

    pub(super) fn has_received_all(&self) -> bool {
        self.received == self.totals[1]
    }

    pub(super) fn receive(&mut self, now: Instant, frame: Vec<u8>, choices: &mut Choices<'_>) {
        let mut frame = Frame::new(frame.into(), 0..usize::MAX, Checksum::Unknown);
        let mut events = Events::new();
        assert_eq!(
            self.net.frame_arrived(now, &mut frame, &mut events),
            Route::Here,
            "there is one core"
        );
        self.handle(&events, &frame, choices);
    }

    pub(super) fn pass_time(&mut self, now: Instant, choices: &mut Choices<'_>) {
        let mut events = Events::new();
        self.net.deadlines_expired(now, &mut events, &mut Budget::new(100));
        self.handle(&events, &Frame::new(Box::default(), 0..0, Checksum::Unknown), choices);
    }

    fn handle(&mut self, events: &Events, frame: &Frame, choices: &mut Choices<'_>) {
        for event in events {
            assert!(self.closed.is_none(), "{event:?} after the end");
            match event.clone() {
                Event::Accepted { connection, .. } => {
                    // A late copy of the first SYN may open a second connection. It has no use.
                    if self.connection.is_some() {
                        self.net.abort(connection);
                        continue;
                    }
                    self.connection = Some(connection);
                    self.connected = true;
                }
                Event::Connected { connection } => {
                    assert!(
                        Some(connection) == self.connection && !self.connected && self.side == 0
                    );
                    self.connected = true;
                }
                Event::Data { connection, bytes } if Some(connection) == self.connection => {
                    let data = &frame.bytes()[bytes];
                    let count = match choices.next() {
                        0..128 => data.len(),
                        choice => data.len() * usize::from(choice - 128) / 128,
                    };
                    self.take(&data[..count]);
                    self.net.keep(connection, &data[count..]);
                }
                Event::PeerClosed { connection } if Some(connection) == self.connection => {
                    assert!(!self.peer_closed, "the end of the stream is reported once");
                    self.peer_closed = true;
                    self.read_all(connection);
                }
                Event::Closed { connection, reason } if Some(connection) == self.connection => {
                    assert!(!self.has_aborted, "an aborted connection has no further event");
                    self.closed = Some(reason);
                }
                Event::Buffered { .. } | Event::SendRoom { .. } => {}
                Event::Data { .. } | Event::PeerClosed { .. } | Event::Closed { .. } => {}
                other => panic!("unexpected event {other:?}"),
            }
        }
    }

    fn take(&mut self, data: &[u8]) {
        for byte in data {
            assert!(self.received < self.totals[1], "more bytes are received than were sent");
            assert_eq!(
                *byte,
                pattern(self.received, 1 - self.side),
                "bytes arrive as they were sent, at {}",
                self.received
            );
            self.received += 1;
        }
    }

    fn read_all(&mut self, connection: ConnectionId) {
        loop {
            let waiting = self.net.waiting(connection).to_vec();
            if waiting.is_empty() {
                return;
            }
            self.take(&waiting);
            self.net.consumed(connection, waiting.len());
        }
    }

    /// The session's turn. It reads or writes some bytes, or aborts the connection. It closes the
    /// connection when all bytes are written.
    pub(super) fn act(&mut self, now: Instant, choices: &mut Choices<'_>) {
        let Some(connection) =
            self.connection.filter(|_| self.closed.is_none() && !self.has_aborted)
        else {
            return;
        };
        if !self.connected {
            return;
        }
        match choices.next() {
            0..100 => {
                self.read_all(connection);
                self.write(now, connection, 20_000);
            }
            100..180 => {
                let count = usize::from(choices.next()) * 16;
                let waiting = self.net.waiting(connection);
                let taken = waiting[..waiting.len().min(count)].to_vec();
                self.take(&taken);
                self.net.consumed(connection, taken.len());
            }
            180..240 => {
                let count = u32::from(choices.next()) * 8;
                self.write(now, connection, count);
            }
            240..254 => {}
            254.. => {
                if choices.next() >= 250 {
                    self.net.abort(connection);
                    self.has_aborted = true;
                }
            }
        }
    }

    fn write(&mut self, now: Instant, connection: ConnectionId, count: u32) {
        if self.has_closed {
            return;
        }
        let count = count.min(self.totals[0] - self.queued);
        let bytes: Vec<u8> = (0..count).map(|at| pattern(self.queued + at, self.side)).collect();
        self.queued += self.net.send(now, connection, &bytes) as u32;
        if self.queued == self.totals[0] {
            self.has_closed = true;
            self.net.close(connection);
        }
    }

    /// The network's turn: it sends its output to the wire, as far as the card has room.
    pub(super) fn transmit(
        &mut self,
        now: Instant,
        choices: &mut Choices<'_>,
        mut send: impl FnMut(Vec<u8>, &mut Choices<'_>),
    ) {
        self.card.ring = match choices.next() {
            0..230 => usize::MAX,
            choice => usize::from(choice - 230) / 4,
        };
        let output = self.net.output(now, &mut self.card, &mut Budget::new(100));
        assert!(
            output != OutputProgress::CardFull || self.card.ring == 0,
            "the network reports a full card only if the card is full"
        );
        self.is_card_full = output != OutputProgress::All;
        for frame in std::mem::take(&mut self.card.sent) {
            send(frame, choices);
        }
    }
}
