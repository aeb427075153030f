//! The resources in use.

use core::iter::Sum;

use net::Sending;

use crate::server::Server;
use crate::sizes::Sizes;

/// Defines [`InUse`], and its sum over all cores.
macro_rules! in_use {
    ($($(#[$doc:meta])* $field:ident,)*) => {
        /// The resources in use now. Without clients and work in progress, all values are zero.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub struct InUse {
            $($(#[$doc])* pub $field: usize,)*
        }

        impl Sum for InUse {
            fn sum<I: Iterator<Item = InUse>>(all: I) -> InUse {
                all.fold(InUse::default(), |one, other| InUse { $($field: one.$field + other.$field,)* })
            }
        }
    };
}

in_use! {
    /// Connections, including those that are closing.
    connections,
    /// Outgoing connections that have an owner or are closing.
    opened,
    /// Sessions.
    sessions,
    /// TLS handshakes in progress.
    handshakes,
    /// TLS connections, including those with handshakes in progress.
    tls_connections,
    /// SMTP transactions.
    transactions,
    /// Logins that wait for a hash, or for their reply.
    logins,
    /// Locked maildrops of the core's accounts, by clients of all cores.
    maildrops,
    /// Messages in the locked maildrops.
    maildrop_messages,
    /// Messages that are being written to the disk.
    deliveries,
    /// Parts of messages that are being read from the disk, or are still in use.
    reads,
    /// DNS queries in progress.
    questions,
    /// Clients being looked up in DNS lists.
    searches,
    /// Senders being checked.
    checks,
    /// Bytes of messages kept until their senders are checked.
    kept_for_checks,
    /// Messages with a filter query that is being sent, or that waits for its answer.
    filter_queries,
    /// Bytes of messages kept for the filter.
    kept_for_filter,
    /// Bytes of messages kept until they are signed.
    kept_for_signatures,
    /// Webmail requests that handlers of this core work on.
    webmail_requests,
    /// Delivery attempts in progress.
    delivery_attempts,
    /// Connections to mail destinations that this core has granted to all cores.
    granted_connections,
    /// Open pages of the webmail that are notified of changes in mailboxes of this core's accounts.
    listeners,
    /// Bytes that clients make the core keep and that are charged to them.
    memory,
    /// Bytes that sessions keep and that are not charged. Zero between two turns.
    uncharged,
    /// Bytes of HTTP request and reply bodies that sessions hold.
    bodies,
    /// Blocks with received bytes that were not taken, or sent bytes that were not acknowledged.
    blocks,
    /// Connections with bytes to send, or to be acknowledged.
    send_queues,
    /// Connections with received bytes that wait.
    receive_queues,
    /// Frames at other cores: received by this core's card, or to be sent for this core.
    frames_away,
}

impl InUse {
    /// The resources in use now. Scans all sessions.
    pub(crate) fn of(server: &Server, sending: &Sending, sizes: &Sizes) -> InUse {
        let Server { parts, services, sessions } = server;
        let (queues, inbound) = (sizes.pools(), services.inbound.in_use());
        let pools = parts.connections.net().pools();
        let maildrops = parts.store.maildrops();
        let conversations = sessions.iter().filter_map(|session| session.http());
        let uncharged = conversations.map(|conversation| conversation.uncharged());
        InUse {
            connections: parts.connections.net().connection_count(),
            opened: parts.connections.opened(),
            sessions: sessions.iter().count(),
            handshakes: parts.connections.tls().handshakes(),
            tls_connections: parts.connections.tls().connections(),
            transactions: sizes.transactions - inbound.transactions_left,
            logins: parts.logins.under_way(),
            maildrops: maildrops.count(),
            maildrop_messages: maildrops.messages(),
            deliveries: parts.store.deliveries_in_progress(),
            reads: parts.store.reads_under_way(),
            questions: services.names.under_way(),
            searches: inbound.searches,
            checks: inbound.checks,
            kept_for_checks: inbound.kept_for_checks,
            filter_queries: inbound.inquiries,
            kept_for_filter: inbound.kept_for_filter,
            kept_for_signatures: parts.signer.kept_bytes(),
            webmail_requests: services.webmail.handlers.under_way(),
            delivery_attempts: services.outbound.under_way(),
            granted_connections: parts.store.own.facts.connections(),
            listeners: services.webmail.handlers.listeners(),
            memory: parts.memory.held(),
            uncharged: uncharged.sum(),
            bodies: services.web.held(),
            blocks: queues.blocks - pools.unheld_blocks(),
            send_queues: queues.send_queues - pools.free_send_queues(),
            receive_queues: queues.receive_queues - pools.free_receive_queues(),
            frames_away: parts.connections.net().frames_away() + sending.under_way(),
        }
    }
}
