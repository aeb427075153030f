//! How much of what there is of everything is in use.

use core::iter::Sum;

use net::Sending;

use crate::server::Server;
use crate::sizes::Sizes;

/// Defines [`InUse`], and how those of all cores are added.
macro_rules! in_use {
    ($($(#[$doc:meta])* $field:ident,)*) => {
        /// What sessions hold at this moment. Nothing of it when there is none.
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
    /// Connections, those included that only wait for their end.
    connections,
    /// Those that we have opened, as what owns them knows of them.
    opened,
    /// Sessions.
    sessions,
    /// Handshakes of TLS that are not done.
    handshakes,
    /// Connections of TLS, those among them.
    tls_connections,
    /// SMTP transactions.
    transactions,
    /// Logins that wait for a hash, or for their answer.
    logins,
    /// Locked maildrops of the core's accounts, by clients of all cores.
    maildrops,
    /// Messages in them.
    maildrop_messages,
    /// Messages on their way to the disk.
    deliveries,
    /// Parts of messages on their way from the disk, or not yet done with.
    reads,
    /// Questions that wait for name servers.
    questions,
    /// Strangers who are looked up in lists.
    searches,
    /// Senders about whom something is being found out.
    checks,
    /// Bytes that are kept of messages while it is found out whose they are.
    kept_for_proofs,
    /// Letters about which the filter is asked, or waited for.
    inquiries,
    /// Bytes that are kept of letters for it.
    kept_for_filter,
    /// Bytes that are kept of letters until they are signed.
    kept_for_signatures,
    /// Requests of the webmail that clerks of this core work on.
    visits,
    /// Letters that are brought to others.
    couriers,
    /// Connections to destinations of mail, of all cores, that this core has granted.
    granted,
    /// Pages that are told of changes of this core's mail.
    listeners,
    /// Bytes that clients make the core keep, of what is charged to them.
    memory,
    /// Bytes that sessions keep and that are not charged. Zero between two turns.
    uncharged,
    /// Bytes of forms and replies of HTTP that sessions hold.
    bodies,
    /// Blocks of bytes that were received and not taken, or sent and not acknowledged.
    blocks,
    /// Connections that have something to send, or to be acknowledged.
    send_queues,
    /// Connections that keep received bytes.
    receive_queues,
    /// Frames that other cores have of this one: of its card's, or to be sent for it.
    frames_away,
}

impl InUse {
    /// What is in use now. Looks at every session.
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
            deliveries: parts.store.letters_under_way(),
            reads: parts.store.reads_under_way(),
            questions: services.names.under_way(),
            searches: inbound.searches,
            checks: inbound.checks,
            kept_for_proofs: inbound.kept_for_proofs,
            inquiries: inbound.inquiries,
            kept_for_filter: inbound.kept_for_filter,
            kept_for_signatures: parts.signer.kept_bytes(),
            visits: services.webmail.clerks.under_way(),
            couriers: services.outbound.under_way(),
            granted: parts.store.own.facts.connections(),
            listeners: services.webmail.clerks.listeners(),
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
