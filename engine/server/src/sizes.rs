//! The sizes of all tables and pools. They are calculated once, from the memory of the machine,
//! printed, and never exceeded.

use core::fmt;

use connections::{Connections, TlsTable};
use machine::BLOCK_BYTES;
use net::tcp::PoolSizes;
use web::KEPT_BYTES_LEAST;

/// The part of the smallest memory (`configuration`) that a core always takes: the hasher, tables
/// of fixed size, the buffers of the card, and rounding.
const FIXED_BYTES: u64 = 48 << 20;

/// Bytes of the pool for each possible connection, in addition to its least share.
const KEPT_BYTES_POOLED: usize = 1024;

/// Bytes of a session, which is in the slot of its connection.
pub(crate) const SESSION_BYTES: usize = 216;

/// Bytes of the pool for messages that are being checked.
pub(crate) const CHECKED_BYTES_POOLED: usize = 2 << 20;

/// Bytes of the pools for checks of messages: DNS answers about senders, and headers until they are
/// checked or signed.
const JUDGED_BYTES_POOLED: usize = CHECKED_BYTES_POOLED + signing::POOL_BYTES;
/// Bytes that each message has for its check or signature even if the pools are empty.
const JUDGED_BYTES_LEAST: usize = signing::LEAST_BYTES as usize;
/// Messages of the webmail and forwarded messages that may be signed at a time, besides SMTP.
const SIGNED_BESIDE: usize = 64;

/// Memory for each possible connection, including one buffer in use.
const BYTES_PER_CONNECTION: u64 = 16 << 10;
const CONNECTIONS_MAX: u64 = 65_536;
/// Memory for each possible SMTP transaction. It only sets the number of transactions, since their
/// buffers come from a pool.
const BYTES_PER_TRANSACTION: u64 = 640 << 10;
/// Limits for the pools of large machines, since pools are filled at boot: 1 GiB of blocks, 128 MiB
/// of buffers.
const BLOCKS_MAX: u64 = 131_072;
const BUFFER_BYTES_MAX: u64 = 128 << 20;

/// Bytes of memory for an idle connection, including its session and all tables.
const IDLE_CONNECTION_BYTES: usize = Connections::SLOT_BYTES + SESSION_BYTES;

const _: () = assert!(IDLE_CONNECTION_BYTES <= 640, "many connections are open and few are busy");

/// The sizes of one core.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sizes {
    /// Concurrent connections.
    pub connections: usize,
    /// Concurrent SMTP transactions.
    pub transactions: usize,
    /// Blocks of 8 KiB lent to connections that send, or that wait to be read.
    pub blocks: usize,
    /// Bytes for bodies on their way to and from the disk.
    pub buffer_bytes: usize,
    /// The maximum number of bytes of the store's index.
    pub index_bytes: u64,
}

impl Sizes {
    /// The sizes for each of `cores` cores that have `memory_bytes` together. `None` for less than
    /// [`Sizes::memory_bytes_min`]. A sixteenth of the memory is for connections' buffers, and half
    /// as much for bodies on their way to and from the disk. A quarter of what remains after the
    /// fixed part is for the store's index, which grows. The rest is for tables, and for data that
    /// clients make the core keep.
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

    /// The maximum number of bytes of HTTP bodies at a time.
    pub(crate) fn http_bodies_bytes(&self) -> usize {
        (self.buffer_bytes / 2).max(512 * 1024)
    }

    /// The maximum number of charged bytes that clients may make the core keep.
    pub fn kept_bytes_max(&self) -> usize {
        self.connections * KEPT_BYTES_LEAST as usize + self.memory_pool_bytes()
    }

    /// Bytes of the pool that clients share, above their least shares.
    pub(crate) fn memory_pool_bytes(&self) -> usize {
        self.connections * KEPT_BYTES_POOLED
    }

    /// The maximum number of bytes that the core may take after its start: the least shares of all
    /// connections and their TLS, the pool above them, the store's index, and all else with its own
    /// limit. The machine checks that they are available.
    pub fn promised_bytes(&self) -> u64 {
        let connections = self.kept_bytes_max() + self.connections * tls::CONNECTION_BYTES_MAX;
        let handshakes = TlsTable::handshakes_max(self.connections) * tls::HANDSHAKE_BYTES_MAX;
        // Bodies of requests and of replies, which may grow by doubling.
        let bodies = 3 * self.http_bodies_bytes();
        let judged = JUDGED_BYTES_POOLED + (self.transactions + SIGNED_BESIDE) * JUDGED_BYTES_LEAST;
        let headers = store::SHORT_HEADERS_BYTES_MAX;
        self.index_bytes + (connections + handshakes + bodies + judged + headers) as u64
    }

    /// The maximum number of bytes of messages that are kept for a filter at a time.
    pub(crate) fn filter_bytes(&self) -> usize {
        self.buffer_bytes.max(4 * filter::MESSAGE_OCTETS_MAX)
    }

    /// The smallest memory for this many cores, in bytes.
    pub const fn memory_bytes_min(cores: u8) -> u64 {
        configuration::memory_bytes_min(cores)
    }

    /// The sizes of the pools of the network. There are at least eight receive queues: with fewer,
    /// two slow clients could block all others.
    pub(crate) fn pools(&self) -> PoolSizes {
        let receive_queues = (self.connections / 8).max(8);
        PoolSizes { blocks: self.blocks, send_queues: self.connections / 2, receive_queues }
    }

    /// The limits of the shards for each of `cores` cores.
    pub(crate) fn of_shards(&self, cores: u8) -> shards::Limits {
        shards::Limits {
            store: self.store_limits(cores),
            transactions: self.transactions,
            remote_deliveries: self.remote_deliveries(cores),
        }
    }

    /// The maximum number of messages for other cores at a time, at least one for each core.
    fn remote_deliveries(&self, cores: u8) -> usize {
        self.transactions.max(usize::from(cores) - 1)
    }

    /// The limits of each core's store. With several cores, messages of all other cores together
    /// may have as much as messages of the core itself.
    fn store_limits(&self, cores: u8) -> store::Limits {
        let deliveries = if cores > 1 { 2 * self.transactions } else { self.transactions };
        store::Limits {
            deliveries,
            recipients: smtp::SmtpSettings::default().recipients_max.into(),
            reads: deliveries,
            buffer_bytes: self.buffer_bytes,
            resident_bytes: self.index_bytes,
        }
    }
}

/// Writes the sizes for display.
impl fmt::Display for Sizes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Sizes { connections, transactions, blocks, buffer_bytes, index_bytes } = self;
        let (buffer_mib, index_mib) = (buffer_bytes >> 20, index_bytes >> 20);
        write!(
            out,
            "{connections} connections ({IDLE_CONNECTION_BYTES} bytes for each idle one), {transactions} SMTP transactions, {blocks} blocks of {BLOCK_BYTES} bytes, \
             {buffer_mib} MiB of buffers, {index_mib} MiB of index"
        )
    }
}
