//! How much of everything, from how much memory the machine has. Decided once, printed, and never exceeded.

use core::fmt;

use connections::{Connections, TlsTable};
use machine::BLOCK_BYTES;
use net::tcp::PoolSizes;
use web::KEPT_BYTES_LEAST;

/// Of the least memory (`configuration`), what a core takes whatever the memory: the hasher's, tables of one size, the card's
/// buffers, and what is lost in rounding sizes up.
const FIXED_BYTES: u64 = 48 << 20;

/// Bytes of the pool above that, for each connection that there may be.
const KEPT_BYTES_POOLED: usize = 1024;

/// Bytes of a session, which stands in the slot of its connection.
pub(crate) const SESSION_BYTES: usize = 216;

/// Bytes of the pool for what is kept of messages while they are checked.
pub(crate) const CHECKED_BYTES_POOLED: usize = 2 << 20;

/// Bytes of the pools for what is found out about messages: answers of name servers about their
/// senders, and headers that are kept until they are checked or signed.
const JUDGED_BYTES_POOLED: usize = CHECKED_BYTES_POOLED + signing::POOL_BYTES;
/// Bytes of that which each message has, whatever the pools have: it is checked or signed.
const JUDGED_BYTES_LEAST: usize = signing::LEAST_BYTES as usize;
/// Messages of the webmail, and those that are sent on, that may be signed at a time.
const SIGNED_BESIDE: usize = 64;

/// Memory for each connection that there may be, one buffer in use counted in.
const BYTES_PER_CONNECTION: u64 = 16 << 10;
const CONNECTIONS_MAX: u64 = 65_536;
/// Memory for each SMTP transaction that there may be. Its buffers are lent from a pool, so this
/// sets their number only.
const BYTES_PER_TRANSACTION: u64 = 640 << 10;
/// Pools are filled at boot, so a large machine's grow no further than serves: 512 MiB of blocks, 128 of buffers.
const BLOCKS_MAX: u64 = 131_072;
const BUFFER_BYTES_MAX: u64 = 128 << 20;

/// Bytes of memory for a connection that waits for its client, its session and all tables counted in.
const IDLE_CONNECTION_BYTES: usize = Connections::SLOT_BYTES + SESSION_BYTES;

const _: () = assert!(IDLE_CONNECTION_BYTES <= 640, "many connections are open and few are busy");

/// How much of everything one core has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sizes {
    /// Connections at once.
    pub connections: usize,
    /// SMTP transactions at once.
    pub transactions: usize,
    /// Blocks of 8 KiB lent to connections that send, or wait to be read.
    pub blocks: usize,
    /// Bytes for bodies on their way to and from the disk.
    pub buffer_bytes: usize,
    /// Bytes that the index of the store may grow to.
    pub index_bytes: u64,
}

impl Sizes {
    /// The sizes for each of `cores` cores that have `memory_bytes` together; `None` for less than
    /// [`Sizes::memory_bytes_min`]. A sixteenth is for what connections send and receive, half of
    /// that for bodies on their way to and from the disk. Of what tables of a fixed size leave, a
    /// quarter is for the store's index, which grows; the rest is for tables, and for what clients
    /// make the core keep.
    pub fn for_memory(memory_bytes: u64, cores: u8) -> Option<Sizes> {
        let share_bytes = memory_bytes / u64::from(cores.max(1));
        let scaled_bytes = share_bytes.saturating_sub(FIXED_BYTES);
        let connections = (scaled_bytes / BYTES_PER_CONNECTION).min(CONNECTIONS_MAX) as usize;
        (memory_bytes >= Sizes::memory_bytes_min(cores)).then_some(Sizes {
            connections,
            transactions: (share_bytes / BYTES_PER_TRANSACTION).min(CONNECTIONS_MAX / 32) as usize,
            blocks: (share_bytes / 16 / BLOCK_BYTES as u64).min(BLOCKS_MAX) as usize,
            buffer_bytes: (share_bytes / 32).min(BUFFER_BYTES_MAX) as usize,
            index_bytes: scaled_bytes / 4,
        })
    }

