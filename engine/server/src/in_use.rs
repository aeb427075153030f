//! How much of what there is of everything is in use.

use core::iter::Sum;

use connections::Handshakes;

use crate::engine::Engine;
use crate::sending::Parcels;

/// What sessions hold at this moment. Nothing of it when there is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct InUse {
    /// Connections, those included that only wait for their end.
    pub connections: usize,
    /// Those that we have opened, as what owns them knows of them.
    pub opened: usize,
    /// Sessions.
    pub sessions: usize,
    /// Handshakes of TLS that are not done.
    pub handshakes: usize,
    /// Connections of TLS, those among them.
    pub tls_connections: usize,
    /// SMTP transactions.
    pub transactions: usize,
    /// Logins that wait for a hash, or for their answer.
    pub logins: usize,
    /// Locked maildrops of the core's accounts, by clients of all cores.
    pub maildrops: usize,
    /// Messages in them.
    pub maildrop_messages: usize,
    /// Messages on their way to the disk.
    pub deliveries: usize,
    /// Parts of messages on their way from the disk, or not yet done with.
    pub reads: usize,
    /// Questions that wait for name servers.
    pub questions: usize,
    /// Strangers who are looked up in lists.
    pub searches: usize,
    /// Senders about whom something is being found out.
    pub checks: usize,
    /// Bytes that are kept of messages while it is found out whose they are.
    pub kept_for_proofs: usize,
    /// Letters about which the filter is asked, or waited for.
    pub inquiries: usize,
    /// Bytes that are kept of letters for it.
    pub kept_for_filter: usize,
    /// Bytes that are kept of letters until they are signed.
    pub kept_for_signatures: usize,
    /// Requests of the webmail that clerks of this core work on.
    pub visits: usize,
    /// Letters that are brought to others.
    pub couriers: usize,
    /// Pages that are told of changes of this core's mail.
    pub listeners: usize,
    /// Bytes that clients make the core keep, of what is charged to them.
    pub memory: usize,
    /// Bytes that sessions keep and that are not charged. Zero between two turns.
    pub uncharged: usize,
    /// Bytes of forms and replies of HTTP that sessions hold.
    pub bodies: usize,
    /// Blocks of bytes that were received and not taken, or sent and not acknowledged.
    pub blocks: usize,
    /// Connections that have something to send, or to be acknowledged.
    pub send_queues: usize,
    /// Connections that keep received bytes.
    pub receive_queues: usize,
    /// Frames that other cores have of this one: of its card's, or to be sent for it.
    pub frames_away: usize,
}

impl Sum for InUse {
    fn sum<I: Iterator<Item = InUse>>(all: I) -> InUse {
        all.fold(InUse::default(), |one, other| InUse {
            connections: one.connections + other.connections,
            opened: one.opened + other.opened,
            sessions: one.sessions + other.sessions,
            handshakes: one.handshakes + other.handshakes,
            tls_connections: one.tls_connections + other.tls_connections,
            transactions: one.transactions + other.transactions,
            logins: one.logins + other.logins,
            maildrops: one.maildrops + other.maildrops,
            maildrop_messages: one.maildrop_messages + other.maildrop_messages,
            deliveries: one.deliveries + other.deliveries,
            reads: one.reads + other.reads,
            questions: one.questions + other.questions,
            searches: one.searches + other.searches,
            checks: one.checks + other.checks,
            kept_for_proofs: one.kept_for_proofs + other.kept_for_proofs,
            inquiries: one.inquiries + other.inquiries,
            kept_for_filter: one.kept_for_filter + other.kept_for_filter,
            kept_for_signatures: one.kept_for_signatures + other.kept_for_signatures,
            visits: one.visits + other.visits,
            couriers: one.couriers + other.couriers,
            listeners: one.listeners + other.listeners,
            memory: one.memory + other.memory,
            uncharged: one.uncharged + other.uncharged,
            bodies: one.bodies + other.bodies,
            blocks: one.blocks + other.blocks,
            send_queues: one.send_queues + other.send_queues,
            receive_queues: one.receive_queues + other.receive_queues,
            frames_away: one.frames_away + other.frames_away,
        })
    }
}

impl Engine {
    /// How handshakes of TLS have ended since the start.
    pub fn handshakes(&self) -> Handshakes {
        *self.common.connections.tls().outcomes()
    }

    /// What is in use now. Looks at every session: for people and tests, not for every turn.
    pub fn in_use(&self) -> InUse {
        let (sizes, common, inbound) = (self.sizes.pools(), &self.common, self.services.inbound.in_use());
        let pools = common.connections.net().pools();
        let maildrops = common.store.maildrops();
        let conversations = self.sessions.iter().flatten().filter_map(|session| session.http());
        let uncharged = conversations.map(|conversation| conversation.uncharged());
        InUse {
            connections: common.connections.net().connection_count(),
            opened: common.connections.opened(),
            sessions: self.sessions.iter().flatten().count(),
            handshakes: common.connections.tls().handshakes(),
            tls_connections: common.connections.tls().connections(),
            transactions: self.sizes.transactions - inbound.transactions_left,
            logins: common.logins.under_way(),
            maildrops: maildrops.count(),
            maildrop_messages: maildrops.messages(),
            deliveries: common.store.letters_under_way(),
            reads: common.store.reads_under_way(),
            questions: common.names.under_way(),
            searches: inbound.searches,
            checks: inbound.checks,
            kept_for_proofs: inbound.kept_for_proofs,
            inquiries: inbound.inquiries,
            kept_for_filter: inbound.kept_for_filter,
            kept_for_signatures: common.signer.kept_bytes(),
            visits: common.clerks.under_way(),
            couriers: self.outbound.under_way(),
            listeners: common.clerks.listeners.count(),
            memory: common.memory.held(),
            uncharged: uncharged.sum(),
            bodies: self.services.web.held(),
            blocks: sizes.blocks - pools.free_blocks(),
            send_queues: sizes.send_queues - pools.free_send_queues(),
            receive_queues: sizes.receive_queues - pools.free_receive_queues(),
            frames_away: common.connections.net().frames_away() + self.parcels.as_ref().map_or(0, Parcels::under_way),
        }
    }
}
