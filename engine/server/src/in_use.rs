//! How much of what there is of everything is in use.

use crate::engine::Engine;

/// What sessions hold at this moment. Nothing of it when there is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct InUse {
    /// Connections, those included that only wait for their end.
    pub connections: usize,
    /// Sessions.
    pub sessions: usize,
    /// SMTP transactions.
    pub transactions: usize,
    /// Logins that wait for the hasher, or for their answer.
    pub logins: usize,
    /// Locked maildrops.
    pub maildrops: usize,
    /// Messages in them.
    pub maildrop_messages: usize,
    /// Messages on their way to the disk.
    pub deliveries: usize,
    /// Parts of messages on their way from the disk, or not yet done with.
    pub reads: usize,
    /// Blocks of bytes that were received and not taken, or sent and not acknowledged.
    pub blocks: usize,
    /// Connections that have something to send, or to be acknowledged.
    pub send_queues: usize,
    /// Connections that keep received bytes.
    pub receive_queues: usize,
}

impl Engine {
    /// What is in use now. Looks at every session: for people and tests, not for every turn.
    pub fn in_use(&self) -> InUse {
        let (sizes, common) = (self.sizes.pools(), &self.common);
        let pools = common.net.pools();
        InUse {
            connections: common.net.connection_count(),
            sessions: self.sessions.iter().flatten().count(),
            transactions: self.sizes.transactions - common.transactions.len(),
            logins: common.logins.under_way(),
            maildrops: common.maildrops.len(),
            maildrop_messages: common.open_messages,
            deliveries: common.store.deliveries_under_way(),
            reads: common.store.reads_under_way(),
            blocks: sizes.blocks - pools.free_blocks(),
            send_queues: sizes.send_queues - pools.free_send_queues(),
            receive_queues: sizes.receive_queues - pools.free_receive_queues(),
        }
    }
}