    /// Bytes that bodies of HTTP's requests may take at a time.
    pub(crate) fn http_bodies_bytes(&self) -> usize {
        (self.buffer_bytes / 2).max(512 * 1024)
    }

    /// Bytes that clients may make the core keep, of what is charged to them.
    pub fn kept_bytes_max(&self) -> usize {
        self.connections * KEPT_BYTES_LEAST as usize + self.memory_pool_bytes()
    }

    /// Bytes of the pool that clients share, above their least shares.
    pub(crate) fn memory_pool_bytes(&self) -> usize {
        self.connections * KEPT_BYTES_POOLED
    }

    /// Bytes that the core may take after its start, at most: the least shares of all connections
    /// and their TLS, the pool above them, the store's index, and all else that has a limit of its
    /// own. The machine checks that they are there.
    pub fn promised_bytes(&self) -> u64 {
        let connections = self.kept_bytes_max() + self.connections * tls::CONNECTION_BYTES_MAX;
        let handshakes = TlsTable::handshakes_max(self.connections) * tls::HANDSHAKE_BYTES_MAX;
        // Bodies of requests, and those of replies, which may grow by doubling.
        let bodies = 3 * self.http_bodies_bytes();
        let judged = JUDGED_BYTES_POOLED + (self.transactions + SIGNED_BESIDE) * JUDGED_BYTES_LEAST;
        self.index_bytes + (connections + handshakes + bodies + judged) as u64
    }

    /// Bytes of letters that may be kept for a filter at a time, where there is one.
    pub(crate) fn filter_bytes(&self) -> usize {
        self.buffer_bytes.max(4 * filter::MESSAGE_OCTETS_MAX)
    }

    /// The smallest memory that so many cores run in together, in bytes.
    pub const fn memory_bytes_min(cores: u8) -> u64 {
        configuration::memory_bytes_min(cores)
    }

    /// For few connections an eighth of receive queues is too few: two slow clients would hold up
    /// all.
    pub(crate) fn pools(&self) -> PoolSizes {
        let receive_queues = (self.connections / 8).max(8);
        PoolSizes { blocks: self.blocks, send_queues: self.connections / 2, receive_queues }
    }

    /// How much each of `cores` cores may have of the shards.
    pub(crate) fn of_shards(&self, cores: u8) -> shards::Limits {
        shards::Limits {
            store: self.store_limits(cores),
            transactions: self.transactions,
            letters_for_others: self.letters_for_others(cores),
        }
    }

    /// Letters for accounts of other cores that each of `cores` may have under way: one for all of them at least.
    fn letters_for_others(&self, cores: u8) -> usize {
        self.transactions.max(usize::from(cores) - 1)
    }

    /// The limits of each core's store. Where there are several cores, as much is for all others together as for the core itself.
    fn store_limits(&self, cores: u8) -> store::Limits {
        let letters = if cores > 1 { 2 * self.transactions } else { self.transactions };
        store::Limits {
            deliveries: letters,
            recipients: smtp::Settings::default().recipients_max.into(),
            reads: letters,
            buffer_bytes: self.buffer_bytes,
            resident_bytes: self.index_bytes,
        }
    }
}

/// For people.
impl fmt::Display for Sizes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Sizes { connections, transactions, blocks, buffer_bytes, index_bytes } = self;
        let (buffer_mib, index_mib) = (buffer_bytes >> 20, index_bytes >> 20);
        write!(
            out,
            "{connections} connections ({IDLE_CONNECTION_BYTES} bytes for one that is idle), {transactions} SMTP transactions, {blocks} blocks of {BLOCK_BYTES} bytes, \
             {buffer_mib} MiB of buffers, {index_mib} MiB of index"
        )
    }
}
