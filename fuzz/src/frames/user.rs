//! The network's user. It has a few connections, and checks the bytes and events of each.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use machine::{Frame, Instant, Piece};
use net::{ConnectionId, Event, Net, Service};

use super::PORT;
use super::action::UserAction;
use super::peers::{Peers, byte_at};

/// A connection of the user.
struct Held {
    connection: ConnectionId,
    /// The sequence number of the next byte to be received. `None` if unknown.
    next: Option<u32>,
    /// Whether the connection is established.
    is_open: bool,
}

#[derive(Default)]
pub(super) struct User {
    held: Vec<Held>,
    /// The user leaves this many of each 256 arriving bytes for later.
    left: u8,
}

impl User {
    pub(super) fn receive(
        &mut self,
        events: &[Event],
        frame: &Frame,
        net: &mut Net,
        peers: &Peers,
    ) {
        for event in events {
            match event.clone() {
                Event::Accepted { connection, peer, .. } => {
                    let next = match peer.ip() {
                        IpAddr::V4(address) => peers.stream_begins((address, peer.port())),
                        IpAddr::V6(_) => None,
                    };
                    assert!(
                        !self.held.iter().any(|held| held.connection.index() == connection.index())
                    );
                    self.held.push(Held { connection, next, is_open: true });
                }
                Event::Connected { connection } => {
                    let held = self.held.iter_mut().find(|held| held.connection == connection);
                    held.expect("only a requested connection is established").is_open = true;
                }
                Event::Data { connection, bytes } => {
                    let data = frame.bytes().get(bytes).expect("the data is part of the frame");
                    assert!(!data.is_empty(), "an event of data has bytes");
                    let taken = data.len() - data.len() * usize::from(self.left) / 256;
                    self.take(connection, &data[..taken], peers);
                    net.keep(connection, &data[taken..]);
                }
                Event::Buffered { connection }
                | Event::SendRoom { connection }
                | Event::PeerClosed { connection } => {
                    assert!(self.holds(connection), "{event:?} of a connection that is over");
                }
                Event::Closed { connection, .. } => {
                    assert!(self.holds(connection), "a connection is closed once");
                    self.held.retain(|held| held.connection != connection);
                }
                Event::Datagram { bytes, .. } => {
                    let _ = net.datagram(frame.bytes(), &bytes);
                }
                Event::AddressChanged { address } => assert_eq!(address, net.address()),
                Event::Ipv6AddressesChanged | Event::AddressTaken { .. } => {
                    assert!(peers.uses_ipv6, "an event of IPv6 without IPv6");
                }
            }
        }
    }

    fn holds(&self, connection: ConnectionId) -> bool {
        self.held.iter().any(|held| held.connection == connection)
    }

    fn take(&mut self, connection: ConnectionId, data: &[u8], peers: &Peers) {
        let held = self.held.iter_mut().find(|held| held.connection == connection);
        let held = held.expect("data belongs to an open connection");
        let Some(next) = &mut held.next else { return };
        for byte in data {
            assert!(
                peers.sent_free_bytes || *byte == byte_at(*next),
                "the byte at {next} differs from the peer's byte"
            );
            *next = next.wrapping_add(1);
        }
    }

    pub(super) fn perform(
        &mut self,
        action: &UserAction,
        now: Instant,
        net: &mut Net,
        peers: &Peers,
    ) {
        match *action {
            UserAction::Connect { peer, port } => {
                let to = SocketAddr::from((
                    Ipv4Addr::new(10, 0, 0, 3 + peer % 5),
                    4_000 + u16::from(port % 3),
                ));
                if let Ok(connection) = net.connect(now, to) {
                    self.held.push(Held { connection, next: None, is_open: false });
                }
            }
            UserAction::Datagram { peer, count } => {
                let to = SocketAddr::from((Ipv4Addr::new(10, 0, 0, 3 + peer % 8), 53));
                let _ = net.send_datagram(now, 53, to, &vec![7; usize::from(count) * 6]);
            }
            UserAction::Take { share } => self.left = 255 - share,
            UserAction::Listen { on: true } => {
                net.listen(PORT, Service(1));
            }
            UserAction::Listen { on: false } => net.stop_listening(PORT),
            UserAction::Read { which, .. }
            | UserAction::Send { which, .. }
            | UserAction::SendPiece { which, .. }
            | UserAction::WantRoom { which }
            | UserAction::Close { which }
            | UserAction::Abort { which } => self.perform_on(which, action, now, net, peers),
        }
    }

    fn perform_on(
        &mut self,
        which: u8,
        action: &UserAction,
        now: Instant,
        net: &mut Net,
        peers: &Peers,
    ) {
        let Some(number) = usize::from(which).checked_rem(self.held.len()) else { return };
        let connection = self.held[number].connection;
        match *action {
            UserAction::Read { count, .. } => {
                let waiting = net.waiting(connection);
                let taken = waiting[..waiting.len().min(usize::from(count))].to_vec();
                self.take(connection, &taken, peers);
                net.consumed(connection, taken.len());
            }
            UserAction::Send { count, .. } => {
                let room = net.send_room(connection);
                let sent = net.send(now, connection, &vec![9; usize::from(count)]);
                assert!(sent >= room.min(usize::from(count)), "the reported space is available");
            }
            UserAction::SendPiece { count, .. } => {
                if let Some(block) = net.lend_block() {
                    let piece = Piece::from_block(block, 0..u32::from(count % 4_097));
                    if let Err(piece) = net.send_piece(now, connection, piece) {
                        piece.into_block().into_iter().for_each(|block| net.give_back_block(block));
                    }
                }
            }
            UserAction::WantRoom { .. } => net.want_room(now, connection),
            UserAction::Close { .. } => {
                net.close(connection);
                if !self.held[number].is_open {
                    self.held.swap_remove(number);
                }
            }
            UserAction::Abort { .. } => {
                net.abort(connection);
                self.held.swap_remove(number);
            }
            _ => {}
        }
    }

    pub(super) fn abort_all(&mut self, net: &mut Net) {
        for held in self.held.drain(..) {
            net.abort(held.connection);
        }
    }
}
