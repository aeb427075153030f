//! Limits of the connections of an address or network, and the replies to refused clients.

use connections::Caller;
use inbound::inbound_policy_applies;
use machine::Protocol;
use mail::ConnectionKind;

use crate::session::Context;

/// Whether the connection counts for the limits of its address and network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LimitState {
    /// The configuration exempts the client's address.
    Exempt,
    Counted(ConnectionKind),
    /// The address or network has too many connections, so this one is refused.
    Refused,
}

impl LimitState {
    /// Begins counting a new connection.
    pub(super) fn arrives(caller: Caller, cx: &mut Context<'_>) -> LimitState {
        if cx.parts.logins.access().is_unthrottled(caller.address) {
            return LimitState::Exempt;
        }
        let kind =
            if inbound_policy_applies(caller, cx.parts.connections.net(), cx.parts.logins.access())
            {
                ConnectionKind::Mail
            } else {
                ConnectionKind::Client
            };
        match cx.inbound.rate_limits().arrives(kind, caller.address, cx.parts.turn.now) {
            true => LimitState::Counted(kind),
            false => LimitState::Refused,
        }
    }

    /// Whether the client was refused, or the share of its address or network is larger than
    /// `share`.
    pub(super) fn is_one_of_too_many(
        self,
        share: u32,
        caller: Caller,
        cx: &mut Context<'_>,
    ) -> bool {
        match self {
            LimitState::Exempt => false,
            LimitState::Refused => true,
            LimitState::Counted(_) => cx.inbound.rate_limits().share_of(caller.address) > share,
        }
    }

    /// Stops counting the connection.
    pub(super) fn leaves(self, caller: Caller, cx: &mut Context<'_>) {
        if let LimitState::Counted(kind) = self {
            cx.inbound.rate_limits().leaves(kind, caller.address);
        }
    }
}

/// The reply to a client if the server is full.
pub(super) fn busy(protocol: Protocol) -> &'static [u8] {
    match protocol {
        Protocol::Smtp | Protocol::Submission => smtp::BUSY,
        Protocol::Pop3 => pop3::BUSY,
        Protocol::Http => http::BUSY,
        Protocol::Http2 => http::h2::BUSY,
    }
}

/// The reply to a client with too many connections from its address.
pub(super) fn too_many(protocol: Protocol) -> &'static [u8] {
    match protocol {
        Protocol::Smtp | Protocol::Submission => smtp::TOO_MANY_CONNECTIONS,
        Protocol::Pop3 | Protocol::Http | Protocol::Http2 => busy(protocol),
    }
}
